/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames whose source changes from packet to packet. What they change by is in their own payload: a
 * program that runs the same frame again and again finds there where it was, on any CPU, without a
 * map.
 */
#ifndef SLUICE_BENCH_VARY_H
#define SLUICE_BENCH_VARY_H

#include "header_sizes.h"
#include "sluice.h"
#include <bpf/bpf_endian.h>

#define IPV4_CHECKSUM (ETH_SIZE + 10)
#define IPV4_SOURCE   (ETH_SIZE + 12)
#define IPV6_SOURCE   (ETH_SIZE + 8)

/* Where the payload begins, and so struct vary. */
#define IPV4_PAYLOAD (ETH_SIZE + IPV4_SIZE + UDP_SIZE)
#define IPV6_PAYLOAD (ETH_SIZE + IPV6_SIZE + UDP_SIZE)

/* All frames are as long, so that no case pays more than another for copying them. */
#define FRAME_SIZE (IPV6_PAYLOAD + sizeof(struct vary))

/* The source: `base`, and in the bits of `mask` anything. Both are in the order of the address. */
struct vary {
	__u64 state; /* of the random numbers, never 0; or where a walk has come to */
	__u64 base[2];
	__u64 mask[2];
};

/*
 * xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled",
 * 2016.
 */
static inline __u64 vary_random(struct vary *vary)
{
	__u64 x = vary->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	vary->state = x;
	return x * 2685821657736338717ULL;
}

/* The next source of IPv4. Its best random bits are the high ones. */
static inline __u32 vary_next4(struct vary *vary)
{
	return vary->base[0] | (vary_random(vary) >> 32 & vary->mask[0]);
}

/* One of the two words of the next source of IPv6. */
static inline __u64 vary_next6(struct vary *vary, int word)
{
	return vary->base[word] | (vary_random(vary) & vary->mask[word]);
}

/* The sources of a walk: each in order, and none twice. Of IPv6, the first word of one: a /64. */
static inline __u32 vary_step4(struct vary *vary)
{
	return vary->base[0] | (bpf_htonl(vary->state++) & vary->mask[0]);
}

static inline __u64 vary_step6(struct vary *vary)
{
	return vary->base[0] | (bpf_cpu_to_be64(vary->state++) & vary->mask[0]);
}

/* The variables of generate.bpf.c. */
struct lane_state {
	struct vary vary;
	__u32 ifindex; /* of the device that sends */
	__u32 pad;
	volatile __u64 sent;
};

#endif
