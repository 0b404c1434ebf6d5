// SPDX-License-Identifier: GPL-2.0
/* Changes the rules of a gate: prepare, raise the generation, clear. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text.h"
#include "gate/change.h"
#include "gate/gate_make.h"
#include "gate/outwait.h"
#include "gate/policy.h"
#include "gate/records.h"
#include "gate/rulemap.h"
#include "gate/rules.h"
#include "rules/prefix.h"
#include "rules/sizes.h"

/* Errors that differ from a full map of rules: no policy is free, or `splits` is full. */
#define NO_POLICY (-EDQUOT)
#define NO_SPLIT  (-EXFULL)

static bool map_is_full(int err)
{
	return err == -E2BIG || err == -ENOSPC;
}

static bool room_is_short(int err)
{
	return map_is_full(err) || err == NO_POLICY || err == NO_SPLIT;
}

/*
 * The wanted rules, each with the content that packets see until the switch. Shorter prefixes come
 * first, so that a policy is written before its heirs.
 */
struct plan {
	const struct rule **wanted;
	unsigned int wanted_count;
	struct sl_prefix *heirs; /* prefixes of policies that inherit before the change */
	unsigned int heirs_count, heirs_room;
	struct rulemap_entry *entries; /* the wanted rules, and the heirs that they change */
	unsigned int count;
	unsigned int written; /* the first entries, which are in the maps */
	bool rewrites;	      /* a policy changes, and so may its heirs */
};

/* --- One rule ------------------------------------------------------------------------------- */

/* Whether a record has exactly the wanted limits, budget and inheritance. */
static bool policy_is(const struct gate *gate, uint32_t record, const struct rule *wanted)
{
	struct rule now = {
		.prefix = wanted->prefix,
		.access = wanted->access,
		.until = wanted->until,
		.lists = wanted->lists,
		.list_until = wanted->list_until,
		.timed = wanted->timed,
	};
	bool same = !policy_limits(record_read(gate, record), &now) && rule_equal(&now, wanted);

	rule_free(&now);
	return same;
}

/*
 * Sets `ret` to the record for the wanted policy: the present one if neither its limits nor what it
 * inherits change, else a new one; 0: no limits.
 */
static int record_prepare(struct gate *gate, const struct rule *wanted, uint32_t before,
			  uint32_t *ret)
{
	uint32_t parent = 0, record;
	int err = rule_inherits(wanted) ? policy_parent(gate, &wanted->prefix, &parent) : 0;

	if (err)
		return err;
	*ret = before;
	if (wanted->limits && before && record_read(gate, before)->parent == parent &&
	    policy_is(gate, before, wanted))
		return 0;
	*ret = 0;
	if (!wanted->limits)
		return 0;
	record = policy_allocate(gate, before);
	if (!record)
		return NO_POLICY;
	*ret = record;
	return policy_write(gate, record, before, parent, wanted);
}

static void counts_add(struct gate *gate, const struct sl_prefix *prefix, int change)
{
	if (prefix_is_host(prefix))
		__atomic_add_fetch(&gate->state->hosts, change, __ATOMIC_RELEASE);
	else
		gate->state->prefixes += change;
}

/*
 * Changes the number of allows by hand. Packets read it when a list denies them: while it is 0, no
 * shorter rule can allow them.
 */
static void allows_add(struct gate *gate, int change)
{
	__atomic_add_fetch(&gate->state->hand_allows, change, __ATOMIC_RELEASE);
}

static bool content_allows(const struct sl_rule_content *content)
{
	return content->access == SL_ACCESS_ALLOW;
}

/*
 * Prepares one rule. Counts are raised before the rule is written: while they are 0, packets skip
 * the lookup.
 */
