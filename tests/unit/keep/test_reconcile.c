// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/keep/reconcile.h, which decides which rules are in force after a reload, and which
 * changes the reload reverts.
 */
#include "test.h"
#include "base/clock.h"
#include "capture.h"
#include "config/config.h"
#include "program/print_rules.h"
#include "program/writer.h"
#include "keep/reconcile.h"
#include "rules/ruleset.h"

static const char nothing[] = "policies: []";

/* Parses a rules file with this text. If the text is NULL, returns a config without rules. */
static struct config text_read(const char *text)
{
	struct config config = {0};

	text = text ? text : nothing;
	if (config_parse("rules.yaml", text, strlen(text), false, &config))
		fail_msg("refused:\n%s", text);
	return config;
}

/* Returns the rules as `sluice show` prints them. The text is valid until the next call. */
static const char *shown(const struct ruleset *rules)
{
	struct capture capture = capture_begin(stdout);

	print_begin(stdout, false);
	for (unsigned int i = 0; i < rules->count; i++)
		print_commands(&rules->rules[i], rules->lists, NULL, "main", "");
	return capture_end(&capture);
}

static const struct reconcile_case {
	const char *name;
	const char *was, *file, *in_force; /* rules in old file, new file and gate; NULL: none */
	enum renew renew;
	const char *wanted;
	struct undone undone;
} cases[] = {
	{.name = "a rule that is new in the file is in force",
	 .file = "deny: [192.0.2.1]",
	 .wanted = "sluice deny 192.0.2.1\n"},
	{.name = "a runtime entry stays",
	 .file = "deny: [192.0.2.1]",
	 .was = "deny: [192.0.2.1]",
	 .in_force = "deny: [192.0.2.1, 192.0.2.2]",
	 .wanted = "sluice deny 192.0.2.1\nsluice deny 192.0.2.2\n"},
	{.name = "an entry that the file no longer has is removed",
	 .was = "deny: [192.0.2.1, 192.0.2.2]",
	 .file = "deny: [192.0.2.1]",
	 .in_force = "deny: [192.0.2.1, 192.0.2.2]",
	 .wanted = "sluice deny 192.0.2.1\n"},
	{.name = "an entry of the file that a command removed is restored, and reported",
	 .was = "deny: [192.0.2.1, 192.0.2.2]",
	 .file = "deny: [192.0.2.1, 192.0.2.2]",
	 .in_force = "deny: [192.0.2.1]",
	 .wanted = "sluice deny 192.0.2.1\nsluice deny 192.0.2.2\n",
	 .undone = {1, "192.0.2.2"}},
	{.name = "an entry that is new in the file is not reported",
	 .was = "deny: [192.0.2.1]",
	 .file = "deny: [192.0.2.1, 192.0.2.2]",
	 .in_force = "deny: [192.0.2.1]",
	 .wanted = "sluice deny 192.0.2.1\nsluice deny 192.0.2.2\n"},
	{.name = "the file has precedence over a runtime entry, and the prefix is reported",
	 .was = "allow: [192.0.2.1]",
	 .file = "allow: [192.0.2.1]",
	 .in_force = "deny: [192.0.2.1]",
	 .wanted = "sluice allow 192.0.2.1\n",
	 .undone = {1, "192.0.2.1"}},
	{.name = "a runtime entry that equals the file's is not reported",
	 .file = "deny: [192.0.2.1]",
	 .in_force = "deny: [192.0.2.1]",
	 .wanted = "sluice deny 192.0.2.1\n"},
	{.name = "a list of the file has precedence over a runtime entry",
	 .was = "allow: [{list: a, prefix: 192.0.2.1}]",
	 .file = "allow: [{list: a, prefix: 192.0.2.1}]",
	 .in_force = "allow: [{list: a, prefix: 192.0.2.1}]\ndeny: [192.0.2.1]",
	 .wanted = "sluice allow 192.0.2.1 as a\n",
	 .undone = {1, "192.0.2.1"}},
	{.name = "an allow stays as an exception to a list that denies",
	 .was = "deny: [{list: a, prefix: 192.0.2.2}]",
	 .file = "deny: [{list: a, prefix: 192.0.2.1}]",
	 .in_force = "deny: [{list: a, prefix: 192.0.2.2}]\nallow: [192.0.2.1]",
	 .wanted = "sluice allow 192.0.2.1\nsluice deny 192.0.2.1 as a\n"},
	{.name = "a runtime entry with the access of a list stays",
	 .was = "deny: [{list: a, prefix: 192.0.2.1}]",
	 .file = "deny: [{list: a, prefix: 192.0.2.1}]",
	 .in_force = "deny: [{list: a, prefix: 192.0.2.1}, {prefix: 192.0.2.1}]",
	 .wanted = "sluice deny 192.0.2.1\nsluice deny 192.0.2.1 as a\n"},
	{.name = "a runtime entry of a prefix with limits in the file stays",
	 .was = "policies: [{prefix: 10.0.0.0/8, limits: [{rate: 1pps}]}]",
	 .file = "policies: [{prefix: 10.0.0.0/8, limits: [{rate: 1pps}]}]",
	 .in_force = "policies: [{prefix: 10.0.0.0/8, limits: [{rate: 1pps}]}]\n"
		     "deny: [10.0.0.0/8]",
	 .wanted = "sluice deny 10.0.0.0/8\nsluice set 10.0.0.0/8 rate 1pps burst 64 inherit no\n"},
	{.name = "a list of a command stays, and a list that the file no longer has is removed",
	 .was = "deny: [{list: a, prefix: 192.0.2.1}]",
	 .file = "deny: [{list: b, prefix: 192.0.2.2}]",
	 .in_force = "deny: [{list: a, prefix: 192.0.2.1}, {list: c, prefix: 192.0.2.3}]",
	 .wanted = "sluice deny 192.0.2.2 as b\nsluice deny 192.0.2.3 as c\n"},
	{.name = "limits that a command changed or made are reverted, and reported",
	 .was = "policies: [{prefix: default, limits: [{rate: 1pps}]}]",
	 .file = "policies: [{prefix: default, limits: [{rate: 1pps}]}]",
	 .in_force = "policies: [{prefix: default, limits: [{rate: 9pps}]}, "
		     "{prefix: 10.0.0.0/8, limits: [{rate: 9pps}]}]",
	 .wanted = "sluice set default rate 1pps burst 64\n",
	 .undone = {2, "default"}},
	{.name = "limits that the file changed are not reported",
	 .was = "policies: [{prefix: default, limits: [{rate: 1pps}]}]",
	 .file = "policies: [{prefix: default, limits: [{rate: 2pps}]}]",
	 .in_force = "policies: [{prefix: default, limits: [{rate: 1pps}]}]",
	 .wanted = "sluice set default rate 2pps burst 64\n"},
	{.name = "limits that a command deleted are restored, and reported",
	 .was = "policies: [{prefix: default, limits: [{rate: 1pps}]}]",
	 .file = "policies: [{prefix: default, limits: [{rate: 1pps}]}]",
	 .wanted = "sluice set default rate 1pps burst 64\n",
	 .undone = {1, "default"}},
	{
		.name = "a list of the file that a command removed is restored",
		.was = "deny: [{list: a, prefix: 192.0.2.1}, {list: b, prefix: 192.0.2.2}]",
		.file = "deny: [{list: a, prefix: 192.0.2.1}, {list: c, prefix: 192.0.2.3}]",
		.wanted = "sluice deny 192.0.2.1 as a\nsluice deny 192.0.2.3 as c\n",
	},
	{.name = "if the old file is unknown, limits that differ from the file are reported",
	 .file = "policies: [{prefix: default, limits: [{rate: 1pps}]}, "
		 "{prefix: 10.0.0.0/8, limits: [{rate: 1pps}]}]",
	 .in_force = "policies: [{prefix: default, limits: [{rate: 9pps}]}, "
		     "{prefix: 192.0.2.0/24, limits: [{rate: 9pps}]}]",
	 .wanted = "sluice set default rate 1pps burst 64\n"
		   "sluice set 10.0.0.0/8 rate 1pps burst 64 inherit no\n",
	 .undone = {2, "default"}},
	{.name = "if only lists are read again, limits and runtime entries stay",
	 .renew = RENEW_LISTS,
	 .was = "policies: [{prefix: default, limits: [{rate: 1pps}]}]\n"
		"deny: [{prefix: 192.0.2.9}, {list: a, prefix: 192.0.2.1}]",
	 .file = "policies: [{prefix: default, limits: [{rate: 1pps}]}]\n"
		 "deny: [{prefix: 192.0.2.9}, {list: a, prefix: 192.0.2.2}]",
	 .in_force = "policies: [{prefix: default, limits: [{rate: 7pps}]}]\n"
		     "deny: [{prefix: 192.0.2.8}, {list: a, prefix: 192.0.2.1}, "
		     "{list: b, prefix: 192.0.2.1}]",
	 .wanted = "sluice set default rate 7pps burst 64\nsluice deny 192.0.2.1 as b\n"
		   "sluice deny 192.0.2.2 as a\nsluice deny 192.0.2.8\n"},
};

