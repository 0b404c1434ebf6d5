// SPDX-License-Identifier: GPL-2.0
#include "state/budgets.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "gate/counters.h"
#include "gate/policy.h"
#include "gate/records.h"
#include "gate/rules.h"
#include "state/source_state.h"

static uint32_t policy_number(const struct gate *gate, const struct sl_policy *policy)
{
	return SL_POLICY(record_number(gate, policy));
}

/* Adds what a policy counted to the budget that it has or inherits. */
static int use_add(const struct gate *gate, const struct sl_policy *policy, struct budget_use *uses,
		   unsigned int count)
{
	uint32_t number = policy_number(gate, policy), home = policy->newcomers_origin ?: number;
	struct sl_counters counters;
	int status;

	for (unsigned int i = 0; i < count; i++) {
		if (policy_number(gate, uses[i].policy) != home)
			continue;
		status = counters_read(gate, number, &counters);
		if (status)
			return status;
		counters_take_from(&counters, &policy->base);
		uses[i].passed += counters.reason[SL_PASS_NEWCOMER].packets;
		uses[i].dropped += counters.reason[SL_DROP_OVER_BUDGET].packets;
	}
	return OK;
}

static int use_begin(const struct gate *gate, const struct sl_policy *policy,
		     struct budget_use *ret)
{
	struct limit_state state;
	int status = budget_state_read(gate, policy, 1, uptime_ticks(), false, &state);

	*ret = (struct budget_use){.policy = policy, .left = state.remaining};
	return status;
}

int budgets_read(const struct gate *gate, struct budget_use **ret, unsigned int *ret_count)
{
	const struct sl_policy **policies;
	unsigned int policies_count, count = 0;
	int status = rules_policies(gate, &policies, &policies_count);
	struct budget_use *uses;

	if (status)
		return status;
	uses = calloc(policies_count + 1, sizeof(*uses));
	if (!uses)
		status = failure("cannot read the budgets of gate '%s': %s", gate->name,
				 why(ENOMEM));
	for (unsigned int i = 0; !status && i < policies_count; i++)
		if (policies[i]->newcomers.burst && !policies[i]->newcomers_origin)
			status = use_begin(gate, policies[i], &uses[count++]);
	for (unsigned int i = 0; !status && i < policies_count; i++)
		if (policies[i]->newcomers.burst)
			status = use_add(gate, policies[i], uses, count);
	free(policies);
	if (status) {
		free(uses);
		return status;
	}
	*ret = uses;
	*ret_count = count;
	return OK;
}
