/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: parses, formats and compares addresses and prefixes. */
#ifndef SLUICE_PREFIX_H
#define SLUICE_PREFIX_H

#include <arpa/inet.h>
#include <string.h>

#include "rules/value.h"

#define PREFIX_TEXT 52 /* size of a buffer for any formatted prefix */

/*
 * Parses `default`, an address, or ADDRESS/LENGTH. Refuses an address with bits set beyond LENGTH.
 * Converts an IPv4-mapped prefix of /96 or longer to an IPv4 prefix. Refuses a prefix of /81 to /95
 * that contains all IPv4-mapped addresses. Returns 0, or adds an error and returns -EINVAL.
 */
int prefix_parse(const char *text, struct sl_prefix *ret);

/* Parses an address without a length. Converts an IPv4-mapped address to an IPv4 address. */
int address_parse(const char *text, struct sl_prefix *ret);

/* Types that parse a prefix or an address into a struct sl_prefix. */
extern const struct value_type value_prefix, value_address;

/* Formats a prefix: `default`, ADDRESS if it is a single address, otherwise ADDRESS/LENGTH. */
__attribute__((warn_unused_result)) const char *prefix_format(const struct sl_prefix *prefix,
							      char text[PREFIX_TEXT]);

/* Returns whether a prefix is IPv4. `default` is neither IPv4 nor IPv6. */
static inline bool prefix_is_ipv4(const struct sl_prefix *prefix)
{
	return prefix->bits && prefix->family == htonl(SL_FAMILY_IPV4);
}

static inline bool prefix_is_ipv6(const struct sl_prefix *prefix)
{
	return prefix->bits && prefix->family == htonl(SL_FAMILY_IPV6);
}

/* Returns a prefix's index in arrays of SL_FAMILIES elements. `default` counts as IPv6. */
static inline enum sl_family prefix_family(const struct sl_prefix *prefix)
{
	return prefix_is_ipv4(prefix) ? SL_IPV4 : SL_IPV6;
}

/* Returns whether a prefix is a single address. */
static inline bool prefix_is_host(const struct sl_prefix *prefix)
{
	return prefix->bits == SL_FAMILY_BITS + (prefix_is_ipv4(prefix) ? 32 : 128);
}

static inline bool prefix_equal(const struct sl_prefix *a, const struct sl_prefix *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/*
 * Returns whether prefix_parse() could have stored this prefix. A prefix from a map must be
 * checked.
 */
bool prefix_is_sound(const struct sl_prefix *prefix);

/* Returns whether a prefix contains an address, or all of another prefix. */
bool prefix_covers(const struct sl_prefix *prefix, const struct sl_prefix *address);

/*
 * Compares prefixes. `default` is first, then IPv4, then IPv6. In a family, addresses are compared
 * first, and then lengths (shorter prefixes first).
 */
int prefix_compare(const struct sl_prefix *a, const struct sl_prefix *b);

/* Shortens a prefix to at most `bits` bits, including SL_FAMILY_BITS. 0 bits make `default`. */
struct sl_prefix prefix_shorten(const struct sl_prefix *prefix, unsigned int bits);

/*
 * Stores the largest prefix that begins at address `from` and ends at or before address `to`. Sets
 * `from` to the next address after this prefix. Both addresses are of one family. Returns false if
 * no address is left.
 */
bool prefix_of_range(struct sl_prefix *from, const struct sl_prefix *to, struct sl_prefix *ret);

/* Returns the source of an address, such as the /64 of an IPv6 address (include/identity.h). */
struct sl_prefix prefix_source(const struct sl_prefix *address);

/* Returns the prefix of a source. key: from bucket_key(). */
struct sl_prefix prefix_of_source(const __u64 key[2], bool ipv4);

#endif
