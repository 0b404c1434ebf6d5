// SPDX-License-Identifier: GPL-2.0
/* Tests of entries that expire. The packet path compares the expiry with the clock. */
#include "rig.h"

#include <errno.h>

#include <stdlib.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>

#include "gate/rulemap.h"
#include "gate/rules.h"
#include "gate/lists.h"
#include "gate/transaction.h"

/*
 * Start of the test clock, in ticks: eight years of uptime. Commands read the real clock, by which
 * no entry has expired.
 */
#define LATE (8ULL * 365 * 86400 * SEC)

/* --- The end -------------------------------------------------------------------------------- */

struct end_case {
	const char *prefix, *source;
};

static const struct end_case end_cases[] = {
	{"192.0.2.1", "192.0.2.1"},	  {"192.0.2.0/24", "192.0.2.1"},
	{"0.0.0.0/0", "192.0.2.1"},	  {"default", "192.0.2.1"},
	{"2001:db8::/32", "2001:db8::1"}, {"2001:db8::/64", "2001:db8::1"},
	{"2001:db8::1", "2001:db8::1"},	  {"2001:db8::/127", "2001:db8::1"},
};

/* Sends a packet on every CPU. Checks that the verdict is `passes` on all CPUs. */
static void expect(struct rig *rig, const char *source, bool passes)
{
	for (unsigned int cpu = 0; cpu < rig->cpus; cpu++) {
		rig_run_on(rig, cpu);
		assert_int_equal(rig_send_from(rig, source, 1), passes);
	}
	rig_run_on(rig, 0);
}

static void clock_to(struct rig *rig, uint64_t moment)
{
	rig_clock_forward(rig, moment - rig_now(rig));
}

/*
 * Adds a prefix to all lists in a mask. The entry on list `timed` expires at `until`. The other
 * entries are permanent.
 */
static void listed_until(struct rig *rig, const char *prefix, uint64_t lists, int timed,
			 uint32_t until)
{
	const struct sl_prefix parsed = prefix_of(prefix);
	struct ruleset set = {0};
	struct rule rule;

	rules_make_list(&set, 0, SL_ACCESS_DENY, 0);
	rules_make_list(&set, 1, SL_ACCESS_ALLOW, 0);
	rules_make_list(&set, 2, SL_ACCESS_DENY, rig_until(rig, SEC));
	assert_int_equal(rules_get(&rig->gate, &parsed, &rule), 0);
	rule.lists = lists;
	assert_true(rule_add_list(&rule, timed, until));
	assert_int_equal(ruleset_add(&set, &rule), 0);
	assert_int_equal(rig_change(rig, &set), 0);
}

/*
 * Checks that an entry is in force until the last tick before its expiry. If `heard_at_once`, sends
 * a packet right after the entry is added. If `lead` is not 0, sends a packet `lead` ticks before
 * the expiry.
 */
static void end_check(struct rig *rig, const struct end_case *it, enum sl_access list, bool by_hand,
		      uint64_t lead, bool heard_at_once)
{
	bool allowed = list == SL_ACCESS_ALLOW;
	unsigned int late = lead % 2; /* 1 if the kernel updates jiffies one jiffy late */
	uint32_t until;

	rig_empty(rig);
	rig_clock_start(rig, LATE + (uint64_t)rand() % (100 * MS));
	until = rig_until(rig, 2 * SEC);
	if (allowed) /* After the allow entry has expired, this limit drops all packets. */
		rig_limits(rig, "default", "rate 1/h burst 9 start empty", NULL);
	if (by_hand)
		rig_list(rig, it->prefix, list, until);
	else
		listed_until(rig, it->prefix, 0, allowed ? 1 : 0, until);
	if (heard_at_once)
		expect(rig, it->source, allowed);
	if (lead) {
		clock_to(rig, until_ticks(until) - lead);
		expect(rig, it->source, allowed);
	}
	clock_to(rig, until_ticks(until) - 1);
	if (!late && (heard_at_once || lead > 1))
		expect(rig, it->source, allowed);
	rig_clock_forward(rig, 1);
	*rig->clock_jiffies -= late;
	expect(rig, it->source, !allowed);
	*rig->clock_jiffies += late;
	rig_clock_forward(rig, JIFFY);
	expect(rig, it->source, !allowed);
	rig_check_counted(rig);
}

