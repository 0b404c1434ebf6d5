// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/rules/ruleset.h, which compares rules, prints rules as commands, and computes the
 * sizes of maps.
 */
#include <errno.h>
#include "test.h"
#include "base/clock.h"
#include "capture.h"
#include "program/print_rules.h"
#include "program/writer.h"
#include "ends.h"
#include "prefix_of.h"
#include "rules/ruleset.h"
#include "rules/limit_words.h"
#include "spec_words.h"

static void limit_add(struct rule *rule, const char *words)
{
	struct limit limit = limit_of_words("default", words);

	assert_int_equal(rule_add_limit(rule, &limit), 0);
}

static struct rule policy_of(const char *prefix)
{
	struct rule rule = {.prefix = prefix_of(prefix)};

	limit_add(&rule, "rate 10kpps");
	limit_add(&rule, "name dns rate 200pps match udp port 53");
	return rule;
}

static struct rule entry_of(const char *prefix, enum sl_access list, uint32_t until)
{
	return (struct rule){.prefix = prefix_of(prefix), .access = list, .until = until};
}

TEST(test_rules_are_equal_whatever_their_ids_and_order)
{
	struct rule a = policy_of("default"), b = policy_of("default");
	struct limit first;

	assert_true(rule_equal(&a, &b));
	b.limit[0].spec.id = 7; /* rule_equal() ignores the id */
	assert_true(rule_equal(&a, &b));
	first = b.limit[0]; /* rule_equal() ignores the order of limits */
	b.limit[0] = b.limit[1];
	b.limit[1] = first;
	assert_true(rule_equal(&a, &b));
	b.limit[0].match.port[0].last = 54;
	assert_false(rule_equal(&a, &b));
	b.limit[0].match.port[0].last = 53;
	b.limit[0].match.port[1].last = 54; /* ignored: the match has only port[0] */
	assert_true(rule_equal(&a, &b));
	b.prefix = prefix_of("0.0.0.0/0");
	assert_false(rule_equal(&a, &b));
	b.prefix = a.prefix;
	b.limits = 1;
	assert_false(rule_equal(&a, &b));
	assert_false(rule_equal(&b, &a));
	rule_free(&a);
	rule_free(&b);
}

/* Two limits are equal if the fields of their kind and their second rates are equal. */
TEST(test_every_word_of_a_kind_counts)
{
	static const char *const specs[] = {
		"rate 1kpps",
		"rate 1kpps name x",
		"rate 1kpps per 24",
		"rate 1kpps per 32/56",
		"rate 1kpps key dst",
		"rate 1kpps start empty",
		"rate 1kpps shared yes",
		"rate 1kpps action observe",
		"rate 1kpps name x match tcp",
		"rate 1kpps name x match proto 1",
		"rate 1kpps name x match proto 2",
		"rate 1kpps burst 1s",
		"rate 1kpps 1mbit",
		"rate 1kpps 2mbit",
		"rate 1kpps 1mbit burst 250 64kB",
		"rate 1kpps 1mbit burst 250 64000ns",
		"rate 1kpps action block 1s",
		"rate 1kpps action block 1s escalate 2",
		"rate 1kpps action block 1s escalate 3",
		"rate 1kpps action block 1s escalate 2 max 1h",
		"window 1000 per 1s",
		"window 1001 per 1s",
		"window 1000B per 1s",
		"window 1000 per 2s",
		"window 1000 per 1s groups 4",
		"shape 1kpps",
		"shape 1kpps horizon 1s",
	};
	struct limit limits[ARRAY_SIZE(specs)], other;

	for (size_t i = 0; i < ARRAY_SIZE(specs); i++)
		limits[i] = limit_of_words("default", specs[i]);
	for (size_t i = 0; i < ARRAY_SIZE(specs); i++)
		for (size_t j = 0; j < ARRAY_SIZE(specs); j++)
			if (limit_equal(&limits[i], &limits[j]) != (i == j))
				fail_msg("cases %zu and %zu", i, j);
	other = limits[0]; /* limit_equal() ignores fields that this kind of limit does not use */
	other.spec.groups = 5;
	other.spec.span_ns = 7;
	other.spec.block_max_ns = 7;
	assert_true(limit_equal(&limits[0], &other));
}

