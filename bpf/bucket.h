/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buckets: what this CPU remembers of a source. An entry of map buckets4 or buckets6 has the record
 * that decides about the source, its purses and its counters. It is a cache: an evicted entry loses
 * its counters and the credit of its purses.
 *
 *   packet_begin    the moment of the packet, and the rules that it is judged under
 *   bucket_get      the bucket of the source, made if the source is admitted and hot
 *   bucket_recall   the record that decides about the source
 *
 * Used by: sluice.bpf.c, charge.h. Uses: newcomer.h, lookup.h, purses.h.
 */
#ifndef SLUICE_BUCKET_H
#define SLUICE_BUCKET_H

#include "purses.h"
#include "newcomer.h"
#include "lookup.h"

/* Sets the moment of the packet, and the generation of the rules that it is judged under. */
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
 * Makes a bucket for a hot source. Returns whether to look it up again. The insertion may fail;
 * then the packet is judged without a bucket. EEXIST is no failure: another CPU made the entry,
 * which has a value for each CPU.
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
 * The bucket of the source. NULL: it has none and gets none, and packet->admission says whether it
 * may have ledgers. In a crowd of newcomers the filter of known keys is asked first, which spares
 * unknown sources the lookup; outside of one the second lookup is only paid by newcomers.
 */
static __always_inline struct sl_bucket *bucket_get(struct packet *packet,
						    const struct sl_gate *gate)
{
	struct sl_bucket *bucket =
		admission_is_crowded(packet->jiffy) ? NULL : bucket_find(&packet->source);

	if (bucket)
		return bucket;
	packet->admission = newcomer_admit(packet, gate);
	if (packet->admission == ADMISSION_REFUSED)
		return NULL;
	bucket = bucket_find(&packet->source);
	if (!bucket && bucket_earn(packet, gate))
		bucket = bucket_find(&packet->source);
	if (bucket && packet->admission == ADMISSION_KNOWN)
		packet->admission = ADMISSION_GRANTED; /* an evicted ledger may be made again */
	return bucket;
}

/*
 * The last jiffy in which a result of the lookup that ends at `until` is sure to hold; without an
 * end, forever. Two less than would fit: the current jiffy has already begun, and the kernel may
 * count it late. 0: look up at each packet.
 */
static __always_inline __u64 until_jiffy(__u32 until, const struct sl_gate *gate, __u64 jiffy)
{
	__u64 end = (__u64)until << SL_UNTIL_SHIFT, now = clock_ticks() / SL_TICKS_PER_NS;
	__u64 jiffies = end > now && gate->jiffy_ns ? (end - now) / gate->jiffy_ns : 0;

	if (!until)
		return ~0ULL;
	return jiffies >= 2 ? jiffy + jiffies - 2 : 0;
}

/* Fits the purses to the policy in `record`. While a list decides, purses stay as they are. */
static __always_inline void bucket_own(struct sl_bucket *bucket, __u32 record)
{
	const struct sl_policy *policy = bpf_map_lookup_elem(&policies, &record);
	__u32 owner = SL_POLICY(record);

	if (policy && owner >= SL_POLICY_FIRST)
		purses_fit(bucket, policy, owner);
}

/*
 * Makes sure that the record was written to a bucket that still belongs to the source. The LRU map
 * may have handed the entry to another source meanwhile, which would then be judged by a foreign
 * record until the rules change. Such an entry is made a fresh one: its source looks up its own
 * record at its next packet, and finds void purses. No packet of that source comes in between,
 * because a CPU uses only its own part of the entry; on PREEMPT_RT a packet that interrupts may be
 * judged by the foreign record. An entry that is handed over later is overwritten by the insertion
 * that takes it.
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
 * Looks up the record that decides about the source, and brings its bucket, if any, up to this
 * generation.
 */
BPF_GLOBAL __u32 bucket_refresh(const struct packet *packet, struct sl_bucket *bucket,
				const struct sl_gate *gate)
{
	struct lookup found;
	struct sl_prefix key;
	bool is_split;

	if (!packet || !gate)
		return 0;
	key = packet->source;
	is_split = source_is_split(&key, gate);
	found = rules_lookup(packet, gate);
	if (!bucket)
		return found.record;
	if (!is_split)
		bucket_own(bucket, found.record);
	bucket->record = is_split ? SL_BUCKET_SPLIT : found.record;
	bucket->until = until_jiffy(found.until, gate, packet->jiffy);
	/* an atomic store: it must be visible before the lookup that confirms it */
	__sync_lock_test_and_set(&bucket->generation, packet->generation);
	bucket_confirm(&key, bucket, packet->generation);
	return found.record;
}

/* The record that decides about the source: from its bucket, if it was found under these rules. */
static __always_inline __u32 bucket_recall(const struct packet *packet, struct sl_bucket *bucket,
					   const struct sl_gate *gate)
{
	__u32 record;

	if (bucket) {
		/* before the generation: another CPU that takes over the entry clears both */
		record = read_once(bucket->record);
		if (read_once(bucket->generation) == packet->generation &&
		    bucket->until >= packet->jiffy && record != SL_BUCKET_SPLIT)
			return record;
	}
	return bucket_refresh(packet, bucket, gate);
}

#endif