static int entry_prepare(struct gate *gate, const struct rule *wanted, struct plan *plan)
{
	struct rulemap_entry *entry = &plan->entries[plan->count++];
	struct sl_rule old = {0};
	uint32_t record = 0;
	int err = rulemap_get(gate, &wanted->prefix, &old);

	if (err < 0)
		return err;
	err = record_prepare(gate, wanted, old.cur.version, &record);
	*entry = (struct rulemap_entry){
		.prefix = wanted->prefix,
		.rule =
			{
				.since = rulemap_generation(gate) + 1,
				.bits = wanted->prefix.bits,
				.cur = {record, wanted->access, wanted->until, wanted->lists,
					wanted->list_until, wanted->timed},
				.prev = old.cur,
			},
	};
	plan->rewrites |= record != old.cur.version;
	if (!err && content_is_empty(&entry->rule.prev)) {
		err = split_add(gate, &wanted->prefix, 1);
		if (!err)
			counts_add(gate, &wanted->prefix, 1);
	}
	if (!err && content_allows(&entry->rule.cur) && !content_allows(&entry->rule.prev))
		allows_add(gate, 1);
	return map_is_full(err) ? NO_SPLIT : err;
}

/* --- Heirs ---------------------------------------------------------------------------------- */

static int prefix_compare_length(const void *a, const void *b)
{
	const struct sl_prefix *left = a, *right = b;

	return (left->bits > right->bits) - (left->bits < right->bits)
		       ?: prefix_compare(left, right);
}

/* Finds the policies that inherit. change_begin() has removed what earlier changes left. */
static int heirs_find(const struct gate *gate, struct plan *plan)
{
	uint32_t end = SL_POLICY_VERSION(gate_policies_seen(gate));

	for (uint32_t record = SL_POLICY_VERSION(SL_POLICY_FIRST); record < end; record++) {
		struct sl_prefix prefix;

		if (!record_inherits(gate, record, &prefix))
			continue;
		if (!array_grow(plan->heirs, plan->heirs_count, plan->heirs_room))
			return -ENOMEM;
		plan->heirs[plan->heirs_count++] = prefix;
	}
	if (plan->heirs_count)
		qsort(plan->heirs, plan->heirs_count, sizeof(*plan->heirs), prefix_compare_length);
	return 0;
}

/*
 * Rewrites an heir that inherits from another record than before. A rule of the change itself is
 * prepared already, and is skipped. The heir's entry stays.
 */
static int heir_prepare(struct gate *gate, const struct sl_prefix *prefix, struct plan *plan)
{
	struct rule wanted = {.prefix = *prefix};
	const struct sl_policy *policy;
	struct sl_rule now;
	uint32_t parent;
	int err = plan->rewrites ? rulemap_get(gate, prefix, &now) : 0;

	if (err <= 0 || now.since == rulemap_generation(gate) + 1)
		return err < 0 ? err : 0;
	policy = record_read(gate, now.cur.version);
	err = policy_parent(gate, prefix, &parent);
	if (err || policy->parent == parent)
		return err;
	if (policy_limits(policy, &wanted)) {
		rule_free(&wanted);
		return POLICY_REFUSED;
	}
	wanted.access = now.cur.access;
	wanted.until = now.cur.until;
	wanted.lists = now.cur.list_mask;
	wanted.list_until = now.cur.list_until;
	wanted.timed = now.cur.timed;
	err = entry_prepare(gate, &wanted, plan);
	rule_free(&wanted);
	return err;
}

/* --- The plan ------------------------------------------------------------------------------- */

#define BITS_MAX (SL_FAMILY_BITS + 128)

/* Orders rules by the length of their prefixes with a counting sort: there can be millions. */
static int wanted_order(const struct ruleset *set, struct plan *plan)
{
	unsigned int at[BITS_MAX + 2] = {0};

	plan->wanted_count = set->count;
	plan->wanted = calloc(set->count ?: 1, sizeof(*plan->wanted));
	if (!plan->wanted)
		return -ENOMEM;
	for (unsigned int i = 0; i < set->count; i++)
		at[set->rules[i].prefix.bits + 1]++;
	for (unsigned int bits = 0; bits <= BITS_MAX; bits++)
		at[bits + 1] += at[bits];
	for (unsigned int i = 0; i < set->count; i++)
		plan->wanted[at[set->rules[i].prefix.bits]++] = &set->rules[i];
	return 0;
}

static int plan_make(const struct gate *gate, const struct ruleset *wanted, struct plan *plan)
{
	int err = wanted_order(wanted, plan) ?: heirs_find(gate, plan);

	if (err)
		return err;
	plan->entries = calloc(plan->wanted_count + plan->heirs_count + 1, sizeof(*plan->entries));
	return plan->entries ? 0 : -ENOMEM;
}

static void plan_free(struct plan *plan)
{
	free(plan->wanted);
	free(plan->heirs);
	free(plan->entries);
	*plan = (struct plan){0};
}

