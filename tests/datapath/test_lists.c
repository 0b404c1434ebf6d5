// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of runtime entries and lists. The longest prefix of all rules decides. test_ends.c tests
 * entries that expire.
 */
#include "rig.h"

#include "gate/rules.h"
#include "gate/lists.h"
#include "rules/ruleset.h"

#include <stdlib.h>

/* --- Longest prefix ------------------------------------------------------------------------- */

#define ALLOWED ENOUGH
#define DENIED	0

TEST(test_longest_prefix_of_all_rules)
{
	static const struct {
		const char *source;
		unsigned int burst;
	} cases[] = {
		{"9.255.255.255", 3},
		{"10.0.0.0", DENIED},
		{"10.255.255.255", DENIED},
		{"10.1.0.0", ALLOWED},
		{"10.1.255.255", ALLOWED},
		{"10.1.2.0", 5},
		{"10.1.2.127", 5},
		{"10.1.2.128", DENIED},
		{"10.1.2.200", ALLOWED},
		{"10.1.2.201", 7},
		{"10.1.2.202", DENIED},
		{"10.1.2.1", DENIED},
		{"2001:db7::1", 3},
		{"2001:db8::1", DENIED},
		{"2001:db8:1::1", ALLOWED},
		{"2001:db8:1:2::1", 4},
		{"2001:db8:1:2::5", DENIED},
		{"2001:db8:1:2:8000::", ALLOWED},
		{"2001:db8:1:2:8000::9", 6},
		{"2001:db8:1:2:ffff::9", ALLOWED},
		{"2001:db8:1:3::1", ALLOWED},
		{"a01:2c8::", 3}, /* this IPv6 address begins with the bytes of 10.1.2.200 */
	};
	struct rig *rig = rig_begin(state);
	struct ruleset set = {0};

	rules_add_limits(&set, "default", "rate 1/h burst 3", NULL);
	rules_add_list(&set, "10.0.0.0/8", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "10.1.0.0/16", SL_ACCESS_ALLOW, 0);
	rules_add_limits(&set, "10.1.2.0/24", "rate 1/h burst 5", NULL);
	rules_add_list(&set, "10.1.2.128/25", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "10.1.2.1", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "10.1.2.200", SL_ACCESS_ALLOW, 0);
	rules_add_limits(&set, "10.1.2.201", "rate 1/h burst 7", NULL);
	rules_add_list(&set, "2001:db8::/32", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "2001:db8:1::/48", SL_ACCESS_ALLOW, 0);
	rules_add_limits(&set, "2001:db8:1:2::/64", "rate 1/h burst 4", NULL);
	rules_add_list(&set, "2001:db8:1:2::5", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "2001:db8:1:2:8000::/65", SL_ACCESS_ALLOW, 0);
	rules_add_limits(&set, "2001:db8:1:2:8000::9", "rate 1/h burst 6", NULL);
	assert_int_equal(rig_change(rig, &set), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t burst = rig_burst_of(rig, cases[i].source);

		if (burst != cases[i].burst)
			fail_msg("%s: %lu pass, not %u", cases[i].source, burst, cases[i].burst);
	}
	rig_check_tidy(rig, 14);
	rig_check_counted(rig);
}

/* A runtime entry overrides the limits of its prefix. The states of these limits do not change. */
TEST(test_list_over_limits)
{
	static const char *const prefixes[] = {"192.0.2.1", "192.0.2.0/24", "default", "0.0.0.0/0"};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		rig_empty(rig);
		rig_limits(rig, prefixes[i], "rate 1/h burst 10",
			   "name b rate 1/h burst 1 match tcp", NULL);
		assert_int_equal(rig_send_from(rig, "192.0.2.1", 4), 4);
		rig_list(rig, prefixes[i], SL_ACCESS_DENY, 0);
		assert_int_equal(rig_burst_of(rig, "192.0.2.1"), DENIED);
		rig_list(rig, prefixes[i], SL_ACCESS_ALLOW, 0);
		assert_int_equal(rig_burst_of(rig, "192.0.2.1"), ALLOWED);
		rig_check_tidy(rig, 1);
		rig_limits(rig, prefixes[i], "rate 1/h burst 10",
			   "name b rate 1/h burst 2 match tcp", NULL);
		assert_int_equal(rig_burst_of(rig, "192.0.2.1"), ALLOWED);
		rig_list(rig, prefixes[i], SL_ACCESS_NONE, 0);
		assert_int_equal(rig_burst_of(rig, "192.0.2.1"), 6);
		rig_check_tidy(rig, 1);
		rig_check_counted(rig);
	}
}