TEST(test_two_rates_take_two_of_the_four)
{
	struct rule rule = {.prefix = prefix_of("default")}, copy;

	assert_int_equal(rule_slots(&rule), 0);
	limit_add(&rule, "name a rate 1kpps");
	assert_int_equal(rule_slots(&rule), 1);
	limit_add(&rule, "name b rate 1kpps 1mbit");
	assert_int_equal(rule_slots(&rule), 3);
	assert_int_equal(rule_copy(&rule, &copy), 0);
	assert_int_equal(rule_slots(&copy), 3);
	assert_true(rule_equal(&rule, &copy));
	rule_free(&rule);
	rule_free(&copy);
}

TEST(test_ends_within_two_seconds_are_equal)
{
	const uint32_t apart = UNTIL_SAME_NS >> SL_UNTIL_SHIFT;
	struct rule a = entry_of("192.0.2.1", SL_ACCESS_DENY, 1000), b = a;

	b.until = 1000 + apart;
	assert_true(rule_equal(&a, &b));
	assert_true(rule_equal(&b, &a));
	b.until++;
	assert_false(rule_equal(&a, &b));
	assert_false(rule_equal(&b, &a));
	a.until = 1;
	b.until = 0;
	assert_false(rule_equal(&a, &b));
	b = a;
	b.access = SL_ACCESS_ALLOW;
	assert_false(rule_equal(&a, &b));
}

/* --- Newcomers ------------------------------------------------------------------------------ */

static struct limit budget_of(const char *rate, const char *burst)
{
	struct limit budget;

	assert_int_equal(budget_parse(rate, burst, &budget), 0);
	return budget;
}

TEST(test_a_budget_makes_rules_differ)
{
	struct limit budget = budget_of("10kpps", "20000"), other = budget_of("10kpps", "20001");
	struct rule a = policy_of("default"), b;

	assert_int_equal(rule_copy(&a, &b), 0);
	assert_null(b.newcomers);
	assert_int_equal(rule_set_newcomers(&a, &budget), 0);
	assert_false(rule_equal(&a, &b));
	assert_false(rule_equal(&b, &a));
	assert_int_equal(rule_set_newcomers(&b, &other), 0);
	assert_false(rule_equal(&a, &b));
	assert_int_equal(rule_set_newcomers(&b, &budget), 0);
	assert_true(rule_equal(&a, &b));
	assert_ptr_not_equal(a.newcomers, b.newcomers);
	a.limits = b.limits = 0;
	assert_int_equal(rule_set_newcomers(&b, NULL), 0);
	assert_true(rule_equal(&a, &b));
	assert_true(rule_equal(&b, &a));
	rule_free(&a);
	assert_null(a.newcomers);
	rule_free(&b);
}

TEST(test_newcomers_are_copied_and_taken)
{
	struct limit budget = budget_of("50mbit", "250ms");
	struct rule rule = policy_of("192.0.2.0/24"), copy, taken = {.prefix = rule.prefix};

	assert_int_equal(rule_set_newcomers(&rule, &budget), 0);
	assert_int_equal(rule_copy(&rule, &copy), 0);
	assert_ptr_not_equal(copy.newcomers, rule.newcomers);
	rule_take_policy(&taken, &rule);
	assert_true(!rule.limits && !rule.limit && !rule.newcomers);
	assert_true(rule_equal(&taken, &copy));
	rule_free(&copy);
	assert_true(limit_equal(taken.newcomers, &budget));
	rule_free(&taken);
}

/* --- Sets ----------------------------------------------------------------------------------- */

TEST(test_a_set_is_sorted_by_prefix)
{
	static const char *const order[] = {"default", "10.0.0.0/8", "10.0.0.0",     "192.0.2.1",
					    "::/0",    "::1",	     "2001:db8::/32"};
	struct ruleset set = {0};

	ruleset_sort(&set);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		struct rule rule = entry_of(order[i * 3 % ARRAY_SIZE(order)], SL_ACCESS_DENY, 0);

		assert_int_equal(ruleset_add(&set, &rule), 0);
	}
	for (int again = 0; again < 2; again++) {
		ruleset_sort(&set);
		for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
			struct sl_prefix prefix = prefix_of(order[i]);

			assert_true(prefix_equal(&set.rules[i].prefix, &prefix));
		}
	}
	ruleset_free(&set);
	assert_int_equal(set.count, 0);
}

/*
 * Callback of ruleset_diff(). For a prefix P, appends "-P" if it was removed, "+P" if it was added,
 * and "*P" if it was changed.
 */
