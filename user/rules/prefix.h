/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: addresses and prefixes in words. */
#ifndef SLUICE_PREFIX_H
#define SLUICE_PREFIX_H

#include <arpa/inet.h>
#include <string.h>

#include "rules/value.h"

#define PREFIX_TEXT 52 /* room for any formatted prefix */

/*
 * Parses `default`, an address, or ADDRESS/LENGTH. Bits beyond the length are refused. An
 * IPv4-mapped prefix of /96 or longer becomes the IPv4 prefix, and a shorter one is refused.
 */
int prefix_parse(const char *text, struct sl_prefix *ret);

/* Parses an IPv4 or IPv6 address without a length. An IPv4-mapped one becomes the IPv4 address. */
int address_parse(const char *text, struct sl_prefix *ret);

/* The same as types, which store a struct sl_prefix. */
extern const struct value_type value_prefix, value_address;

/* Formats a prefix: `default`, an address for a whole one, or ADDRESS/LENGTH. */
__attribute__((warn_unused_result)) const char *prefix_format(const struct sl_prefix *prefix,
							      char text[PREFIX_TEXT]);

/* The family of a prefix. `default` has none. */
static inline bool prefix_is_ipv4(const struct sl_prefix *prefix)
{
	return prefix->bits && prefix->family == htonl(SL_FAMILY_IPV4);
}

static inline bool prefix_is_ipv6(const struct sl_prefix *prefix)
{
	return prefix->bits && prefix->family == htonl(SL_FAMILY_IPV6);
}

/* The index of its family in arrays of SL_FAMILIES; `default` counts as IPv6. */
static inline enum sl_family prefix_family(const struct sl_prefix *prefix)
{
	return prefix_is_ipv4(prefix) ? SL_IPV4 : SL_IPV6;
}

/* Whether the prefix is one whole address. */
static inline bool prefix_is_host(const struct sl_prefix *prefix)
{
	return prefix->bits == SL_FAMILY_BITS + (prefix_is_ipv4(prefix) ? 32 : 128);
}

static inline bool prefix_equal(const struct sl_prefix *a, const struct sl_prefix *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Whether prefix_parse() could have made it. */
bool prefix_is_sound(const struct sl_prefix *prefix);
bool prefix_covers(const struct sl_prefix *prefix, const struct sl_prefix *address);

/* Orders `default`, IPv4, IPv6; then by address; then the shorter prefix first. */
int prefix_compare(const struct sl_prefix *a, const struct sl_prefix *b);

/* The first `bits` bits of an address or prefix, which has at least as many; 0: `default`. */
struct sl_prefix prefix_shorten(const struct sl_prefix *prefix, unsigned int bits);

/*
 * The longest prefix that begins at `from` and ends at `to` or before; `from` moves to the address
 * after the prefix. Both are addresses of one family. Returns false if no address is left.
 */
bool prefix_of_range(struct sl_prefix *from, const struct sl_prefix *to, struct sl_prefix *ret);

/*
 * The source of an address (include/identity.h): the address itself, or the /64 of an IPv6 address.
 */
struct sl_prefix prefix_source(const struct sl_prefix *address);

/* The source with this key: an IPv4 address in the first 4 bytes, or bucket_key6(). */
struct sl_prefix prefix_of_source(const __u64 key[2], bool ipv4);

#endif
