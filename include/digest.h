/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Digests: a keyed hash of a source, or of the key of a limit, for tables that have no room for
 * every source (the sketch of newcomers, the filter of known keys). Keys that share a digest share
 * their entries there.
 *
 * Pure functions, shared by the packet path and the command line.
 */
#ifndef SLUICE_DIGEST_H
#define SLUICE_DIGEST_H

#include "identity.h"

struct digest {
	__u32 place; /* where in the table */
	__u32 mark;  /* what is stored there */
};

/*
 * Pair-multiply-shift, strongly universal (Thorup, "High Speed Hashing for Integers and Strings",
 * 2015, section 3.5): for any two keys of `words` words, an even number, all pairs of results are
 * equally likely.
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

/* Of a source: the words of an IPv4 address, an IPv6 /64, or a whole IPv6 address. */
static __always_inline struct digest digest_source(const struct sl_meeting *meeting,
						   const __u64 addr[2], bool ipv4)
{
	__u64 host = ipv4 ? 0 : identity_host(addr);
	__u32 word[4] = {addr[0], ipv4 ? ~0U : addr[0] >> 32, host, host >> 32};

	return host ? digest_words(meeting, word, 4) : digest_words(meeting, word, 2);
}

/* Of an address under a limit whose key is not the source: the key of the ledger. */
static __always_inline struct digest digest_limit(const struct sl_meeting *meeting,
						  const struct sl_limit *limit, const __u64 addr[2],
						  bool ipv4)
{
	__u64 key[2] = {(__u32)addr[0] & limit->mask[0]};
	__u32 word[4];

	if (!ipv4)
		identity_key(addr, limit->mask, key);
	word[0] = key[0];
	word[1] = key[0] >> 32;
	word[2] = key[1];
	word[3] = key[1] >> 32;
	word[3] ^= limit->id << 1 | ipv4;
	return digest_words(meeting, word, 4);
}

#endif
