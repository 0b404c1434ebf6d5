/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buckets: what this CPU remembers of a source: the record that decides about it, its purses and
 * its counters. A cache, of sets of four: a bucket that is handed to another source loses its
 * counters and the credit of its purses. One that was used within the last second is handed on
 * rarely. Only sources that are hot, or refused, get one: the others are charged at their ledgers,
 * which takes fewer cache lines.
 *
 *   packet_begin    the moment of the packet, and the rules that it is judged under
 *   bucket_find     the bucket of the source
 *   source_is_hot   whether a source without one gets one
 *   bucket_earn     makes it
 *   bucket_recall   the record that decides about a source that has one
 *
 * Used by: sluice.bpf.c. Uses: newcomer.h, lookup.h, include/purses.h, include/ways.h.
 */
#ifndef SLUICE_BUCKET_H
#define SLUICE_BUCKET_H

#include "purses.h"
#include "seat.h"
#include "newcomer.h"
#include "lookup.h"

/* Sets the moment of the packet, and the generation of the rules that it is judged under. */
static __always_inline void packet_begin(struct packet *packet, const struct sl_gate *gate)
{
	packet->jiffy = clock_jiffies();
	packet->generation = read_once(gate->generation);
}

static __always_inline struct sl_bucket *bucket_at(__u32 index)
{
	return bpf_map_lookup_elem(&buckets, &index);
}

static __always_inline struct sl_hot *hot_at(__u32 index)
{
	return bpf_map_lookup_elem(&hot, &index);
}

/* Where the source may have its bucket on this CPU. */
static __always_inline struct seat seat_here(const struct packet *packet,
					     const struct sl_meeting *meeting)
{
	struct seat seat =
		seat_of(meeting, (const __u64 *)packet->source.addr, packet_is_ipv4(packet));

	seat.set += bpf_get_smp_processor_id() * (meeting->hot_mask + 1);
	seat.used = window_of(meeting, packet->jiffy);
	return seat;
}

/* The bucket of the source. NULL: it has none. */
static __always_inline struct sl_bucket *bucket_find(const struct packet *packet,
						     const struct sl_gate *gate)
{
	struct seat seat = seat_here(packet, &gate->meeting);
	struct sl_hot *set = hot_at(seat.set);

	if (!set)
		return NULL;
/* branches, which a CPU predicts for a source that sends much: nothing waits for the tags then */
#pragma unroll
	for (int way = 0; way < SL_SEATS; way++) {
		struct sl_bucket *bucket;

		if (set->tag[way] != seat.tag)
			continue;
		bucket = bucket_at(seat.set * SL_SEATS + way);
		if (!bucket || bucket->source[0] != seat.source[0] ||
		    bucket->source[1] != seat.source[1])
			continue;
		if (set->used[way] != seat.used)
			set->used[way] = seat.used;
		return bucket;
	}
	return NULL;
}

/* A bucket that was used in so many windows, one second, is not given up, or rarely. */
#define USED_WINDOWS 16

/* Of so many hot sources that find all buckets of their set in use, one gets one. */
#define SPARED 16

/*
 * Whether a count is one in SPARED, of numbers in a row and of any that ASKING lets through: by the
 * golden ratio, which spreads the multiples of every step evenly.
 */
static __always_inline bool count_is_spared(__u32 count)
{
	return count * 0x9e3779b1U < (1ULL << 32) / SPARED;
}

/*
 * The way of a set that a source gets: the first free one, else the one that was used least
 * recently. -1: all are in use. A source that sends much comes often, and so gets one soon. Where
 * one packet interrupts another, and both make a bucket, packets find the one that was first.
 */
static __always_inline int seat_choose(const struct sl_hot *set, const struct seat *seat,
				       struct sl_admission *here)
{
	__u16 oldest = 0;
	int chosen = 0;

	for (int way = 0; way < SL_SEATS; way++) {
		__u16 age = set->tag[way] ? seat->used - set->used[way] : 0xffff;

		if (age > oldest) {
			oldest = age;
			chosen = way;
		}
	}
	return oldest >= USED_WINDOWS || count_is_spared(++here->asked) ? chosen : -1;
}

/*
 * Of so many packets that find their source hot, one asks for a bucket. A source that sends at
 * random times seems hot now and then, and a bucket made in vain costs as much as five packets.
 */
#define ASKING 32

/*
 * So many buckets of a CPU are given to its first sources, hot or not: in the life of the gate,
 * also where a resize makes other buckets.
 */
#define GIVEN_MOST 1024

#define BUCKET_GIVEN 1 /* in `kept` of such a bucket */

/*
 * A source keeps its bucket for so long after a refusal, hot or not, 4 s at 1000 Hz: what is
 * counted of abusers is complete while they find free buckets.
 */
#define REFUSED_JIFFIES 4096

