/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Seats: where a source may have its bucket in the part of each CPU of maps `hot` and `buckets`. A
 * pure function, shared by the packet path and the command line.
 */
#ifndef SLUICE_SEAT_H
#define SLUICE_SEAT_H

#include "identity.h"

struct seat {
	__u64 source[2]; /* source_key() */
	__u32 set;	 /* in the part of a CPU */
	__u16 tag;
	__u16 used; /* what a bucket that is used now is marked with */
};

/*
 * The upper half of the product is strongly universal for two words (Thorup, "High Speed Hashing
 * for Integers and Strings", 2015, section 3.5). It is spread over all of its bits afterwards: that
 * of sources in a row is an arithmetic progression, which fills some sets and leaves others free.
 * Both words of a source are folded into one first: a neighbour on the link, which may choose both,
 * can share the seat of another source, and costs it its bucket and no verdict.
 */
static inline struct seat seat_of(const struct sl_meeting *meeting, const __u64 addr[2], bool ipv4)
{
	struct seat seat = {0};
	__u64 word, place;
	__u32 mixed;

	source_key(addr, ipv4, seat.source);
	word = seat.source[0] ^ seat.source[1];
	place = meeting->secret[0] +
		(meeting->secret[1] + (__u32)word) * (meeting->secret[2] + (word >> 32));
	/* one to one, so that it stays universal */
	mixed = ((place >> 32) ^ place >> 48) * 0x9e3779b1U;
	seat.set = mixed * (meeting->hot_mask + 1ULL) >> 32;
	seat.tag = mixed;
	if (!seat.tag)
		seat.tag = 1;
	return seat;
}

#endif
