/* SPDX-License-Identifier: GPL-2.0 */
/* What this CPU remembers of a source: its policy, its purse, its counters. */
#ifndef SLUICE_BUCKET_H
#define SLUICE_BUCKET_H

#include "ledger.h"
#include "packet.h"
#include "ruleset.h"

static __always_inline struct sl_bucket *bucket_find(const struct packet *packet)
{
	if (packet->source.bits == SL_FAMILY_BITS + 32)
		return map_lookup(buckets4, packet->source.addr);
	return map_lookup(buckets6, packet->source.addr);
}

/*
 * May fail, and then the packet is judged without a bucket. EEXIST is no failure: another CPU made
 * the entry, which has a value for each CPU.
 */
static __always_inline struct sl_bucket *bucket_make(const struct packet *packet)
{
	struct sl_bucket fresh = {0};

	if (packet->source.bits == SL_FAMILY_BITS + 32)
		bpf_map_update_elem(&buckets4, packet->source.addr, &fresh, BPF_NOEXIST);
	else
		bpf_map_update_elem(&buckets6, packet->source.addr, &fresh, BPF_NOEXIST);
	return bucket_find(packet);
}

/*
 * Looks up the source's policy and brings its bucket, if any, up to this generation. A purse drawn
 * under other rules is void; one whose rule did not change stays as it is. Returns the record.
 *
 * Global, as ledger_charge is, for the verifier's sake.
 */
__noinline __u32 bucket_judge(const struct sl_prefix *source, struct sl_bucket *bucket,
			      const struct sl_gate *gate, __u32 generation)
{
	struct judgement found;
	struct sl_prefix key;
	__u32 remember;

	if (!source || !gate)
		return 0;
	key = *source; /* before Linux 6.2 a map's key may not lie in a global function's argument */
	found = ruleset_judge(&key, generation);
	if (!bucket || bucket->generation == generation)
		return found.policy;
	remember = ruleset_splits(&key, gate) ? SL_BUCKET_SPLIT : found.policy;
	if (bucket->policy != remember || (__s32)(found.since - bucket->generation) > 0)
		bucket->purse = (struct sl_purse){0};
	bucket->policy = remember;
	bucket->generation = generation;
	return found.policy;
}

/*
 * Each lost round means that another CPU's draw went through. A CPU that loses as many rounds as this
 * is one of a crowd on one small limit; it drops, and counts that it did.
 */
#define LEDGER_TRIES 16

/* The purse cannot tell: ask the ledger. Without a purse the packet draws just its own cost. */
static __always_inline enum sl_reason bucket_ask(const struct packet *packet,
						 const struct sl_limit *limit,
						 struct sl_purse *purse, __u64 cost, __u64 tick)
{
	struct sl_purse none = {0};
	struct claim claim = {.cost = cost, .now = clock_ticks(), .tick = tick};

	if (cost > limit->burst)
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
		int answer = ledger_charge(&packet->source, limit, purse, &claim);

		if (answer != LEDGER_LOST)
			return answer;
	}
	return SL_DROP_CONTENDED;
}

/*
 * Charges the packet to its policy's limit: from the purse if it can tell, else from the ledger.
 * The purse is this CPU's and updated plainly; on PREEMPT_RT, where another packet may interrupt this
 * one, both may spend the same credit: one packet too many.
 */
static __always_inline enum sl_reason bucket_charge(const struct packet *packet,
						    struct sl_bucket *bucket, __u32 record)
{
	struct sl_purse *purse = bucket && bucket->policy == record ? &bucket->purse : NULL;
	struct sl_policy *policy = bpf_map_lookup_elem(&policies, &record);
	__u64 cost, tick;

	if (!policy || !record)
		return SL_PASS_NO_RULE;
	cost = credit_cost(&policy->limit, packet->packets, packet->bytes);
	tick = clock_jiffies();
	if (purse) {
		enum credit_answer answer = credit_spend(purse, cost, tick);

		if (answer != CREDIT_ASK)
			return answer == CREDIT_PASS ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT;
	}
	return bucket_ask(packet, &policy->limit, purse, cost, tick);
}

#endif
