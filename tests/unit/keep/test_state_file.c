// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/keep/state_file.h. Saved entries keep their expiry if the clock changes. A damaged
 * file is refused.
 */
#include <sys/stat.h>
#include "test.h"
#include "base/clock.h"
#include "base/error.h"
#include "keep/state_file.h"
#include "rules/ruleset.h"
#include "rules/prefix.h"
#include "scratch.h"

#define HOUR_MS 3600000

static json_int_t wall_ms(void)
{
	return clock_read(CLOCK_REALTIME) / NS_PER_MS;
}

TEST(test_what_is_left_of_a_ban)
{
	static const struct {
		const char *name;
		json_int_t saved_ago_ms, left_ms, expected_ms;
	} cases[] = {
		{"at once", 0, HOUR_MS, HOUR_MS},
		{"half an hour later", HOUR_MS / 2, HOUR_MS, HOUR_MS / 2},
		{"at its end", HOUR_MS, HOUR_MS, 0},
		{"a day after its end", 25 * HOUR_MS, HOUR_MS, 0},
		{"the clock was set back by a day", -24 * HOUR_MS, HOUR_MS, HOUR_MS},
		{"the clock begins in 1970", -1795348800000, HOUR_MS, HOUR_MS},
		{"less than a second is left", 0, 900, 900},
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct state_file file;
		int64_t left_ms;

		snprintf(text, sizeof(text),
			 "{\"version\": 1, \"boot\": \"b\", \"saved_ms\": %lld, \"bpffs\": 31, "
			 "\"lists\": "
			 "[], \"rules\": [\"192.0.2.1 deny %lld 0 0 0\"]}",
			 (long long)(wall_ms() - cases[i].saved_ago_ms),
			 (long long)cases[i].left_ms);
		assert_int_equal(state_file_parse("state", text, strlen(text), &file), 0);
		assert_int_equal(file.bpffs, 31);
		assert_false(file.is_of_boot);
		left_ms =
			file.entries.count
				? (int64_t)(until_left_ns(file.entries.rules[0].until) / NS_PER_MS)
				: 0;
		if (left_ms > cases[i].expected_ms + 250 || left_ms < cases[i].expected_ms - 850)
			fail_msg("%s: %lld ms", cases[i].name, (long long)left_ms);
		state_file_free(&file);
	}
}

/* --- What is refused ------------------------------------------------------------------------ */

#define STATE(lists, rules)                                                                        \
	"{\"version\": 1, \"boot\": \"\", \"saved_ms\": 0, \"bpffs\": 0, \"lists\": [" lists       \
	"], \"rules\": [" rules "]}"
#define LIST(rest) "{\"place\": 0, \"access\": \"deny\", \"replaced\": 1, " rest "}"
#define LIST_A	   LIST("\"name\": \"a\"")
#define RULE(rest) STATE(LIST_A, "\"192.0.2.1" rest "\"")

static const char *const refused[] = {
	"",
	"{",
	"[]",
	"{\"version\": 2, \"boot\": \"\"}",
	"{\"version\": 1, \"version\": 1}",
	"{\"version\": 2, \"boot\": \"\", \"saved_ms\": 0, \"bpffs\": 0, \"lists\": [], "
	"\"rules\": []}",
	"{\"version\": 1, \"boot\": \"\", \"saved_ms\": 0, \"bpffs\": 0, \"lists\": [], "
	"\"rules\": 7}",
	"{\"version\": 1, \"boot\": \"\", \"saved_ms\": 0, \"bpffs\": 0, \"lists\": [], "
	"\"rules\": [], \"more\": 1}",
	STATE("", "7"),
	STATE("", "\"\""),
	STATE("", "\"192.0.2.1 deny 0 0 0 0\", \"192.0.2.256 deny 0 0 0 0\""),
	RULE(""),
	RULE(" deny 0 0 0"),
	RULE(" deny 0 0 0 0 0"),
	RULE(" drop 0 0 0 0"),
	RULE(" deny -1 0 0 0"),
	RULE(" deny 63072000001 0 0 0"),
	RULE(" deny 1x 0 0 0"),
	RULE(" - 0 1 64 0"),
	RULE(" - 0 1 -1 0"),
	RULE(" - 0 x 0 0"),
	RULE(" - 0 1 0 -1"),
	RULE(" - 0 1 0 0 0"),
	RULE(" - 0 1 0 0 0 0x"),
	STATE("7", ""),
	STATE(LIST("\"name\": \"a b\""), ""),
	STATE(LIST_A ", " LIST_A, ""),
	STATE("{\"place\": 64, \"name\": \"a\", \"access\": \"deny\", \"replaced\": 1}", ""),
	STATE("{\"place\": 1, \"name\": \"a\", \"access\": \"\", \"replaced\": 1}", ""),
};

TEST(test_what_is_damaged_is_refused_whole)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct state_file file = {.bpffs = 7};
		unsigned int mark = error_count();

		if (!state_file_parse("state", refused[i], strlen(refused[i]), &file))
			fail_msg("accepted: %s", refused[i]);
		assert_int_equal(error_count(), mark + 1);
		assert_string_equal(error_last(mark)->id, "state-damaged");
		assert_string_equal(error_last(mark)->object, "state");
		assert_int_equal(file.bpffs, 7);
		error_drop(mark);
	}
}

/*
 * The state file was saved decades ago. List b and all entries with an expiry have expired since.
 */