static int diff_note(void *data, const struct rule *from, const struct rule *to)
{
	char text[PREFIX_TEXT], *words = data;

	sprintf(words + strlen(words), "%s%s ",
		!from ? "+"
		: !to ? "-"
		      : "*",
		prefix_format(from ? &from->prefix : &to->prefix, text));
	return 0;
}

static int diff_refuse(void *data, const struct rule *from, const struct rule *to)
{
	(void)from;
	(void)to;
	++*(int *)data;
	return -EINVAL;
}

static void set_of(struct ruleset *set, const char *const *prefixes, enum sl_access list)
{
	*set = (struct ruleset){0};
	for (; *prefixes; prefixes++) {
		struct rule rule = entry_of(*prefixes, list, 0);

		assert_int_equal(ruleset_add(set, &rule), 0);
	}
	ruleset_sort(set);
}

TEST(test_a_diff_has_what_goes_comes_and_changes)
{
	static const char *const left[] = {"default", "10.0.0.1", "10.0.0.3", "::1", NULL};
	static const char *const right[] = {"10.0.0.0/8", "10.0.0.1", "10.0.0.4",
					    "::1",	  "::2",      NULL};
	static const char *const none[] = {NULL};
	struct ruleset from, to, empty;
	char words[256] = "";
	int calls = 0;

	set_of(&from, left, SL_ACCESS_DENY);
	set_of(&to, right, SL_ACCESS_DENY);
	set_of(&empty, none, SL_ACCESS_DENY);
	to.rules[1].access = SL_ACCESS_ALLOW;
	assert_int_equal(ruleset_diff(&from, &to, diff_note, words), 0);
	assert_string_equal(words, "-default +10.0.0.0/8 *10.0.0.1 -10.0.0.3 +10.0.0.4 +::2 ");
	*words = '\0';
	assert_int_equal(ruleset_diff(&from, &from, diff_note, words), 0);
	assert_int_equal(ruleset_diff(&empty, &empty, diff_note, words), 0);
	assert_string_equal(words, "");
	assert_int_equal(ruleset_diff(&empty, &from, diff_note, words), 0);
	assert_string_equal(words, "+default +10.0.0.1 +10.0.0.3 +::1 ");
	*words = '\0';
	assert_int_equal(ruleset_diff(&from, &empty, diff_note, words), 0);
	assert_string_equal(words, "-default -10.0.0.1 -10.0.0.3 -::1 ");
	assert_int_equal(ruleset_diff(&from, &to, diff_refuse, &calls), -EINVAL);
	assert_int_equal(calls, 1);
	ruleset_free(&from);
	ruleset_free(&to);
}

static void list_put(struct ruleset *set, int place, const char *name, enum sl_access list)
{
	if (!set->lists)
		assert_int_equal(ruleset_make_lists(set), 0);
	set->lists[place] = (struct sl_list_info){.access = list};
	strcpy(set->lists[place].name, name);
}

static void rule_put(struct ruleset *set, const char *prefix, uint64_t lists)
{
	struct rule rule = {.prefix = prefix_of(prefix), .lists = lists};

	assert_int_equal(ruleset_add(set, &rule), 0);
}

/*
 * Two lists are the same if their names and accesses are equal. Such a list gets the same index in
 * both rule sets. Every other list gets a free index.
 */
TEST(test_lists_are_matched)
{
	struct ruleset set = {0}, other = {0};

	list_put(&other, 0, "x", SL_ACCESS_DENY);
	list_put(&other, 1, "y", SL_ACCESS_DENY);
	list_put(&set, 0, "x", SL_ACCESS_ALLOW);
	list_put(&set, 1, "z", SL_ACCESS_DENY);
	list_put(&set, 2, "y", SL_ACCESS_DENY);
	rule_put(&set, "10.0.0.1", 1 << 0 | 1 << 1);
	rule_put(&set, "10.0.0.2", 1 << 2);
	assert_int_equal(ruleset_match_lists(&set, other.lists), 0);
	assert_int_equal(set.rules[1].lists, 1 << 1);
	assert_string_equal(set.lists[1].name, "y");
	assert_int_equal(set.rules[0].lists & 3, 0);
	assert_int_equal(__builtin_popcountll(set.rules[0].lists), 2);
	ruleset_free(&set);
	ruleset_free(&other);
}

/*
 * A list's entries keep their expiry if the list's index changes. Rules with different expiries of
 * entries differ.
 */