TEST(test_ends_at_its_moment)
{
	static const uint64_t leads[] = {
		0,	   1,	      16,	    MS,	 JIFFY - 1, JIFFY, JIFFY + 1, 2 * JIFFY - 1,
		2 * JIFFY, 3 * JIFFY, 100 * MS + 7, SEC,
	};
	struct rig *rig = rig_begin(state);
	unsigned int checks = 0;

	srand(9);
	for (size_t i = 0; i < ARRAY_SIZE(end_cases); i++)
		for (size_t l = 0; l < ARRAY_SIZE(leads); l++)
			for (int turn = 0; turn < 4; turn++, checks++)
				end_check(rig, &end_cases[i],
					  turn % 2 ? SL_ACCESS_DENY : SL_ACCESS_ALLOW, turn < 2,
					  leads[l], turn % 2 ^ (l % 2));
	print_message("figure: %u entries with a time, by hand and on lists: all end to the tick "
		      "of the clock, for hot sources and new ones\n",
		      checks);
}

/* After a rule expires, the rule of the next shorter prefix decides, in any order of expiry. */
TEST(test_nested)
{
	static const struct {
		const char *prefix;
		enum sl_access list;
		unsigned int seconds;
	} nested[] = {
		{"192.0.2.1", SL_ACCESS_DENY, 1},    {"192.0.2.0/30", SL_ACCESS_ALLOW, 4},
		{"192.0.2.0/28", SL_ACCESS_DENY, 2}, {"192.0.2.0/24", SL_ACCESS_ALLOW, 2},
		{"192.0.0.0/16", SL_ACCESS_DENY, 6}, {"0.0.0.0/0", SL_ACCESS_ALLOW, 8},
		{"default", SL_ACCESS_DENY, 10},
	};
	static const bool passes[] = {false, true, true, true,	false,
				      false, true, true, false, false};
	struct rig *rig = rig_begin(state);
	struct ruleset set = {0};
	uint64_t start;

	rig_clock_start(rig, LATE);
	start = until_ticks(rig_until(rig, 0));
	clock_to(rig, start);
	for (size_t i = 0; i < ARRAY_SIZE(nested); i++)
		rules_add_list(&set, nested[i].prefix, nested[i].list,
			       rig_until(rig, nested[i].seconds * SEC));
	assert_int_equal(rig_change(rig, &set), 0);
	for (size_t second = 0; second < ARRAY_SIZE(passes); second++) {
		clock_to(rig, start + second * SEC + SEC / 2);
		expect(rig, "192.0.2.1", passes[second]);
	}
	rig_clock_forward(rig, SEC);
	expect(rig, "192.0.2.1", true);
	assert_true(rig_reason(rig, SL_PASS_NO_RULE) > 0);
	rig_check_tidy(rig, ARRAY_SIZE(nested)); /* expired rules still exist in the maps */
	rig_check_counted(rig);
}

/*
 * After an entry has expired, the limits of its prefix or of a shorter prefix apply again. The
 * states of these limits remain.
 */
TEST(test_limits_take_over)
{
	static const char *const prefixes[] = {"192.0.2.1", "192.0.2.0/24", "default"};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		for (int own = 0; own <= 1; own++) {
			rig_empty(rig);
			rig_clock_start(rig, LATE);
			rig_limits(rig, own ? prefixes[i] : "0.0.0.0/0", "rate 1/h burst 10", NULL);
			assert_int_equal(rig_send_from(rig, "192.0.2.1", 4), 4);
			if (!own && !strcmp(prefixes[i], "default"))
				/*
				 * 0.0.0.0/0 is longer than default, so an entry of default has no
				 * effect
				 */
				continue;
			rig_list(rig, prefixes[i], SL_ACCESS_DENY, rig_until(rig, SEC));
			assert_int_equal(rig_send_from(rig, "192.0.2.1", 4), 0);
			rig_clock_forward(rig, 2 * SEC);
			assert_int_equal(rig_send_from(rig, "192.0.2.1", 20), 6);
			assert_int_equal(rig_reason(rig, SL_DROP_DENIED), 4);
			rig_check_counted(rig);
		}
}

/* Slices keep their credit while a runtime entry decides instead of the limit. */
TEST(test_slices_stay)
{
	struct rig *rig = rig_begin(state);
	uint64_t passed = 0;

	rig_clock_start(rig, LATE);
	rig_limits(rig, "default", "rate 1/min burst 1000", NULL);
	for (int turn = 0; turn < 20; turn++) {
		rig_run_on(rig, turn % rig->cpus);
		passed += rig_send_from(rig, "192.0.2.1", 10);
		rig_list(rig, "192.0.2.1", turn % 2 ? SL_ACCESS_DENY : SL_ACCESS_ALLOW,
			 rig_until(rig, 100 * MS));
		rig_send_from(rig, "192.0.2.1", 1);
		rig_clock_forward(rig, 200 * MS);
	}
	for (unsigned int cpu = 0; cpu < rig->cpus; cpu++) {
		rig_run_on(rig, cpu);
		passed += rig_send_from(rig, "192.0.2.1", 1000);
	}
	assert_int_equal(passed, 1000);
	rig_check_counted(rig);
}

