// SPDX-License-Identifier: GPL-2.0
/*
 * The packet generator, a program for BPF_PROG_TEST_RUN with live frames. The kernel reuses each
 * frame after it is sent, and does not restore its bytes. So the frame still contains the previous
 * source address. The program updates the checksum from the previous address to the new address.
 */
#include "vary.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct lane_state lane;

/* Returns a header's checksum after a field changed to `to` (RFC 1624, equation 3). */
static __always_inline __u16 checksum_change(__u16 checksum, __u32 from, __u32 to)
{
	__u32 sum = (__u16)~checksum;

	sum += (__u16)~from + (__u16)(~from >> 16);
	sum += (__u16)to + (__u16)(to >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static __always_inline int frame_send(struct xdp_md *ctx, __u32 next)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u16 *checksum = data + IPV4_CHECKSUM;
	__u32 *source = data + IPV4_SOURCE;

	if (data + IPV4_PAYLOAD > end)
		return XDP_ABORTED;
	*checksum = checksum_change(*checksum, *source, next);
	*source = next;
	lane.sent++;
	return bpf_redirect(lane.ifindex, 0);
}

SEC("xdp")
int bench_generate(struct xdp_md *ctx)
{
	return frame_send(ctx, vary_next4(&lane.vary));
}

/* Sends a frame from the next source, in the order of addresses. */
SEC("xdp")
int bench_generate_walk(struct xdp_md *ctx)
{
	return frame_send(ctx, vary_step4(&lane.vary));
}
