/* SPDX-License-Identifier: GPL-2.0 */
/* The parser on XDP: gives packet.h the bytes of a buffer, which may be in several fragments. */
#ifndef SLUICE_XDP_H
#define SLUICE_XDP_H

#include "compiler.h"
#include "packet.h"

/* size: bytes of the whole frame */
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

/* packet_parse(), in all fragments */
BPF_GLOBAL int xdp_parse_split(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader;

	if (!packet)
		return SL_DROP_UNREADABLE;
	reader = xdp_reader(ctx, READ_XDP, packet->bytes);
	return packet_parse(&reader, 0, packet);
}

/* packet_inspect(), in all fragments */
BPF_GLOBAL int xdp_inspect_split(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader;

	if (!packet)
		return TRANSPORT_SHORT;
	reader = xdp_reader(ctx, READ_XDP, packet->bytes);
	return packet_inspect(&reader, packet);
}

/* packet_inspect(), first in the linear part */
BPF_GLOBAL int xdp_inspect(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader;
	enum packet_transport transport;

	if (!packet)
		return TRANSPORT_SHORT;
	reader = xdp_reader(ctx, READ_LINEAR, packet->bytes);
	transport = packet_inspect(&reader, packet);
	if (transport == TRANSPORT_SHORT && reader_is_partial(&reader))
		return xdp_inspect_split(ctx, packet);
	return transport;
}

/* packet_parse(), first in the linear part */
static __always_inline enum sl_reason xdp_parse(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader;
	enum sl_reason reason;

	packet->packets = 1;
	packet->bytes = bpf_xdp_get_buff_len(ctx);
	reader = xdp_reader(ctx, READ_LINEAR, packet->bytes);
	reason = packet_parse(&reader, 0, packet);
	if (reason == PARSED) /* the usual case first */
		return reason;
	return parse_is_partial(&reader, reason) ? xdp_parse_split(ctx, packet) : reason;
}

#endif
