/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Budgets: what all newcomers of a policy together may send. A budget is a token bucket like that
 * of a limit, but its ledger lies in an array and is never evicted.
 *
 *   budget_charge   charges a newcomer's packet to the budget of its policy
 *
 * Used by: charge.h. Uses: ledger.h.
 */
#ifndef SLUICE_BUDGET_H
#define SLUICE_BUDGET_H

#include "ledger.h"

/* Draws a packet's cost from a budget in one try. Returns an enum sl_reason or LEDGER_LOST. */
BPF_GLOBAL int budget_draw(struct packet *packet, const struct sl_limit *budget,
			   struct sl_purse *purse, __u32 number, const struct claim *claim)
{
	struct sl_ledger *ledger = bpf_map_lookup_elem(&budgets, &number), seen, next;
	struct sl_purse copy;
	struct draw draw;
	bool passes;

	if (!packet || !budget || !purse || !claim || !ledger)
		return SL_DROP_OVER_BUDGET;
	draw = claim_draw(packet, budget, claim);
	copy = *purse;
	seen = ledger_read(ledger);
	next = seen;
	passes = kind_draw(SL_BUCKET, budget, &next, &copy, &draw);
	if (!ledger_publish(SL_BUCKET, ledger, &seen, &next))
		return LEDGER_LOST;
	*purse = copy;
	return passes ? SL_PASS_NEWCOMER : SL_DROP_OVER_BUDGET;
}

/* Charges the ledger of a budget, when the purse cannot decide. */
BPF_GLOBAL int budget_ask(struct packet *packet, const struct sl_limit *budget,
			  struct sl_purse *purse, __u32 number, __u64 cost)
{
	struct claim claim = {.cost = cost};

	if (!packet || !budget || !purse)
		return SL_DROP_OVER_BUDGET;
	claim.fill = budget->purse;
	if (credit_must_wait(purse, cost, packet_now(packet))) {
		credit_refuse_jiffy(budget, purse, packet->jiffy);
		return SL_DROP_OVER_BUDGET;
	}
	for (int i = 0; i < LEDGER_TRIES; i++) {
		int answer = budget_draw(packet, budget, purse, number, &claim);

		if (answer != LEDGER_LOST)
			return answer;
	}
	return SL_DROP_CONTENDED;
}

/*
 * Charges a newcomer's packet to the budget that its policy, number `own`, has or inherits. A
 * policy without one lets it pass.
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
	/* credit that was drawn under another budget is void */
	if (allowance->since != policy->newcomers_since)
		*allowance = (struct sl_allowance){.since = policy->newcomers_since};
	cost = credit_cost(budget, packet->packets, packet->bytes);
	answer = credit_spend(&allowance->purse, cost, packet->jiffy);
	if (answer == CREDIT_PASS)
		return SL_PASS_NEWCOMER;
	if (answer == CREDIT_REFUSE)
		return SL_DROP_OVER_BUDGET;
	return budget_ask(packet, budget, &allowance->purse, number, cost);
}

#endif
