/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sketch: counts how often a newcomer has shown itself, in memory of fixed size. It is a
 * HeavyKeeper (Gong et al., "HeavyKeeper: An Accurate Algorithm for Finding Top-k Elephant Flows",
 * USENIX ATC 2018) with one row. A slot holds the fingerprint of one key and its count. Another key
 * that falls into the slot lowers the count by one with probability 2^-count, and takes the slot
 * over at a count of one.
 *
 *   sketch_see      counts a packet, returns the count
 *   sketch_forget   sets a count to 0
 *
 * Errors. A forged source passes for one that has shown itself if its fingerprint of 24 bits equals
 * that of a slot whose count has reached the bar. The hash is strongly universal and its secret
 * random (digest_half), so for any one packet the chance is 2^-24 at most, whatever was sent
 * before: at 1, 10 and 50 million packets a second, once in 17 s, 0.6 times and 3 times a second at
 * most. The gain is one ledger. How long a slot remembers depends on the rate: with n slots on a
 * CPU that meets r newcomers a second, a key that was seen once is remembered for 2n/r on average,
 * which is 262 ms, 26 ms and 5 ms at these rates for the default of 131,072 slots.
 *
 * Used by: newcomer.h. Uses: include/digest.h, maps.h.
 */
#ifndef SLUICE_SKETCH_H
#define SLUICE_SKETCH_H

#include "digest.h"
#include "maps.h"

#define SKETCH_COUNT 0xffU /* the rest of a slot is the fingerprint */

/*
 * Counts end here, above every bar that can be met, so that a slot is free soon after its key is
 * gone.
 */
#define SKETCH_MOST 16

/* A count above this is lowered with probability 2^-this. */
#define SKETCH_COIN 8

/*
 * Each CPU has slots of its own for each pool, so that known sources that wait for a bucket take no
 * slot of a newcomer. On PREEMPT_RT another packet may interrupt an update, and one of the two is
 * not counted.
 */
static __always_inline __u32 *sketch_slot(const struct sl_meeting *meeting, enum sl_pool pool,
					  struct digest digest)
{
	__u32 index = (bpf_get_smp_processor_id() * SL_POOLS + pool) * (meeting->sketch_mask + 1) +
		      (digest.place & meeting->sketch_mask);
	struct sl_sketch_line *line = bpf_map_lookup_elem(&sketch, &index);

	return line ? &line->slot[digest.place >> 28] : NULL;
}

static __always_inline __u32 sketch_print(struct digest digest)
{
	return digest.mark & ~SKETCH_COUNT;
}

/* All ones if every bit of the coin is 0, else 0. No branch, because no CPU could predict it. */
static __always_inline __u32 coin_wins(__u32 coin)
{
	__u64 below = (__u64)coin - 1;

	__asm__ volatile("" : "+r"(below)); /* else clang makes it a branch */
	return below >> 32;
}

/*
 * Counts a packet of a key. Returns how many the sketch remembers, this one included. The only bits
 * of the digest that are left for the coin are those in whose place the count is stored; `coin`
 * adds to them.
 */
static __always_inline __u32 sketch_see(const struct sl_meeting *meeting, enum sl_pool pool,
					struct digest digest, __u32 coin)
{
	__u32 *slot = sketch_slot(meeting, pool, digest), held, count, next;

	if (!slot)
		return 1;
	held = *slot;
	count = held & SKETCH_COUNT;
	if (count && (held & ~SKETCH_COUNT) == sketch_print(digest)) {
		*slot = held + (count < SKETCH_MOST);
		return count + (count < SKETCH_MOST);
	}
	next = count > 1 ? held - 1 : sketch_print(digest) | 1;
	coin = (coin ^ digest.mark) & ((1U << (count < SKETCH_COIN ? count : SKETCH_COIN)) - 1);
	*slot = held ^ ((held ^ next) & coin_wins(coin));
	return 1;
}

/* Sets the count of a key to 0. */
static __always_inline void sketch_forget(const struct sl_meeting *meeting, enum sl_pool pool,
					  struct digest digest)
{
	__u32 *slot = sketch_slot(meeting, pool, digest);

	if (slot && (*slot & ~SKETCH_COUNT) == sketch_print(digest))
		*slot = 0;
}

#endif
