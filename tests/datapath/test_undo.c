// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of killed changes of rules. Packets are judged by the old rules or by the new rules. The
 * next change recovers.
 */
#include <errno.h>
#include "rig.h"

#include <stdlib.h>
#include <bpf/bpf.h>

#include "gate/rulemap.h"
#include "gate/rules.h"
#include "gate/transaction.h"

#define BASE_RULES 7

/* Empties the rig, and sets the rules from which each change starts. */
static void base_rules(struct rig *rig)
{
	struct ruleset set = {0};

	rig_empty(rig);
	rules_add_limits(&set, "default", "rate 1/h burst 3", NULL);
	rules_add_limits(&set, "192.0.2.0/24", "rate 1/h burst 5", NULL);
	rules_add_limits(&set, "2001:db8::/32", "rate 1/h burst 6", NULL);
	rules_add_limits(&set, "2001:db8:0:2::/72", "rate 1/h burst 8", NULL);
	rules_add_limits(&set, "203.0.113.1", "rate 1/h burst 9",
			 "name tcp rate 1/h burst 7 match tcp", NULL);
	rules_add_list(&set, "203.0.113.2", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "203.0.113.128/25", SL_ACCESS_ALLOW, 0);
	assert_int_equal(rig_change(rig, &set), 0);
}

#define HEIRS 2

/* Adds policies of 10.1.0.0/16 and 10.1.2.0/24, which inherit limits of shorter prefixes. */
static void heirs_add(struct rig *rig)
{
	struct ruleset set = {0};

	rules_add_heir(&set, "10.1.0.0/16", "name a rate 1/h burst 2 match udp", NULL);
	rules_add_heir(&set, "10.1.2.0/24", "name b rate 1/h burst 20", "name a rate 1/h burst 25",
		       NULL);
	assert_int_equal(rig_change(rig, &set), 0);
}

/* --- Killed --------------------------------------------------------------------------------- */

/* A change of one rule. `before` and `after` are how many packets of `source` pass. */
struct edit {
	const char *prefix;
	const char *words; /* the new limit, as arguments of `sluice set` */
	/*
	 * The new runtime entry. If `list` is 0 and `words` is NULL, the change deletes the rule.
	 */
	enum sl_access list;
	const char *source;
	unsigned int before, after;
};

#define EDITS_MAX 6

struct change {
	const char *name;
	unsigned int rules; /* number of rules after this change */
	/* The last element has no prefix. */
	struct edit edits[EDITS_MAX + 1];
};

static const struct change changes[] = {
	{"a new rule", 8, {{"192.0.2.16/28", "rate 1/h burst 7", 0, "192.0.2.17", 5, 7}}},
	{"another burst", 7, {{"192.0.2.0/24", "rate 1/h burst 9", 0, "192.0.2.1", 5, 9}}},
	{"a rule longer than /64",
	 8,
	 {{"2001:db8:0:3::1", "rate 1/h burst 9", 0, "2001:db8:0:3::1", 6, 9}}},
	{"another burst, longer than /64",
	 7,
	 {{"2001:db8:0:2::/72", "rate 1/h burst 9", 0, "2001:db8:0:2::1", 8, 9}}},
	{"delete", 6, {{"192.0.2.0/24", NULL, 0, "192.0.2.1", 5, 3}}},
	{"delete the default", 6, {{"default", NULL, 0, "10.0.0.1", 3, ENOUGH}}},
	{"delete, longer than /64", 6, {{"2001:db8:0:2::/72", NULL, 0, "2001:db8:0:2::1", 8, 6}}},
	{"a list entry on a host", 8, {{"192.0.2.1", NULL, SL_ACCESS_DENY, "192.0.2.1", 5, 0}}},
	{"a list entry over limits",
	 7,
	 {{"203.0.113.1", NULL, SL_ACCESS_ALLOW, "203.0.113.1", 9, ENOUGH}}},
	{"another list", 7, {{"203.0.113.2", NULL, SL_ACCESS_ALLOW, "203.0.113.2", 0, ENOUGH}}},
	{"delete a list entry", 6, {{"203.0.113.128/25", NULL, 0, "203.0.113.129", ENOUGH, 3}}},
	{"several at once",
	 6,
	 {{"default", NULL, SL_ACCESS_DENY, "10.0.0.1", 3, 0},
	  {"192.0.2.0/24", "name x rate 1/h burst 11", 0, "192.0.2.1", 5, 11},
	  {"203.0.113.1", NULL, 0, "203.0.113.1", 9, 0},
	  {"203.0.113.2", "rate 1/h burst 12", 0, "203.0.113.2", 0, 12},
	  {"2001:db8:0:2::/72", NULL, 0, "2001:db8:0:2::1", 8, 6},
	  {"2001:db8:0:3::1", "rate 1/h burst 13", 0, "2001:db8:0:3::1", 6, 13}}},
};

