// SPDX-License-Identifier: GPL-2.0
#include "gate/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "kinds.h"
#include "gate/compile.h"
#include "gate/counters.h"
#include "gate/records.h"
#include "gate/rulemap.h"
#include "rules/prefix.h"

/* --- Limits and budget of a record ---------------------------------------------------------- */

/* Adds the second rate to a limit of the policy's own, if it has one. */
static void second_join(const struct sl_policy *policy, struct limit *limit)
{
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		const struct sl_limit_spec *spec = &policy->spec[slot];

		if (!spec->second || policy->origin[slot] || strcmp(spec->name, limit->spec.name))
			continue;
		limit->second.rate = spec->rate;
		limit->second.burst = spec->burst;
		limit->second.burst_unit = spec->burst_unit;
	}
}

int policy_limits(const struct sl_policy *policy, struct rule *ret)
{
	const struct limit newcomers = {policy->newcomers_spec, {.fact = SL_FACT_ANY}, {0}};
	int status = OK;

	ret->inherit = policy->inherits ? INHERIT_YES : INHERIT_NO;
	for (unsigned int slot = 0; !status && slot < SL_LIMITS_MAX; slot++) {
		struct limit limit = {policy->spec[slot], policy->match[slot], {0}};

		if (slot_is_free(policy, slot) || policy->origin[slot] || limit.spec.second)
			continue;
		second_join(policy, &limit);
		status = rule_add_limit(ret, &limit);
	}
	if (!status && policy_has_budget(policy) && !policy->newcomers_origin)
		status = rule_set_newcomers(ret, &newcomers);
	return status;
}

bool policy_lacks_budget(const struct sl_policy *policy)
{
	bool drops = false, empty = false;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		const struct sl_limit_spec *spec = &policy->spec[slot];
		const struct sl_match *match = &policy->match[slot];

		if (slot_is_free(policy, slot) || spec->action == SL_ACTION_OBSERVE)
			continue;
		drops = true;
		empty |= spec->start == SL_START_EMPTY && match->fact == SL_FACT_ANY &&
			 !match->vlan && !spec->key_dst;
	}
	return drops && !empty && !policy_has_budget(policy) && !prefix_is_host(&policy->prefix);
}

/* --- Inheritance ---------------------------------------------------------------------------- */

int policy_parent(const struct gate *gate, const struct sl_prefix *prefix, uint32_t *ret)
{
	uint32_t bits = prefix->bits;
	struct sl_rule rule;

	*ret = 0;
	while (bits && !*ret) {
		int found = rulemap_cover(gate, prefix, bits - 1, &rule);

		if (found <= 0)
			return found;
		*ret = rule.cur.version;
		bits = rule.bits;
	}
	return 0;
}

/* A limit for a slot of a record. */
struct candidate {
	struct limit limit;
	uint32_t home; /* as in struct sl_policy; 0: not inherited */
};

struct candidates {
	struct candidate list[3 * SL_LIMITS_MAX]; /* own ones may be two each */
	unsigned int count;
};

/* Collects the rule's own limits, and the parent's limits whose names are not among them. */
static void candidates_make(const struct gate *gate, const struct rule *rule, uint32_t parent,
			    struct candidates *ret)
{
	const struct sl_policy *policy = record_read(gate, parent);
	struct candidates candidates = {0};

	for (unsigned int i = 0; i < rule->limits; i++) {
		candidates.list[candidates.count++].limit = rule->limit[i];
		if (rule->limit[i].second.rate)
			candidates.list[candidates.count++].limit = limit_second(&rule->limit[i]);
	}
	for (unsigned int slot = 0; parent && slot < SL_LIMITS_MAX; slot++) {
		if (slot_is_free(policy, slot) || rule_find_limit(rule, policy->spec[slot].name))
			continue;
		candidates.list[candidates.count++] = (struct candidate){
			.limit = {policy->spec[slot], policy->match[slot], {0}},
			.home = policy->origin[slot] ?: SL_ORIGIN(SL_POLICY(parent), slot),
		};
	}
	*ret = candidates;
}

