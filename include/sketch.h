/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sketch: counts how often a new key was seen, in memory of fixed size. It is a HeavyKeeper
 * (Gong et al., "HeavyKeeper: An Accurate Algorithm for Finding Top-k Elephant Flows", USENIX ATC
 * 2018) with one row. A slot holds the fingerprint of one key and its count. A packet of another
 * key in the slot lowers the count by one with probability 2^-count, and replaces the key at a
 * count of one.
 *
 * Errors. A spoofed source passes for a source that was seen if its 24-bit fingerprint equals the
 * fingerprint of a slot whose count has reached FLOOD_MIN_HITS. The hash is strongly universal and
 * its secret random (digest_key()), so for any one packet the chance is at most 2^-24, whatever was
 * sent before: at 1, 10 and 50 million packets/s, at most once in 17 s, 0.6 times and 3 times a
 * second. The sender gains one state. How long a slot remembers depends on the rate: with n slots
 * on a CPU and r new keys a second, a key that was seen once is remembered for 2n/r on average: 131
 * ms and 13 ms at 1 and 10 million for 65,536 slots.
 *
 * Each CPU has its own slots. In a flood nearly every packet writes to a slot, and cache lines that
 * all CPUs write to move between them: on some machines a packet costs 1.6 times as much then.
 * Slots are updated without atomics; on PREEMPT_RT a race loses a count, or a slot.
 */
#ifndef SLUICE_SKETCH_H
#define SLUICE_SKETCH_H

#include "digest.h"

#define SKETCH_COUNT 0xffU /* the rest of a slot is the fingerprint */

/*
 * Counts end at 16: above FLOOD_MIN_HITS, and low enough to free a slot soon after its key is gone.
 */
#define SKETCH_MOST 16

/* A count above 8 is lowered with probability 2^-8. */
#define SKETCH_COIN 8

/* Returns the line of a key in a CPU's part of map `newcomers`. */
static inline __u32 sketch_line(const struct sl_params *params, struct digest digest, __u32 cpu)
{
	return cpu * (params->sketch_mask + 1) + (digest.place & params->sketch_mask);
}

/* Returns the key's slot in that line, by bits that neither the line nor the fingerprint uses. */
static inline __u32 sketch_slot(struct digest digest)
{
	return digest.place >> 28;
}

_Static_assert(SL_SKETCH_SLOTS == 1 << (32 - 28), "a slot is four bits of a place");

static inline __u32 sketch_print(struct digest digest)
{
	return digest.mark & ~SKETCH_COUNT;
}

/* Returns all ones if the coin is 0, otherwise 0. No branch, because no CPU could predict it. */
static inline __u32 coin_wins(__u32 coin)
{
	__u64 below = (__u64)coin - 1;

	__asm__ volatile("" : "+r"(below)); /* otherwise clang makes it a branch */
	return below >> 32;
}

/*
 * Counts a packet of a key. Returns the key's count, including this packet. coin: differs by
 * packet; it is mixed with the 8 bits of the digest that the fingerprint leaves out.
 */
static inline __u32 sketch_hit(__u32 *slot, struct digest digest, __u32 coin)
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

/* Returns how often a key was seen, by its slot; 1 if the slot belongs to another key. */
static inline __u32 sketch_hits(__u32 slot, struct digest digest)
{
	return (slot & ~SKETCH_COUNT) == sketch_print(digest) && slot & SKETCH_COUNT
		       ? slot & SKETCH_COUNT
		       : 1;
}

/* Clears the slot of a key. */
static inline void sketch_clear(__u32 *slot, struct digest digest)
{
	if ((*slot & ~SKETCH_COUNT) == sketch_print(digest))
		*slot = 0;
}

#endif
