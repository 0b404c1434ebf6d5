/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses and prefixes as people write them. */
#ifndef SLUICE_PREFIX_H
#define SLUICE_PREFIX_H

#include "base/log.h"
#include "sluice.h"

#define PREFIX_TEXT 52 /* room for any formatted prefix */

/* Parses `default`, an address, or ADDRESS/LENGTH without bits beyond its length. */
enum status prefix_parse(const char *text, struct sl_prefix *ret);

/* Parses an IPv4 or IPv6 address without a length. */
enum status address_parse(const char *text, struct sl_prefix *ret);

/* `default`, an address where the prefix is a whole one, or ADDRESS/LENGTH. */
const char *prefix_format(const struct sl_prefix *prefix, char text[PREFIX_TEXT]);

/* `default` is neither. */
bool prefix_is_ipv4(const struct sl_prefix *prefix);
bool prefix_is_ipv6(const struct sl_prefix *prefix);

/* A whole address. */
bool prefix_is_host(const struct sl_prefix *prefix);
bool prefix_equal(const struct sl_prefix *a, const struct sl_prefix *b);
bool prefix_covers(const struct sl_prefix *prefix, const struct sl_prefix *address);

/* For qsort: `default`, then IPv4, then IPv6; by address, and the shorter prefix first. */
int prefix_compare(const struct sl_prefix *a, const struct sl_prefix *b);

/* The first `bits` bits of an address or prefix, which has no fewer; 0: `default`. */
struct sl_prefix prefix_shorten(const struct sl_prefix *prefix, unsigned int bits);

/*
 * The longest run of addresses from `from` on, up to `to`, that is one prefix; `from` moves behind it. Both are
 * addresses of one family. False: the range is used up.
 */
bool prefix_of_range(struct sl_prefix *from, const struct sl_prefix *to, struct sl_prefix *ret);

/* What a bucket is kept for (include/identity.h): the address itself, or the /64 of an IPv6 address. */
struct sl_prefix prefix_source(const struct sl_prefix *address);

#endif