/* Writes the prepared entries. Longer prefixes look them up to find what they inherit from. */
static int plan_write(struct gate *gate, struct plan *plan)
{
	unsigned int from = plan->written;

	plan->written = plan->count;
	if (from == plan->count)
		return 0;
	return rulemap_write(gate, plan->entries + from, plan->count - from);
}

/* Writes the next generation beside what packets see. */
static int plan_prepare(struct gate *gate, const struct ruleset *wanted, struct plan *plan)
{
	int err = wanted->lists ? lists_prepare(gate, wanted->lists) : 0;
	unsigned int i = 0, heir = 0;

	for (unsigned int bits = 0; !err && bits <= BITS_MAX; bits++) {
		for (; !err && i < plan->wanted_count && plan->wanted[i]->prefix.bits == bits; i++)
			err = entry_prepare(gate, plan->wanted[i], plan);
		err = err ?: plan_write(gate, plan);
		for (; !err && heir < plan->heirs_count && plan->heirs[heir].bits == bits; heir++)
			err = heir_prepare(gate, &plan->heirs[heir], plan);
		err = err ?: plan_write(gate, plan);
	}
	return err;
}

/* Removes rules and records that are no longer in use. Changes the order of the plan's entries. */
static int plan_clear(struct gate *gate, const struct ruleset *wanted, struct plan *plan)
{
	unsigned int gone = 0;
	int err = 0;

	for (unsigned int i = 0; i < plan->count; i++) {
		const struct rulemap_entry *entry = &plan->entries[i];

		if (entry->rule.prev.version != entry->rule.cur.version)
			policy_free(gate, entry->rule.prev.version);
		if (content_allows(&entry->rule.prev) && !content_allows(&entry->rule.cur))
			allows_add(gate, -1);
		if (content_is_empty(&entry->rule.cur))
			plan->entries[gone++] = *entry;
	}
	err = rulemap_remove(gate, plan->entries, gone);
	for (unsigned int i = 0; !err && i < gone; i++) {
		counts_add(gate, &plan->entries[i].prefix, -1);
		err = split_add(gate, &plan->entries[i].prefix, -1);
	}
	if (!err && wanted->lists)
		lists_clear(gate, wanted->lists);
	return err;
}

/* --- Room ----------------------------------------------------------------------------------- */

/*
 * Checks that the wanted rules alone fit: else a try would write many of them in vain. 0, or the
 * error of that try.
 */
static int wanted_check(const struct gate *gate, const struct ruleset *wanted)
{
	const struct room room = room_needed(wanted);
	const struct gate_sizes needed = room_sizes(&room);
	struct gate_sizes has;

	if (gate_sizes_read(gate, &has))
		return -EIO;
	if (needed.policies > has.policies)
		return NO_POLICY;
	return sizes_hold(&has, &needed) ? 0 : -E2BIG;
}

struct room_count {
	struct room room;
	uint32_t generation;
};

static int present_count(void *data, const struct rulemap_entry *entry)
{
	struct room_count *count = data;
	const struct rule rule = {
		.prefix = entry->prefix,
		.limits = rulemap_content(&entry->rule, count->generation)->version != 0,
	};

	room_add(&count->room, NULL, &rule);
	return 0;
}

/* The room that a change takes: old rules and new ones stand beside each other. */
static int room_count(const struct gate *gate, const struct ruleset *wanted, struct room *ret)
{
	struct room_count count = {.generation = rulemap_generation(gate)};
	int err = rulemap_walk(gate, present_count, &count);

	for (unsigned int i = 0; err >= 0 && i < wanted->count; i++) {
		const struct rule *rule = &wanted->rules[i];
		struct rule present = {.prefix = rule->prefix};
		struct sl_rule has;

		if (rule_is_empty(rule))
			continue;
		err = rulemap_get(gate, &rule->prefix, &has);
		if (err < 0)
			break;
		if (err)
			present.limits = rulemap_content(&has, count.generation)->version != 0;
		room_add(&count.room, err ? &present : NULL, rule);
	}
	*ret = count.room;
	return err < 0 ? err : 0;
}

