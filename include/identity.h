/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The identity of a source, and its digest. Pure functions. An address is two words in network byte
 * order.
 *
 * An IPv4 source is its address. An IPv6 source is its /64, because one host can use all addresses
 * of a /64. In these prefixes unrelated hosts share a /64, so each address is a source of its own:
 *
 *   fe80::/10       link-local (RFC 4291): the neighbours on a link, including routers
 *   64:ff9b::/96    IPv4 hosts, reached by a NAT64 translator (RFC 6052)
 *   64:ff9b:1::/48  the same for a local translator (RFC 8215). Its prefix length decides in
 *                   which half of the address the bits of the IPv4 address are
 */
#ifndef SLUICE_IDENTITY_H
#define SLUICE_IDENTITY_H

#include "sluice.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define identity_word(word) __builtin_bswap64(word)
#define identity_half(word) __builtin_bswap32(word)
#else
#define identity_word(word) (word)
#define identity_half(word) (word)
#endif

/* Returns whether the source of this IPv6 address is the address itself, not its /64. */
static inline bool identity_is_whole(const __u64 addr[2])
{
	const __u64 upper = identity_word(0xffffffff00000000), group3 = identity_word(0xffff0000);

	if ((addr[0] & identity_word(0xffc0ULL << 48)) == identity_word(0xfe80ULL << 48))
		return true;
	if ((addr[0] & upper) != identity_word(0x0064ff9bULL << 32))
		return false;
	if ((addr[0] & group3) == identity_word(0x10000))
		return true;
	return !(addr[0] & ~upper) && !(addr[1] & upper);
}

/* Makes a source's key for map `buckets6`. The first 4 bytes are the key for map `buckets4`. */
static inline void bucket_key(const __u64 addr[2], bool ipv4, __u64 ret[2])
{
	ret[0] = addr[0];
	ret[1] = !ipv4 && identity_is_whole(addr) ? addr[1] : 0;
}

/*
 * Returns whether a bucket belongs to a key. A bucket stores the complement of its key, so a zeroed
 * bucket would belong to a key of all ones. Such a key does not exist (identity_is_whole()).
 */
static inline bool bucket_is_of(const struct sl_bucket *bucket, const __u64 key[2])
{
	return bucket->seal[0] == ~key[0] && bucket->seal[1] == ~key[1];
}

/*
 * Makes the key under which a limit counts an IPv6 address. If the source is a single address and
 * the key length is at most 64, the key is the whole address. Exceptions: `per 0` has one key for
 * all addresses, and a key of more than 64 bits has the specified length.
 */
static inline void identity_key(const __u64 addr[2], const __u64 mask[2], __u64 ret[2])
{
	bool whole = mask[0] && !mask[1] && identity_is_whole(addr);

	ret[0] = whole ? addr[0] : addr[0] & mask[0];
	ret[1] = whole ? addr[1] : addr[1] & mask[1];
}

/* --- Digests -------------------------------------------------------------------------------- */

struct digest {
	__u32 place; /* bits of the digest that are used as an index of a table */
	__u32 mark;  /* bits of the digest that a table stores as tag or fingerprint */
};

/*
 * Hashes by pair-multiply-shift, which is strongly universal (Thorup, "High Speed Hashing for
 * Integers and Strings", 2015, section 3.5): for any two addresses, all pairs of the upper halves
 * of their sums are equally likely. The four 32-bit parts of an address use five words of the
 * secret.
 */
static inline __u64 digest_sum(const __u64 *secret, const __u64 addr[2])
{
	return secret[0] + (secret[1] + (__u32)addr[0]) * (secret[2] + (addr[0] >> 32)) +
	       (secret[3] + (__u32)addr[1]) * (secret[4] + (addr[1] >> 32));
}

/*
 * Maps each sum of the hash to a different digest. The sums of consecutive addresses are an
 * arithmetic progression. If they were not mixed, they would fill some sets twice and leave others
 * empty.
 */
static inline struct digest digest_mix(__u64 sum)
{
	sum = (sum ^ sum >> 32) * 0xd6e8feb86659fd93ULL;
	sum ^= sum >> 32;
	return (struct digest){.place = sum, .mark = sum >> 32};
}

/*
 * Returns the 64-bit digest of a state's key. beside: the part of the key beside the address. It is
 * multiplied by a word of the secret. If it were added to a word of the address instead, a sender
 * could choose two addresses that have the same digest under two limits. In the other sum, that
 * word of the secret is only an addend. So if two keys differ in `beside`, their sums differ by a
 * random multiple of that difference, which is below 2^33, and their upper halves are equal with a
 * probability of at most 2^-31. `beside` is doubled, so that both sums together still depend on
 * both words.
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
