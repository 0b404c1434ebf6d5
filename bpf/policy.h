/* SPDX-License-Identifier: GPL-2.0 */
/* Charging a packet to the limits of its source's policy. */
#ifndef SLUICE_POLICY_H
#define SLUICE_POLICY_H

#include "bucket.h"
#include "ledger.h"

/* What comes of a packet. */
struct verdict {
	enum sl_reason reason;
	__u32 record;
	__u32 refused; /* a bit for each slot whose limit had no credit: dropped, or observed */
};

/*
 * Each lost round means that another CPU's draw went through. A CPU that loses as many rounds as this
 * is one of a crowd on one small limit; it drops, and counts that it did.
 */
#define LEDGER_TRIES 16

/*
 * The purse cannot tell: ask the ledger. Without a purse the packet draws just its own cost. Global, as
 * ledger_charge is, for the verifier's sake.
 */
__noinline int limit_ask(const struct packet *packet, const struct sl_limit *limit,
			 struct sl_purse *purse, __u64 cost, __u64 tick)
{
	struct sl_purse none = {0};
	struct claim claim = {.cost = cost, .now = clock_ticks(), .tick = tick};

	if (!packet || !limit || cost > limit->burst)
		return SL_DROP_OVERSIZE;
	if (!purse) {
		purse = &none;
	} else if (credit_must_wait(purse, cost, claim.now)) {
		credit_refuse_tick(limit, purse, tick);
		return SL_DROP_OVER_LIMIT;
	} else {
		claim.fill = limit->purse;
	}
	for (int i = 0; i < LEDGER_TRIES; i++) {
		int answer = ledger_charge(packet, limit, purse, &claim);

		if (answer != LEDGER_LOST)
			return answer;
	}
	return SL_DROP_CONTENDED;
}

/*
 * From the purse if it can tell, else from the ledger. The purse is this CPU's and updated plainly; on
 * PREEMPT_RT, where another packet may interrupt this one, both may spend the same credit: one packet
 * too many.
 */
static __always_inline enum sl_reason limit_charge(const struct packet *packet,
						   const struct sl_limit *limit,
						   struct sl_purse *purse, __u64 tick)
{
	__u64 cost = credit_cost(limit, packet->packets, packet->bytes);

	if (purse) {
		enum credit_answer answer = credit_spend(purse, cost, tick);

		if (answer == CREDIT_PASS)
			return SL_PASS_WITHIN;
		if (answer == CREDIT_REFUSE)
			return limit->block ? SL_DROP_BLOCKED : SL_DROP_OVER_LIMIT;
	}
	return limit_ask(packet, limit, purse, cost, tick);
}

/* This CPU's purse under a limit; NULL: the bucket cannot hold one for it. */
static __always_inline struct sl_purse *limit_purse(const struct sl_limit *limit,
						    struct sl_bucket *bucket)
{
	return bucket && !limit->apart ? &bucket->purse[limit->slot % SL_LIMITS_MAX] : NULL;
}

/* Global, as ledger_charge is, for the verifier's sake. */
__noinline int limit_is_for(const struct sl_policy *policy, const struct sl_limit *limit,
			    const struct packet *packet)
{
	if (!policy || !limit || !packet)
		return false;
	if (limit->key_dst && !packet->egress)
		return false;
	return match_packet(&policy->match[limit->slot % SL_LIMITS_MAX], &packet->facts);
}

/* Undoes the charges of a packet that a later limit refuses: a drop costs nothing anywhere. Global, too. */
__noinline int policy_refund(const struct packet *packet, const struct sl_policy *policy,
			     struct sl_bucket *bucket, __u32 charged)
{
	if (!packet || !policy)
		return 0;
	for (int i = 0; i < SL_LIMITS_MAX; i++) {
		const struct sl_limit *limit =
			&policy->limit[packet_is_ipv4(packet) ? SL_IPV4 : SL_IPV6][i];
		struct sl_purse *purse = limit_purse(limit, bucket);
		__u64 cost = credit_cost(limit, packet->packets, packet->bytes);

		if (!(charged >> i & 1))
			continue;
		if (!purse || !credit_give_back(limit, purse, cost))
			ledger_refund(packet, limit, cost);
	}
	return 0;
}

/*
 * Asks each limit that is for this packet; the first that refuses ends it. Those that only observe come
 * last, and see what the others let pass. bucket: NULL if it holds no purses of this policy.
 */
static __always_inline void policy_charge(const struct packet *packet,
					  const struct sl_policy *policy, struct sl_bucket *bucket,
					  __u64 tick, struct verdict *verdict)
{
	enum sl_family family = packet_is_ipv4(packet) ? SL_IPV4 : SL_IPV6;
	__u32 charged = 0;

	verdict->reason = SL_PASS_WITHIN;
	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		enum sl_reason reason;

		if (policy->deep && !limit_is_for(policy, limit, packet))
			continue;
		reason = limit_charge(packet, limit, limit_purse(limit, bucket), tick);
		if (reason < SL_FIRST_DROP) {
			charged |= 1 << i;
			continue;
		}
		verdict->refused |= 1 << limit->slot % SL_LIMITS_MAX;
		if (limit->observe)
			continue;
		verdict->reason = reason;
		if (charged)
			policy_refund(packet, policy, bucket, charged);
		break;
	}
}

#endif
