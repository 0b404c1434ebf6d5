/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Aggregates: aligned prefixes of a fixed length. Where map `prefixes` has no rule longer than an
 * aggregate, all of its addresses have one answer there, and the packet path remembers that answer
 * by aggregate (bpf/shortcut.h). Map `blocks` counts the rules that are longer, by aggregate.
 *
 * Wide aggregates serve floods from sources everywhere. Narrow ones serve floods from one network
 * whose wide aggregate has rules.
 *
 * Pure functions, shared by the packet path and the command line.
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
 * Entries of `blocks`: the wide aggregates of both families by their bits, then narrow ones, hashed
 */
#define SL_AGGREGATES_NARROW (1U << 15)
#define SL_AGGREGATES	     (2 * SL_AGGREGATES_WIDE + SL_AGGREGATES_NARROW)

/*
 * The first 64 bits of an address as a number. The 32 bits of an IPv4 address are the upper ones.
 */
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

/* A name for the aggregate: never 0, and different for each kind */
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
 * The index in `blocks`. Narrow aggregates may share one: a rule within the one then counts for the
 * other, which costs shortcuts and no verdict.
 */
static inline __u32 aggregate_place(__u64 head, enum sl_aggregate_kind kind)
{
	if (kind == SL_AGGREGATE_IPV6_NARROW)
		return 2 * SL_AGGREGATES_WIDE + aggregate_fold(head) % SL_AGGREGATES_NARROW;
	return kind * SL_AGGREGATES_WIDE + (head >> (64 - SL_AGGREGATE_WIDE_BITS));
}

/*
 * The index among the shortcuts of one CPU. Each kind has a range of its own, so that a flood of
 * one kind does not push out the shortcuts of another.
 */
static inline __u32 aggregate_slot(__u64 head, enum sl_aggregate_kind kind)
{
	__u32 slot = kind == SL_AGGREGATE_IPV6_NARROW ? aggregate_fold(head) % SL_AGGREGATES_WIDE
						      : head >> (64 - SL_AGGREGATE_WIDE_BITS);

	return kind * SL_AGGREGATES_WIDE + slot;
}

_Static_assert(SL_SHORTCUTS == SL_AGGREGATE_KINDS * SL_AGGREGATES_WIDE,
	       "a wide aggregate has a place of its own");

#endif