/* After a change of an expiry, the next packet is judged by the new expiry. */
TEST(test_another_end)
{
	struct rig *rig = rig_begin(state);

	rig_clock_start(rig, LATE);
	rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, rig_until(rig, 10 * SEC));
	expect(rig, "192.0.2.1", false);
	rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, rig_until(rig, SEC));
	expect(rig, "192.0.2.1", false);
	rig_clock_forward(rig, 2 * SEC);
	expect(rig, "192.0.2.1", true);
	rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, rig_until(rig, SEC));
	expect(rig, "192.0.2.1", false);
	rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, rig_until(rig, 20 * SEC));
	rig_clock_forward(rig, 19 * SEC);
	expect(rig, "192.0.2.1", false);
	rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, 0);
	rig_clock_forward(rig, 3600 * SEC);
	expect(rig, "192.0.2.1", false);
	rig_list(rig, "192.0.2.1", SL_ACCESS_ALLOW, rig_until(rig, 0) - 1);
	expect(rig, "192.0.2.1", true); /* the entry has expired, so no rule applies */
	assert_int_equal(rig_reason(rig, SL_PASS_ALLOWED), 0);
	rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, UINT32_MAX);
	expect(rig, "192.0.2.1", false);
	rig_check_counted(rig);
}

/* After an entry has expired, no change of other rules makes it valid again. */
TEST(test_over_for_good)
{
	struct rig *rig = rig_begin(state);

	rig_clock_start(rig, LATE);
	rig_list(rig, "192.0.2.0/24", SL_ACCESS_DENY, rig_until(rig, SEC));
	rig_clock_forward(rig, 2 * SEC);
	expect(rig, "192.0.2.1", true);
	rig_set(rig, "198.51.100.0/24", "1/h", "1");
	expect(rig, "192.0.2.1", true);
	rig_limits(rig, "192.0.2.0/24", "rate 1/h burst 5", NULL);
	assert_int_equal(rig_burst_of(rig, "192.0.2.2"), 5);
	rig_check_counted(rig);
}

/*
 * A /64 needs a lookup for each packet while it contains a longer rule, even if this rule has
 * expired.
 */
TEST(test_ends_within_a_64)
{
	struct rig *rig = rig_begin(state);

	rig_clock_start(rig, LATE);
	rig_limits(rig, "2001:db8::/32", "rate 1/h burst 30", NULL);
	rig_list(rig, "2001:db8:5::1", SL_ACCESS_DENY, rig_until(rig, SEC));
	rig_list(rig, "2001:db8:5::2", SL_ACCESS_ALLOW, rig_until(rig, 3 * SEC));
	rig_list(rig, "2001:db8:5::/112", SL_ACCESS_DENY, rig_until(rig, 5 * SEC));
	expect(rig, "2001:db8:5::1", false);
	expect(rig, "2001:db8:5::2", true);
	expect(rig, "2001:db8:5::3", false);
	assert_int_equal(rig_send_from(rig, "2001:db8:5::1:0", 5), 5);
	rig_clock_forward(rig, 2 * SEC);
	expect(rig, "2001:db8:5::1", false); /* the deny rule of the /112 applies */
	expect(rig, "2001:db8:5::2", true);
	rig_clock_forward(rig, 2 * SEC);
	expect(rig, "2001:db8:5::2", false);
	rig_clock_forward(rig, 2 * SEC);
	assert_int_equal(rig_send_from(rig, "2001:db8:5::1", 5), 5);
	assert_int_equal(rig_send_from(rig, "2001:db8:5::2", 5), 5);
	assert_int_equal(rig_burst_of(rig, "2001:db8:5::1:0"), 15);
	rig_check_tidy(rig, 4);
	rig_check_counted(rig);
}

/* --- On lists ------------------------------------------------------------------------------- */

