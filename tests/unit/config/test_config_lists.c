// SPDX-License-Identifier: GPL-2.0
/* Tests user/config/config.h, which reads named lists, and the list files that they refer to. */
#include <fcntl.h>
#include "test.h"
#include "base/clock.h"
#include "config_text.h"
#include "rules/ruleset.h"
#include "scratch.h"

static void text_make(const char *path, const char *text)
{
	file_make(path, text, strlen(text));
}

/*
 * A relative path of a list file begins at the directory of the rules file. The path is the default
 * name of the list. Errors report the path and the line.
 */
TEST(test_a_list_file_is_read_beside_the_rules_file)
{
	char path[128], line[512];
	struct config config;
	int status;

	text_make("good.txt", "192.0.2.1\n192.0.2.1\n192.0.2.2\n");
	text_make("bad.txt", "192.0.2.1\nx\n");
	text_make("good.yaml", "allow: [{file: good.txt, for: 1h}]\n");
	text_make("bad.yaml", "allow: [{file: bad.txt}]\ndeny: [{prefix: y}]\n");
	text_make("twice.yaml", "allow: [file: good.txt]\ndeny: [file: ./good.txt]\n");

	snprintf(path, sizeof(path), "%s/good.yaml", scratch);
	assert_int_equal(config_read(path, &config), 0);
	assert_int_equal(config.rules.count, 2);
	snprintf(line, sizeof(line), "%s/good.txt", scratch);
	assert_string_equal(config.rules.lists[0].name, line);
	assert_int_equal(config.rules.lists[0].access, SL_ACCESS_ALLOW);
	assert_true(until_left_ns(config.rules.lists[0].until) > 3599 * SEC_NS);
	for (unsigned int i = 0; i < config.rules.count; i++) {
		assert_int_equal(config.rules.rules[i].lists, 1);
		assert_int_equal(config.rules.rules[i].access, SL_ACCESS_NONE);
	}
	config_free(&config);

	snprintf(path, sizeof(path), "%s/bad.yaml", scratch);
	error_drop(0);
	status = config_read(path, &config);
	snprintf(line, sizeof(line), "1:16: %s/bad.txt:2 bad-address; 2:17 bad-address", scratch);
	assert_errors(path, line);
	assert_int_equal(status, -EINVAL);

	snprintf(path, sizeof(path), "%s/twice.yaml", scratch);
	error_drop(0);
	assert_int_equal(config_read(path, &config), -EINVAL);
	snprintf(line, sizeof(line), "2:14 list-twice");
	assert_errors(path, line);
}

/* If a list file is invalid, its list is left out. All other rules are used. */
TEST(test_bad_list_files_are_left_out)
{
	static const char text[] = "deny: [{file: bad.txt, for: 1h}, {file: none.txt, list: n}, "
				   "{file: empty.txt}, {file: good.txt}, {prefix: 192.0.2.9}]\n"
				   "policies: [{prefix: default, limits: [{rate: 1pps}]}]\n";
	static const char *const left_out[] = {"bad.txt", "n", "empty.txt", NULL};
	struct config config;

	text_make("bad.txt", "192.0.2.1\n<html>\n");
	text_make("empty.txt", "");
	text_make("good.txt", "192.0.2.2\n");
	error_drop(0);
	assert_int_equal(config_parse("rules.yaml", text, strlen(text), true, &config), 0);
	assert_int_equal(error_count(), 3);
	error_drop(0);
	assert_int_equal(lists_count(config.rules.lists), 1);
	assert_int_equal(config.rules.count, 3);
	assert_int_equal(config.files.count, ARRAY_SIZE(left_out));
	assert_true(list_paths_left_out(&config.files));
	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++) {
		const char *name = config.files.list[i].list.name, *end = strrchr(name, '/');

		assert_int_equal(config.files.list[i].is_left_out, left_out[i] != NULL);
		if (left_out[i])
			assert_string_equal(end ? end + 1 : name, left_out[i]);
	}
	assert_true(until_left_ns(config.files.list[0].list.until) > 3599 * SEC_NS);
	assert_int_equal(config.files.list[0].list.access, SL_ACCESS_DENY);
	config_free(&config);
	error_drop(0);
	assert_int_not_equal(config_parse("rules.yaml", text, strlen(text), false, &config), 0);
	/* an error in a rules file is fatal; an error in a list file is not */
	error_drop(0);
	assert_int_equal(
		config_parse("rules.yaml", "deny: [{file: bad.txt, for: x}]", 31, true, &config),
		-EINVAL);
	error_drop(0);
	unlink("bad.txt");
	unlink("empty.txt");
	unlink("good.txt");
}

