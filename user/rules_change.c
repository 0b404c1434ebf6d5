// SPDX-License-Identifier: GPL-2.0
/* Changing the rules of a gate: prepare, raise the generation, clear away. */
#include <errno.h>
#include <stdlib.h>

#include "change.h"
#include "grace.h"
#include "gate_lists.h"
#include "plural.h"
#include "policy.h"
#include "prefix.h"
#include "rulemap.h"
#include "rules.h"
#include "splits.h"

/* Not errnos of a full map of rules: no policy is left, or no room in `splits`. */
#define NO_POLICY (-EDQUOT)
#define NO_SPLIT  (-EXFULL)

static bool map_is_full(int err)
{
	return err == -E2BIG || err == -ENOSPC;
}

/* Rules as they are to be, each beside what packets see until the switch. */
struct plan {
	struct rulemap_entry *entries;
	unsigned int count;
};

static bool entry_existed(const struct rulemap_entry *entry)
{
	return !face_is_empty(&entry->rule.before);
}

static bool entry_stays(const struct rulemap_entry *entry)
{
	return !face_is_empty(&entry->rule.now);
}

/* Whether a policy says just what the rule's limits are to be. */
static bool policy_is(const struct gate *gate, uint32_t record, const struct rule *wanted)
{
	struct rule now = {
		.prefix = wanted->prefix,
		.list = wanted->list,
		.until = wanted->until,
		.lists = wanted->lists,
	};
	bool same = !policy_limits(&gate->policies[record], &now) && rule_equal(&now, wanted);

	rule_free(&now);
	return same;
}

/* The record of the rule's limits: the one it has, if they stay, or a new one. */
static int record_prepare(struct gate *gate, const struct rule *wanted, uint32_t before,
			  uint32_t *ret)
{
	uint32_t record;

	*ret = before;
	if (wanted->limits && before && policy_is(gate, before, wanted))
		return 0;
	*ret = 0;
	if (!wanted->limits)
		return 0;
	record = policy_allocate(gate, before);
	if (!record)
		return NO_POLICY;
	*ret = record;
	return policy_write(gate, record, before, wanted);
}

static int entry_prepare(struct gate *gate, const struct rule *wanted, struct rulemap_entry *entry)
{
	struct sl_rule old = {0};
	uint32_t record = 0;
	int err;

	rulemap_get(gate, &wanted->prefix, &old);
	err = record_prepare(gate, wanted, old.now.record, &record);
	*entry = (struct rulemap_entry){
		.prefix = wanted->prefix,
		.rule =
			{
				.since = rulemap_generation(gate) + 1,
				.bits = wanted->prefix.bits,
				.now = {record, wanted->list, wanted->until, wanted->lists},
				.before = old.now,
			},
	};
	if (!err && !entry_existed(entry))
		err = split_add(gate, &wanted->prefix, 1);
	return map_is_full(err) ? NO_SPLIT : err;
}

static void counts_add(struct gate *gate, const struct sl_prefix *prefix, int change)
{
	if (prefix_is_host(prefix))
		__atomic_add_fetch(&gate->state->hosts, change, __ATOMIC_RELEASE);
	else
		gate->state->prefixes += change;
}

/* Packets look at this count when they see a list's deny: while it is 0, that stands. */
static void allows_add(struct gate *gate, int change)
{
	__atomic_add_fetch(&gate->state->hand_allows, change, __ATOMIC_RELEASE);
}

static bool face_allows(const struct sl_face *face)
{
	return face->list == SL_LIST_ALLOW;
}

/* Beside what packets see. Counts first: while there are no hosts packets do not ask for them. */
static int plan_prepare(struct gate *gate, const struct ruleset *wanted, struct plan *plan)
{
	int err = wanted->lists ? lists_prepare(gate, wanted->lists) : 0;

	for (unsigned int i = 0; !err && i < plan->count; i++) {
		const struct sl_rule *rule = &plan->entries[i].rule;

		err = entry_prepare(gate, &wanted->rules[i], &plan->entries[i]);
		if (!err && !entry_existed(&plan->entries[i]))
			counts_add(gate, &wanted->rules[i].prefix, 1);
		if (!err && face_allows(&rule->now) && !face_allows(&rule->before))
			allows_add(gate, 1);
	}
	return err ?: rulemap_write(gate, plan->entries, plan->count);
}

static void generation_raise(struct gate *gate)
{
	__atomic_store_n(&gate->state->generation, rulemap_generation(gate) + 1, __ATOMIC_RELEASE);
	packets_outwait();
}

/* Removes what the change has switched off. Uses the plan up. */
static int plan_clear(struct gate *gate, const struct ruleset *wanted, struct plan *plan)
{
	unsigned int gone = 0;
	int err = 0;

	for (unsigned int i = 0; i < plan->count; i++) {
		const struct rulemap_entry *entry = &plan->entries[i];

		if (entry->rule.before.record != entry->rule.now.record)
			policy_free(gate, entry->rule.before.record);
		if (face_allows(&entry->rule.before) && !face_allows(&entry->rule.now))
			allows_add(gate, -1);
		if (!entry_stays(entry))
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

static enum status change_failed(const struct gate *gate, int err)
{
	uint32_t room = gate->policies_max - SL_POLICY_FIRST;

	if (err == NO_POLICY)
		return fail("gate '%s' is full: it holds %u %s; delete one first, or apply a file "
			    "with more `policies` and --resize",
			    gate->name, room, plural(room, "policy", "policies"));
	if (err == NO_SPLIT)
		return fail("gate '%s' is full: its rules longer than /64 are of too many /64s; "
			    "delete some first, or apply a file with more `hosts` or `prefixes` "
			    "and --resize",
			    gate->name);
	if (map_is_full(err))
		return fail(
			"gate '%s' is full: it holds no more rules; delete some first, or apply "
			"a file with more `hosts` or `prefixes` and --resize",
			gate->name);
	return fail("cannot change the rules of gate '%s': %s", gate->name, why(err));
}

/* One attempt. 0, or a negative errno, and then all is as it was. */
static int change_try(struct gate *gate, const struct ruleset *wanted, struct plan *plan,
		      enum status *ret_status)
{
	int err;

	*ret_status = change_begin(gate);
	if (*ret_status)
		return 0;
	err = plan_prepare(gate, wanted, plan);
	if (err) {
		*ret_status = change_undo(gate);
		return err;
	}
	generation_raise(gate);
	if (plan_clear(gate, wanted, plan))
		*ret_status = change_undo(gate); /* the change stands; this clears away, too */
	else
		change_end(gate);
	return 0;
}

enum status rules_change(struct gate *gate, const struct rule *wanted, unsigned int count)
{
	const struct ruleset set = {.rules = (struct rule *)wanted, .count = count};

	return ruleset_change(gate, &set);
}

enum status ruleset_change(struct gate *gate, const struct ruleset *wanted)
{
	struct plan plan = {
		.entries = calloc(wanted->count ?: 1, sizeof(*plan.entries)),
		.count = wanted->count,
	};
	enum status status;
	int err;

	if (!plan.entries)
		return fail("cannot change the rules of gate '%s': %s", gate->name, why(ENOMEM));
	err = change_try(gate, wanted, &plan, &status);
	if (!status && (map_is_full(err) || err == NO_SPLIT) && change_sweep(gate))
		err = change_try(gate, wanted, &plan, &status);
	free(plan.entries);
	if (!status && err)
		status = change_failed(gate, err);
	return status;
}