TEST(test_an_entry_ends_and_its_other_lists_stay)
{
	static const struct {
		const char *name;
		/*
		 * Lists that contain the prefix. Bit 0: a list that denies. Bit 1: a list that
		 * allows. Bit 2: a list that denies, and whose entry expires after one second.
		 */
		uint64_t lists;
		int timed;
		unsigned int seconds; /* seconds until the entry on list `timed` expires */
		bool passes[3];	      /* whether packets pass after 0.5 s, 1.5 s and 2.5 s */
	} cases[] = {
		{"a deny", 0, 0, 2, {false, false, true}},
		{"a deny beside a list that denies", 1 << 2, 0, 2, {false, false, true}},
		{"an allow beside a list that denies", 1, 1, 2, {true, true, false}},
		{"an allow beside a list that denies for a second", 4, 1, 2, {true, true, true}},
		{"a deny beside a list that allows", 2, 0, 2, {true, true, true}},
		{"an entry that would outlast its list", 0, 2, 2, {false, true, true}},
		{"a deny beside a list that denies longer", 1, 2, 1, {false, false, false}},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t start;

		rig_empty(rig);
		rig_clock_start(rig, LATE);
		start = until_ticks(rig_until(rig, 0));
		clock_to(rig, start);
		listed_until(rig, "192.0.2.1", cases[i].lists, cases[i].timed,
			     rig_until(rig, cases[i].seconds * SEC));
		for (unsigned int second = 0; second < 3; second++) {
			bool passes;

			clock_to(rig, start + second * SEC + SEC / 2);
			passes = rig_send_from(rig, "192.0.2.1", 1);
			if (passes != cases[i].passes[second])
				fail_msg("%s: %d in second %u", cases[i].name, passes, second);
		}
		rig_check_counted(rig);
	}
}

/* Creates list 0. Adds an expired entry for 192.0.2.1 to it. */
static void put_ended(struct rig *rig)
{
	const struct sl_prefix ended = prefix_of("192.0.2.1");
	struct ruleset entries = {0};
	struct rule rule;

	rig_limits(rig, "192.0.2.1", "rate 1/h burst 5", NULL);
	assert_int_equal(rules_get(&rig->gate, &ended, &rule), 0);
	assert_true(rule_add_list(&rule, 0, 1));
	assert_int_equal(ruleset_add(&entries, &rule), 0);
	rules_make_list(&entries, 0, SL_ACCESS_DENY, 0);
	assert_int_equal(rig_change(rig, &entries), 0);
}

/*
 * A list is deleted, but its expired entry remains in a rule. A new list can reuse the number of
 * the deleted list. The expired entry does not belong to the new list.
 */
TEST(test_an_entry_that_ended_is_on_no_later_list_of_its_place)
{
	struct sl_list_info list = {.name = "later", .access = SL_ACCESS_DENY};
	const struct sl_prefix ended = prefix_of("192.0.2.1");
	struct rig *rig = rig_begin(state);
	struct ruleset entries = {0};
	struct list_counts counts;
	struct sl_rule raw;
	struct rule rule;

	rig_clock_start(rig, LATE);
	put_ended(rig);
	assert_int_equal(list_drop(&rig->gate, "list0", &counts), 0);
	assert_int_equal(counts.gone, 0);
	assert_int_equal(rulemap_get(&rig->gate, &ended, &raw), 1);
	assert_int_equal(raw.cur.list_mask, 1);
	rules_add_list(&entries, "198.51.100.1", SL_ACCESS_NONE, 0);
	assert_int_equal(list_put(&rig->gate, &list, false, &entries, &counts), 0);
	assert_int_equal(rig->gate.state->lists_allow | rig->gate.state->lists_ending, 0);
	assert_string_equal(rig->gate.lists[0].name, "later");
	assert_int_equal(rig_burst_of(rig, "198.51.100.1"), 0);
	assert_int_equal(rig_send_from(rig, "192.0.2.1", 1), 1);
	assert_int_equal(rules_get(&rig->gate, &ended, &rule), 0);
	assert_int_equal(rule.lists, 0);
	rule_free(&rule);

	ruleset_free(&entries);
	rules_add_list(&entries, "192.0.2.1", SL_ACCESS_NONE, 0);
	assert_int_equal(list_put(&rig->gate, &list, false, &entries, &counts), 0);
	assert_int_equal(counts.fresh, 1);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), 0);
	ruleset_free(&entries);
	rig_check_counted(rig);
}

TEST(test_an_entry_that_ended_is_swept_from_its_rule)
{
	const struct sl_prefix ended = prefix_of("192.0.2.1");
	struct rig *rig = rig_begin(state);
	struct sl_rule raw;

	rig_clock_start(rig, LATE);
	put_ended(rig);
	rules_expire(&rig->gate);
	assert_int_equal(rulemap_get(&rig->gate, &ended, &raw), 1);
	assert_int_equal(raw.cur.list_mask | raw.cur.list_until, 0);
	rig_check_tidy(rig, 1);
	rig_check_counted(rig);
}