TEST(test_what_is_in_force_behind_a_reload)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct reconcile_case *c = &cases[i];
		struct config was = text_read(c->was), file = text_read(c->file);
		struct config in_force = text_read(c->in_force);
		struct ruleset wanted;
		struct undone undone;

		assert_int_equal(reconcile(&in_force.rules, &file.rules, &was.rules, c->renew,
					   &wanted, &undone),
				 0);
		if (strcmp(shown(&wanted), c->wanted))
			fail_msg("%s:\n%s", c->name, shown(&wanted));
		if (undone.count != c->undone.count || strcmp(undone.first, c->undone.first))
			fail_msg("%s: undone %u, %s", c->name, undone.count, undone.first);
		ruleset_free(&wanted);
		config_free(&was);
		config_free(&file);
		config_free(&in_force);
	}
}

/*
 * A reload of the rules file restarts the duration `for` of a list. A reload of only the list files
 * does not.
 */
TEST(test_a_list_that_is_read_again_keeps_its_end)
{
	struct config in_force = text_read("deny: [{list: a, prefix: 192.0.2.1, for: 1h}]");
	struct config file = text_read("deny: [{list: a, prefix: 192.0.2.1, for: 2h}]");
	struct ruleset wanted;
	struct undone undone;

	for (int renew = RENEW_ALL; renew <= RENEW_LISTS; renew++) {
		const struct config *ends = renew == RENEW_ALL ? &file : &in_force;

		assert_int_equal(reconcile(&in_force.rules, &file.rules, &in_force.rules, renew,
					   &wanted, &undone),
				 0);
		assert_int_equal(wanted.lists[0].until, ends->rules.lists[0].until);
		ruleset_free(&wanted);
	}
	config_free(&in_force);
	config_free(&file);
}

