// SPDX-License-Identifier: GPL-2.0
/*
 * Makes frames whose linear part ends within the headers. The length of the linear part depends on
 * the kernel, so this program removes bytes from the front of the frame. Then it calls the program
 * under test.
 */
#include "sluice.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile __u32 front; /* bytes to remove; at least 14 must be left */

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

/* Returns the length of the linear part of a frame from which no bytes are removed. */
SEC("xdp.frags")
int linear_size(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data;
}
