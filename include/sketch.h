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
 * random (digest_key()), so for any one packet the chance is 2^-24 at most, whatever was sent
 * before: at 1, 10 and 50 million packets a second, once in 17 s, 0.6 times and 3 times a second at
 * most. The gain is one ledger. How long a slot remembers depends on the rate: with n slots of a
 * CPU and r newcomers a second there, a key that was seen once is remembered for 2n/r on average,
 * which is 131 ms and 13 ms at 1 and 10 million for its 65,536 slots.
 *
 * Each CPU has its own slots. In a flood nearly every packet writes to one, and cache lines that
 * all CPUs write to move between them: on some machines a packet costs 1.6 times as much then.
 * Slots are updated plainly; on PREEMPT_RT a race loses a count, or a slot.
 *
 * Pure functions.
 */
#ifndef SLUICE_SKETCH_H
#define SLUICE_SKETCH_H

#include "digest.h"

#define SKETCH_COUNT 0xffU /* the rest of a slot is the fingerprint */

/*
 * Counts end here, above every bar that can be met, so that a slot is free soon after its key is
 * gone.
 */
#define SKETCH_MOST 16

/* A count above this is lowered with probability 2^-this. */
#define SKETCH_COIN 8

/* The line of a key in map `newcomers`, in the part of a CPU. */
static inline __u32 sketch_line(const struct sl_meeting *meeting, struct digest digest, __u32 cpu)
{
	return cpu * (meeting->sketch_mask + 1) + (digest.place & meeting->sketch_mask);
}

/* Its slot there: by bits that tell neither the line nor the fingerprint. */
static inline __u32 sketch_slot(struct digest digest)
{
	return digest.place >> 28;
}

_Static_assert(SL_SKETCH_SLOTS == 1 << (32 - 28), "a slot is four bits of a place");

static inline __u32 sketch_print(struct digest digest)
{
	return digest.mark & ~SKETCH_COUNT;
}

/* All ones if every bit of the coin is 0, else 0. No branch, because no CPU could predict it. */
static inline __u32 coin_wins(__u32 coin)
{
	__u64 below = (__u64)coin - 1;

	__asm__ volatile("" : "+r"(below)); /* else clang makes it a branch */
	return below >> 32;
}

/*
 * Counts a packet of a key. Returns how many the sketch remembers, this one included. coin: differs
 * from packet to packet; the bits of the digest in whose place the count is stored are added to it.
 */
static inline __u32 sketch_see(__u32 *slot, struct digest digest, __u32 coin)
{
	__u32 held = *slot, count = held & SKETCH_COUNT, next;

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
static inline void sketch_forget(__u32 *slot, struct digest digest)
{
	if ((*slot & ~SKETCH_COUNT) == sketch_print(digest))
		*slot = 0;
}

#endif
