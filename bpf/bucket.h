/* SPDX-License-Identifier: GPL-2.0 */
/* What this CPU remembers of a source: what decides about it, its purses, its counters. */
#ifndef SLUICE_BUCKET_H
#define SLUICE_BUCKET_H

#include "newcomer.h"
#include "ruleset.h"

/* What a packet is judged by: the moment at which it came, and the rules in force then. */
static __always_inline void packet_begin(struct packet *packet, const struct sl_gate *gate)
{
	packet->jiffy = clock_jiffies();
	packet->generation = read_once(gate->generation);
}

static __always_inline struct sl_bucket_key6 bucket_key6(const struct sl_prefix *source)
{
	const __u64 *addr = (const __u64 *)source->addr;

	return (struct sl_bucket_key6){.net = addr[0], .host = identity_host(addr)};
}

static __always_inline struct sl_bucket *bucket_find(const struct sl_prefix *source)
{
	if (source_is_ipv4(source)) {
		return map_lookup(buckets4, source->addr);
	} else {
		struct sl_bucket_key6 key = bucket_key6(source);

		return map_lookup(buckets6, &key);
	}
}

/*
 * Makes a bucket, if the source is to have one. May fail, and then the packet is judged without. EEXIST is no failure:
 * another CPU made the entry, which has a value for each CPU.
 */
BPF_GLOBAL int bucket_earn(const struct packet *packet, const struct sl_gate *gate)
{
	struct sl_bucket fresh = {0};
	long err;

	if (!packet || !gate || !newcomer_is_hot(packet, &gate->meeting) ||
	    !admission_take(SL_POOL_BUCKETS))
		return false;
	if (packet_is_ipv4(packet)) {
		__u32 key = *(const __u32 *)packet->source.addr;

		err = bpf_map_update_elem(&buckets4, &key, &fresh, BPF_NOEXIST);
	} else {
		struct sl_bucket_key6 key = bucket_key6(&packet->source);

		err = bpf_map_update_elem(&buckets6, &key, &fresh, BPF_NOEXIST);
	}
	admission_note(err);
	return true;
}

/*
 * The bucket of the source; NULL: it has none, and gets none, and `packet->admission` says whether its ledgers may be
 * asked. In a crowd a source of which nothing is known is spared the lookup.
 */
static __always_inline struct sl_bucket *bucket_get(struct packet *packet,
						    const struct sl_gate *gate)
{
	struct sl_bucket *bucket =
		admission_is_crowded(packet->jiffy) ? NULL : bucket_find(&packet->source);

	if (bucket)
		return bucket;
	packet->admission = newcomer_judge(packet, gate);
	if (packet->admission == ADMISSION_REFUSED)
		return NULL;
	bucket = bucket_find(&packet->source);
	if (!bucket && bucket_earn(packet, gate))
		bucket = bucket_find(&packet->source);
	if (bucket && packet->admission == ADMISSION_KNOWN)
		packet->admission =
			ADMISSION_GRANTED; /* a source with a bucket may have a forgotten ledger made again */
	return bucket;
}

/*
 * The last jiffy in which a list entry is sure to last; without an end: forever. Two less than would
 * fit: this jiffy has begun already, and the kernel may count it late. 0: ask each time.
 */
static __always_inline __u64 until_jiffy(__u32 until, const struct sl_gate *gate, __u64 jiffy)
{
	__u64 end = (__u64)until << SL_UNTIL_SHIFT, now = clock_ticks() / SL_TICKS_PER_NS;
	__u64 jiffies = end > now && gate->tick_ns ? (end - now) / gate->tick_ns : 0;

	if (!until)
		return ~0ULL;
	return jiffies >= 2 ? jiffy + jiffies - 2 : 0;
}

/*
 * Purses are of one policy's limits. Under another policy, or of a limit that has another ledger now, they
 * are void. After any change what they hold goes back to their ledgers at the next packet, and refusals
 * are forgotten. A list may decide in between, and they stay.
 */
static __always_inline void bucket_own(struct sl_bucket *bucket, __u32 record)
{
	const struct sl_policy *policy = bpf_map_lookup_elem(&policies, &record);
	__u32 owner = SL_POLICY(record);

	if (!policy || owner < SL_POLICY_FIRST ||
	    (bucket->owner == owner && bucket->owner_since == policy->since))
		return;
	for (int i = 0; i < SL_LIMITS_MAX; i++) {
		struct sl_purse *purse = &bucket->purse[i];

		if (bucket->owner != owner || purse->credit < 0 ||
		    (__s32)(policy->changed[i] - bucket->owner_since) > 0)
			purse->credit = 0;
		purse->until = 0;
	}
	bucket->owner = owner;
	bucket->owner_since = policy->since;
}

/*
 * Whether the bucket was still the source's when it was told what decides. If the map had handed the node to another
 * source by then, that one would be judged by a stranger's record until the rules change. Such a node is made a fresh one:
 * the next packet of its source looks up what decides, and finds purses that are void. No packet of that source comes in
 * between, as this CPU's part of the node is used by this CPU alone; on PREEMPT_RT one that interrupts is judged wrongly.
 * A node that goes to another source later is written anew by whoever inserts that.
 */
static __always_inline void bucket_confirm(const struct sl_prefix *source, struct sl_bucket *bucket,
					   __u32 generation)
{
	const struct sl_bucket *again = bucket_find(source);

	if (again && read_once(again->generation) == generation)
		return;
	bucket->generation = 0;
	bucket->record = 0;
	bucket->owner = 0;
}

/*
 * Looks up what decides about the source, and brings its bucket, if any, up to this generation. Returns the
 * record.
 */
BPF_GLOBAL __u32 bucket_judge(const struct packet *packet, struct sl_bucket *bucket,
			      const struct sl_gate *gate)
{
	struct judgement found;
	struct sl_prefix key;
	bool is_split;

	if (!packet || !gate)
		return 0;
	key = packet->source;
	is_split = ruleset_splits(&key, gate);
	found = ruleset_judge(packet, gate);
	if (!bucket)
		return found.record;
	if (!is_split)
		bucket_own(bucket, found.record);
	bucket->record = is_split ? SL_BUCKET_SPLIT : found.record;
	bucket->until = until_jiffy(found.until, gate, packet->jiffy);
	/* not a plain store: all of it is to be seen before the next lookup begins */
	__sync_lock_test_and_set(&bucket->generation, packet->generation);
	bucket_confirm(&key, bucket, packet->generation);
	return found.record;
}

/* The record that decides about the source: recalled, if it was found under these rules. */
static __always_inline __u32 bucket_recall(const struct packet *packet, struct sl_bucket *bucket,
					   const struct sl_gate *gate)
{
	__u32 record;

	if (bucket) {
		/* before the generation: another CPU that takes the node empties both */
		record = read_once(bucket->record);
		if (read_once(bucket->generation) == packet->generation &&
		    bucket->until >= packet->jiffy && record != SL_BUCKET_SPLIT)
			return record;
	}
	return bucket_judge(packet, bucket, gate);
}

#endif
