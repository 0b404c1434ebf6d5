/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buckets: what this CPU holds for a source, in two LRU_PERCPU_HASH maps.
 *
 * The kernel evicts. An insertion costs as much as five packets, so insertions are rationed. A
 * bucket saves a hot source the charge of its shared state; a slow source only pays for the cache
 * lines. So each CPU uses buckets only for its first sources, for hot sources, and for refused or
 * observed sources, and marks these in map `in_use`. A source without a mark is charged at its
 * shared state. Marks are bits of a hash. If two sources share a mark, one of them may pay a failed
 * lookup.
 *
 * Race: the kernel reuses an evicted entry at once, even while a program on another CPU uses it.
 * That program may then write to the bucket of another source. bucket_find() compares `source`, and
 * clears a bucket that was written for another source. `generation` and `policy_version` are read
 * and written as one word, so a packet never uses the version of another source. Credit that is
 * written to an entry at that moment is lost.
 */
#ifndef SLUICE_BUCKET_H
#define SLUICE_BUCKET_H

#include "newcomer.h"
#include "lookup.h"

/* Sets the jiffy of the packet, and the generation of the rules that decide about it. */
static __always_inline void packet_begin(struct packet *packet, const struct sl_gate *gate)
{
	packet->jiffy = clock_jiffies();
	packet->generation = read_once(gate->generation);
}

/* --- Marks ---------------------------------------------------------------------------------- */

struct mark {
	__u64 *word; /* NULL only for the verifier */
	__u64 bit;
};

/* Returns the mark of a source. The hash is secret, so no sender can choose a collision. */
static __always_inline struct mark mark_of(__u64 source, const struct sl_gate *gate)
{
	__u32 hash = source * (gate->meeting.secret[0] | 1) >> 48, first = 0;
	struct sl_in_use *here = bpf_map_lookup_elem(&in_use, &first);

	_Static_assert(SL_IN_USE_BITS == 1U << (64 - 48), "a mark is 16 bits of a hash");
	return (struct mark){
		.word = here ? &here->word[hash / 64 % (SL_IN_USE_BITS / 64)] : NULL,
		.bit = 1ULL << hash % 64,
	};
}

static __always_inline void mark_clear(__u64 source, const struct sl_gate *gate)
{
	struct mark mark = mark_of(source, gate);

	if (mark.word)
		*mark.word &= ~mark.bit;
}

/* --- Finding a bucket ------------------------------------------------------------------------ */

/* Clears a bucket that this CPU has not used yet, or that was written for another source. */
BPF_GLOBAL int bucket_clear(struct sl_bucket *bucket, __u64 source)
{
	if (bucket)
		*bucket = (struct sl_bucket){.source = source};
	return 0;
}

/*
 * A failed lookup clears the mark in one of 16 jiffies: the entry was evicted. Not always, because
 * another source may share the mark.
 */
#define UNMARK_JIFFIES 16

/* Returns the bucket of the source, or NULL if this CPU uses none. */
static __always_inline struct sl_bucket *bucket_find(struct packet *packet,
						     const struct sl_gate *gate)
{
	const __u64 *addr = (const __u64 *)packet->source.addr;
	bool ipv4 = packet_is_ipv4(packet);
	struct sl_bucket *bucket;
	struct mark mark;
	__u64 source;

	if (!ipv4)
		bucket_key6(addr, packet->bucket_key);
	source = bucket_source(ipv4 ? addr : packet->bucket_key, ipv4);
	mark = mark_of(source, gate);
	if (!mark.word || !(*mark.word & mark.bit))
		return NULL;
	bucket = ipv4 ? map_lookup(buckets4, packet->source.addr)
		      : map_lookup(buckets6, packet->bucket_key);
	if (!bucket) {
		if (!(packet->jiffy % UNMARK_JIFFIES))
			*mark.word &= ~mark.bit;
		return NULL;
	}
	if (bucket->source != source)
		bucket_clear(bucket, source);
	return bucket;
}

/* --- Which sources get a bucket --------------------------------------------------------------- */

/* A CPU's first 1024 sources get a bucket with their first packet, to list a small network. */
#define BUCKETS_FIRST 1024

