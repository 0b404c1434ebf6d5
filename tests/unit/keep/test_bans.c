// SPDX-License-Identifier: GPL-2.0
/* user/keep/bans.h: what a state file carries over, whatever the clock did, and what is refused. */
#include <sys/stat.h>
#include "test.h"
#include "base/clock.h"
#include "capture.h"
#include "keep/bans.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "scratch.h"

#define HOUR_NS (3600 * SEC_NS)

/* A moment, and what a state file of that moment says. */
#define NOON 1795348800 /* 2026-11-22T12:00:00Z */

static void test_what_is_left_of_a_ban(void **state)
{
	static const struct {
		const char *name;
		time_t end;
		uint64_t left_ns;
		time_t now;
		uint64_t expected;
	} cases[] = {
		{"at once", NOON + 3600, HOUR_NS, NOON, HOUR_NS},
		{"an hour later", NOON + 7200, 2 * HOUR_NS, NOON + 3600, HOUR_NS},
		{"at its end", NOON + 3600, HOUR_NS, NOON + 3600, 0},
		{"behind its end", NOON + 3600, HOUR_NS, NOON + 86400, 0},
		{"the clock was set back by a day", NOON + 3600, HOUR_NS, NOON - 86400, HOUR_NS},
		{"the clock begins in 1970", NOON + 3600, HOUR_NS, 0, HOUR_NS},
		{"the clock was before 1970", NOON + 3600, HOUR_NS, -86400, HOUR_NS},
		{"the clock was set ahead", NOON + 3600, HOUR_NS, NOON + 1800, HOUR_NS / 2},
		{"less than a second is left", NOON + 1, SEC_NS / 10, NOON, SEC_NS / 10},
		{"nothing is left", NOON + 3600, 0, NOON, 0},
		{"it ended in 1970", 0, HOUR_NS, NOON, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (ban_left_ns(cases[i].end, cases[i].left_ns, cases[i].now) != cases[i].expected)
			fail_msg("%s", cases[i].name);
}

/* A state with an entry that ends at 13:00, and had 3600 s left when it was written. */
static const char ends_at_13[] = "{\"version\": 1, \"boot\": \"b\", \"lists\": [], \"entries\": ["
				 "{\"prefix\": \"192.0.2.1\", \"access\": \"deny\", "
				 "\"until\": \"2026-11-22T13:00:00Z\", \"left_ms\": 3600000}]}";

static void test_an_end_is_of_the_clock_that_reads_it(void **state)
{
	static const struct {
		time_t now;
		uint64_t left_ns;
	} cases[] = {{NOON, HOUR_NS},
		     {NOON + 3000, 600 * SEC_NS},
		     {NOON - 3000, HOUR_NS},
		     {NOON + 3600, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t expected = cases[i].left_ns, left;
		struct bans bans;

		assert_int_equal(
			bans_parse("state", ends_at_13, strlen(ends_at_13), cases[i].now, &bans),
			OK);
		assert_int_equal(bans.given.count, !!expected);
		left = expected ? until_left_ns(bans.given.rules[0].until) : 0;
		assert_in_range(left, expected - !!expected * SEC_NS, expected + SEC_NS / 4);
		bans_free(&bans);
	}
}

/* --- What is refused ------------------------------------------------------------------------ */

#define ENTRIES(text) "{\"version\": 1, \"boot\": \"\", \"lists\": [], \"entries\": [" text "]}"
#define LISTS(text)   "{\"version\": 1, \"boot\": \"\", \"entries\": [], \"lists\": [" text "]}"
#define FILES(text)                                                                                \
	"{\"version\": 1, \"boot\": \"\", \"entries\": [], \"lists\": [], \"file\": " text "}"
#define LIST_OF(name, rest)                                                                        \
	"{\"name\": \"" name "\", \"access\": \"deny\", "                                          \
	"\"replaced\": \"2026-11-21T12:00:00Z\", " rest "}"
#define LIST(rest) LIST_OF("a", rest)

static const struct {
	const char *text, *messages; /* as assert_messages() takes them, behind "state" */
} refused[] = {
	{"", "1:0 end of file"},
	{"{", "1:1 end of file"},
	{"[]", " array"},
	{"{}", " version"},
	{"{\"version\": 2}", " 2"},
	{"{\"version\": 1, \"version\": 1}", "1:24 version"},
	{"{\"version\": 1, \"boot\": \"\", \"entries\": {}, \"lists\": []}", " 'entries'"},
	{"{\"version\": 1, \"boot\": \"\", \"entries\": [], \"lists\": [], \"more\": 1}", " more"},
	{"{\"version\": 1, \"boot\": \"0123456789012345678901234567890123456789\", "
	 "\"entries\": [], \"lists\": []}",
	 " 'boot'"},
	{ENTRIES("7"), " entries[0]: "},
	{ENTRIES("{\"prefix\": \"192.0.2.1\"}"), " entries[0]: "},
	{ENTRIES("{\"prefix\": \"192.0.2.1\", \"access\": \"drop\"}"), " entries[0]: 'drop'"},
	{ENTRIES("{\"prefix\": \"192.0.2.1\", \"access\": \"deny\"}, "
		 "{\"prefix\": \"192.0.2.256\", \"access\": \"deny\"}"),
	 " entries[1]: "},
	{ENTRIES("{\"prefix\": \"192.0.2.1\", \"access\": \"deny\"}, "
		 "{\"prefix\": \"192.0.2.1\", \"access\": \"allow\"}"),
	 " entries: 192.0.2.1"},
	{ENTRIES("{\"prefix\": \"192.0.2.1\", \"access\": \"deny\", \"left_ms\": 1}"),
	 " entries[0]: 'until'"},
	{ENTRIES("{\"prefix\": \"192.0.2.1\", \"access\": \"deny\", \"left_ms\": -1, "
		 "\"until\": \"2126-11-22T13:00:00Z\"}"),
	 " entries[0]: 'left_ms'"},
	{ENTRIES("{\"prefix\": \"192.0.2.1\", \"access\": \"deny\", "
		 "\"left_ms\": 63072000001, \"until\": \"2126-11-22T13:00:00Z\"}"),
	 " entries[0]: 'left_ms'"},
	{ENTRIES("{\"prefix\": \"192.0.2.1\", \"access\": \"deny\", \"left_ms\": 1, "
		 "\"until\": \"tomorrow\"}"),
	 " entries[0]: 'tomorrow'"},
	{LISTS("7"), " lists[0]: "},
	{LISTS(LIST("\"prefixes\": 7")), " lists[0]: 'prefixes'"},
	{LISTS(LIST("\"prefixes\": [7]")), " lists[0]: "},
	{LISTS(LIST("\"prefixes\": [\"x\"]")), " lists[0]: "},
	{LISTS(LIST("\"prefixes\": [{\"prefix\": \"::1\"}]")), " lists[0]: "},
	{LISTS(LIST("\"prefixes\": [{\"prefix\": \"::1\", \"until\": \"x\", \"left_ms\": 1}]")),
	 " lists[0]: 'x'"},
	{LISTS(LIST("\"prefixes\": []") ", " LIST("\"prefixes\": []")), " lists[1]: list 'a'"},
	{LISTS(LIST_OF("a b", "\"prefixes\": []")), " lists[0]: 'a b'"},
	{LISTS("{\"name\": \"a\", \"access\": \"deny\", \"replaced\": \"x\", \"prefixes\": []}"),
	 " lists[0]: 'x'"},
	{FILES("7"), " file: "},
	{FILES("{\"entries\": [], \"lists\": [7]}"), " file: "},
	{FILES("{\"entries\": [7], \"lists\": []}"), " file.entries[0]: "},
};

static void test_what_is_damaged_is_refused_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct bans bans = {.file_is_known = true}, before = bans;
		struct capture capture = capture_begin(stderr);
		int status =
			bans_parse("state", refused[i].text, strlen(refused[i].text), NOON, &bans);

		assert_messages(capture_end(&capture), "state", refused[i].messages);
		assert_int_equal(status, MISUSED);
		assert_memory_equal(&bans, &before, sizeof(bans));
	}
}

/* --- The file ------------------------------------------------------------------------------- */

static struct bans bans_make(void)
{
	struct bans bans = {.boot = "b", .file_is_known = true};
	struct sl_list_info list = {.access = SL_ACCESS_DENY, .replaced = 1000000, .name = "a"};
	struct rule rule = {.access = SL_ACCESS_DENY, .lists = 1, .until = until_after(HOUR_NS)};

	assert_int_equal(prefix_parse("192.0.2.7", &rule.prefix), OK);
	assert_int_equal(ruleset_make_lists(&bans.given), OK);
	bans.given.lists[0] = list;
	assert_true(rule_add_list(&rule, 0, until_after(2 * HOUR_NS)));
	assert_int_equal(ruleset_add(&bans.given, &rule), OK);
	rule_remove_lists(&rule, 1);
	rule.until = 0;
	assert_int_equal(ruleset_add(&bans.file, &rule), OK);
	return bans;
}

static void test_what_is_written_is_read(void **state)
{
	struct bans bans = bans_make(), again;
	struct stat st;

	(void)state;
	file_make("state.new", "of a writer that was killed", 7);
	assert_int_equal(bans_write("state", &bans), OK);
	assert_int_equal(stat("state", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(bans_read("state", &again), OK);
	assert_string_equal(again.boot, "b");
	assert_true(again.file_is_known);
	assert_int_equal(again.given.count, 1);
	assert_true(rule_equal(&again.given.rules[0], &bans.given.rules[0]));
	assert_true(list_same(&again.given.lists[0], &bans.given.lists[0]));
	assert_int_equal(again.given.lists[0].replaced, 1000000);
	assert_int_equal(again.file.count, 1);
	assert_true(rule_equal(&again.file.rules[0], &bans.file.rules[0]));
	assert_int_not_equal(access("state.new", F_OK), 0);
	bans_free(&bans);
	bans_free(&again);
}

static void test_how_a_state_file_begins(void **state)
{
	static const struct {
		const char *text;
		bool is_state;
	} cases[] = {
		{"", true},
		{" \n", true},
		{"{", true},
		{"{\n \"versi", true},
		{"{\"version\": 12, \"boot\"", true},
		{"{\"version\":1,\"boot\":\"x\" and rubbish", true},
		{"[", false},
		{"192.0.2.1\n", false},
		{"{\"version\": 1, \"gate\": \"main\"}", false},
		{"{\"version\": \"1\", \"boot\": \"\"}", false},
		{"{\"boot\": \"\", \"version\": 1}", false},
		{"{\"attach\": []}", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (bans_begin(cases[i].text, strlen(cases[i].text)) != cases[i].is_state)
			fail_msg("%s", cases[i].text);
}

/* What is written begins as it has to, so that it is read again. */
static void test_a_file_that_is_no_state_stays(void **state)
{
	struct bans bans = bans_make();
	struct capture capture;
	struct stat st;

	(void)state;
	assert_int_equal(bans_write("state", &bans), OK);
	assert_int_equal(bans_check("state"), OK);
	bans_free(&bans);
	file_make("state", "192.0.2.1\n", 10);
	capture = capture_begin(stderr);
	assert_int_equal(bans_read("state", &bans), MISUSED);
	assert_messages(capture_end(&capture), "state", " 'sluice keep'");
	assert_int_equal(stat("state", &st), 0);
	assert_int_equal(st.st_size, 10);
	assert_int_equal(unlink("state"), 0);
}

static void test_no_file_is_no_ban(void **state)
{
	struct bans bans;

	(void)state;
	assert_int_equal(bans_read("nowhere", &bans), OK);
	assert_int_equal(bans.given.count, 0);
}

static void test_a_file_that_cannot_be_written_stays_as_it_was(void **state)
{
	struct bans bans = bans_make(), again;
	struct capture capture;

	(void)state;
	assert_int_equal(bans_write("state", &bans), OK);
	assert_int_equal(mkdir("state.new", 0700), 0);
	capture = capture_begin(stderr);
	assert_int_equal(bans_write("state", &bans), FAILED);
	assert_messages(capture_end(&capture), "", " state: File exists");
	assert_int_equal(rmdir("state.new"), 0);
	assert_int_equal(bans_read("state", &again), OK);
	assert_int_equal(again.given.count, 1);
	bans_free(&bans);
	bans_free(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_left_of_a_ban),
		cmocka_unit_test(test_an_end_is_of_the_clock_that_reads_it),
		cmocka_unit_test(test_what_is_damaged_is_refused_whole),
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_how_a_state_file_begins),
		cmocka_unit_test(test_a_file_that_is_no_state_stays),
		cmocka_unit_test(test_no_file_is_no_ban),
		cmocka_unit_test(test_a_file_that_cannot_be_written_stays_as_it_was),
	};

	return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