static const struct change heir_changes[] = {
	{"another burst, of an heir's heir",
	 9,
	 {{"default", "rate 1/h burst 9", 0, "10.1.2.1", 3, 9}}},
	{"delete what two inherit from", 8, {{"default", NULL, 0, "10.1.2.1", 3, 20}}},
	{"delete an heir that another one inherits from",
	 8,
	 {{"10.1.0.0/16", NULL, 0, "10.1.3.1", 2, 3}}},
	{"a policy between an heir and its parent",
	 10,
	 {{"10.1.2.0/23", "name c rate 1/h burst 11", 0, "10.1.2.1", 3, 11}}},
	{"an heir no longer inherits, and its own heir with it",
	 9,
	 {{"default", "rate 1/h burst 9", 0, "10.1.2.1", 3, 10},
	  {"10.1.0.0/16", "rate 1/h burst 10", 0, "10.1.3.1", 2, 10},
	  {"192.0.2.0/24", "rate 1/h burst 9", 0, "192.0.2.1", 5, 9}}},
};

static struct ruleset change_rules(const struct change *change)
{
	struct ruleset set = {0};

	for (const struct edit *edit = change->edits; edit->prefix; edit++)
		if (edit->words)
			rules_add_limits(&set, edit->prefix, edit->words, NULL);
		else
			rules_add_list(&set, edit->prefix, edit->list, 0);
	return set;
}

/*
 * Returns whether packets are judged by the new rules. Fails if some packets are judged by the new
 * rules, and others by the old rules.
 */
static bool change_is_seen(struct rig *rig, const struct change *change, int stop)
{
	unsigned int old = 0, new = 0;

	for (const struct edit *edit = change->edits; edit->prefix; edit++) {
		uint64_t seen = rig_burst_of(rig, edit->source);

		old += seen == edit->before;
		new += seen == edit->after;
		if (seen != edit->before && seen != edit->after)
			fail_msg("%s, cut off at stop %d: of %s %lu pass", change->name, stop,
				 edit->source, seen);
	}
	if (old && new)
		fail_msg("%s, cut off at stop %d: old and new rules judge", change->name, stop);
	return new;
}

static void check_counted(const struct rig *rig, const struct change *change, int stop)
{
	struct sl_counters counters = rig_counters(rig);
	uint64_t sent = rig->passed.packets + rig->dropped.packets;
	uint64_t counted = counters_passed(&counters).packets + counters_dropped(&counters).packets;

	if (counted != sent)
		fail_msg("%s, cut off at stop %d: %lu packets sent, %lu in the totals",
			 change->name, stop, sent, counted);
}

/*
 * Checks that commands report the rules by which packets are judged. Checks that the next change
 * keeps these rules, even if an earlier recovery was killed.
 */
static void cut_off_check(struct rig *rig, const struct change *change, unsigned int base, int stop)
{
	bool seen = change_is_seen(rig, change, stop);
	struct ruleset now = {0}, next = {0};

	check_counted(rig, change, stop);
	assert_int_equal(rules_read(&rig->gate, &now), 0);
	assert_int_equal(now.count, seen ? change->rules : base);
	ruleset_free(&now);
	if (change == &changes[ARRAY_SIZE(changes) - 1]) { /* kill the recovery, too */
		rules_add_limits(&next, "198.51.100.0/24", "rate 1/h burst 10", NULL);
		rig_change_cut_off(rig, next, stop);
	}
	rig_set(rig, "198.51.100.0/24", "1/h", "10");
	rig_check_tidy(rig, 1 + (seen ? change->rules : base));
	/*
	 * The source had spent its credit before the change. The recovery must not give it new
	 * credit.
	 */
	for (const struct edit *edit = change->edits; edit->prefix; edit++) {
		uint64_t more = rig_burst_of(rig, edit->source);

		assert_int_equal(more, (seen ? edit->after : edit->before) == ENOUGH ? ENOUGH : 0);
	}
	check_counted(rig, change, stop);
}

/*
 * Kills a change before and after each of its system calls. If `heirs`, some policies inherit
 * limits.
 */
