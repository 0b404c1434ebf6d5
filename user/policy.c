// SPDX-License-Identifier: GPL-2.0
#include "policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "credit.h"
#include "match.h"
#include "prefix.h"
#include "rulemap.h"
#include "uptime.h"

/* --- Back ----------------------------------------------------------------------------------- */

static bool slot_is_free(const struct sl_policy *policy, unsigned int slot)
{
	return !policy->spec[slot].name[0];
}

static bool policy_has_budget(const struct sl_policy *policy)
{
	return policy->newcomers.burst;
}

enum status policy_limits(const struct sl_policy *policy, struct rule *ret)
{
	const struct limit newcomers = {policy->newcomers_spec, {.fact = SL_FACT_ANY}};
	enum status status = OK;

	for (unsigned int slot = 0; !status && slot < SL_LIMITS_MAX; slot++)
		if (!slot_is_free(policy, slot))
			status = rule_add_limit(
				ret, &(struct limit){policy->spec[slot], policy->match[slot]});
	if (!status && policy_has_budget(policy))
		status = rule_set_newcomers(ret, &newcomers);
	return status;
}

/* --- Slots ---------------------------------------------------------------------------------- */

static int slot_of_name(const struct sl_policy *policy, const char *name)
{
	for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (!strncmp(policy->spec[slot].name, name, SL_NAME))
			return slot;
	return -1;
}

static int slot_find_free(const struct sl_policy *policy)
{
	return slot_of_name(policy, "");
}

static bool same_key(const struct sl_limit_spec *a, const struct sl_limit_spec *b)
{
	return !memcmp(a->per, b->per, sizeof(a->per)) && a->key_dst == b->key_dst;
}

/* Whether what both refuse is counted as the same: as drops, or as would-drops. */
static bool same_verdict(const struct sl_limit_spec *a, const struct sl_limit_spec *b)
{
	return (a->action == SL_ACTION_OBSERVE) == (b->action == SL_ACTION_OBSERVE);
}

/* Puts a limit into its slot; what was refused in it before was not by this limit. */
static void slot_write(struct gate *gate, struct sl_policy *policy, unsigned int slot,
		       const struct limit *limit, const struct sl_policy *before)
{
	const struct sl_limit_spec *old = before ? &before->spec[slot] : NULL;
	bool kept = old && !strncmp(old->name, limit->spec.name, SL_NAME);

	policy->spec[slot] = limit->spec;
	policy->match[slot] = limit->match;
	if (kept && same_verdict(old, &limit->spec))
		policy->base.refused[slot] = before->base.refused[slot];
	if (kept && same_key(old, &limit->spec)) {
		policy->spec[slot].id = old->id;
		policy->changed[slot] = before->changed[slot];
	} else {
		policy->spec[slot].id = gate->state->next_limit++;
		policy->changed[slot] = rulemap_generation(gate) + 1;
	}
}

/* First those that keep their slots, then the new ones: a free slot is then nobody's. */
static void slots_write(struct gate *gate, struct sl_policy *policy, const struct rule *rule,
			const struct sl_policy *before)
{
	for (unsigned int i = 0; before && i < rule->limits; i++) {
		int slot = slot_of_name(before, rule->limit[i].spec.name);

		if (slot >= 0)
			slot_write(gate, policy, slot, &rule->limit[i], before);
	}
	for (unsigned int i = 0; i < rule->limits; i++)
		if (slot_of_name(policy, rule->limit[i].spec.name) < 0)
			slot_write(gate, policy, slot_find_free(policy), &rule->limit[i], before);
}

/* --- The order of asking -------------------------------------------------------------------- */

/*
 * Those that drop before those that block, so that a packet that is dropped anyway begins no block; those
 * that observe last: they see what the others let pass.
 */
static const int action_order[] = {
	[SL_ACTION_DROP] = 0,
	[SL_ACTION_BLOCK] = 1,
	[SL_ACTION_OBSERVE] = 2,
};

static bool asked_before(const struct sl_limit_spec *a, const struct sl_limit_spec *b,
			 enum sl_family family)
{
	if (a->action != b->action)
		return action_order[a->action] < action_order[b->action];
	return a->per[family] > b->per[family]; /* narrow keys first */
}

/*
 * Whether what newcomers send is charged to the ledger that they get. Not if a budget pays for it. And all of it has
 * to be for this limit: who is met by its key has shown himself with such packets only.
 */