/* If there are more list entries than `gate` has room for, the longest list is left out. */
TEST(test_lists_that_are_too_long_are_left_out)
{
	static const struct {
		const char *gate, *errors;
		unsigned int rules;
		bool long_is_out, wide_is_out;
	} cases[] = {
		{"hosts: 8, prefixes: 8", "", 7, false, false},
		{"hosts: 4", "1:15 size-too-small; 1:15 list-left-out", 3, true, false},
		{"prefixes: 1", "1:18 size-too-small; 1:18 list-left-out", 5, false, true},
		{"hosts: 1, prefixes: 1",
		 "1:15 size-too-small; 1:15 list-left-out; 1:28 size-too-small; 1:28 list-left-out",
		 1, true, true},
	};

	text_make("long.txt", "192.0.2.1\n192.0.2.2\n192.0.2.3\n192.0.2.4\n192.0.2.9 for 1h\n");
	text_make("wide.txt", "198.51.100.0/24\n203.0.113.0/24\n");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config config;
		char text[256];
		int length = snprintf(text, sizeof(text),
				      "gate: {%s}\ndeny: [{file: wide.txt}, {file: long.txt}, "
				      "{prefix: 192.0.2.9}]\n",
				      cases[i].gate);
		int status = config_parse("rules.yaml", text, length, true, &config);

		assert_errors("rules.yaml", cases[i].errors);
		assert_int_equal(status, 0);
		assert_int_equal(config.rules.count, cases[i].rules);
		assert_int_equal(config.files.list[0].is_left_out, cases[i].wide_is_out);
		assert_int_equal(config.files.list[1].is_left_out, cases[i].long_is_out);
		assert_int_equal(lists_count(config.rules.lists),
				 2 - cases[i].wide_is_out - cases[i].long_is_out);
		for (unsigned int rule = 0; rule < config.rules.count; rule++)
			if (cases[i].long_is_out)
				assert_int_equal(config.rules.rules[rule].list_until, 0);
		config_free(&config);
	}
	unlink("long.txt");
	unlink("wide.txt");
}

/*
 * The stored time of a list is the mtime of its file, or the current time if the mtime is in the
 * future.
 */
TEST(test_a_list_is_as_old_as_its_file)
{
	static const struct {
		time_t modified;
		bool is_present;
	} cases[] = {{1000000000, false}, {0, false}, {-5, false}, {4000000000, true}};
	static const char text[] = "deny: [{file: list.txt}]";
	struct config config;

	text_make("list.txt", "192.0.2.1\n");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct timespec times[2] = {{.tv_sec = cases[i].modified, .tv_nsec = 1},
					    {.tv_sec = cases[i].modified, .tv_nsec = 1}};
		time_t wanted = cases[i].modified < 0 ? 0 : cases[i].modified, now = time(NULL);

		assert_int_equal(utimensat(AT_FDCWD, "list.txt", times, 0), 0);
		assert_int_equal(config_parse("rules.yaml", text, strlen(text), false, &config), 0);
		if (cases[i].is_present)
			assert_in_range(config.rules.lists[0].replaced, now, now + 60);
		else
			assert_int_equal(config.rules.lists[0].replaced, wanted);
		config_free(&config);
	}
	unlink("list.txt");
}

/*
 * Checks the errors of a rules file with one list. `keys` is YAML text that is added to the list.
 */
static void assert_list(const char *list, const char *keys, const char *errors)
{
	char text[128];
	struct config config;
	int status;

	text_make("list.txt", list);
	snprintf(text, sizeof(text), "allow: []\ndeny: [{file: list.txt%s}]", keys);
	error_drop(0);
	status = text_read(text, &config);
	unlink("list.txt");
	assert_errors("rules.yaml", errors);
	assert_int_equal(status, *errors ? -EINVAL : 0);
	if (!status)
		config_free(&config);
}