/* `splits` is as large as `hosts` or `prefixes`, and each rule of IPv6 may divide another /64. */
static struct gate_sizes sizes_needed(const struct room *room, int err)
{
	struct gate_sizes needed = room_sizes(room);
	uint32_t splits = room->hosts[SL_IPV6] + room->prefixes;

	if (err == NO_SPLIT && needed.hosts < splits)
		needed.hosts = splits;
	return needed;
}

/*
 * Grows the gate for a change that found no room, with that error. OK and ret_grew false: it keeps
 * its sizes, as somebody stated those that are too small, or they are as large as can be.
 */
static int room_make(struct gate *gate, const struct ruleset *wanted, int err, bool *ret_grew)
{
	struct gate_sizes has, needed, grown;
	struct room room;
	int status = gate_sizes_read(gate, &has);
	int unread;

	*ret_grew = false;
	if (status || !gate->grow)
		return status;
	unread = room_count(gate, wanted, &room);
	if (unread)
		return failure("cannot read the rules of gate '%s': %s", gate->name, why(unread));
	needed = sizes_needed(&room, err);
	grown = sizes_grown(&has, &needed, gate->state->sizes_stated);
	if (sizes_hold(&has, &needed) || !sizes_hold(&grown, &needed))
		return OK;
	*ret_grew = true;
	return gate->grow(gate, &grown);
}

/* --- The change ----------------------------------------------------------------------------- */

static int change_failed(const struct gate *gate, int err)
{
	uint32_t room = gate->policies_max - SL_POLICY_FIRST;

	if (err == NO_POLICY)
		return failure(
			"gate '%s' is full: it holds %u %s; delete one first, or apply a file "
			"with more `policies` and --resize",
			gate->name, room, plural(room, "policy", "policies"));
	if (err == NO_SPLIT)
		return failure("gate '%s' is full: its rules longer than /64 are of too many /64s; "
			       "delete some first, or apply a file with more `hosts` or `prefixes` "
			       "and --resize",
			       gate->name);
	if (map_is_full(err))
		return failure(
			"gate '%s' is full: it holds no more rules; delete some first, or apply "
			"a file with more `hosts` or `prefixes` and --resize",
			gate->name);
	return failure("cannot change the rules of gate '%s': %s", gate->name, why(err));
}

/* Tries a change once. 0, or a negative errno and the rules are unchanged. */
static int change_try(struct gate *gate, const struct ruleset *wanted, struct losses *losses,
		      int *ret_status)
{
	struct plan plan = {0};
	int err;

	*ret_status = change_begin(gate);
	if (*ret_status)
		return 0;
	err = plan_make(gate, wanted, &plan) ?: plan_prepare(gate, wanted, &plan);
	if (!err) {
		/* the switch: every packet that begins from here on sees the new rules */
		__atomic_store_n(&gate->state->generation, rulemap_generation(gate) + 1,
				 __ATOMIC_RELEASE);
		packets_outwait();
		if (losses)
			losses_find(gate, plan.entries, plan.count, losses);
	}
	if (err || plan_clear(gate, wanted, &plan))
		*ret_status = change_undo(gate); /* after the switch it only clears */
	else
		change_end(gate);
	plan_free(&plan);
	return err;
}

int rules_change(struct gate *gate, const struct rule *wanted, unsigned int count)
{
	const struct ruleset set = {.rules = (struct rule *)wanted, .count = count};

	return ruleset_change(gate, &set);
}

int rule_replace(struct gate *gate, const struct rule *wanted, struct losses *ret)
{
	const struct ruleset set = {.rules = (struct rule *)wanted, .count = 1};

	return policies_change(gate, &set, ret);
}

int ruleset_change(struct gate *gate, const struct ruleset *wanted)
{
	return policies_change(gate, wanted, NULL);
}

int policies_change(struct gate *gate, const struct ruleset *wanted, struct losses *ret)
{
	int status = OK;
	bool grew = false;
	int err = wanted_check(gate, wanted) ?: change_try(gate, wanted, ret, &status);

	if (!status && room_is_short(err) && change_sweep(gate))
		err = change_try(gate, wanted, ret, &status);
	if (!status && room_is_short(err))
		status = room_make(gate, wanted, err, &grew);
	if (!status && grew)
		err = change_try(gate, wanted, ret, &status);
	if (!status && err)
		status = err == POLICY_REFUSED ? FAILED : change_failed(gate, err);
	return status;
}