/* Refuses more than SL_LIMITS_MAX limits, and names them. */
static int refuse_fifth(const struct gate *gate, const struct rule *rule,
			const struct candidates *candidates)
{
	char names[3 * SL_LIMITS_MAX * (SL_NAME + PREFIX_TEXT + 8)], text[PREFIX_TEXT];
	char label[LIMIT_LABEL];
	const char *prefix;
	size_t length = 0;

	for (unsigned int i = 0; i < candidates->count; i++) {
		const struct candidate *candidate = &candidates->list[i];

		length += snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "",
				   limit_label(&candidate->limit.spec, label));
		if (candidate->home)
			length +=
				snprintf(names + length, sizeof(names) - length, " of %s",
					 prefix_format(inherit_home(gate, candidate->home), text));
	}
	prefix = prefix_format(&rule->prefix, text);
	failure("%s inherits, and would have %u limits, of which %d is the most: %s; 'inherit no' "
		"in the same command leaves out those of others",
		prefix, candidates->count, SL_LIMITS_MAX, names);
	return POLICY_REFUSED;
}

/* --- Slots ---------------------------------------------------------------------------------- */

/* The slot of the same limit in a record; -1: none. */
static int slot_of(const struct sl_policy *policy, const struct candidate *candidate)
{
	for (int slot = 0; policy && slot < SL_LIMITS_MAX; slot++)
		if (policy->origin[slot] == candidate->home &&
		    policy->spec[slot].second == candidate->limit.spec.second &&
		    !strncmp(policy->spec[slot].name, candidate->limit.spec.name, SL_NAME))
			return slot;
	return -1;
}

/*
 * Writes a limit into a slot. before: the record in which this limit already has this slot, or
 * NULL. In any other record the slot's refusals belong to another limit.
 *
 * An inherited limit has the id of its home. Another one keeps its id, and so its states, while it
 * can read them: limit_keeps_states(). Its refusals go on while they count as the same: as drops,
 * or as would-drops.
 */
static void slot_write(struct gate *gate, struct sl_policy *policy, unsigned int slot,
		       const struct candidate *candidate, const struct sl_policy *before)
{
	const struct sl_limit_spec *old = before ? &before->spec[slot] : NULL;
	const struct sl_limit_spec *new = &candidate->limit.spec;
	uint32_t id;

	if (candidate->home)
		id = new->id;
	else if (old && limit_keeps_states(old, new))
		id = old->id;
	else
		id = gate->state->next_limit++;
	policy->spec[slot] = *new;
	policy->spec[slot].id = id;
	policy->match[slot] = candidate->limit.match;
	policy->origin[slot] = candidate->home;
	policy->changed[slot] =
		old && old->id == id ? before->changed[slot] : rulemap_generation(gate) + 1;
	if (old && (old->action == SL_ACTION_OBSERVE) == (new->action == SL_ACTION_OBSERVE))
		policy->base.refused[slot] = before->base.refused[slot];
}

/* Writes all limits. Those that keep their slots come first, so that free slots are known. */
static void slots_write(struct gate *gate, struct sl_policy *policy,
			const struct candidates *candidates, const struct sl_policy *before)
{
	for (unsigned int i = 0; i < candidates->count; i++) {
		int slot = slot_of(before, &candidates->list[i]);

		if (slot >= 0)
			slot_write(gate, policy, slot, &candidates->list[i], before);
	}
	for (unsigned int i = 0, slot = 0; i < candidates->count; i++) {
		if (slot_of(policy, &candidates->list[i]) >= 0)
			continue;
		while (!slot_is_free(policy, slot))
			slot++;
		slot_write(gate, policy, slot, &candidates->list[i], NULL);
	}
}

/* --- Writing a record ----------------------------------------------------------------------- */

/* Sets the budget: the rule's, or else that of the parent. */
static void budget_choose(const struct gate *gate, const struct rule *rule,
			  struct sl_policy *policy)
{
	const struct sl_policy *parent = record_read(gate, policy->parent);

	if (rule->newcomers) {
		policy->newcomers_spec = rule->newcomers->spec;
		policy->newcomers_since = rulemap_generation(gate) + 1;
	} else if (policy->parent && policy_has_budget(parent)) {
		policy->newcomers_spec = parent->newcomers_spec;
		policy->newcomers_since = parent->newcomers_since;
		policy->newcomers_origin = parent->newcomers_origin ?: SL_POLICY(policy->parent);
	}
}

/*
 * Fills the state of a new budget, which newcomers of both families share. No packet uses it yet:
 * no record in force has a budget with this number.
 */
static void budget_begin(struct gate *gate, uint32_t number, const struct sl_policy *policy,
			 const struct sl_policy *before)
{
	if (!policy_has_budget(policy) || policy->newcomers_origin)
		return;
	if (!before || !policy_has_budget(before) || before->newcomers_origin)
		gate->budgets[number] = kind_full(&policy->newcomers, uptime_ticks());
}

