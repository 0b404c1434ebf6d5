/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who was charged to a ledger in the last minute or two: a Bloom filter in blocks (Putze, Sanders, Singler, "Cache-, Hash-
 * and Space-Efficient Bloom Filters", 2007). It spares a flood the lookup of ledgers, which are out of the CPU's
 * caches, and lets a source be judged by its ledger in a flood when its bucket is forgotten. When it is wrong, a
 * ledger is looked for in vain: that costs time, and no verdict. One stranger in 250 is taken for known when each of the
 * two epochs had an eighth as many sources as a map of ledgers has room for, and one in six when each had as many.
 */
#ifndef SLUICE_KNOWN_H
#define SLUICE_KNOWN_H

#include "digest.h"

/* An epoch is so many windows: about a minute. Its number is kept in 16 bits, and comes back after a month. */
#define EPOCH_SHIFT 10

#define KNOWN_EPOCH_SHIFT (2 * SL_KNOWN_BITS)
#define KNOWN_MASK	  ((1ULL << SL_KNOWN_BITS) - 1)

static __always_inline __u16 epoch_of(const struct sl_meeting *meeting, __u64 tick)
{
	return tick >> (meeting->window_shift + EPOCH_SHIFT);
}

static __always_inline struct sl_known *known_block(const struct sl_meeting *meeting,
						    struct digest digest)
{
	__u32 index = digest.mark & meeting->known_mask;

	return bpf_map_lookup_elem(&known, &index);
}

/* Three of a block's bits, scaled from 10 bits of the digest each. */
static __always_inline __u64 known_bits(struct digest digest)
{
	return 1ULL << ((digest.place & 0x3ff) * SL_KNOWN_BITS >> 10) |
	       1ULL << ((digest.place >> 10 & 0x3ff) * SL_KNOWN_BITS >> 10) |
	       1ULL << ((digest.place >> 20 & 0x3ff) * SL_KNOWN_BITS >> 10);
}

/* A block as of an epoch: this epoch's bits, and above them those of the one before. */
static __always_inline __u64 known_age(__u64 bits, __u16 epoch)
{
	__u16 age = epoch - (__u16)(bits >> KNOWN_EPOCH_SHIFT);

	if (!age)
		return bits & (KNOWN_MASK << SL_KNOWN_BITS | KNOWN_MASK);
	return age == 1 ? (bits & KNOWN_MASK) << SL_KNOWN_BITS : 0;
}

static __always_inline bool known_has(const struct sl_meeting *meeting, struct digest digest,
				      __u64 tick)
{
	const struct sl_known *block = known_block(meeting, digest);
	__u64 bits = known_bits(digest), held;

	if (!block)
		return false;
	held = known_age(block->bits, epoch_of(meeting, tick));
	return (held & bits) == bits || (held >> SL_KNOWN_BITS & bits) == bits;
}

/*
 * Updated plainly by all CPUs. What a race costs: somebody is forgotten here, until the next time that he is charged.
 */
static __always_inline void known_add(const struct sl_meeting *meeting, struct digest digest,
				      __u64 tick)
{
	struct sl_known *block = known_block(meeting, digest);
	__u16 epoch = epoch_of(meeting, tick);
	__u64 held, next;

	if (!block)
		return;
	held = block->bits;
	next = (__u64)epoch << KNOWN_EPOCH_SHIFT | known_age(held, epoch) | known_bits(digest);
	if (next != held) /* do not take the cache line from others without need */
		block->bits = next;
}

#endif