#define BUCKET_FIRST 1 /* in `kept`: this CPU uses the bucket until it is evicted */

/* One in 32 packets of hot sources inserts a bucket: random gaps make a slow source look hot. */
#define HOT_SAMPLE 32

/*
 * Keep the bucket of a refused source in use for 4096 jiffies (4 s at HZ=1000), hot or not, so that
 * the counters of abusers are complete unless the kernel evicts them.
 */
#define REFUSED_JIFFIES 4096

/* Stores that a packet of the source was refused. */
static __always_inline void bucket_refuse(struct sl_bucket *bucket, const struct packet *packet)
{
	__u32 at = 2 * packet->jiffy;

	if (bucket->kept != BUCKET_FIRST && bucket->kept != at)
		bucket->kept = at;
}

static __always_inline bool bucket_is_kept(const struct sl_bucket *bucket,
					   const struct packet *packet)
{
	return bucket->kept == BUCKET_FIRST ||
	       (__u32)(2 * packet->jiffy - bucket->kept) < 2 * REFUSED_JIFFIES;
}

/*
 * Returns whether a source without a bucket gets one for this packet. is_charged: every limit
 * passed the packet. Refused, observed and unlimited sources get at most one bucket per jiffy: an
 * abuser is listed soon, and a flood of refused sources costs a CPU at most HZ insertions a second.
 */
static __always_inline bool bucket_is_earned(const struct packet *packet, bool is_charged)
{
	struct sl_admission *here = admission_get();

	if (!here)
		return false;
	if (here->first < BUCKETS_FIRST)
		return true;
	if (packet->hot && !(++here->sampled % HOT_SAMPLE))
		return true;
	if (is_charged || here->inserted_at == packet->jiffy)
		return false;
	here->inserted_at = packet->jiffy;
	return true;
}

/* Counts the result of an insertion. Errors: bpf_map_update_elem() of Linux 6.1 to 6.18. */
static __always_inline void bucket_count(struct sl_admission *here, long err)
{
	pace_turn(here, clock_ticks() / SL_TICKS_PER_NS >> SL_SECOND_SHIFT);
	if (!err)
		event_count(here, SL_EVENT_BUCKET_INSERTED);
	else if (err == -ENOMEM)
		event_count(here, SL_EVENT_BUCKET_NO_ROOM);
	else if (err != -EEXIST)
		event_count(here, SL_EVENT_BUCKET_BUSY); /* EBUSY, EDEADLK, ETIMEDOUT */
}

/*
 * Starts using a bucket for the source. Returns it, or NULL if the kernel has no entry for it.
 * Looks the entry up first, because updating an existing entry would evict another entry.
 * BPF_NOEXIST: another CPU may have added it in the meantime.
 */
static __always_inline struct sl_bucket *bucket_insert(const struct packet *packet,
						       const struct sl_gate *gate)
{
	struct sl_admission *here = admission_get();
	bool ipv4 = packet_is_ipv4(packet);
	__u64 key[2] = {*(const __u64 *)packet->source.addr};
	const struct sl_bucket fresh = {0};
	struct sl_bucket *bucket;
	struct mark mark;
	__u64 source;

	if (!here)
		return NULL;
	if (!ipv4)
		bucket_key6((const __u64 *)packet->source.addr, key);
	source = bucket_source(key, ipv4);
	bucket = ipv4 ? map_lookup(buckets4, key) : map_lookup(buckets6, key);
	if (!bucket) {
		long err = ipv4 ? bpf_map_update_elem(&buckets4, key, &fresh, BPF_NOEXIST)
				: bpf_map_update_elem(&buckets6, key, &fresh, BPF_NOEXIST);

		bucket_count(here, err);
		bucket = ipv4 ? map_lookup(buckets4, key) : map_lookup(buckets6, key);
	}
	if (!bucket)
		return NULL;
	if (bucket->source != source)
		bucket_clear(bucket, source);
	if (here->first < BUCKETS_FIRST) {
		here->first++;
		bucket->kept = BUCKET_FIRST;
	}
	mark = mark_of(source, gate);
	if (mark.word)
		*mark.word |= mark.bit;
	return bucket;
}