TEST(test_ends_on_lists)
{
	struct ruleset set = {0}, other = {0};
	struct rule a, b, difference;
	uint32_t until = until_after(3600 * SEC_NS);

	list_put(&other, 0, "x", SL_ACCESS_DENY);
	list_put(&other, 1, "y", SL_ACCESS_DENY);
	list_put(&set, 0, "y", SL_ACCESS_DENY);
	list_put(&set, 1, "x", SL_ACCESS_DENY);
	rule_put(&set, "10.0.0.1", 1 << 1);
	assert_true(rule_add_list(&set.rules[0], 0, until));
	assert_true(rule_add_list(&set.rules[0], 2, until + 7));
	assert_false(rule_add_list(&set.rules[0], 1, until));
	assert_int_equal(set.rules[0].lists, 7);
	assert_int_equal(rule_list_end(&set.rules[0], 0), until);
	assert_int_equal(rule_list_end(&set.rules[0], 2), until + 7);
	assert_true(rule_add_list(&set.rules[0], 2, until + 9));
	assert_int_equal(rule_list_end(&set.rules[0], 2), until + 9);
	rule_remove_lists(&set.rules[0], 4);
	assert_int_equal(rule_list_end(&set.rules[0], 2), 0);
	assert_int_equal(set.rules[0].lists, 3);
	assert_int_equal(ruleset_match_lists(&set, other.lists), 0);
	assert_int_equal(rule_list_end(&set.rules[0], 0), 0);
	assert_int_equal(rule_list_end(&set.rules[0], 1), until);

	a = b = set.rules[0];
	assert_true(rule_equal(&a, &b));
	assert_true(rule_add_list(&b, 1, until + 100));
	assert_false(rule_equal(&a, &b));
	assert_int_equal(rule_difference(&b, &a, &difference), 0);
	assert_int_equal(difference.lists, 2);
	assert_int_equal(rule_list_end(&difference, 1), until + 100);
	assert_true(rule_add_list(&b, 1, 0));
	assert_false(rule_equal(&a, &b));
	assert_int_equal(rule_difference(&b, &a, &difference), 0);
	assert_int_equal(difference.lists, 2);
	assert_int_equal(difference.list_until, 0);
	rule_remove_lists(&b, 2);
	assert_int_equal(b.lists, 1);
	assert_true(rule_add_list(&b, 0, until));
	ruleset_free(&set);
	ruleset_free(&other);
}

/* --- Printing ------------------------------------------------------------------------------- */

static const char *printed(const struct rule *rule, const char *gate, const char *lead)
{
	struct capture capture = capture_begin(stdout);

	print_begin(stdout, false);
	print_commands(rule, NULL, NULL, gate, lead);
	return ends_as_spans(capture_end(&capture));
}

TEST(test_a_rule_prints_as_its_commands)
{
	struct rule rule = policy_of("203.0.113.0/24"), none = {.prefix = rule.prefix};

	rule.access = SL_ACCESS_ALLOW;
	assert_string_equal(printed(&rule, "main", "- "),
			    "- sluice allow 203.0.113.0/24\n"
			    "- sluice set 203.0.113.0/24 rate 10kpps burst 10000\n"
			    "- sluice set 203.0.113.0/24 name dns rate 200pps burst 200 match udp "
			    "port 53\n");
	rule.access = SL_ACCESS_DENY;
	rule.until = until_after(3540 * SEC_NS);
	rule.limits = 0;
	assert_string_equal(printed(&rule, "edge", ""),
			    "sluice -g edge deny 203.0.113.0/24 in 59min\n");
	rule.until = 1; /* expired entries are not printed */
	assert_string_equal(printed(&rule, "edge", ""), "");
	assert_string_equal(printed(&none, "edge", ""), "");
	rule_free(&rule);
}

/* A list whose entries have different expiries is printed as several commands. */
TEST(test_ends_of_lists_and_of_their_entries_are_printed)
{
	struct rules_shown shown = {0};
	struct ruleset set = {0};
	struct capture capture;

	list_put(&set, 0, "brief", SL_ACCESS_DENY);
	list_put(&set, 1, "x", SL_ACCESS_ALLOW);
	set.lists[0].until = until_after(2 * 3600 * SEC_NS);
	rule_put(&set, "10.0.0.1", 3);
	rule_put(&set, "10.0.0.2", 1);
	rule_put(&set, "10.0.0.3", 2);
	assert_true(rule_add_list(&set.rules[0], 0, until_after(3600 * SEC_NS)));
	assert_true(rule_add_list(&set.rules[2], 1, until_after(3 * 3600 * SEC_NS)));
	capture = capture_begin(stdout);
	print_begin(stdout, false);
	for (unsigned int i = 0; i < set.count; i++)
		print_commands(&set.rules[i], set.lists, &shown, "main", "");
	assert_string_equal(ends_as_spans(capture_end(&capture)),
			    "sluice deny 10.0.0.1 in 2h as brief replace\n"
			    "sluice deny 10.0.0.1 in 1h as brief\n"
			    "sluice allow 10.0.0.1 as x\n"
			    "sluice deny 10.0.0.2 as brief\n"
			    "sluice allow 10.0.0.3 in 3h as x\n");
	ruleset_free(&set);
}

