// SPDX-License-Identifier: GPL-2.0
#include "successor.h"

#include <string.h>

#include "known.h"
#include "splits.h"

/* What the rules are settled on; what they said before means nothing any more. */
static void rules_renumber(struct resize_plan *plan)
{
	for (unsigned int i = 0; i < plan->count; i++) {
		struct sl_rule *rule = &plan->rules[i].rule;
		uint32_t record = rule->now.record;

		rule->now.record = SL_RECORD(plan->number[SL_POLICY(record)]) | (record & 1);
		rule->before = rule->now;
	}
}

/* A gate of an older schema did not count them. */
static uint32_t allows_count(const struct gate *gate, const struct resize_plan *plan)
{
	uint32_t generation = rulemap_generation(gate), count = 0;

	for (unsigned int i = 0; i < plan->count; i++)
		count += rulemap_face(&plan->rules[i].rule, generation)->list == SL_LIST_ALLOW;
	return count;
}

static int rules_copy(struct gate *next, struct resize_plan *plan)
{
	int err;

	if (!plan->fresh[MAP_PREFIXES])
		return 0;
	if (plan->is_renumbered)
		rules_renumber(plan);
	next->state->hand_allows = allows_count(next, plan);
	err = rulemap_write(next, plan->rules, plan->count);
	return err ?: splits_set(next, plan->rules, plan->count);
}

/*
 * With the level of its budget, unless both share it; what packets draw from the old one until the devices are switched
 * is lost.
 */
static void policy_copy(const struct gate *gate, uint32_t number, struct gate *next,
			const struct resize_plan *plan)
{
	uint32_t next_number = plan->number[number];

	memcpy(&next->policies[SL_RECORD(next_number)], &gate->policies[SL_RECORD(number)],
	       2 * sizeof(*gate->policies));
	if (plan->fresh[MAP_BUDGETS])
		next->budgets[next_number] = gate->budgets[number];
}

/* What an heir has from other policies is told by their numbers. */
static void heir_renumber(struct sl_policy *policy, const struct resize_plan *plan)
{
	uint32_t parent = policy->parent;

	policy->parent = SL_RECORD(plan->number[SL_POLICY(parent)]) | (parent & 1);
	policy->newcomers_home = plan->number[policy->newcomers_home];
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		uint32_t home = policy->home[slot];

		policy->home[slot] =
			SL_HOME(plan->number[SL_HOME_POLICY(home)], SL_HOME_SLOT(home));
	}
}

static void policies_copy(const struct gate *gate, struct gate *next,
			  const struct resize_plan *plan)
{
	if (!plan->fresh[MAP_POLICIES])
		return;
	for (uint32_t number = 0; number < gate->policies_max; number++) {
		if (number < SL_POLICY_FIRST || plan->number[number])
			policy_copy(gate, number, next, plan);
	}
	for (uint32_t number = SL_POLICY_FIRST; number < plan->seen; number++)
		for (uint32_t i = 0; plan->is_renumbered && i < 2; i++)
			heir_renumber(&next->policies[SL_RECORD(number) + i], plan);
	next->state->policies_seen = plan->seen;
	if (plan->is_renumbered || next->state->next_policy >= plan->sizes.policies)
		next->state->next_policy = plan->seen;
}

enum status successor_make(const struct gate *gate, struct resize_plan *plan, struct gate *next)
{
	enum status status = gate_make_successor(gate, &plan->sizes, plan->fresh, next);
	int err;

	if (status)
		return status;
	policies_copy(gate, next, plan);
	err = rules_copy(next, plan);
	if (err)
		return fail("cannot copy the rules of gate '%s': %s", gate->name, why(err));
	return plan->fresh[MAP_KNOWN] ? known_copy(gate, next) : OK;
}
