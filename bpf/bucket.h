/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buckets: what one CPU stores for a source, in two LRU_PERCPU_HASH maps.
 *
 * The kernel evicts entries of these maps. An insertion costs as much as five packets, so a CPU
 * inserts few buckets. With a bucket, most packets of a hot source need no charge of the shared
 * state. For a slow source, a bucket would only cost cache lines. So a CPU uses buckets only for
 * its first sources, for hot sources, and for sources over a limit. It marks these sources in map
 * `in_use`. Packets of a source without a mark are charged directly to the shared state. A mark is
 * one of 65,536 bits, selected by a keyed hash. If two sources share a mark, packets of the source
 * without a bucket need a lookup that finds nothing. They then clear the shared mark, which the
 * other source soon sets again.
 *
 * Race: the kernel reuses an evicted entry at once, even while a program on another CPU uses it.
 * That program may then write to the bucket of another source. So bucket_find() compares `seal`,
 * and `generation` and `policy_version` are read and written as one word: a packet never uses the
 * policy version of another source. Credit that is written to an entry at that moment is lost.
 */
#ifndef SLUICE_BUCKET_H
#define SLUICE_BUCKET_H

#include "flood.h"
#include "rules.h"

/* Stores the current jiffy and the generation of the rules in the packet. */
static __always_inline void packet_begin(struct packet *packet, const struct sl_gate *gate)
{
	packet->jiffy = clock_jiffies();
	packet->generation = read_once(gate->generation);
}

/* --- Marks ---------------------------------------------------------------------------------- */

struct mark {
	__u64 *word; /* word of the mark; never NULL, but the verifier requires a test */
	__u64 bit;
};

/*
 * Returns the mark for the key of a bucket. The hash has a secret, so senders cannot choose sources
 * with equal marks.
 */
static __always_inline struct mark mark_of(const __u64 key[2], struct sl_in_use *here)
{
	__u32 hash = digest_sum(hash_secret, key) >> 48;

	_Static_assert(SL_IN_USE_BITS == 1U << (64 - 48), "a mark is 16 bits of a hash");
	return (struct mark){
		.word = here ? &here->word[hash / 64 % (SL_IN_USE_BITS / 64)] : NULL,
		.bit = 1ULL << hash % 64,
	};
}

/* --- Finding a bucket ------------------------------------------------------------------------ */

/* Clears a bucket that is new, or that has the data of another source. jiffy: the current jiffy. */
BPF_GLOBAL int bucket_clear(struct sl_bucket *bucket, __u64 seal0, __u64 seal1, __u32 jiffy)
{
	if (bucket)
		*bucket = (struct sl_bucket){.seal = {seal0, seal1}, .second_at = jiffy};
	return 0;
}

/* Returns the number of packets that were counted in a bucket. The number wraps. */
static __always_inline __u32 bucket_packets(const struct sl_bucket *bucket)
{
	return bucket->passed.packets + bucket->dropped.packets;
}

/* Begins a second of the source (bpf/rate.h) with a packet that is not counted yet. */
static __always_inline void second_begin(struct sl_bucket *bucket, const struct packet *packet)
{
	bucket->second_at = packet->jiffy;
	bucket->second_begin = bucket_packets(bucket);
}

/* Returns this CPU's bucket for a key, or NULL. */
static __always_inline struct sl_bucket *bucket_get(const __u64 key[2], bool ipv4)
{
	clock_pass_lookup();
	return ipv4 ? map_lookup(buckets4, key) : map_lookup(buckets6, key);
}

/*
 * Returns the bucket of the source. Returns NULL if this CPU uses no bucket for the source. Stores
 * the bucket's key in packet->bucket_key, which overlaps `destination`. So if a limit needs the
 * destination of an inspected packet, the packet must be inspected again.
 */
static __always_inline struct sl_bucket *bucket_find(struct packet *packet, struct sl_in_use *here)
{
	bool ipv4 = packet_is_ipv4(packet);
	struct sl_bucket *bucket;
	struct mark mark;

	bucket_key((const __u64 *)packet->source.addr, ipv4, packet->bucket_key);
	packet->inspected = 0;
	mark = mark_of(packet->bucket_key, here);
	if (!mark.word || !(*mark.word & mark.bit))
		return NULL;
	bucket = bucket_get(packet->bucket_key, ipv4);
	if (bucket && !bucket_is_of(bucket, packet->bucket_key))
		bucket_clear(bucket, ~packet->bucket_key[0], ~packet->bucket_key[1], packet->jiffy);
	return bucket;
}

/* --- Which sources get a bucket --------------------------------------------------------------- */

/*
 * Each CPU gives a bucket to each of its first 1024 sources. So `sluice sources` lists all sources
 * of a small network.
 */
#define BUCKETS_FIRST 1024

