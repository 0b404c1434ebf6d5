/* SPDX-License-Identifier: GPL-2.0 */
/* What an entry of map `known` says, and of when. Shared by the packet path and the command line. */
#ifndef SLUICE_EPOCH_H
#define SLUICE_EPOCH_H

#include "hash.h"

/* An epoch is so many windows: about a minute. */
#define EPOCH_SHIFT 10

/*
 * Even and odd epochs have a word each, which is tagged with the number of its epoch. The tag comes back after nine
 * hours: a word that nobody has touched since then speaks of the wrong minute.
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

/* Somebody of whom these bits are, in this epoch or the one before. */
static __always_inline bool words_have(const struct sl_known *block, __u32 epoch, __u32 bits)
{
	__u32 odd = epoch & 1;

	/* by the words' order in memory, so that nothing here depends on the parity but the tags */
	return word_has(block->word[0], epoch - odd, bits) ||
	       word_has(block->word[1], epoch - !odd, bits);
}

#endif
