/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames whose source changes from packet to packet. The payload is a struct vary. A BPF program
 * computes the next source from this payload, so it needs no map.
 */
#ifndef SLUICE_BENCH_VARY_H
#define SLUICE_BENCH_VARY_H

#include "header_sizes.h"
#include "sluice.h"
#include <bpf/bpf_endian.h>

#define IPV4_CHECKSUM (ETH_SIZE + 10)
#define IPV4_SOURCE   (ETH_SIZE + 12)
#define IPV6_SOURCE   (ETH_SIZE + 8)

/* Offset in the frame of the payload, which is a struct vary. */
#define IPV4_PAYLOAD (ETH_SIZE + IPV4_SIZE + UDP_SIZE)
#define IPV6_PAYLOAD (ETH_SIZE + IPV6_SIZE + UDP_SIZE)

/* All frames have this size, so that copying a frame costs the same in all cases. */
#define FRAME_SIZE (IPV6_PAYLOAD + sizeof(struct vary))

/*
 * Determines the next source: `base`, with the bits of `mask` replaced. `base` and `mask` are in
 * network byte order.
 */
struct vary {
	__u64 state; /* number of the next source, or state of the random numbers, never 0 */
	__u64 base[2];
	__u64 mask[2];
};

/*
 * Returns a random number by xorshift64*: Vigna, "An experimental exploration of Marsaglia's
 * xorshift generators, scrambled", 2016.
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

/*
 * Returns a random IPv4 source. Uses the high 32 bits, because they are more random than the low 32
 * bits.
 */
static inline __u32 vary_next4(struct vary *vary)
{
	return vary->base[0] | (vary_random(vary) >> 32 & vary->mask[0]);
}

/* Returns one of the two 64-bit words of a random IPv6 source. */
static inline __u64 vary_next6(struct vary *vary, int word)
{
	return vary->base[word] | (vary_random(vary) & vary->mask[word]);
}

/* Return the next source in order: an IPv4 address, or the upper half of an IPv6 address. */
static inline __u32 vary_step4(struct vary *vary)
{
	return vary->base[0] | (bpf_htonl(vary->state++) & vary->mask[0]);
}

static inline __u64 vary_step6(struct vary *vary)
{
	return vary->base[0] | (bpf_cpu_to_be64(vary->state++) & vary->mask[0]);
}

/* Variables of generate.bpf.c, which user space maps into its memory. */
struct lane_state {
	struct vary vary;
	__u32 ifindex; /* index of the sending device */
	__u32 pad;
	volatile __u64 sent;
};

#endif