#define BUCKET_FIRST 1 /* value of `kept`: the CPU uses the bucket until the kernel evicts it */

/*
 * One in 32 packets of a hot source inserts a bucket. So a slow source, which is seldom hot, seldom
 * gets a bucket.
 */
#define HOT_SAMPLE 32

/*
 * Use the bucket of a source for 4096 jiffies after a refusal (4 s at HZ=1000), even if the source
 * is not hot. So the counters of abusers are complete, unless the kernel evicts the bucket.
 */
#define REFUSED_JIFFIES 4096

/* Stores in a bucket that a packet of its source was refused in the current jiffy. */
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

enum bucket_claim {
	BUCKET_NONE,
	/* set the mark of the bucket again; a packet of another source has cleared it */
	BUCKET_RESTORE,
	BUCKET_INSERT,
};

/* Returns whether packet number `count` is sampled. One in four packets is, evenly spread. */
static __always_inline bool count_is_drawn(__u32 count)
{
	return count * 0x9e3779b1U < 1U << 30;
}

/*
 * Returns whether the source of this packet gets a bucket. passes: 1 if all limits passed the
 * packet. Sources that are not hot get at most one bucket per ration and jiffy. So abusers are
 * listed soon, but a flood causes at most 2 HZ insertions a second on each CPU.
 */
static __always_inline enum bucket_claim bucket_claim(const struct packet *packet,
						      const struct verdict *verdict, bool passes,
						      enum sl_ration ration)
{
	struct sl_admission *here = admission_get();
	const struct sl_in_use *used = in_use_get();

	if (!here || !used || ration >= SL_RATIONS)
		return BUCKET_NONE;
	if (used->first < BUCKETS_FIRST)
		return BUCKET_INSERT;
	if (!verdict->is_charged && passes)
		return BUCKET_NONE;
	here->sampled++;
	if (verdict->is_charged && !(here->sampled % HOT_SAMPLE))
		return verdict->is_hot ? BUCKET_INSERT : BUCKET_RESTORE;
	if (passes || here->inserted_at[ration] == packet->jiffy || !count_is_drawn(here->sampled))
		return BUCKET_NONE;
	here->inserted_at[ration] = packet->jiffy;
	return BUCKET_INSERT;
}

/* Returns whether the packet's source gets a bucket. A new source without a state gets none. */
static __always_inline enum bucket_claim verdict_claim(const struct packet *packet,
						       const struct verdict *verdict)
{
	enum sl_reason reason = verdict->reason;
	bool is_limited = verdict->refused || (reason >= SL_FIRST_DROP && reason != SL_DROP_DENIED);

	if ((reason == SL_PASS_NEWCOMER && !verdict->is_charged) || reason == SL_DROP_OVER_BUDGET)
		return BUCKET_NONE;
	return bucket_claim(packet, verdict,
			    (reason == SL_PASS_WITHIN || reason == SL_PASS_NEWCOMER) &&
				    !verdict->refused,
			    is_limited ? SL_RATION_LIMITED : SL_RATION_OTHER);
}

/* Counts the result of an insertion. err: result of bpf_map_update_elem() on Linux 6.1 to 6.18. */
static __always_inline void bucket_count(struct sl_admission *here, long err)
{
	flood_turn(here, clock_second());
	if (!err)
		event_count(here, SL_EVENT_BUCKET_INSERTED);
	else if (err == -ENOMEM)
		event_count(here, SL_EVENT_BUCKET_NO_ROOM);
	else if (err != -EEXIST)
		event_count(here, SL_EVENT_BUCKET_BUSY); /* -EBUSY, -EDEADLK or -ETIMEDOUT */
}

/*
 * Makes this CPU use a bucket for the source, and returns the bucket. Returns NULL if the kernel
 * has no free entry, or if an existing bucket need not be marked again. Looks up the key first,
 * because an update of an existing key would evict another entry. Uses BPF_NOEXIST, because another
 * CPU may insert the key meanwhile.
 */
static __always_inline struct sl_bucket *bucket_start(const struct packet *packet,
						      enum bucket_claim claim)
{
	struct sl_admission *here = admission_get();
	struct sl_in_use *used = in_use_get();
	bool ipv4 = packet_is_ipv4(packet);
	struct sl_bucket *bucket;
	struct mark mark;
	__u64 key[2];

