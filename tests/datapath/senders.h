/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many senders: a program gives each packet the next address, and calls the program under test. The
 * addresses are numbered, one to one, so that a test knows the sender of each packet.
 */
#ifndef SLUICE_TEST_SENDERS_H
#define SLUICE_TEST_SENDERS_H

#include "sluice.h"

#define SENDERS_MAX 16 /* at the same time; a frame has the index of its senders */

struct senders {
	__u64 next;    /* number of the next address */
	__u64 base[2]; /* the address, in halves of 64 bits, as numbers; IPv4 is the second */
	__u32 bits[2]; /* of each half: the lowest bits that change */
	__u32 times;   /* packets of each address in a row */
	__u32 sent;    /* of these packets */
	__u32 to;      /* the destination changes, not the source */
	__u32 pad;
};

/* Scatters numbers of `bits` bits, one to one. */
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
