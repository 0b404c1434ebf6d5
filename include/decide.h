/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decides about a packet whose source has limits. Defines the order in which limits and the budget
 * are charged. A file that includes this header must define the functions below before the include.
 * In the packet path these functions charge (bpf/charge.h). For `sluice check` they report what a
 * charge would do (user/state/verdict.c).
 *
 *   limit_is_for()           returns whether a limit matches the packet
 *   limit_charge()           charges a limit; makes the state of a new key if there is no budget
 *   limit_charge_new()       makes the state of a new key and charges it
 *   budget_charge()          charges the policy's budget for new sources
 *   source_is_established()  returns whether another limit establishes the source
 *   policy_refund()          refunds the charges of a packet that is dropped
 */
#ifndef SLUICE_DECIDE_H
#define SLUICE_DECIDE_H

#include "context.h"

/*
 * Makes the states that a new source gets, and charges the packet to these states. LIMIT_ADMITTED()
 * in `limits` selects the limits. If a limit that drops refuses the packet, sets verdict->reason.
 * Returns the updated `limits`.
 */
static __always_inline __u32 policy_admit(struct packet *packet, const struct sl_policy *policy,
					  struct sl_bucket *bucket, struct verdict *verdict,
					  __u32 limits)
{
	enum sl_family family = packet_family(packet);

	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		enum charge_result result;

		if (!(limits & LIMIT_ADMITTED(limit)))
			continue;
		result = limit_charge_new(packet, limit, bucket, verdict);
		if (result != CHARGE_PASSED && result != CHARGE_REFUSED) {
			if (!limit->start_empty)
				continue;
			verdict->refusal = SL_DROP_OVER_LIMIT;
		}
		limits &= ~LIMIT_NO_STATE(limit);
		if (result == CHARGE_PASSED) {
			limits |= LIMIT_PASSED(limit);
			continue;
		}
		verdict->refused |= limit->mark;
		if (limit->observe)
			continue;
		verdict->reason = verdict->refusal;
		break;
	}
	return limits;
}

/*
 * Decides about a packet of a new source. Charges the policy's budget if a limit that drops has no
 * established state of the packet's key, and no other limit establishes the source. If the packet
 * passes, makes the states of the source. Returns the updated `limits`.
 */
static __always_inline __u32 policy_charge_new(struct packet *packet,
					       const struct sl_policy *policy,
					       struct sl_bucket *bucket, struct verdict *verdict,
					       __u32 limits)
{
	__u32 is_new = verdict->is_new;
	bool pays = policy->newcomers.burst && is_new &&
		    (!(limits & policy->by_source[packet_family(packet)] & ~is_new) ||
		     !source_is_established(packet, policy, limits, is_new));

	if (pays) {
		enum sl_reason reason;

		verdict->is_waiting = LIMITS_WAITING(limits) != 0;
		reason = budget_charge(packet, policy, verdict);
		if (reason >= SL_FIRST_DROP) {
			verdict->reason = reason;
			/* If the budget drops a packet, limits that observe do not count it. */
			verdict->refused = 0;
			return limits;
		}
	}
	if (limits & LIMITS_ADMITTED)
		limits = policy_admit(packet, policy, bucket, verdict, limits);
	if ((pays || limits & LIMITS_NO_STATE) && verdict->reason < SL_FIRST_DROP)
		verdict->reason = SL_PASS_NEWCOMER;
	return limits;
}

/*
 * Charges each limit that matches the packet, until a limit refuses it. Limits that observe are
 * last, so they see only packets that all other limits pass. If the packet's key has no established
 * state under one of the limits, charges the budget after all limits. bucket: NULL if the bucket
 * has no slices of this policy. limits: 0, but the verifier must not know that (policy_charge()).
 */
static __always_inline void policy_decide(struct packet *packet, const struct sl_policy *policy,
					  struct sl_bucket *bucket, struct verdict *verdict,
					  __u32 limits)
{
	enum sl_family family = packet_family(packet);

	verdict->reason = SL_PASS_WITHIN;
	verdict->refused = limits;
	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		enum charge_result result;

		if (policy->deep ? !limit_is_for(policy, limit, packet)
				 : !packet->egress && match_is_egress(limit))
			continue;
		limits |= LIMITS_MATCHED;
		result = limit_charge(packet, limit, bucket, verdict);
		if (result == CHARGE_PASSED) {
			limits |= LIMIT_PASSED(limit);
			continue;
		}
		if (result != CHARGE_REFUSED) {
			if (!limit->start_empty || (limit->budgeted && result == CHARGE_ADMITTED)) {
				verdict->is_new |= limit_if_new(limit);
				limits |= limit->observe ? 0 : LIMIT_NO_STATE(limit);
				limits |= result == CHARGE_ADMITTED ? LIMIT_ADMITTED(limit) : 0;
				continue;
			}
			/* The limit starts empty, so a new state has no credit. */
			verdict->refusal = SL_DROP_OVER_LIMIT;
		}
		verdict->refused |= limit->mark;
		if (limit->observe)
			continue;
		verdict->reason = verdict->refusal;
		break;
	}
	if (!limits)
		verdict->reason = SL_PASS_NO_LIMIT;
	if ((verdict->is_new || limits & (LIMITS_NO_STATE | LIMITS_ADMITTED)) &&
	    verdict->reason < SL_FIRST_DROP)
		limits = policy_charge_new(packet, policy, bucket, verdict, limits);
	if (limits & LIMITS_PASSED && verdict->reason >= SL_FIRST_DROP)
		policy_refund(packet, policy, bucket, limits, verdict->is_new);
}

#endif
