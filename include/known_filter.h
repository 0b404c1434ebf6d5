/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The filter of known keys: which sources, and which keys of limits, were admitted or charged at a
 * ledger in the last minute or two. A Bloom filter in blocks of one word (Putze, Sanders, Singler,
 * "Cache-, Hash- and Space-Efficient Bloom Filters", 2007), which map `known` holds.
 *
 *   - A flood is spared the lookup of ledgers, which lie outside the CPU's caches.
 *   - A source whose bucket was evicted in a flood is still judged by its ledger.
 *
 * Errors. A key that is taken for known by mistake costs a lookup of a ledger that does not exist,
 * and changes no verdict. That happens to one unknown key in 250 if each of the two epochs had an
 * eighth as many keys as a map of ledgers has entries, and to one in six if each had as many. A key
 * that was silent for more than two epochs is unknown: in a flood it is met as a newcomer, although
 * its ledger may still exist.
 *
 * Used by: bpf/newcomer.h, and the command line where it reads the map or fits it to another size.
 * Pure functions.
 */
#ifndef SLUICE_KNOWN_FILTER_H
#define SLUICE_KNOWN_FILTER_H

#include "digest.h"

/* An epoch has 2^this windows (struct sl_meeting): about a minute. */
#define EPOCH_SHIFT 10

/*
 * An entry has a word for even epochs and one for odd epochs, each tagged with the number of its
 * epoch. The tag repeats after nine hours: a word that was not written since then tells of the
 * wrong minute.
 */
#define KNOWN_TAG (~0U << SL_KNOWN_BITS)

static __always_inline __u32 epoch_of(const struct sl_meeting *meeting, __u64 jiffy)
{
	return jiffy >> (meeting->window_shift + EPOCH_SHIFT);
}

static __always_inline __u32 epoch_tag(__u32 epoch)
{
	return epoch >> 1 << SL_KNOWN_BITS;
}

/* Three of the bits of a word, each scaled from 10 bits of the digest. */
static __always_inline __u32 known_bits(struct digest digest)
{
	return 1U << ((digest.place & 0x3ff) * SL_KNOWN_BITS >> 10) |
	       1U << ((digest.place >> 10 & 0x3ff) * SL_KNOWN_BITS >> 10) |
	       1U << ((digest.place >> 20 & 0x3ff) * SL_KNOWN_BITS >> 10);
}

/* Whether a word is of this epoch and has all of these bits set. */
static __always_inline bool word_has(__u32 word, __u32 epoch, __u32 bits)
{
	return (word & (KNOWN_TAG | bits)) == (epoch_tag(epoch) | bits);
}

/* Whether all of these bits are set in the current or the previous epoch. */
static __always_inline bool words_have(const struct sl_known *entry, __u32 epoch, __u32 bits)
{
	__u32 odd = epoch & 1;

	/* in memory order, so that only the tags depend on the parity of the epoch */
	return word_has(entry->word[0], epoch - odd, bits) ||
	       word_has(entry->word[1], epoch - !odd, bits);
}

/*
 * Sets these bits in this epoch. A plain update by all CPUs: a race loses the bits of one key until
 * that key is charged again. A word that has the bits is not written, so that its cache line stays
 * shared.
 */
static __always_inline void words_add(struct sl_known *entry, __u32 epoch, __u32 bits)
{
	__u32 *word = &entry->word[epoch & 1], held = *word;

	if (!word_has(held, epoch, bits))
		*word = epoch_tag(epoch) | bits | (word_has(held, epoch, 0) ? held : 0);
}

#endif
