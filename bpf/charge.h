/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Charging: a packet against the limits of its source's policy. A limit is decided by the purse if
 * it can tell, else by the ledger, else by the newcomers' budget.
 *
 *   policy_charge   all limits of a policy, in their order
 *   limit_charge    one limit
 *
 * Used by: sluice.bpf.c. Uses: bucket.h, newcomer.h, ledger.h, budget.h.
 */
#ifndef SLUICE_CHARGE_H
#define SLUICE_CHARGE_H

#include "bucket.h"
#include "budget.h"

/* What becomes of a packet. */
struct verdict {
	enum sl_reason reason;
	__u32 record;  /* that decides about its source */
	__u32 refused; /* marks of the limits that had no credit, those that observe included */
};

/*
 * Charges the ledger, when there is no purse or it cannot tell. Without a purse the packet draws
 * only its own cost, and pays that of the earlier packets which `outcome` counts. Returns an enum
 * sl_reason; SL_PASS_NEWCOMER: no ledger exists, and none was made.
 */
BPF_GLOBAL int limit_ask(struct packet *packet, const struct sl_limit *limit,
			 struct sl_purse *purse, enum admission outcome)
{
	struct claim claim = {0};
	__u64 cost;

	if (!packet || !limit)
		return SL_DROP_OVER_LIMIT;
	cost = credit_cost(limit, packet->packets, packet->bytes);
	claim.cost = cost;
	/* at the price of one packet, as this one may be merged */
	if (outcome > ADMISSION_GRANTED && limit->owes)
		claim.owed = credit_owed(cost / packet->packets, outcome - ADMISSION_GRANTED);
	/* a key that is taken for known by mistake gets no ledger */
	claim.begins = outcome != ADMISSION_KNOWN;
	if (purse && credit_must_wait(purse, cost, packet_now(packet))) {
		credit_refuse_jiffy(limit, purse, packet->jiffy);
		newcomer_remember(packet, limit, gate_get());
		return kind_refusal(limit, cost);
	}
	if (purse)
		claim.fill = limit->purse;
	for (int i = 0; i < LEDGER_TRIES; i++) {
		int reason = ledger_charge(packet, limit, purse, &claim);

		if (reason == LEDGER_OVER)
			ledger_turn(packet, limit);
		if (reason == LEDGER_LOST || reason == LEDGER_OVER)
			continue;
		if (reason == LEDGER_NONE)
			return SL_PASS_NEWCOMER;
		if (reason & LEDGER_MARK)
			newcomer_remember(packet, limit, gate_get());
		reason &= ~LEDGER_MARK;
		if (reason >= SL_FIRST_DROP && reason != SL_DROP_BLOCKED &&
		    kind_blocks(limit, cost))
			ledger_block(packet, limit, purse);
		return reason;
	}
	return SL_DROP_CONTENDED;
}

/*
 * Charges a packet that has no purse to decide. A key that the filter of known keys reports is
 * charged at its ledger; any other key goes through admission. Used for limits whose key is not the
 * source, and when the filter was wrong. purse: that of a limit whose purse only remembers a
 * refusal; else NULL.
 */
BPF_GLOBAL int limit_admit(struct packet *packet, const struct sl_limit *limit,
			   struct sl_purse *purse)
{
	int reason = SL_PASS_NEWCOMER;
	enum admission outcome;

	if (newcomer_is_known(packet, limit))
		reason = limit_ask(packet, limit, purse, ADMISSION_KNOWN);
	if (reason != SL_PASS_NEWCOMER)
		return reason;
	outcome = newcomer_admit_key(packet, limit);
	return outcome < ADMISSION_GRANTED ? SL_PASS_NEWCOMER
					   : limit_ask(packet, limit, purse, outcome);
}

/*
 * Whether a packet passes a limit of which every packet asks the ledger, in one try. False: nothing
 * was charged, and limit_ask() has all the time to find out why.
 */
static __always_inline bool limit_pass(struct packet *packet, const struct sl_limit *limit,
				       struct sl_purse *purse)
{
	int reason = ledger_charge(packet, limit, purse, NULL);

	if ((reason & ~LEDGER_MARK) != SL_PASS_WITHIN)
		return false;
	if (reason & LEDGER_MARK)
		newcomer_remember(packet, limit, gate_get());
	return true;
}

/*
 * Charges one limit: its purse if that can tell, else its ledger. A purse belongs to one CPU and is
 * updated plainly. On PREEMPT_RT another packet may interrupt this one, and both may spend the same
 * credit: one packet too many.
 */