static void cut_off_everywhere(struct rig *rig, const struct change *change, bool heirs)
{
	unsigned int base = BASE_RULES + (heirs ? HEIRS : 0);
	bool cut = true;

	for (int stop = 0; cut; stop++) {
		base_rules(rig);
		if (heirs)
			heirs_add(rig);
		/* add states of sources, whose levels a recovery must keep */
		rig_burst_of(rig, "192.0.2.99");
		rig_burst_of(rig, "10.0.0.99");
		cut = rig_change_cut_off(rig, change_rules(change), stop);
		cut_off_check(rig, change, base, stop);
		if (!cut)
			print_message("figure: %s: killed at %d points, at each the old rules or "
				      "the new, nothing left over\n",
				      change->name, stop);
	}
}

/*
 * Returns the rules before the change, or the rules after the change if `after`. The change gives
 * one list another number, and removes another list.
 */
static struct ruleset lists_rules(bool after)
{
	struct ruleset set = {0};

	assert_int_equal(ruleset_make_lists(&set), 0);
	rules_make_list(&set, after ? 2 : 0, SL_ACCESS_DENY, 0);
	if (!after)
		rules_make_list(&set, 1, SL_ACCESS_ALLOW, 0);
	rules_add_listed(&set, "192.0.2.1", after ? 0 : 1);
	rules_add_listed(&set, "192.0.2.2", after ? 4 : 2);
	return set;
}

/*
 * Kills a change of lists at stop number `stop`. Checks that packets are judged by all of the
 * change or by none of it. Returns false if the change ends before this stop.
 */
static bool cut_off_lists(struct rig *rig, int stop)
{
	struct ruleset set = lists_rules(false), now;
	struct sl_prefix second;
	struct rule rule;
	bool cut, seen;

	rig_empty(rig);
	assert_int_equal(rig_change(rig, &set), 0);
	cut = rig_change_cut_off(rig, lists_rules(true), stop);
	seen = rig_burst_of(rig, "192.0.2.1") == ENOUGH;
	assert_int_equal(rig_burst_of(rig, "192.0.2.2"), seen ? 0 : ENOUGH);
	rig_set(rig, "198.51.100.0/24", "1/h", "10");
	rig_check_tidy(rig, seen ? 2 : 3);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), seen ? ENOUGH : 0);
	assert_int_equal(rules_read(&rig->gate, &now), 0);
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		bool used = seen ? place == 2 : place < 2;

		assert_int_equal(*now.lists[place].name != '\0', used);
		assert_int_equal(rig->gate.lists[place].since != 0, used);
		assert_int_equal(rig->gate.lists[place].gone, 0);
	}
	second = prefix_of("192.0.2.2");
	assert_int_equal(rules_get(&rig->gate, &second, &rule), 0);
	assert_int_equal(rule.lists, seen ? 4 : 2);
	ruleset_free(&now);
	return cut;
}

TEST(test_killed_amid_lists)
{
	struct rig *rig = rig_begin(state);
	int stop = 0;

	while (cut_off_lists(rig, stop))
		stop++;
	assert_in_range(stop, 5, 1000);
	print_message(
		"figure: a change of lists: killed at %d points, at each the old lists or the "
		"new, nothing left over\n",
		stop);
}

TEST(test_killed_anywhere)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		cut_off_everywhere(rig, &changes[i], false);
}

TEST(test_killed_anywhere_among_heirs)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(heir_changes); i++)
		cut_off_everywhere(rig, &heir_changes[i], true);
}

/* --- Between two plain stores --------------------------------------------------------------- */

static int differs(void *data, const struct rule *from, const struct rule *to)
{
	(void)data;
	(void)from;
	(void)to;
	return -EIO;
}

/* Checks that commands report the rules by which packets are judged. */
static void check_same_rules(const struct rig *rig, const struct ruleset *rules)
{
	struct ruleset now = {0};

	assert_int_equal(rules_read(&rig->gate, &now), 0);
	assert_int_equal(ruleset_diff(rules, &now, differs, NULL), 0);
	ruleset_free(&now);
}

static struct ruleset base_read(struct rig *rig)
{
	struct ruleset rules = {0};

	base_rules(rig);
	assert_int_equal(rules_read(&rig->gate, &rules), 0);
	assert_int_equal(rules.count, BASE_RULES);
	return rules;
}

