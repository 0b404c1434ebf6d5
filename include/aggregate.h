/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Aggregates are aligned prefixes of a fixed length. If map `prefixes` has no rule longer than an
 * aggregate, a lookup of the rules gives the same result for all addresses of the aggregate, and
 * the packet path caches that result (bpf/rules.h). Map `subrules` counts the longer rules of each
 * aggregate. In a flood from the whole address space, lookups of wide aggregates hit the cache. If
 * a wide aggregate has longer rules, a flood from one of its networks hits narrow aggregates.
 */
#ifndef SLUICE_AGGREGATE_H
#define SLUICE_AGGREGATE_H

#include "sluice.h"

enum sl_aggregate_kind {
	SL_AGGREGATE_IPV4,	  /* a /14 */
	SL_AGGREGATE_IPV6_WIDE,	  /* a /14 */
	SL_AGGREGATE_IPV6_NARROW, /* a /48 */
	SL_AGGREGATE_KINDS,
};

#define SL_AGGREGATE_WIDE_BITS	 14
#define SL_AGGREGATE_NARROW_BITS 48
#define SL_AGGREGATES_WIDE	 (1U << SL_AGGREGATE_WIDE_BITS)

/*
 * Size of map `subrules`. Each wide aggregate has an element of its own. Narrow aggregates share
 * elements.
 */
#define SL_AGGREGATES_NARROW (1U << 15)
#define SL_AGGREGATES	     (2 * SL_AGGREGATES_WIDE + SL_AGGREGATES_NARROW)

/* Returns the first 64 bits of an address as a number. An IPv4 address is in the upper 32 bits. */
static inline __u64 aggregate_head(const struct sl_prefix *address, bool ipv4)
{
	__u64 head = *(const __u64 *)address->addr;

	if (ipv4)
		head = *(const __u32 *)address->addr;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap64(head);
#else
	return ipv4 ? head << 32 : head;
#endif
}

/*
 * Returns a number that identifies an aggregate. The number is never 0, and differs for any two
 * aggregates of any kind.
 */
static inline __u64 aggregate_name(__u64 head, enum sl_aggregate_kind kind)
{
	int bits = kind == SL_AGGREGATE_IPV6_NARROW ? SL_AGGREGATE_NARROW_BITS
						    : SL_AGGREGATE_WIDE_BITS;

	return (head >> (64 - bits) << 2) + kind + 1;
}

static inline __u32 aggregate_fold(__u64 head)
{
	__u64 name = head >> (64 - SL_AGGREGATE_NARROW_BITS);

	return name ^ name >> 15 ^ name >> 30 ^ name >> 45;
}

/*
 * Returns the aggregate's index in map `subrules`. Two narrow aggregates may share an index. Then a
 * longer rule in one of them also keeps the other out of the cache. Verdicts do not change.
 */
static inline __u32 aggregate_place(__u64 head, enum sl_aggregate_kind kind)
{
	if (kind == SL_AGGREGATE_IPV6_NARROW)
		return 2 * SL_AGGREGATES_WIDE + aggregate_fold(head) % SL_AGGREGATES_NARROW;
	return kind * SL_AGGREGATES_WIDE + (head >> (64 - SL_AGGREGATE_WIDE_BITS));
}

/*
 * Returns the aggregate's index in one CPU's part of map `rule_cache`. Each kind of aggregate has
 * its own range of indexes, so a flood of one kind evicts no entries of another kind.
 */
static inline __u32 aggregate_slot(__u64 head, enum sl_aggregate_kind kind)
{
	__u32 slot = kind == SL_AGGREGATE_IPV6_NARROW ? aggregate_fold(head) % SL_AGGREGATES_WIDE
						      : head >> (64 - SL_AGGREGATE_WIDE_BITS);

	return kind * SL_AGGREGATES_WIDE + slot;
}

_Static_assert(SL_RULE_CACHE_SIZE == SL_AGGREGATE_KINDS * SL_AGGREGATES_WIDE,
	       "a wide aggregate has a place of its own");

#endif
