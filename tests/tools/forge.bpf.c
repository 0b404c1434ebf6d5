// SPDX-License-Identifier: GPL-2.0
/* BPF programs of forge that change the source of each frame and send the frame. */
#include "generate.bpf.c"

/* Sends a frame with a new IPv6 source. Its UDP checksum is wrong, but no receiver checks it. */
SEC("xdp")
int forge_ipv6(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 *source = data + IPV6_SOURCE;

	if (data + IPV6_PAYLOAD > end)
		return XDP_ABORTED;
	source[0] = lane.vary.base[0] | (vary_random(&lane.vary) & lane.vary.mask[0]);
	source[1] = lane.vary.base[1] | (vary_random(&lane.vary) & lane.vary.mask[1]);
	lane.sent++;
	return bpf_redirect(lane.ifindex, 0);
}

/* Each source sends this number of consecutive IPv4 frames. */
__u32 run_length = 1;
__u32 run_source;

SEC("xdp")
int forge_runs(struct xdp_md *ctx)
{
	if (!run_length || !(lane.sent % run_length))
		run_source = vary_next4(&lane.vary);
	return frame_send(ctx, run_source);
}
