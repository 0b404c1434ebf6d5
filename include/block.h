/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Blocks of addresses: where no rule of map `prefixes` is longer than a block, all of its addresses have the
 * same answer there, and the packet path remembers it by block. Map `blocks` counts the rules that are longer.
 * Wide blocks serve floods of sources from everywhere, narrow ones floods from one network where a wide block
 * has rules.
 */
#ifndef SLUICE_BLOCK_H
#define SLUICE_BLOCK_H

#include "sluice.h"

enum sl_block_kind {
	SL_BLOCK_IPV4,	      /* a /14 */
	SL_BLOCK_IPV6_WIDE,   /* a /14 */
	SL_BLOCK_IPV6_NARROW, /* a /48 */
	SL_BLOCK_KINDS,
};

#define SL_BLOCK_WIDE_BITS   14
#define SL_BLOCK_NARROW_BITS 48
#define SL_BLOCKS_WIDE	     (1U << SL_BLOCK_WIDE_BITS)

/* Entries of `blocks`: the wide ones of both families by their bits, then narrow ones, hashed. */
#define SL_BLOCKS_NARROW (1U << 15)
#define SL_BLOCKS	 (2 * SL_BLOCKS_WIDE + SL_BLOCKS_NARROW)

/* The first 64 bits of an address, as a number; of an IPv4 address its 32, at the top. */
static inline __u64 block_head(const struct sl_prefix *address, bool ipv4)
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

/* The name of the block: never 0, and different for each kind. */
static inline __u64 block_name(__u64 head, enum sl_block_kind kind)
{
	int bits = kind == SL_BLOCK_IPV6_NARROW ? SL_BLOCK_NARROW_BITS : SL_BLOCK_WIDE_BITS;

	return (head >> (64 - bits) << 2) + kind + 1;
}

static inline __u32 block_fold(__u64 head)
{
	__u64 name = head >> (64 - SL_BLOCK_NARROW_BITS);

	return name ^ name >> 15 ^ name >> 30 ^ name >> 45;
}

/* Its place in `blocks`. Narrow blocks may share one: then a rule in the one divides the other, too. */
static inline __u32 block_place(__u64 head, enum sl_block_kind kind)
{
	if (kind == SL_BLOCK_IPV6_NARROW)
		return 2 * SL_BLOCKS_WIDE + block_fold(head) % SL_BLOCKS_NARROW;
	return kind * SL_BLOCKS_WIDE + (head >> (64 - SL_BLOCK_WIDE_BITS));
}

/*
 * Its place among one CPU's shortcuts. Each kind has its own, so that a flood of the one does not make those of
 * the other be learned again and again.
 */
static inline __u32 block_slot(__u64 head, enum sl_block_kind kind)
{
	__u32 slot = kind == SL_BLOCK_IPV6_NARROW ? block_fold(head) % SL_BLOCKS_WIDE
						  : head >> (64 - SL_BLOCK_WIDE_BITS);

	return kind * SL_BLOCKS_WIDE + slot;
}

_Static_assert(SL_SHORTCUTS == SL_BLOCK_KINDS * SL_BLOCKS_WIDE,
	       "a wide block has a place of its own");

#endif