static __always_inline enum sl_reason
limit_charge(struct packet *packet, const struct sl_limit *limit, struct sl_purse *purse)
{
	enum credit_answer answer;
	enum sl_reason reason;

	/* a shared key may have its ledger already, whether this source is known or not */
	if (limit->apart || (!purse && (packet->admission == ADMISSION_KNOWN || limit->shared)))
		return limit_admit(packet, limit, purse);
	if (!purse && packet->admission == ADMISSION_REFUSED)
		return SL_PASS_NEWCOMER;
	if (purse) {
		__u64 cost = credit_cost(limit, packet->packets, packet->bytes);

		answer = credit_spend(purse, cost, packet->jiffy);
		if (answer == CREDIT_PASS)
			return SL_PASS_WITHIN;
		if (answer == CREDIT_REFUSE)
			return limit->block ? SL_DROP_BLOCKED : kind_refusal(limit, 0);
	}
	if (purse && limit->kind != SL_BUCKET && limit_pass(packet, limit, purse))
		return SL_PASS_WITHIN;
	reason = limit_ask(packet, limit, purse,
			   limit->shared ? ADMISSION_KNOWN : packet->admission);
	if (reason != SL_PASS_NEWCOMER)
		return reason;
	if (limit->shared)
		return limit_admit(packet, limit, purse);
	if (newcomer_may_retry(packet, gate_get()))
		reason = limit_ask(packet, limit, purse, packet->admission);
	return reason;
}

/* The purse of a limit in a bucket. NULL: no bucket, or the purse would tell nothing. */
static __always_inline struct sl_purse *limit_purse(const struct sl_limit *limit,
						    struct sl_bucket *bucket)
{
	if (!bucket || limit->apart)
		return NULL;
	/* clang 19 would add the offset before the test for NULL, which the verifier refuses */
	__asm__ volatile("" : "+r"(bucket));
	return &bucket->purse[limit->slot % SL_LIMITS_MAX];
}

/* Whether a limit of the policy is for the packet, which is inspected. */
BPF_GLOBAL int limit_is_for(const struct sl_policy *policy, const struct sl_limit *limit,
			    const struct packet *packet)
{
	if (!policy || !limit || !packet)
		return false;
	return match_limit(limit, &policy->match[limit->slot % SL_LIMITS_MAX], &packet->facts,
			   packet->egress);
}

/*
 * A set of limits that a packet was charged to, and of those in whose place the budget is asked.
 * Bits by slot, which the verifier does not know: else it walks what follows for each set.
 */
#define CHARGE(limit)	       (1U << (limit)->slot % SL_LIMITS_MAX)
#define CHARGE_NEWCOMER(limit) (CHARGE(limit) << SL_LIMITS_MAX)

/*
 * Takes back the charges of a packet that a later limit refuses: a dropped packet costs nothing
 * under any limit.
 */
BPF_GLOBAL int policy_refund(const struct packet *packet, const struct sl_policy *policy,
			     struct sl_bucket *bucket, __u32 charged)
{
	enum sl_family family;

	if (!packet || !policy)
		return 0;
	family = packet_family(packet);
	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		struct sl_purse *purse = limit_purse(limit, bucket);
		__u64 cost = credit_cost(limit, packet->packets, packet->bytes);

		if (!(charged & CHARGE(limit)))
			continue;
		if (!purse || limit->kind != SL_BUCKET || !credit_give_back(limit, purse, cost))
			ledger_refund(packet, limit, cost);
	}
	return 0;
}

/*
 * Charges each limit that matches the packet, until one refuses it. Limits that observe come last
 * and see what the others let pass. Where a limit has no ledger for the packet yet, the newcomers'
 * budget is charged in its place, last of all. bucket: NULL if it holds no purses of this policy.
 */
static __always_inline void policy_charge(struct packet *packet, const struct sl_policy *policy,
					  struct sl_bucket *bucket, struct verdict *verdict)
{
	enum sl_family family = packet_family(packet);
	const struct sl_gate *gate = gate_get();
	/* A 0 that the verifier cannot know: else it walks the loop for each set of limits. */
	__u32 charged = gate ? gate->opaque_zero : 0, asked = charged;

	verdict->reason = SL_PASS_WITHIN;
	verdict->refused = charged;
	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		enum sl_reason reason;

		if (policy->deep ? !limit_is_for(policy, limit, packet)
				 : !packet->egress && match_is_egress(limit))
			continue;
		asked++;
		reason = limit_charge(packet, limit, limit_purse(limit, bucket));
		if (reason == SL_PASS_NEWCOMER && limit->start_empty)
			reason = SL_DROP_OVER_LIMIT; /* a ledger that starts empty refuses */
		if (reason == SL_PASS_NEWCOMER) {
			charged |= limit->observe ? 0 : CHARGE_NEWCOMER(limit);
			continue;
		}
		if (reason < SL_FIRST_DROP) {
			charged |= CHARGE(limit);
			continue;
		}
		verdict->refused |= limit->mark;
		if (limit->observe)
			continue;
		verdict->reason = reason;
		break;
	}
	if (!asked)
		verdict->reason = SL_PASS_NO_LIMIT;
	if (charged >> SL_LIMITS_MAX && verdict->reason < SL_FIRST_DROP) {
		verdict->reason = budget_charge(packet, policy, SL_POLICY(verdict->record));
		/* only limits that observe are marked, and they count no drops of the budget */
		if (verdict->reason >= SL_FIRST_DROP)
			verdict->refused = 0;
	}
	if (charged && verdict->reason >= SL_FIRST_DROP)
		policy_refund(packet, policy, bucket, charged);
}

#endif
