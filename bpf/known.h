/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who was let in, or charged to a ledger, in the last minute or two: a Bloom filter in blocks (Putze, Sanders, Singler, "Cache-, Hash-
 * and Space-Efficient Bloom Filters", 2007). It spares a flood the lookup of ledgers, which are out of the CPU's
 * caches, and lets a source be judged by its ledger in a flood when its bucket is forgotten. When it is wrong, a
 * ledger is looked for in vain: that costs time, and no verdict. One stranger in 250 is taken for known when each of the
 * two epochs had an eighth as many sources as a map of ledgers has room for, and one in six when each had as many. Who was
 * silent for longer than that is met as a newcomer in a flood, although his ledger may still be there.
 */
#ifndef SLUICE_KNOWN_H
#define SLUICE_KNOWN_H

#include "digest.h"
#include "epoch.h"

static __always_inline struct sl_known *known_block(const struct sl_meeting *meeting,
						    struct digest digest)
{
	__u32 index = digest.mark & meeting->known_mask;

	return bpf_map_lookup_elem(&known, &index);
}

static __always_inline bool known_has(const struct sl_meeting *meeting, struct digest digest,
				      __u64 jiffy)
{
	const struct sl_known *block = known_block(meeting, digest);
	__u32 epoch = epoch_of(meeting, jiffy), bits = known_bits(digest);

	return block && words_have(block, epoch, bits);
}

/*
 * Updated plainly by all CPUs. What a race costs: somebody is forgotten here, until the next time that he is charged.
 */
static __always_inline void known_add(const struct sl_meeting *meeting, struct digest digest,
				      __u64 jiffy)
{
	struct sl_known *block = known_block(meeting, digest);
	__u32 epoch = epoch_of(meeting, jiffy), bits = known_bits(digest), held, *word;

	if (!block)
		return;
	word = &block->word[epoch & 1];
	held = *word;
	if (word_has(held, epoch, bits)) /* do not take the cache line from others without need */
		return;
	*word = epoch_tag(epoch) | bits | (word_has(held, epoch, 0) ? held : 0);
}

#endif