/* Returns the seconds until the first rule's entry on `list` expires, or 0 if it never expires. */
static uint64_t seconds_on(const struct ruleset *set, const char *list)
{
	uint32_t until = rule_list_end(&set->rules[0], lists_find(set->lists, list));

	return until ? until_left_ns(until) / SEC_NS : 0;
}

/*
 * An entry that a command added keeps its expiry across reloads and restarts, even if the list's
 * index changes. If the rules file sets expiries of the prefix on two other lists, the entry is
 * removed.
 */
TEST(test_an_entry_on_a_list_keeps_its_end)
{
	struct config file =
		text_read("deny: [{list: a, prefix: 192.0.2.1}, {list: c, prefix: 192.0.2.1}]");
	struct config in_force =
		text_read("deny: [{list: b, prefix: 192.0.2.1}, {list: a, prefix: 192.0.2.1}]");
	struct ruleset wanted, given, all = {0};
	struct undone undone;

	assert_true(rule_add_list(&in_force.rules.rules[0], 0, until_after(3600 * SEC_NS)));
	assert_int_equal(
		reconcile(&in_force.rules, &file.rules, &file.rules, RENEW_ALL, &wanted, &undone),
		0);
	assert_int_equal(wanted.count, 1);
	assert_in_range(seconds_on(&wanted, "b"), 3590, 3600);
	assert_int_equal(seconds_on(&wanted, "a"), 0);
	assert_int_equal(undone.count, 0);
	ruleset_free(&wanted);
	assert_int_equal(rules_runtime(&in_force.rules, &file.rules, &file.rules, &given), 0);
	assert_in_range(seconds_on(&given, "b"), 3590, 3600);
	assert_int_equal(rules_join(&all, &given), 0);
	assert_in_range(seconds_on(&all, "b"), 3590, 3600);

	assert_true(rule_add_list(&file.rules.rules[0], 0, until_after(60 * SEC_NS)));
	assert_int_equal(
		reconcile(&in_force.rules, &file.rules, &file.rules, RENEW_ALL, &wanted, &undone),
		0);
	assert_in_range(seconds_on(&wanted, "a"), 50, 60);
	assert_in_range(seconds_on(&wanted, "b"), 3590, 3600);
	ruleset_free(&wanted);

	assert_true(rule_add_list(&file.rules.rules[0], 1, until_after(90 * SEC_NS)));
	assert_int_equal(
		reconcile(&in_force.rules, &file.rules, &file.rules, RENEW_ALL, &wanted, &undone),
		0);
	assert_string_equal(error_get(error_count() - 1)->object, "192.0.2.1");
	assert_null(strstr(shown(&wanted), " as b"));
	assert_in_range(seconds_on(&wanted, "a"), 50, 60);
	ruleset_free(&wanted);
	ruleset_free(&given);
	ruleset_free(&all);
	config_free(&file);
	config_free(&in_force);
}

