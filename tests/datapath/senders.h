/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many senders: a program gives each packet the next address, and calls the program under test.
 * Addresses are numbered one to one, so a test knows the sender of each packet.
 */
#ifndef SLUICE_TEST_SENDERS_H
#define SLUICE_TEST_SENDERS_H

#include "sluice.h"

/* most senders that are in use at once; a frame contains the index of its senders */
#define SENDERS_MAX 16

struct senders {
	__u64 next;    /* number of the next address */
	__u64 base[2]; /* the address as two 64-bit numbers; IPv4 uses the second */
	__u32 bits[2]; /* how many of the lowest bits change, in each half */
	__u32 times;   /* number of packets that each address sends in a row */
	__u32 sent;    /* how many of these the current address has sent */
	__u32 to;      /* 1 if the destination changes instead of the source */
	__u32 pad;
};

/* Returns a permutation of the numbers of `bits` bits, so that addresses are not consecutive. */
static inline __u64 senders_scatter(__u64 number, __u32 bits)
{
	__u64 mask = bits ? ~0ULL >> (64 - bits) : 0;
	__u32 half = bits / 2 + 1;

	number = number * 0x9e3779b97f4a7c15ULL & mask;
	number ^= number >> half;
	number = number * 0xbf58476d1ce4e5b9ULL & mask;
	number ^= number >> half;
	return number * 0x94d049bb133111ebULL & mask;
}

/* Returns one half of an address, as a number. */
static inline __u64 senders_half(const struct senders *senders, __u64 number, int half)
{
	return senders->base[half] | senders_scatter(number, senders->bits[half]);
}

#endif
