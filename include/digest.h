/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Digests: a keyed hash of the key of a ledger. It tells where the ledger lies in a table of
 * sets (table.h), and what marks them there. The secret is the gate's, so no sender can choose
 * sources that share a set.
 *
 * Pure functions, shared by the packet path and the command line.
 */
#ifndef SLUICE_DIGEST_H
#define SLUICE_DIGEST_H

#include "identity.h"

struct digest {
	__u32 place; /* where in a table */
	__u32 mark;  /* what is stored there */
};

/*
 * Pair-multiply-shift, strongly universal (Thorup, "High Speed Hashing for Integers and Strings",
 * 2015, section 3.5): for any two pairs of words, all pairs of the upper halves of their sums are
 * equally likely. The four words of an address take five words of the secret.
 */
static inline __u64 digest_sum(const __u64 *secret, const __u64 addr[2], __u32 beside)
{
	return secret[0] + (secret[1] + (__u32)addr[0]) * (secret[2] + ((addr[0] >> 32) ^ beside)) +
	       (secret[3] + (__u32)addr[1]) * (secret[4] + (addr[1] >> 32));
}

/*
 * Spreads a sum over all of its bits. Sums of addresses in a row are an arithmetic progression,
 * which fills some sets twice and others not at all. It is one to one, so collisions stay as rare
 * as they are.
 */
static inline struct digest digest_mix(__u64 sum)
{
	sum = (sum ^ sum >> 32) * 0xd6e8feb86659fd93ULL;
	sum ^= sum >> 32;
	return (struct digest){.place = sum, .mark = sum >> 32};
}

/* Of the key of a ledger: all 64 bits count. beside: what else it has. */
static inline struct digest digest_key(const struct sl_meeting *meeting, const __u64 addr[2],
				       __u32 beside)
{
	__u64 upper = digest_sum(meeting->secret, addr, beside);
	__u64 lower = digest_sum(meeting->secret + SL_SECRETS / 2, addr, beside);

	return digest_mix((upper & ~0ULL << 32) | lower >> 32);
}

#endif
