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

/* An epoch is so many windows: about a minute. */
#define EPOCH_SHIFT 10

/*
 * Even and odd epochs have a word each, which is tagged with the number of its epoch. The tag comes back after nine
 * hours: a word that nobody has touched since then speaks of the wrong minute.
 */
#define KNOWN_TAG (~0U << SL_KNOWN_BITS)

static __always_inline __u32 epoch_of(const struct sl_meeting *meeting, __u64 tick)
{
	return tick >> (meeting->window_shift + EPOCH_SHIFT);
}

static __always_inline __u32 epoch_tag(__u32 epoch)
{
	return epoch >> 1 << SL_KNOWN_BITS;
}

static __always_inline struct sl_known *known_block(const struct sl_meeting *meeting,
						    struct digest digest)
{
	__u32 index = digest.mark & meeting->known_mask;

	return bpf_map_lookup_elem(&known, &index);
}

/* Three of a word's bits, scaled from 10 bits of the digest each. */
static __always_inline __u32 known_bits(struct digest digest)
{
	return 1U << ((digest.place & 0x3ff) * SL_KNOWN_BITS >> 10) |
	       1U << ((digest.place >> 10 & 0x3ff) * SL_KNOWN_BITS >> 10) |
	       1U << ((digest.place >> 20 & 0x3ff) * SL_KNOWN_BITS >> 10);
}

static __always_inline bool word_has(__u32 word, __u32 epoch, __u32 bits)
{
	return (word & (KNOWN_TAG | bits)) == (epoch_tag(epoch) | bits);
}

static __always_inline bool known_has(const struct sl_meeting *meeting, struct digest digest,
				      __u64 tick)
{
	const struct sl_known *block = known_block(meeting, digest);
	__u32 epoch = epoch_of(meeting, tick), odd = epoch & 1, bits = known_bits(digest);

	/* by the words' order in memory, so that nothing here depends on the parity but the tags */
	return block && (word_has(block->word[0], epoch - odd, bits) ||
			 word_has(block->word[1], epoch - !odd, bits));
}

/*
 * Updated plainly by all CPUs. What a race costs: somebody is forgotten here, until the next time that he is charged.
 */
static __always_inline void known_add(const struct sl_meeting *meeting, struct digest digest,
				      __u64 tick)
{
	struct sl_known *block = known_block(meeting, digest);
	__u32 epoch = epoch_of(meeting, tick), bits = known_bits(digest), held, *word;

	if (!block)
		return;
	word = &block->word[epoch & 1];
	held = *word;
	if (word_has(held, epoch, bits)) /* do not take the cache line from others without need */
		return;
	*word = epoch_tag(epoch) | bits | (word_has(held, epoch, 0) ? held : 0);
}

#endif