int policy_write(struct gate *gate, uint32_t record, uint32_t before, uint32_t parent,
		 const struct rule *rule)
{
	const struct sl_policy *old = before ? record_read(gate, before) : NULL;
	struct sl_policy policy = {0};
	struct candidates candidates;
	int err = counters_get(gate, SL_POLICY(record), &policy.base);

	if (err)
		return err;
	policy.prefix = rule->prefix;
	policy.inherits = rule_inherits(rule);
	policy.parent = parent;
	candidates_make(gate, rule, parent, &candidates);
	if (candidates.count > SL_LIMITS_MAX)
		return refuse_fifth(gate, rule, &candidates);
	if (old)
		memcpy(policy.base.reason, old->base.reason, sizeof(policy.base.reason));
	slots_write(gate, &policy, &candidates, old);
	budget_choose(gate, rule, &policy);
	policy_compile(&policy, &gate->machine);
	budget_begin(gate, SL_POLICY(record), &policy, old);
	record_write(gate, record, &policy, rulemap_generation(gate) + 1);
	return 0;
}

/* --- Allocation ----------------------------------------------------------------------------- */

uint32_t policy_allocate(struct gate *gate, uint32_t before)
{
	if (before)
		return before ^ 1;
	for (uint32_t i = 0; i < gate->policies_max; i++) {
		uint32_t number = (gate->state->next_policy + i) % gate->policies_max;
		uint32_t record = SL_POLICY_VERSION(number);

		if (number < SL_POLICY_FIRST || record_read(gate, record)->since ||
		    record_read(gate, record + 1)->since)
			continue;
		gate->state->next_policy = number + 1;
		if (gate->state->policies_seen <= number)
			gate->state->policies_seen = number + 1;
		return SL_POLICY_VERSION(number);
	}
	return 0;
}

void policy_free(struct gate *gate, uint32_t record)
{
	if (record)
		record_free(gate, record);
}

/* --- Inherited limits in messages ----------------------------------------------------------- */

/* While a change rewrites a policy, it has two records of the same prefix. */
const struct sl_prefix *inherit_home(const struct gate *gate, uint32_t home)
{
	uint32_t record = SL_POLICY_VERSION(SL_ORIGIN_POLICY(home));
	const struct sl_policy *first = record_read(gate, record);

	return first->since ? &first->prefix : &record_read(gate, record + 1)->prefix;
}

size_t inherited_add(const char *name, const struct sl_prefix *home, char text[INHERITED_TEXT],
		     size_t length)
{
	char prefix[PREFIX_TEXT];

	if (length >= INHERITED_TEXT) /* the text is cut */
		return length;
	return length + snprintf(text + length, INHERITED_TEXT - length, "%s%s of %s",
				 length ? ", " : "", name ?: "the newcomers' budget",
				 prefix_format(home, prefix));
}

const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT])
{
	size_t length = 0;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (policy->origin[slot] && !policy->spec[slot].second)
			length = inherited_add(policy->spec[slot].name,
					       inherit_home(gate, policy->origin[slot]), text,
					       length);
	if (policy->newcomers_origin)
		length = inherited_add(NULL,
				       inherit_home(gate, SL_ORIGIN(policy->newcomers_origin, 0)),
				       text, length);
	return length ? text : NULL;
}

/*
 * Whether a record is that of its prefix. After an interrupted change a policy may be switched off
 * while its record is not free yet.
 */
static bool policy_is_seen(const struct gate *gate, const struct sl_policy *policy)
{
	struct sl_rule rule;

	if (!gate->state->changing)
		return true;
	return rulemap_get(gate, &policy->prefix, &rule) > 0 &&
	       rulemap_content(&rule, rulemap_generation(gate))->version ==
		       record_number(gate, policy);
}

const struct sl_policy *policy_in_force(const struct gate *gate, unsigned int number)
{
	uint32_t generation = rulemap_generation(gate);
	const struct sl_policy *best = NULL;

	for (uint32_t record = SL_POLICY_VERSION(number); record <= SL_POLICY_VERSION(number) + 1;
	     record++) {
		const struct sl_policy *policy = record_read(gate, record);

		if (policy->since && policy->since <= generation &&
		    (!best || policy->since > best->since) && policy_is_seen(gate, policy))
			best = policy;
	}
	return best;
}