static bool limit_owes(const struct sl_policy *policy, const struct limit *limit,
		       const struct sl_limit *compiled)
{
	bool is_met_by_key = compiled->apart || compiled->shared;

	return !policy_has_budget(policy) && !limit->spec.start_empty &&
	       (is_met_by_key || limit->match.fact == SL_FACT_ANY);
}

static void family_compile(struct sl_policy *policy, enum sl_family family,
			   const struct machine *machine)
{
	struct sl_limit *list = policy->limit[family];
	unsigned int count = 0;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		struct limit limit = {policy->spec[slot], policy->match[slot]};
		unsigned int at = count;

		if (slot_is_free(policy, slot))
			continue;
		while (at && asked_before(&limit.spec, &policy->spec[list[at - 1].slot], family)) {
			list[at] = list[at - 1];
			at--;
		}
		list[at] = limit_compile(&limit, family, machine);
		list[at].slot = slot;
		list[at].mark = SL_MARK_OWN(slot);
		list[at].owes = limit_owes(policy, &limit, &list[at]);
		count++;
	}
	policy->limits[family] = count;
}

static bool policy_is_deep(const struct sl_policy *policy)
{
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (!slot_is_free(policy, slot) &&
		    (match_is_deep(&policy->match[slot]) || policy->spec[slot].key_dst))
			return true;
	return false;
}

void policy_compile(struct sl_policy *policy, const struct machine *machine)
{
	const struct limit newcomers = {policy->newcomers_spec, {.fact = SL_FACT_ANY}};

	if (newcomers.spec.rate)
		policy->newcomers = limit_compile(&newcomers, SL_IPV4, machine);
	if (!prefix_is_ipv6(&policy->prefix))
		family_compile(policy, SL_IPV4, machine);
	if (!prefix_is_ipv4(&policy->prefix))
		family_compile(policy, SL_IPV6, machine);
	policy->deep = policy_is_deep(policy);
}

/*
 * All newcomers share one ledger, whatever their family. One that begins is full; no packet sees it yet, as nothing
 * in force has a budget there.
 */
static void budget_begin(struct gate *gate, uint32_t number, struct sl_policy *policy,
			 const struct sl_policy *before)
{
	if (!policy_has_budget(policy))
		return;
	policy->newcomers_since = rulemap_generation(gate) + 1;
	if (!before || !policy_has_budget(before))
		gate->budgets[number] = credit_full(&policy->newcomers, uptime_ticks());
}

int policy_write(struct gate *gate, uint32_t record, uint32_t before, const struct rule *rule)
{
	const struct sl_policy *old = before ? &gate->policies[before] : NULL;
	struct sl_policy policy = {.prefix = rule->prefix}, *to = &gate->policies[record];
	int err = counters_get(gate, SL_POLICY(record), &policy.base);

	if (err)
		return err;
	if (old)
		memcpy(policy.base.reason, old->base.reason, sizeof(policy.base.reason));
	slots_write(gate, &policy, rule, old);
	if (rule->newcomers)
		policy.newcomers_spec = rule->newcomers->spec;
	policy_compile(&policy, &gate->machine);
	budget_begin(gate, SL_POLICY(record), &policy, old);
	*to = policy;
	__atomic_store_n(&to->since, rulemap_generation(gate) + 1, __ATOMIC_RELEASE);
	return 0;
}

/* --- Allocation ----------------------------------------------------------------------------- */

static bool policy_is_free(const struct gate *gate, uint32_t number)
{
	return !gate->policies[SL_RECORD(number)].since &&
	       !gate->policies[SL_RECORD(number) + 1].since;
}

uint32_t policy_allocate(struct gate *gate, uint32_t before)
{
	if (before)
		return before ^ 1;
	for (uint32_t i = 0; i < gate->policies_max; i++) {
		uint32_t number = (gate->state->next_policy + i) % gate->policies_max;

		if (number < SL_POLICY_FIRST || !policy_is_free(gate, number))
			continue;
		gate->state->next_policy = number + 1;
		if (gate->state->policies_seen <= number)
			gate->state->policies_seen = number + 1;
		return SL_RECORD(number);
	}
	return 0;
}

void policy_free(struct gate *gate, uint32_t record)
{
	if (record)
		__atomic_store_n(&gate->policies[record].since, 0, __ATOMIC_RELEASE);
}