	if (!here || !used)
		return NULL;
	bucket_key((const __u64 *)packet->source.addr, ipv4, key);
	bucket = bucket_get(key, ipv4);
	if (!bucket && claim == BUCKET_INSERT) {
		long err = ipv4 ? bpf_map_update_elem(&buckets4, key, used->zero, BPF_NOEXIST)
				: bpf_map_update_elem(&buckets6, key, used->zero, BPF_NOEXIST);

		bucket_count(here, err);
		bucket = bucket_get(key, ipv4);
	}
	if (!bucket)
		return NULL;
	if (!bucket_is_of(bucket, key))
		bucket_clear(bucket, ~key[0], ~key[1], packet->jiffy);
	if (claim == BUCKET_RESTORE && !bucket_is_kept(bucket, packet))
		return NULL;
	if (used->first < BUCKETS_FIRST) {
		used->first++;
		bucket->kept = BUCKET_FIRST;
	}
	mark = mark_of(key, in_use_get());
	if (mark.word)
		*mark.word |= mark.bit;
	second_begin(bucket, packet);
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

/* Clears the mark of the packet's source. if_evicted: only if the bucket was evicted. */
BPF_GLOBAL int bucket_unmark(const struct packet *packet, __u32 if_evicted)
{
	struct mark mark;
	__u64 key[2];
	bool ipv4;

	if (!packet)
		return 0;
	ipv4 = packet_is_ipv4(packet);
	bucket_key((const __u64 *)packet->source.addr, ipv4, key);
	if (if_evicted && bucket_get(key, ipv4))
		return 0;
	mark = mark_of(key, in_use_get());
	if (mark.word)
		*mark.word &= ~mark.bit;
	return 0;
}

/*
 * If a bucket was evicted, packets of its source clear its mark in one of 4096 jiffies only,
 * because another source may have the same mark. Only packets that were charged to a state clear a
 * mark, so spoofed sources clear no mark.
 */
#define UNMARK_JIFFIES 4096

/* Keep a bucket only if it decides about at least 4 packets for each charge of a shared state. */
#define WORTH_SERVED 4

/*
 * Call this function after a charge of a shared state. If the source is no longer hot, its bucket
 * decided about fewer than WORTH_SERVED packets since the last charge, need not be kept, and has no
 * credit, this CPU stops using the bucket. bucket: NULL if this CPU uses no bucket for the source.
 */
static __always_inline void bucket_review(const struct packet *packet,
					  const struct verdict *verdict, struct sl_bucket *bucket)
{
	__u32 served;
	bool is_worth;

	if (!bucket) {
		if (!(packet->jiffy % UNMARK_JIFFIES))
			bucket_unmark(packet, true);
		return;
	}
	served = bucket_packets(bucket);
	is_worth = served - bucket->served >= WORTH_SERVED;
	bucket->served = served;
	if (!is_worth && !verdict->is_hot && !bucket_is_kept(bucket, packet) &&
	    slices_are_empty(bucket))
		bucket_unmark(packet, false);
}

/* --- The policy version ----------------------------------------------------------------------- */

/*
 * Returns the last jiffy in which the result of a lookup is valid. Returns 0 if each packet needs a
 * lookup. until: expiry of the result; 0: never. Subtracts two jiffies, because the current jiffy
 * has already begun, and the kernel may count a jiffy late.
 */
static __always_inline __u64 until_jiffy(__u32 until, const struct sl_gate *gate, __u64 jiffy)
{
	__u64 end = (__u64)until << SL_UNTIL_SHIFT, now = clock_ticks() / SL_TICKS_PER_NS;
	__u64 jiffies = end > now && gate->jiffy_ns ? (end - now) / gate->jiffy_ns : 0;

	if (!until)
		return ~0ULL;
	return jiffies >= 2 ? jiffy + jiffies - 2 : 0;
}

/*
 * Returns a pointer to `generation` and `policy_version` of a bucket, which are read and written as
 * one 64-bit word.
 */
static __always_inline __u64 *bucket_word(struct sl_bucket *bucket)
{
	return (__u64 *)&bucket->generation;
}

_Static_assert(__builtin_offsetof(struct sl_bucket, policy_version) == 4, "bucket_word()");

/* Looks up the policy version that decides about the source. Stores it in the bucket. */
BPF_GLOBAL __u32 bucket_refresh(const struct packet *packet, struct sl_bucket *bucket,
				const struct sl_gate *gate)
{
	const struct sl_policy *policy;
	struct lookup found;
	struct sl_prefix key;
	bool is_split;

	if (!packet || !gate || !bucket)
		return 0;
	key = packet->source;
	is_split = source_is_split(&key, gate);
	found = rules_lookup(packet, gate);
	policy = is_split ? NULL : bpf_map_lookup_elem(&policies, &found.version);
	/* If a rule allows or denies the source, or no rule applies, keep the slices. */
	if (policy && SL_POLICY(found.version) >= SL_POLICY_FIRST)
		slices_fit(bucket, policy, SL_POLICY(found.version));
	bucket->until = until_jiffy(found.until, gate, packet->jiffy);
	write_once(*bucket_word(bucket),
		   (__u64)(is_split ? SL_BUCKET_SPLIT : found.version) << 32 | packet->generation);
	return found.version;
}

/*
 * Returns the policy version that decides about the source, from the bucket or from a lookup of the
 * rules.
 */
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
