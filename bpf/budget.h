/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Budgets: limit what all newcomers of a policy send together. A budget is a token bucket, like the
 * limits', but its state is never evicted.
 */
#ifndef SLUICE_BUDGET_H
#define SLUICE_BUDGET_H

#include "ledger.h"

/* Charges the state of a budget, if the slice cannot decide. */
BPF_GLOBAL int budget_ask(struct packet *packet, const struct sl_limit *budget,
			  struct sl_purse *purse, __u32 number)
{
	struct sl_ledger *ledger = bpf_map_lookup_elem(&budgets, &number);
	__u64 cost;

	if (!packet || !budget || !purse || !ledger)
		return SL_DROP_OVER_BUDGET;
	cost = credit_cost(budget, packet->packets, packet->bytes);
	if (credit_must_wait(purse, cost, packet_now(packet))) {
		credit_refuse_jiffy(budget, purse, packet->jiffy);
		return SL_DROP_OVER_BUDGET;
	}
	for (int i = 0; i < LEDGER_TRIES; i++) {
		int reason = bucket_charge(packet, budget, purse, ledger);

		if (reason != LEDGER_LOST)
			return reason == SL_PASS_WITHIN ? SL_PASS_NEWCOMER : SL_DROP_OVER_BUDGET;
	}
	return SL_DROP_CONTENDED;
}

/*
 * Charges a newcomer's packet to the budget that policy number `own` has or inherits. Without a
 * budget the packet passes.
 */
static __always_inline enum sl_reason budget_charge(struct packet *packet,
						    const struct sl_policy *policy, __u32 own)
{
	const struct sl_limit *budget = &policy->newcomers;
	struct sl_allowance *allowance;
	__u32 number = policy->newcomers_home ?: own;
	enum credit_answer answer;
	__u64 cost;

	if (!budget->burst)
		return SL_PASS_NEWCOMER;
	allowance = bpf_map_lookup_elem(&allowances, &number);
	if (!allowance)
		return SL_DROP_OVER_BUDGET;
	/* credit that was borrowed under another budget is void */
	if (allowance->since != policy->newcomers_since)
		*allowance = (struct sl_allowance){.since = policy->newcomers_since};
	cost = credit_cost(budget, packet->packets, packet->bytes);
	answer = credit_spend(&allowance->purse, cost, packet->jiffy);
	if (answer == CREDIT_PASS)
		return SL_PASS_NEWCOMER;
	if (answer == CREDIT_REFUSE)
		return SL_DROP_OVER_BUDGET;
	return budget_ask(packet, budget, &allowance->purse, number);
}

#endif
