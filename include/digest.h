/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Digests: a keyed hash of a state's key. It selects the place of the state in a table (ways.h) and
 * the tag that is stored there. The secret is the gate's, so no sender can choose sources that
 * share a set. Pure functions.
 */
#ifndef SLUICE_DIGEST_H
#define SLUICE_DIGEST_H

#include "identity.h"

struct digest {
	__u32 place; /* selects the place in a table */
	__u32 mark;  /* is stored there, in part */
};

/*
 * Pair-multiply-shift, strongly universal (Thorup, "High Speed Hashing for Integers and Strings",
 * 2015, section 3.5): for any two addresses, all pairs of the upper halves of their sums are
 * equally likely. The four words of an address use five words of the secret.
 */
static inline __u64 digest_sum(const __u64 *secret, const __u64 addr[2])
{
	return secret[0] + (secret[1] + (__u32)addr[0]) * (secret[2] + (addr[0] >> 32)) +
	       (secret[3] + (__u32)addr[1]) * (secret[4] + (addr[1] >> 32));
}

/*
 * Spreads a sum over all bits: the sums of consecutive addresses are an arithmetic progression,
 * which would fill some sets twice and others not at all. It is one to one, so it adds no
 * collisions.
 */
static inline struct digest digest_mix(__u64 sum)
{
	sum = (sum ^ sum >> 32) * 0xd6e8feb86659fd93ULL;
	sum ^= sum >> 32;
	return (struct digest){.place = sum, .mark = sum >> 32};
}

/*
 * Returns the digest of a state's key; all 64 bits count. beside: the rest of the key. `beside` is
 * multiplied by a word of the secret: if it were added to a word of the address, a sender could
 * choose two addresses that have one digest under two limits. That word is only an addend in the
 * other sum. Sums of keys that differ in `beside` then differ by a random multiple of that
 * difference, which is below 2^33, so their upper halves are equal with a probability of at most
 * 2^-31. The factor is even, so that both sums together still depend on both words.
 */
static inline struct digest digest_key(const __u64 secret[SL_SECRETS], const __u64 addr[2],
				       __u32 beside)
{
	const __u64 *one = secret, *other = secret + SL_SECRETS / 2;
	__u64 even = (__u64)beside << 1;
	__u64 upper = digest_sum(one, addr) + *other * even;
	__u64 lower = digest_sum(other, addr) + *one * even;

	return digest_mix((upper & ~0ULL << 32) | lower >> 32);
}

#endif
