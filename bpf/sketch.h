/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How often a newcomer has shown itself: HeavyKeeper (Gong et al., "HeavyKeeper: An Accurate Algorithm for Finding Top-k
 * Elephant Flows", USENIX ATC 2018) with one row. A slot holds the fingerprint of one source and its count; others
 * that fall into it lower the count by one with probability 2^-count, and take the slot over where it is at one.
 *
 * Its error: a forged source is taken for one that has shown itself when its fingerprint of 24 bits is that of the
 * slot, whose count has reached the bar. The hash is strongly universal and its secret random (see digest_half), so
 * for any one packet the chance is 2^-24 at most, whatever was sent before: at 1, 10 and 50 million packets a second,
 * once in 17 s, 0.6 times and 3 times a second at most. What it then gets is one ledger. How long a slot
 * remembers depends on the rate: with n slots on a CPU, which meets r newcomers a second, a source that was seen once
 * is remembered for 2n/r on average: 262 ms, 26 ms and 5 ms at these rates for the default of 131,072.
 */
#ifndef SLUICE_SKETCH_H
#define SLUICE_SKETCH_H

#include "digest.h"

#define SKETCH_COUNT 0xffU /* the rest of a slot is the fingerprint */
#define SKETCH_MOST                                                                                \
	16 /* no bar that can be met is so high; a count that ends here makes room sooner when its source is gone */

/* A count beyond which it is lowered with probability 2^-this. */
#define SKETCH_COIN 8

/*
 * Each CPU has slots of its own for each pool, so that known sources, which wait for a bucket, hold no newcomer's. On
 * PREEMPT_RT another packet may come in between, and one of the two is not counted.
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

/* All ones if the coin shows nothing but zeros, else 0. Not a branch, as no CPU could predict it. */
static __always_inline __u32 coin_wins(__u32 coin)
{
	__u64 below = (__u64)coin - 1;

	__asm__ volatile("" : "+r"(below)); /* clang would make a branch of it */
	return below >> 32;
}

/*
 * One packet more of a source. Returns how many the sketch remembers, this one included. The digest has no bits left
 * for the coin but those that a count is kept in.
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

/* Counts a source from 0 again. */
static __always_inline void sketch_forget(const struct sl_meeting *meeting, enum sl_pool pool,
					  struct digest digest)
{
	__u32 *slot = sketch_slot(meeting, pool, digest);

	if (slot && (*slot & ~SKETCH_COUNT) == sketch_print(digest))
		*slot = 0;
}

#endif
