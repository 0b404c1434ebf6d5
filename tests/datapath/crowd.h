/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Crowds: packets whose address changes from one to the next. A program changes it and hands over
 * to the program under test. The addresses are numbered, and no two numbers have the same address,
 * so that a test can name the sender of each packet.
 */
#ifndef SLUICE_TEST_CROWD_H
#define SLUICE_TEST_CROWD_H

#include "sluice.h"

#define CROWDS 16 /* at the same time; each has a place, by which its frames name it */

struct crowd {
	__u64 next;    /* number of the next address */
	__u64 base[2]; /* the address, in halves of 64 bits, as numbers; IPv4 is the second */
	__u32 bits[2]; /* of each half: how many of the lowest differ from one to the next */
	__u32 times;   /* each address sends so many in a row */
	__u32 sent;    /* of these */
	__u32 to;      /* the destination changes, not the source */
	__u32 pad;
};

/* One to one on numbers of `bits` bits: all that it does to them can be undone. */
static inline __u64 crowd_scatter(__u64 number, __u32 bits)
{
	__u64 mask = bits ? ~0ULL >> (64 - bits) : 0;
	__u32 half = bits / 2 + 1;

	number = number * 0x9e3779b97f4a7c15ULL & mask;
	number ^= number >> half;
	number = number * 0xbf58476d1ce4e5b9ULL & mask;
	number ^= number >> half;
	return number * 0x94d049bb133111ebULL & mask;
}

/* One half of an address, as a number. */
static inline __u64 crowd_half(const struct crowd *crowd, __u64 number, int half)
{
	return crowd->base[half] | crowd_scatter(number, crowd->bits[half]);
}

#endif