/* An allowed or denied source gets no state. Its packets count under reason allowed or denied. */
TEST(test_listed_are_counted)
{
	struct rig *rig = rig_begin(state);
	struct sl_counters counters;

	rig_limits(rig, "default", "rate 1/h burst 3", NULL);
	rig_list(rig, "192.0.2.0/24", SL_ACCESS_ALLOW, 0);
	rig_list(rig, "2001:db8::/32", SL_ACCESS_DENY, 0);
	assert_int_equal(rig_send_from(rig, "192.0.2.1", 7), 7);
	assert_int_equal(rig_send_from(rig, "2001:db8::1", 9), 0);
	assert_int_equal(counters_read(&rig->gate, SL_POLICY_ALLOW, &counters), 0);
	assert_int_equal(counters.reason[SL_PASS_ALLOWED].packets, 7);
	assert_int_equal(counters.reason[SL_PASS_ALLOWED].bytes, 7 * 60);
	assert_int_equal(counters_passed(&counters).packets, 7);
	assert_int_equal(counters_dropped(&counters).packets, 0);
	assert_int_equal(counters_read(&rig->gate, SL_POLICY_DENY, &counters), 0);
	assert_int_equal(counters.reason[SL_DROP_DENIED].packets, 9);
	assert_int_equal(counters_passed(&counters).packets, 0);
	assert_int_equal(counters_dropped(&counters).packets, 9);
	assert_int_equal(rig_states(rig), 0);
	assert_int_equal(rig_buckets_of(rig, SL_IPV4), 1);
	assert_int_equal(rig_buckets_of(rig, SL_IPV6), 1);
	rig_check_counted(rig);
}

/* --- Named lists ---------------------------------------------------------------------------- */

/* Numbers of lists. BAD and WORSE deny. GOOD allows. BRIEF denies and expires after one second. */
enum { BAD, WORSE, GOOD, BRIEF };

#define ON(list) (1ULL << (list))

static void lists_make(struct rig *rig, struct ruleset *set)
{
	rules_make_list(set, BAD, SL_ACCESS_DENY, 0);
	rules_make_list(set, WORSE, SL_ACCESS_DENY, 0);
	rules_make_list(set, GOOD, SL_ACCESS_ALLOW, 0);
	rules_make_list(set, BRIEF, SL_ACCESS_DENY, rig_until(rig, SEC));
}

