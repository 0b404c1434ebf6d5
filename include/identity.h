/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The identity of a source: an IPv4 address, or an IPv6 /64, in which one host can use any address.
 * In these prefixes a /64 has unrelated hosts, so each address is a source of its own:
 *
 *  fe80::/10       link-local (RFC 4291): the neighbours on a link, including routers.
 *  64:ff9b::/96    all of IPv4, as a translator writes it (RFC 6052).
 *  64:ff9b:1::/48  the same, with prefixes that a network chooses (RFC 8215). The bits of the IPv4
 *                  address are in either half of the address, by the length of the prefix.
 *
 * Pure functions. An address is two words in network byte order.
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

/* Returns whether an IPv6 source is its whole address, not its /64. */
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

/*
 * Sets the key of a source in map `buckets6`, the /64 or the whole address, or in `buckets4`, of
 * which the key is the first 4 bytes.
 */
static inline void bucket_key(const __u64 addr[2], bool ipv4, __u64 ret[2])
{
	ret[0] = addr[0];
	ret[1] = !ipv4 && identity_is_whole(addr) ? addr[1] : 0;
}

/*
 * Returns whether a bucket belongs to a key: it stores the complement. Memory that the kernel
 * zeroed belongs to no key, because no key is all ones: a key with a second word begins with a
 * prefix of identity_is_whole().
 */
static inline bool bucket_is_of(const struct sl_bucket *bucket, const __u64 key[2])
{
	return bucket->seal[0] == ~key[0] && bucket->seal[1] == ~key[1];
}

/*
 * Sets the key that a limit counts an IPv6 address by. If a source is its whole address, and the
 * limit would count it by its /64 or less, the key is the whole address. Two exceptions: `per 0` is
 * one key for all, and a key of more than 64 bits has the length that the limit specifies.
 */
static inline void identity_key(const __u64 addr[2], const __u64 mask[2], __u64 ret[2])
{
	bool whole = mask[0] && !mask[1] && identity_is_whole(addr);

	ret[0] = whole ? addr[0] : addr[0] & mask[0];
	ret[1] = whole ? addr[1] : addr[1] & mask[1];
}

#endif