TEST(test_entries_that_have_ended_are_dropped)
{
	static const char text[] = STATE(
		LIST_A ", {\"place\": 1, \"access\": \"deny\", \"replaced\": 1, \"name\": \"b\", "
		       "\"left_ms\": 5}",
		"\"192.0.2.1 - 0 3 0 0 1 5\", \"192.0.2.2 - 0 2 0 0\", \"192.0.2.3 - 0 1 0 5\", "
		"\"192.0.2.4 deny 5 1 0 0\"");
	struct state_file file;
	char prefix[PREFIX_TEXT];

	assert_int_equal(state_file_parse("state", text, strlen(text), &file), 0);
	assert_int_equal(lists_count(file.entries.lists), 1);
	assert_int_equal(file.entries.count, 2);
	for (unsigned int i = 0; i < 2; i++) {
		const struct rule *rule = &file.entries.rules[i];

		assert_string_equal(prefix_format(&rule->prefix, prefix),
				    i ? "192.0.2.4" : "192.0.2.1");
		assert_int_equal(rule->lists, 1);
		assert_false(rule->access || rule->until || rule->list_until);
	}
	state_file_free(&file);
}

/* --- The file ------------------------------------------------------------------------------- */

static struct state_file state_make(void)
{
	struct state_file file = {.bpffs = 31};
	struct sl_list_info list = {.access = SL_ACCESS_DENY, .replaced = 1000000, .name = "a"};
	struct rule rule = {
		.access = SL_ACCESS_DENY, .lists = 9, .until = until_after(HOUR_MS * NS_PER_MS)};

	assert_int_equal(prefix_parse("192.0.2.7", &rule.prefix), 0);
	assert_int_equal(ruleset_make_lists(&file.entries), 0);
	file.entries.lists[0] = list;
	strcpy(list.name, "b");
	file.entries.lists[3] = list;
	assert_true(rule_add_list(&rule, 3, until_after(2 * HOUR_MS * NS_PER_MS)));
	assert_true(rule_add_list(&rule, 0, until_after(HOUR_MS * NS_PER_MS / 2)));
	assert_int_equal(ruleset_add(&file.entries, &rule), 0);
	rule = (struct rule){.access = SL_ACCESS_ALLOW};
	assert_int_equal(prefix_parse("default", &rule.prefix), 0);
	assert_int_equal(ruleset_add(&file.entries, &rule), 0);
	ruleset_sort(&file.entries);
	return file;
}

TEST(test_what_is_written_is_read)
{
	struct state_file file = state_make(), again;
	struct stat st;

	file_make("state.new", "of a writer that was killed", 7);
	assert_int_equal(state_file_write("state", &file), 0);
	assert_int_equal(stat("state", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(state_file_check("state"), 0);
	state_file_read("state", &again);
	assert_true(again.is_of_boot);
	assert_int_equal(again.bpffs, 31);
	assert_int_equal(again.entries.count, 2);
	for (int i = 0; i < 2; i++)
		assert_true(rule_equal(&again.entries.rules[i], &file.entries.rules[i]));
	for (int place = 0; place <= 3; place += 3) {
		assert_true(list_same(&again.entries.lists[place], &file.entries.lists[place]));
		assert_int_equal(again.entries.lists[place].replaced, 1000000);
	}
	assert_int_not_equal(access("state.new", F_OK), 0);
	state_file_free(&file);
	state_file_free(&again);
}

TEST(test_a_file_that_is_no_state_is_refused)
{
	static const struct {
		const char *text;
		bool is_state;
	} cases[] = {
		{"", true},
		{"{", true},
		{"{\"version\": 1, \"boot\": \"x\" and rubbish", true},
		{"[", false},
		{"192.0.2.1\n", false},
		{"{\"version\": 1, \"gate\": \"main\"}", false},
		{"{\"boot\": \"\", \"version\": 1}", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int mark = error_count();

		file_make("state", cases[i].text, strlen(cases[i].text));
		if (!state_file_check("state") != cases[i].is_state)
			fail_msg("%s", cases[i].text);
		error_drop(mark);
	}
	assert_int_equal(unlink("state"), 0);
	assert_int_equal(state_file_check("state"), 0);
}

TEST(test_a_file_that_is_read_must_have_another_name)
{
	static const char *const own[] = {"state",	 "state.bad",	    "state.new",
					  "state.lists", "state.lists.bad", "state.lists.new"};
	unsigned int mark = error_count();
	struct stamp stamp;

	file_make("rules", "", 0);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		stamp = (struct stamp){0}; /* the stamp of a file that does not exist */
		assert_int_equal(state_file_check_apart("state", own[i], &stamp), -EINVAL);
		unlink(own[i]);
		stamp = stamp_of("rules");
		assert_int_equal(state_file_check_apart("state", "rules", &stamp), 0);
		assert_int_equal(link("rules", own[i]), 0);
		assert_int_equal(state_file_check_apart("state", "rules", &stamp), -EINVAL);
		assert_int_equal(unlink(own[i]), 0);
	}
	error_drop(mark);
}

TEST(test_a_file_that_cannot_be_written_stays_as_it_was)
{
	struct state_file file = state_make(), again;

	assert_int_equal(state_file_write("state", &file), 0);
	assert_int_equal(mkdir("state.new", 0700), 0);
	assert_true(state_file_write("state", &file) < 0);
	assert_int_equal(rmdir("state.new"), 0);
	state_file_read("state", &again);
	assert_int_equal(again.entries.count, 2);
	state_file_free(&file);
	state_file_free(&again);
	error_drop(0);
}

TESTS(scratch_make, scratch_remove)