TEST(test_lists_and_words_by_hand)
{
	static const struct {
		const char *name;
		struct {
			const char *prefix;
			uint64_t lists;
			enum sl_access hand;
			bool limited;
			bool brief; /* the runtime entry expires after a second */
		} rules[4];
		unsigned int now, then;
	} cases[] = {
		{"a list denies", {{.prefix = "10.1.1.1", .lists = ON(BAD)}}, DENIED, DENIED},
		{"a list allows",
		 {{.prefix = "10.1.1.1", .lists = ON(GOOD)},
		  {.prefix = "10.1.0.0/16", .lists = ON(BAD)}},
		 ALLOWED,
		 ALLOWED},
		{"the longer list decides",
		 {{.prefix = "10.1.1.0/24", .lists = ON(BAD)},
		  {.prefix = "10.1.0.0/16", .lists = ON(GOOD)}},
		 DENIED,
		 DENIED},
		{"of two lists that differ allow counts",
		 {{.prefix = "10.1.1.0/24", .lists = ON(BAD) | ON(GOOD)}},
		 ALLOWED,
		 ALLOWED},
		{"a list that ends", {{.prefix = "10.1.1.1", .lists = ON(BRIEF)}}, DENIED, ENOUGH},
		{"one ends, another stays",
		 {{.prefix = "10.1.1.1", .lists = ON(BRIEF) | ON(WORSE)}},
		 DENIED,
		 DENIED},
		{"after its list ends, its limits",
		 {{.prefix = "10.1.1.1", .lists = ON(BRIEF), .limited = true}},
		 DENIED,
		 5},
		{"a list beats limits of its prefix",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD), .limited = true}},
		 DENIED,
		 DENIED},
		{"limits of a longer prefix beat a list",
		 {{.prefix = "10.1.1.1", .limited = true},
		  {.prefix = "10.1.1.0/24", .lists = ON(BAD)}},
		 5,
		 5},
		{"by hand beats a list",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD), .hand = SL_ACCESS_ALLOW}},
		 ALLOWED,
		 ALLOWED},
		{"by hand beats a list that allows",
		 {{.prefix = "10.1.1.1", .lists = ON(GOOD), .hand = SL_ACCESS_DENY}},
		 DENIED,
		 DENIED},
		{"by hand for a second, then the list",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD), .hand = SL_ACCESS_ALLOW, .brief = true}},
		 ALLOWED,
		 DENIED},
		{"allowed by hand at a shorter prefix",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD)},
		  {.prefix = "10.0.0.0/8", .hand = SL_ACCESS_ALLOW}},
		 ALLOWED,
		 ALLOWED},
		{"allowed by hand by default",
		 {{.prefix = "10.1.1.0/24", .lists = ON(BAD)},
		  {.prefix = "default", .hand = SL_ACCESS_ALLOW}},
		 ALLOWED,
		 ALLOWED},
		{"allowed by hand, for a second",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD)},
		  {.prefix = "10.0.0.0/8", .hand = SL_ACCESS_ALLOW, .brief = true}},
		 ALLOWED,
		 DENIED},
		{"denied by hand between",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD)},
		  {.prefix = "10.1.0.0/16", .hand = SL_ACCESS_DENY},
		  {.prefix = "10.0.0.0/8", .hand = SL_ACCESS_ALLOW}},
		 DENIED,
		 DENIED},
		{"denied by hand between, for a second",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD)},
		  {.prefix = "10.1.0.0/16", .hand = SL_ACCESS_DENY, .brief = true},
		  {.prefix = "10.0.0.0/8", .hand = SL_ACCESS_ALLOW}},
		 DENIED,
		 ALLOWED},
		{"lists between count for nothing",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD)},
		  {.prefix = "10.1.1.0/24", .lists = ON(WORSE)},
		  {.prefix = "10.1.0.0/16", .lists = ON(BRIEF)},
		  {.prefix = "10.0.0.0/8", .hand = SL_ACCESS_ALLOW}},
		 ALLOWED,
		 ALLOWED},
		{"limits between decide as without the list",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD)},
		  {.prefix = "10.1.1.0/24", .limited = true},
		  {.prefix = "10.0.0.0/8", .hand = SL_ACCESS_ALLOW}},
		 5,
		 5},
		{"the limits of the listed prefix",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD), .limited = true},
		  {.prefix = "10.0.0.0/8", .hand = SL_ACCESS_ALLOW}},
		 5,
		 5},
		{"a list's allow lifts no longer list",
		 {{.prefix = "10.1.1.1", .lists = ON(BAD)},
		  {.prefix = "10.0.0.0/8", .lists = ON(GOOD)}},
		 DENIED,
		 DENIED},
		{"by hand denies longer than it allows",
		 {{.prefix = "10.1.1.1", .hand = SL_ACCESS_DENY},
		  {.prefix = "10.0.0.0/8", .hand = SL_ACCESS_ALLOW}},
		 DENIED,
		 DENIED},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ruleset set = {0};
		unsigned int rules = 0;
		uint64_t now, then;

		rig_empty(rig);
		lists_make(rig, &set);
		for (; rules < 4 && cases[i].rules[rules].prefix; rules++) {
			const char *prefix = cases[i].rules[rules].prefix;
			struct rule *rule;

			if (cases[i].rules[rules].limited)
				rules_add_limits(&set, prefix, "rate 1/h burst 5", NULL);
			else
				rules_add_list(&set, prefix, SL_ACCESS_NONE, 0);
			rule = &set.rules[rules];
			rule->lists = cases[i].rules[rules].lists;
			rule->access = cases[i].rules[rules].hand;
			rule->until = cases[i].rules[rules].brief ? rig_until(rig, SEC) : 0;
		}
		assert_int_equal(rig_change(rig, &set), 0);
		rig_check_tidy(rig, rules);
		now = rig_burst_of(rig, "10.1.1.1");
		rig_clock_forward(rig, 2 * SEC);
		then = rig_burst_of(rig, "10.1.1.1");
		if (now != cases[i].now || then != (cases[i].now == 5 ? 0 : cases[i].then))
			fail_msg("%s: %lu pass, then %lu", cases[i].name, now, then);
		rig_check_counted(rig);
	}
}

/* Each change of a list updates its time of change, even if its entries stay the same. */
TEST(test_date_of_a_list)
{
	static const struct {
		const char *prefix;
		bool replace;
	} changes[] = {
		{"10.1.1.1", false}, {"10.1.1.1", false}, {"10.1.1.1", true}, {"10.1.1.2", true}};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct sl_list_info list = {
			.name = "bad", .access = SL_ACCESS_DENY, .replaced = 1000 + i};
		struct sl_list_info lists[SL_LIST_PLACES];
		struct ruleset entries = {0};
		struct list_counts counts;

		rules_add_list(&entries, changes[i].prefix, SL_ACCESS_NONE, 0);
		assert_int_equal(list_put(&rig->gate, &list, changes[i].replace, &entries, &counts),
				 0);
		lists_copy(&rig->gate, lists);
		assert_int_equal(lists[lists_find(lists, "bad")].replaced, 1000 + i);
		ruleset_free(&entries);
	}
}

TESTS(rig_setup, rig_teardown)
