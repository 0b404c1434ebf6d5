/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Simulates many senders. A BPF program writes the next address into each packet and calls the
 * program under test. A test can compute each address from its number.
 */
#ifndef SLUICE_TEST_SENDERS_H
#define SLUICE_TEST_SENDERS_H

#include "sluice.h"

/*
 * Maximum number of struct senders that are used at the same time. Each frame contains the index of
 * its struct senders.
 */
#define SENDERS_MAX 16

struct senders {
	__u64 next;    /* number of the next packet's address */
	__u64 base[2]; /* first address in host byte order; an IPv4 address is in base[1] */
	__u32 bits[2]; /* number of low bits that change, in each half of the address */
	__u32 times;   /* consecutive packets per address */
	__u32 sent;    /* packets already sent from this address */
	__u32 to;      /* 1: the destination address changes; 0: the source address changes */
	__u32 pad;
};

/* Maps numbers of `bits` bits one to one, so that consecutive numbers give scattered addresses. */
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

/* Returns the upper (0) or lower (1) 64 bits of address number `number`. */
static inline __u64 senders_half(const struct senders *senders, __u64 number, int half)
{
	return senders->base[half] | senders_scatter(number, senders->bits[half]);
}

#endif
