/* SPDX-License-Identifier: GPL-2.0 */
/* Who somebody is, hashed: for what has no room for every source. Shared by the packet path and the command line. */
#ifndef SLUICE_HASH_H
#define SLUICE_HASH_H

#include "sluice.h"

struct digest {
	__u32 place;
	__u32 mark;
};

/*
 * Pair-multiply-shift, strongly universal (Thorup, "High Speed Hashing for Integers and Strings", 2015, section
 * 3.5): for any two identities of `words` words, an even number, all pairs of results are equally likely.
 */
static __always_inline __u32 digest_half(const __u64 *secret, const __u32 *word, int words)
{
	__u64 sum = secret[0];

	for (int i = 0; i < words; i += 2)
		sum += (secret[1 + i] + word[i]) * (secret[2 + i] + word[i + 1]);
	return sum >> 32;
}

static __always_inline struct digest digest_words(const struct sl_meeting *meeting,
						  const __u32 *word, int words)
{
	return (struct digest){
		.place = digest_half(meeting->secret, word, words),
		.mark = digest_half(meeting->secret + SL_SECRETS / 2, word, words),
	};
}

#endif