TEST(test_the_difference_is_what_the_other_lacks)
{
	struct rule a = policy_of("192.0.2.1"), b, difference;

	assert_int_equal(rule_copy(&a, &b), 0);
	b.access = SL_ACCESS_DENY;
	b.limit[1] = limit_of_words("default", "name dns rate 300pps match udp port 53");
	assert_int_equal(rule_difference(&b, &a, &difference), 0);
	assert_string_equal(printed(&difference, "main", "+ "),
			    "+ sluice deny 192.0.2.1\n"
			    "+ sluice set 192.0.2.1 name dns rate 300pps burst 300 match udp "
			    "port 53\n");
	rule_free(&difference);
	assert_int_equal(rule_difference(&a, &b, &difference), 0);
	assert_string_equal(
		printed(&difference, "main", "- "),
		"- sluice set 192.0.2.1 name dns rate 200pps burst 200 match udp port 53\n");
	rule_free(&difference);
	assert_int_equal(rule_difference(&a, &a, &difference), 0);
	assert_string_equal(printed(&difference, "main", ""), "");
	rule_free(&a);
	rule_free(&b);
}

/* --- Sizes ---------------------------------------------------------------------------------- */

#define POLICIES(specified) (SL_POLICY_FIRST + (specified))

static const struct {
	const char *name;
	struct gate_sizes has, needed;
	uint32_t fixed;
	struct gate_sizes grown;
} growths[] = {
	{"what holds stays",
	 {.hosts = 100, .prefixes = 7, .policies = POLICIES(5)},
	 {.hosts = 100, .prefixes = 1, .policies = POLICIES(5)},
	 0,
	 {.hosts = 100, .prefixes = 7, .policies = POLICIES(5)}},
	{"one more doubles", {.hosts = 16384}, {.hosts = 16385}, 0, {.hosts = 32768}},
	{"at least twice of what is no power",
	 {.hosts = 20000},
	 {.hosts = 20001},
	 0,
	 {.hosts = 65536}},
	{"a fixed size stays, although it is too small",
	 {.hosts = 20, .prefixes = 20},
	 {.hosts = 21, .prefixes = 21},
	 SIZE_BIT(SIZE_HOSTS),
	 {.hosts = 20, .prefixes = 64}},
	{"no more than the largest",
	 {.prefixes = (1 << 26) - 1},
	 {.prefixes = 1 << 26},
	 0,
	 {.prefixes = 1 << 26}},
	{"and no size holds more",
	 {.prefixes = 5},
	 {.prefixes = (1 << 26) + 1},
	 0,
	 {.prefixes = 1 << 26}},
	{"what no rule needs does not grow",
	 {.sources = 5, .buckets = 5},
	 {0},
	 0,
	 {.sources = 5, .buckets = 5}},
};

TEST(test_sizes_grow)
{
	for (size_t i = 0; i < ARRAY_SIZE(growths); i++) {
		struct gate_sizes got =
			sizes_grown(&growths[i].has, &growths[i].needed, growths[i].fixed);

		print_message("# %s\n", growths[i].name);
		assert_memory_equal(&got, &growths[i].grown, sizeof(got));
		assert_int_equal(sizes_hold(&growths[i].has, &growths[i].needed),
				 i == 0 || i == ARRAY_SIZE(growths) - 1);
	}
}

TEST(test_an_empty_rule_takes_no_room)
{
	struct rule rules[] = {
		{.access = SL_ACCESS_DENY}, {.lists = 1}, {.limits = 1}, {.until = 1}};
	const struct ruleset set = {.rules = rules, .count = ARRAY_SIZE(rules)};
	const struct room room = room_needed(&set);

	assert_int_equal(room.prefixes, 3);
	assert_int_equal(room.policies, 1);
}

TESTS(NULL, NULL)