/* Notes that a packet of the source is refused. */
static __always_inline void bucket_refuse(struct sl_bucket *bucket, const struct packet *packet)
{
	__u32 at = 2 * packet->jiffy;

	if (bucket->kept != BUCKET_GIVEN && bucket->kept != at)
		bucket->kept = at;
}

static __always_inline bool bucket_is_kept(const struct sl_bucket *bucket,
					   const struct packet *packet)
{
	return bucket->kept == BUCKET_GIVEN ||
	       (__u32)(2 * packet->jiffy - bucket->kept) < 2 * REFUSED_JIFFIES;
}

/*
 * Whether the source, which has no bucket, is to get one: if it is hot. Its ledger tells; a source
 * that is refused, or that no limit holds, may always be. A lukewarm one would only take cache
 * lines. The first sources of a CPU get one at once, whatever decides about them, and need not be
 * hot to keep it. They lose it as all do, to a source that takes it by seat_choose(). So what a
 * small network counts is complete while its sources find free buckets.
 */
static __always_inline bool source_is_hot(const struct packet *packet, bool is_charged)
{
	struct sl_admission *here = admission_get();

	if (!here)
		return false;
	if (here->given < GIVEN_MOST)
		return true;
	return (packet->hot || !is_charged) && !(++here->asked % ASKING);
}

/*
 * Makes a bucket for the source, which has none. Returns its index, or -1. It begins with the rules
 * of no generation, so that the next packet looks up its own record. A CPU uses only its own part
 * of the maps; on PREEMPT_RT a packet that interrupts may find half of a bucket, which is void
 * then.
 */
BPF_GLOBAL int bucket_earn(const struct packet *packet, const struct sl_gate *gate)
{
	struct sl_admission *here;
	struct sl_bucket *bucket;
	struct sl_hot *set;
	struct seat seat;
	int way;

	if (!packet || !gate)
		return -1;
	seat = seat_here(packet, &gate->meeting);
	set = hot_at(seat.set);
	if (!set)
		return -1;
	here = admission_get();
	way = here ? seat_choose(set, &seat, here) : -1;
	if (way < 0)
		return -1;
	way %= SL_SEATS;
	bucket = bucket_at(seat.set * SL_SEATS + way);
	if (!bucket)
		return -1;
	write_once(set->tag[way], 0);
	*bucket = (struct sl_bucket){
		.source = {seat.source[0], seat.source[1]},
		.kept = here->given < GIVEN_MOST ? BUCKET_GIVEN : 0,
	};
	here->given += bucket->kept;
	set->used[way] = seat.used;
	write_once(set->tag[way], seat.tag);
	return seat.set * SL_SEATS + way;
}

static __always_inline bool purses_are_empty(const struct sl_bucket *bucket)
{
	for (int i = 0; i < SL_LIMITS_MAX; i++)
		if (bucket->purse[i].credit > 0)
			return false;
	return true;
}

/* Gives up the bucket of the source, unless its purses hold credit that would be lost. */
BPF_GLOBAL int bucket_leave(const struct packet *packet, const struct sl_gate *gate)
{
	struct sl_hot *set;
	struct seat seat;

	if (!packet || !gate)
		return 0;
	seat = seat_here(packet, &gate->meeting);
	set = hot_at(seat.set);
	for (int way = 0; set && way < SL_SEATS; way++) {
		const struct sl_bucket *bucket;

		if (set->tag[way] != seat.tag)
			continue;
		bucket = bucket_at(seat.set * SL_SEATS + way);
		if (bucket && purses_are_empty(bucket))
			set->tag[way] = 0;
	}
	return 0;
}

/* A bucket is worth its cache lines if it serves so many packets for one that asks a ledger. */
#define WORTH_SERVED 4

/* Gives up the bucket of a source that is not hot any more. The packet has asked a ledger. */
static __always_inline void bucket_review(const struct packet *packet, const struct sl_gate *gate,
					  struct sl_bucket *bucket)
{
	__u32 served = bucket->passed.packets + bucket->dropped.packets;
	bool is_worth = served - bucket->served >= WORTH_SERVED;

	bucket->served = served;
	if (!is_worth && !packet->hot && !bucket_is_kept(bucket, packet))
		bucket_leave(packet, gate);
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
 * Looks up the record that decides about the source, and brings its bucket up to this generation.
 */
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
	bucket->record = is_split ? SL_BUCKET_SPLIT : found.record;
	bucket->until = until_jiffy(found.until, gate, packet->jiffy);
	bucket->generation = packet->generation;
	return found.record;
}

/* The record that decides about the source: from its bucket, if it was found under these rules. */
static __always_inline __u32 bucket_recall(const struct packet *packet, struct sl_bucket *bucket,
					   const struct sl_gate *gate)
{
	if (bucket->generation == packet->generation && bucket->until >= packet->jiffy &&
	    bucket->record != SL_BUCKET_SPLIT)
		return bucket->record;
	return bucket_refresh(packet, bucket, gate);
}

#endif