static void mark_set(struct rig *rig, const char *address, uint32_t count)
{
	struct sl_prefix prefix = prefix_of(address);
	int fd = rig->gate.map[MAP_SPLITS];

	if (count)
		assert_int_equal(bpf_map_update_elem(fd, prefix.addr, &count, BPF_ANY), 0);
	else
		assert_int_equal(bpf_map_delete_elem(fd, prefix.addr), 0);
}

/* Adds policies that belong to no rule. */
static void wreck_records(struct rig *rig)
{
	rig->gate.state->next_policy = 50;
	rig->gate.state->next_limit += 60;
	rig->gate.policies[100].since = rig->gate.state->generation + 1;
	rig->gate.policies[103].since = rig->gate.state->generation;
}

static void wreck_counts_up(struct rig *rig)
{
	rig->gate.state->hosts += 7;
	rig->gate.state->prefixes += 9;
	rig->gate.state->split_rules += 11;
}

static void wreck_counts_down(struct rig *rig)
{
	rig->gate.state->prefixes -= 3;
}

/* Adds entries to `splits` that belong to no rule. */
static void wreck_marks(struct rig *rig)
{
	mark_set(rig, "2001:db8:0:7::1", 1);
	mark_set(rig, "::1", 2);
	mark_set(rig, "2001:db8:0:1::", 1);
	mark_set(rig, "c000:200::", 3);
	mark_set(rig, "ffff:ffff:ffff:ffff::", 1);
}

static void wreck_mark_counts(struct rig *rig)
{
	mark_set(rig, "2001:db8:0:2::", 5);
}

static void wreck_mark_gone(struct rig *rig)
{
	mark_set(rig, "2001:db8:0:2::", 0);
}

/* Adds rules without content. A change that is killed can leave such rules. */
static void wreck_empty_rules(struct rig *rig)
{
	static const char *const prefixes[] = {"198.51.100.1", "2001:db8:0:9::1", "10.0.0.0/8",
					       "2001:db8:0:8::/100"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		struct rulemap_entry entry = {.prefix = prefix_of(prefixes[i])};

		entry.rule.since = rig->gate.state->generation + i % 2;
		entry.rule.bits = entry.prefix.bits;
		assert_int_equal(rulemap_write(&rig->gate, &entry, 1), 0);
	}
}

static void wreck_nothing(struct rig *rig)
{
	(void)rig;
}

TEST(test_between_stores)
{
	static void (*const wrecks[])(struct rig *) = {
		wreck_nothing, wreck_records,	  wreck_counts_up, wreck_counts_down,
		wreck_marks,   wreck_mark_counts, wreck_mark_gone, wreck_empty_rules,
	};
	struct rig *rig = rig_begin(state);
	struct ruleset base = base_read(rig);

	for (size_t i = 0; i < ARRAY_SIZE(wrecks); i++) {
		base_rules(rig);
		rig->gate.state->changing = 1;
		wrecks[i](rig);
		/* Every change calls this function first. */
		assert_int_equal(rules_recover(&rig->gate, NULL), 0);
		assert_int_equal(rig->gate.state->changing, 0);
		rig_check_tidy(rig, BASE_RULES);
		check_same_rules(rig, &base);
		assert_int_equal(rig_burst_of(rig, "203.0.113.1"), 9);
		assert_int_equal(rig_burst_of(rig, "203.0.113.2"), 0);
		assert_int_equal(rig_burst_of(rig, "2001:db8:0:2::1"), 8);
		assert_int_equal(rig_burst_of(rig, "2001:db8:0:2:ff00::1"), 6);
	}
	ruleset_free(&base);
	rig_check_counted(rig);
}

/* A recovery removes expired entries. It keeps the limits of their prefixes. */
TEST(test_a_recovery_removes_what_has_ended)
{
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "192.0.2.1", "rate 1/h burst 5", NULL);
	rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, 1);
	rig_list(rig, "192.0.2.2", SL_ACCESS_DENY, 1);
	rig->gate.state->changing = 1;
	assert_int_equal(rules_recover(&rig->gate, NULL), 0);
	rig_check_tidy(rig, 1);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), 5);
	assert_int_equal(rig_burst_of(rig, "192.0.2.2"), ENOUGH);
	rig_list(rig, "192.0.2.2", SL_ACCESS_DENY, 1);
	assert_int_equal(rules_expire(&rig->gate), 1);
	rig_check_tidy(rig, 1);
	assert_int_equal(rules_expire(&rig->gate), 0);
	rig_check_counted(rig);
}

TESTS(rig_setup, rig_teardown)
