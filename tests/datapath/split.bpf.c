// SPDX-License-Identifier: GPL-2.0
/*
 * Makes frames whose linear part ends within their headers: of a long frame in several buffers, as
 * BPF_PROG_TEST_RUN makes them on each kernel, it takes off the front, and hands the rest over.
 */
#include "sluice.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile __u32 front; /* bytes to take off; an Ethernet header stays in the linear part */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

SEC("xdp.frags")
int split(struct xdp_md *ctx)
{
	if (!bpf_xdp_adjust_head(ctx, front))
		bpf_tail_call(ctx, &programs, 0);
	return XDP_ABORTED;
}

/* How long the linear part is before that. */
SEC("xdp.frags")
int linear_size(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data;
}