/* An empty list file, or a list file with very short prefixes, is refused without `force: true`. */
TEST(test_short_or_empty_list_files_take_force)
{
	static const char ipv4[] = "192.0.2.1\n10.0.0.0/7\n", ipv6[] = "2000::/15\n";

	assert_list(ipv4, "", "2:15: list.txt:2 wide-prefix");
	assert_list("# none\n", "", "2:15 empty-list");
	assert_list("", ", until: 2001-01-01T00:00:00Z", "2:15 empty-list");
	assert_list(ipv4, ", force: true", "");
	assert_list(ipv6, ", force: yes", "");
	assert_list("", ", force: true", "");
}

/* `skip: true` skips invalid lines. A file must still have a valid line. */
TEST(test_bad_lines_of_a_list_file_are_skipped_if_asked)
{
	static const char text[] = "192.0.2.1\nx\n{\"cidr\":null}\n";

	assert_list(text, "", "2:15: list.txt:2 bad-address; 2:15: list.txt:3 bad-json");
	assert_list("<html>\n", ", skip: true, force: true", "2:15 empty-list");
	assert_list("192.0.2.1\n", ", skip: true", "");
}

TEST(test_lists_refused_name_what_is_wrong)
{
	static const struct {
		const char *text, *errors;
	} cases[] = {
		{"deny: [{list: a, prefix: 10.0.0.1}, {list: a, prefix: 10.0.0.2}]",
		 "1:44 list-twice"},
		{"deny: [{list: a b, prefix: 10.0.0.1}]", "1:15 bad-list-name"},
		{"deny: [{list: \"\", prefix: 10.0.0.1}]", "1:15 bad-list-name"},
		{"deny: [{list: a}]", "1:8 no-prefix"},
		{"deny: [{list: a, prefixes: [192.0.2.1 for 1h]}]", "1:29 for-in-file"},
		{"deny: [192.0.2.1 for 1h]", "1:8 bad-address"},
		{"deny: [{list: a, prefix: 192.0.2.1 until 2126-01-01T00:00:00Z}]",
		 "1:26 until-too-late"},
		{"deny: [{list: a, prefixes: [10.0.0.1], prefix: 10.0.0.2}]", "1:8 no-prefix"},
	};
	char many[4096] = "deny:\n";

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_refusal(cases[i].text, cases[i].errors);
	for (int i = 0; i <= SL_LISTS_MAX; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many),
			 "  - {list: l%d, prefix: 10.0.0.%d}\n", i, i);
	struct config config;

	assert_int_equal(text_read(many, &config), -ENOSPC);
	assert_errors("rules.yaml", "34:12 too-many-lists");
}

/* Expired entries are left out, both in a rules file and in a list file. */
TEST(test_entries_of_a_list_may_have_an_end)
{
	char path[128];
	struct config config;

	text_make("list.txt", "192.0.2.4 for 2h\n192.0.2.5 until 2001-01-01T00:00:00Z\n");
	snprintf(path, sizeof(path), "%s/ends.yaml", scratch);
	text_make("ends.yaml", "deny: [{list: a, for: 1h, prefixes: [192.0.2.1, "
			       "'192.0.2.2 until 2001-01-01T00:00:00Z']},\n"
			       "{list: b, file: list.txt}]\nallow: [192.0.2.4]");
	assert_int_equal(config_read(path, &config), 0);
	assert_int_equal(config.rules.count, 2);
	assert_int_equal(config.rules.rules[0].list_until, 0);
	assert_int_equal(config.rules.rules[1].access, SL_ACCESS_ALLOW);
	assert_int_equal(config.rules.rules[1].lists, 2);
	assert_in_range(until_left_ns(rule_list_end(&config.rules.rules[1], 1)) / SEC_NS, 7190,
			7200);
	config_free(&config);
}

/* If several lists contain the same prefix, it can have an expiry on at most two of them. */
TEST(test_a_prefix_has_two_ends_on_lists)
{
	char soon[MOMENT_TEXT], text[256];

	moment_format(time(NULL) + 3600, soon);
	snprintf(text, sizeof(text),
		 "deny:\n- {list: a, prefix: '192.0.2.1 until %s'}\n"
		 "- {list: b, prefix: '192.0.2.1 until %s'}\n"
		 "- {list: c, prefix: '192.0.2.1 until %s'}\n",
		 soon, soon, soon);
	assert_refusal(text, "4:21 third-end");
}

TESTS(scratch_make, scratch_remove)