/* --- Which sources lose their bucket ---------------------------------------------------------- */

static __always_inline bool slices_are_empty(const struct sl_bucket *bucket)
{
	for (int i = 0; i < SL_LIMITS_MAX; i++)
		if (bucket->slice[i].credit > 0)
			return false;
	return true;
}

/* Keep a bucket if it decides at least 4 packets for each packet that charges a state. */
#define WORTH_SERVED 4

/*
 * Stops using a bucket whose source is not hot any more, unless a slice holds credit. The entry
 * stays until it is evicted. Called if a shared state was charged for the packet.
 */
static __always_inline void bucket_review(const struct packet *packet, const struct sl_gate *gate,
					  struct sl_bucket *bucket)
{
	__u32 served = bucket->passed.packets + bucket->dropped.packets;
	bool is_worth = served - bucket->served >= WORTH_SERVED;

	bucket->served = served;
	if (!is_worth && !packet->hot && !bucket_is_kept(bucket, packet) &&
	    slices_are_empty(bucket))
		mark_clear(bucket->source, gate);
}

/* --- The policy version ----------------------------------------------------------------------- */

/*
 * Returns the last jiffy in which the result of a lookup is valid; `until` 0: it never expires. Two
 * jiffies less than fit, because the current jiffy has begun and the kernel may count it late. 0:
 * look up at each packet.
 */
static __always_inline __u64 until_jiffy(__u32 until, const struct sl_gate *gate, __u64 jiffy)
{
	__u64 end = (__u64)until << SL_UNTIL_SHIFT, now = clock_ticks() / SL_TICKS_PER_NS;
	__u64 jiffies = end > now && gate->jiffy_ns ? (end - now) / gate->jiffy_ns : 0;

	if (!until)
		return ~0ULL;
	return jiffies >= 2 ? jiffy + jiffies - 2 : 0;
}

/* Fits the slices to a policy version. If an access or no rule decides, they stay as they are. */
static __always_inline void bucket_own(struct sl_bucket *bucket, __u32 record)
{
	const struct sl_policy *policy = bpf_map_lookup_elem(&policies, &record);
	__u32 number = SL_POLICY(record);

	if (policy && number >= SL_POLICY_FIRST)
		purses_fit(bucket, policy, number);
}

/* `generation` and `policy_version` of a bucket: one word. */
static __always_inline __u64 *bucket_word(struct sl_bucket *bucket)
{
	return (__u64 *)&bucket->generation;
}

_Static_assert(__builtin_offsetof(struct sl_bucket, policy_version) == 4, "bucket_word()");

static __always_inline __u64 bucket_word_of(__u32 generation, __u32 version)
{
	return (__u64)version << 32 | generation;
}

/* Looks up the policy version that decides about the source, and stores it in its bucket. */
BPF_GLOBAL __u32 bucket_refresh(const struct packet *packet, struct sl_bucket *bucket,
				const struct sl_gate *gate)
{
	struct lookup found;
	struct sl_prefix key;
	bool is_split;

	if (!packet || !gate || !bucket)
		return 0;
	key = packet->source;
	is_split = source_is_split(&key, gate);
	found = rules_lookup(packet, gate);
	if (!is_split)
		bucket_own(bucket, found.record);
	bucket->until = until_jiffy(found.until, gate, packet->jiffy);
	write_once(*bucket_word(bucket),
		   bucket_word_of(packet->generation, is_split ? SL_BUCKET_SPLIT : found.record));
	return found.record;
}

/* Returns the version: from the bucket if it was stored under these rules and has not expired. */
static __always_inline __u32 bucket_recall(const struct packet *packet, struct sl_bucket *bucket,
					   const struct sl_gate *gate)
{
	__u64 word = read_once(*bucket_word(bucket));

	if ((__u32)word == packet->generation && bucket->until >= packet->jiffy &&
	    word >> 32 != SL_BUCKET_SPLIT)
		return word >> 32;
	return bucket_refresh(packet, bucket, gate);
}

#endif
