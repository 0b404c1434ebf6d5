/* SPDX-License-Identifier: GPL-2.0 */
/* From an XDP buffer to a packet: its frame may lie in several pieces. */
#ifndef SLUICE_XDP_H
#define SLUICE_XDP_H

#include "compiler.h"
#include "packet.h"

/* size: of the whole frame */
static __always_inline struct reader xdp_reader(struct xdp_md *ctx, enum reader_kind kind,
						__u32 size)
{
	return (struct reader){
		.kind = kind,
		.start = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
		.ctx = ctx,
		.size = size,
	};
}

/* As packet_parse, wherever the headers lie. */
BPF_GLOBAL int xdp_parse_split(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader;

	if (!packet)
		return SL_DROP_UNREADABLE;
	reader = xdp_reader(ctx, READ_XDP, packet->bytes);
	return packet_parse(&reader, 0, packet);
}

/* As packet_look, wherever the headers lie. */
BPF_GLOBAL int xdp_look_split(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader;

	if (!packet)
		return TRANSPORT_SHORT;
	reader = xdp_reader(ctx, READ_XDP, packet->bytes);
	return packet_look(&reader, packet);
}

/* As packet_look. */
BPF_GLOBAL int xdp_look(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader;
	enum packet_transport transport;

	if (!packet)
		return TRANSPORT_SHORT;
	reader = xdp_reader(ctx, READ_LINEAR, packet->bytes);
	transport = packet_look(&reader, packet);
	if (transport == TRANSPORT_SHORT && reader_is_partial(&reader))
		return xdp_look_split(ctx, packet);
	return transport;
}

/* As packet_parse. */
static __always_inline enum sl_reason xdp_parse(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader;
	enum sl_reason reason;

	packet->packets = 1;
	packet->bytes = bpf_xdp_get_buff_len(ctx);
	reader = xdp_reader(ctx, READ_LINEAR, packet->bytes);
	reason = packet_parse(&reader, 0, packet);
	if (reason == SL_PASS_WITHIN) /* first: so it is nearly always */
		return reason;
	return parse_is_partial(&reader, reason) ? xdp_parse_split(ctx, packet) : reason;
}

#endif
