/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Budgets: limit what all sources of a policy that are not established send together. A budget is a
 * token bucket, like the limits', but its state is never evicted.
 *
 * Keys that wait for a state use the budget only while more than an eighth of it is left. So a
 * flood of sources that send one packet each leaves its rate to new sources that come back, whose
 * keys have a state or were seen often enough to get one.
 */
#ifndef SLUICE_BUDGET_H
#define SLUICE_BUDGET_H

#include "state.h"

/* Refuses a packet, which begins a flood. */
static __always_inline int budget_refuse(const struct packet *packet)
{
	struct sl_admission *here = admission_get();
	const struct sl_gate *gate = gate_get();

	if (here && gate)
		flood_begin(here, true, &gate->params, packet->jiffy);
	return SL_DROP_OVER_BUDGET;
}

/* Charges the state of a budget, if the slice cannot decide. waits: see budget_charge(). */
BPF_GLOBAL int budget_ask(struct packet *packet, const struct sl_limit *budget,
			  struct sl_budget_slice *budget_slice, __u32 number, __u32 waits)
{
	struct sl_state *state = bpf_map_lookup_elem(&budgets, &number);
	struct sl_state seen;
	struct sl_slice *slice;
	__u64 cost;

	if (!packet || !budget || !budget_slice || !state)
		return SL_DROP_OVER_BUDGET;
	slice = &budget_slice->slice;
	seen = state_read(state);
	if (waits && credit_is_low(budget, &seen, packet_now(packet))) {
		if (budget->refuse_by_jiffy)
			budget_slice->low_at = packet->jiffy;
		return budget_refuse(packet);
	}
	cost = credit_cost(budget, packet->packets, packet->bytes);
	if (credit_must_wait(slice, cost, packet_now(packet))) {
		credit_refuse_jiffy(budget, slice, packet->jiffy);
		return budget_refuse(packet);
	}
	for (int i = 0; i < STATE_TRIES; i++) {
		int reason = state_charge_bucket(packet, budget, slice, state);

		if (reason == SL_PASS_WITHIN)
			return SL_PASS_NEWCOMER;
		if (reason != STATE_LOST)
			return budget_refuse(packet);
	}
	return SL_DROP_CONTENDED;
}

/*
 * Charges a packet of a source that is not established to the budget that policy number `own` has
 * or inherits. waits: its key gets no state with this packet.
 */
static __always_inline enum sl_reason
budget_charge(struct packet *packet, const struct sl_policy *policy, __u32 own, __u32 waits)
{
	const struct sl_limit *budget = &policy->newcomers;
	struct sl_budget_slice *budget_slice;
	__u32 number = policy->newcomers_origin ?: own;
	enum credit_answer answer;
	__u64 cost;

	budget_slice = bpf_map_lookup_elem(&budget_slices, &number);
	if (!budget_slice)
		return SL_DROP_OVER_BUDGET;
	/* credit that was borrowed under another budget is void */
	if (budget_slice->since != policy->newcomers_since)
		*budget_slice = (struct sl_budget_slice){.since = policy->newcomers_since};
	if (waits && budget_slice->low_at == (__u32)packet->jiffy)
		return SL_DROP_OVER_BUDGET;
	cost = credit_cost(budget, packet->packets, packet->bytes);
	answer = credit_spend(&budget_slice->slice, cost, packet->jiffy);
	if (answer == CREDIT_PASS)
		return SL_PASS_NEWCOMER;
	if (answer == CREDIT_REFUSE)
		return SL_DROP_OVER_BUDGET;
	return budget_ask(packet, budget, budget_slice, number, waits);
}

#endif