/* If a rule cannot be read, a change fails and removes no expired rule. */
TEST(test_a_damaged_rule_does_not_begin_a_change)
{
	const __u32 damaged = inet_addr("192.0.2.9");
	struct rig *rig = rig_begin(state);
	struct sl_rule rule;
	int hosts;

	rig_clock_start(rig, LATE);
	put_ended(rig);
	rig_list(rig, "192.0.2.9", SL_ACCESS_DENY, 0);
	hosts = rig->gate.map[MAP_HOSTS4];
	assert_int_equal(bpf_map_lookup_elem(hosts, &damaged, &rule), 0);
	rule.bits ^= 0xaa;
	assert_int_equal(bpf_map_update_elem(hosts, &damaged, &rule, BPF_EXIST), 0);
	assert_int_equal(rules_expire(&rig->gate), 0);
	assert_int_equal(rig->gate.state->changing, 0);
	rule.bits ^= 0xaa;
	assert_int_equal(bpf_map_update_elem(hosts, &damaged, &rule, BPF_EXIST), 0);
	rules_expire(&rig->gate);
	rig_check_tidy(rig, 2);
	rig_check_counted(rig);
}

TEST(test_an_entry_of_an_heir_keeps_its_end)
{
	struct rig *rig = rig_begin(state);
	struct ruleset set = {0};

	rig_clock_start(rig, LATE);
	rules_add_limits(&set, "192.0.2.0/24", "rate 1/h burst 5", NULL);
	rules_add_heir(&set, "192.0.2.1", "name own rate 1/h burst 9", NULL);
	assert_int_equal(rig_change(rig, &set), 0);
	listed_until(rig, "192.0.2.1", 0, 1, rig_until(rig, SEC));
	rig_limits(rig, "192.0.2.0/24", "rate 1/h burst 3", NULL);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), ENOUGH);
	rig_clock_forward(rig, 2 * SEC);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), 3);
	rig_check_counted(rig);
}

/* Puts 192.0.2.1 on a list that denies, until a time. Returns an errno. */
static int ban(struct rig *rig, const char *name, uint32_t until)
{
	struct sl_list_info list = {.access = SL_ACCESS_DENY};
	struct ruleset entries = {0};
	struct list_counts counts;
	int err;

	strcpy(list.name, name);
	rules_add_list(&entries, "192.0.2.1", SL_ACCESS_NONE, 0);
	entries.rules[0].list_until = until;
	err = list_put(&rig->gate, &list, false, &entries, &counts);
	ruleset_free(&entries);
	return err;
}

/* A prefix can be on several lists, but only two of these entries can have an expiry. */
TEST(test_a_prefix_is_denied_until_the_last_of_two_bans_ends)
{
	struct rig *rig = rig_begin(state);
	struct list_counts counts;

	for (int first = 0; first < 2; first++)
		for (int removed = 0; removed < 2; removed++) {
			rig_empty(rig);
			rig_clock_start(rig, LATE);
			assert_int_equal(ban(rig, "a", rig_until(rig, (first ? 2 : 4) * SEC)), 0);
			assert_int_equal(ban(rig, "b", rig_until(rig, (first ? 4 : 2) * SEC)), 0);
			assert_int_equal(ban(rig, "c", rig_until(rig, SEC)), -EEXIST);
			expect(rig, "192.0.2.1", false);
			rig_clock_forward(rig, SEC);
			if (removed) /* the list with the later end */
				assert_int_equal(list_drop(&rig->gate, first ? "b" : "a", &counts),
						 0);
			expect(rig, "192.0.2.1", false);
			rig_clock_forward(rig, 2 * SEC);
			expect(rig, "192.0.2.1", removed);
			rig_clock_forward(rig, 2 * SEC);
			expect(rig, "192.0.2.1", true);
			rig_check_counted(rig);
		}
}

/* If an entry on a list that allows expires, the entries on lists that deny are in force again. */
TEST(test_an_allow_ends_before_a_deny)
{
	struct rig *rig = rig_begin(state);

	rig_clock_start(rig, LATE);
	listed_until(rig, "192.0.2.1", 0, 1, rig_until(rig, SEC)); /* list1 allows */
	assert_int_equal(ban(rig, "list0", rig_until(rig, 3 * SEC)), 0);
	expect(rig, "192.0.2.1", true);
	rig_clock_forward(rig, 2 * SEC);
	expect(rig, "192.0.2.1", false);
	rig_clock_forward(rig, 2 * SEC);
	expect(rig, "192.0.2.1", true);
	rig_check_counted(rig);
}

TESTS(rig_setup, rig_teardown)