TEST(test_what_commands_gave)
{
	struct config file = text_read("deny: [{prefix: 192.0.2.1}, {list: a, prefix: 192.0.2.2}]\n"
				       "allow: [192.0.2.3]");
	struct config in_force =
		text_read("policies: [{prefix: default, limits: [{rate: 1pps}]}]\n"
			  "deny: [{prefix: 192.0.2.1}, {list: a, prefix: 192.0.2.2}, "
			  "{prefix: 192.0.2.3}, {prefix: 192.0.2.4}, "
			  "{list: b, prefixes: [192.0.2.2, 192.0.2.4]}]\nallow: [192.0.2.2]");
	struct ruleset given, again = {0};

	assert_int_equal(rules_runtime(&in_force.rules, &file.rules, &file.rules, &given), 0);
	assert_string_equal(shown(&given), "sluice allow 192.0.2.2\nsluice deny 192.0.2.2 as b\n"
					   "sluice deny 192.0.2.4\nsluice deny 192.0.2.4 as b\n");
	assert_int_equal(rules_join(&again, &given), 0);
	assert_string_equal(shown(&again), "sluice allow 192.0.2.2\nsluice deny 192.0.2.2 as b\n"
					   "sluice deny 192.0.2.4\nsluice deny 192.0.2.4 as b\n");
	assert_int_equal(rules_join(&file.rules, &in_force.rules), 0);
	assert_string_equal(shown(&file.rules),
			    "sluice set default rate 1pps burst 64\n"
			    "sluice deny 192.0.2.1\nsluice allow 192.0.2.2\n"
			    "sluice deny 192.0.2.2 as a\n"
			    "sluice deny 192.0.2.2 as b\nsluice allow 192.0.2.3\n"
			    "sluice deny 192.0.2.4\nsluice deny 192.0.2.4 as b\n");
	ruleset_free(&given);
	ruleset_free(&again);
	config_free(&file);
	config_free(&in_force);
}

/*
 * If a list file is invalid, the list keeps its saved entries, but gets the expiry in the rules
 * file.
 */
TEST(test_lists_that_are_left_out_are_completed)
{
	struct list_path left_out[] = {
		{.is_left_out = true, .list = {.access = SL_ACCESS_DENY, .until = 77, .name = "a"}},
		{.is_left_out = true, .list = {.access = SL_ACCESS_DENY, .name = "unknown"}},
		{.is_left_out = true, .list = {.access = SL_ACCESS_DENY, .name = "c"}},
		{.list = {.access = SL_ACCESS_DENY, .name = "x"}},
	};
	const struct list_paths paths = {.list = left_out, .count = ARRAY_SIZE(left_out)};
	struct config file = text_read("deny: [{list: c, prefix: 192.0.2.9}, {prefix: 192.0.2.1}]");
	struct config known = text_read(
		"policies: [{prefix: default, limits: [{rate: 1pps}]}]\n"
		"deny: [{list: x, prefix: 192.0.2.5}, {list: a, prefixes: [192.0.2.1, 192.0.2.2]}, "
		"{list: c, prefix: 192.0.2.8}, {prefix: 192.0.2.2}]");
	int place;

	known.rules.lists[lists_find(known.rules.lists, "a")].replaced = 55;
	assert_int_equal(rules_complete(&file.rules, &paths, &known.rules), 0);
	place = lists_find(file.rules.lists, "a");
	assert_int_equal(file.rules.lists[place].until, 77);
	assert_int_equal(file.rules.lists[place].replaced, 55);
	file.rules.lists[place].until = 0; /* so that shown() omits the list */
	assert_string_equal(shown(&file.rules),
			    "sluice deny 192.0.2.1\nsluice deny 192.0.2.1 as a\n"
			    "sluice deny 192.0.2.2 as a\nsluice deny 192.0.2.9 as c\n");
	assert_int_equal(lists_count(file.rules.lists), 2);
	config_free(&file);
	config_free(&known);
}

TESTS(NULL, NULL)
