/* SPDX-License-Identifier: GPL-2.0 */
/* The parser on XDP. It reads an XDP buffer, which may have several fragments, for packet.h. */
#ifndef SLUICE_XDP_H
#define SLUICE_XDP_H

#include "base.h"
#include "packet.h"

static __always_inline struct reader xdp_reader(struct xdp_md *ctx, enum reader_kind kind,
						const struct packet *packet)
{
	return (struct reader){
		.kind = kind,
		.start = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
		.ctx = ctx,
		.size = packet ? packet->bytes : 0,
	};
}

/* Parses an XDP buffer with all its fragments by packet_parse(). */
BPF_GLOBAL int xdp_parse_split(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader = xdp_reader(ctx, READ_XDP, packet);

	return packet ? packet_parse(&reader, 0, packet) : SL_DROP_UNREADABLE;
}

/* Inspects an XDP buffer with all its fragments by packet_inspect(). */
BPF_GLOBAL int xdp_inspect_split(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader = xdp_reader(ctx, READ_XDP, packet);

	return packet ? packet_inspect(&reader, packet) : TRANSPORT_SHORT;
}

/* Inspects the payload in an XDP buffer with all its fragments. */
BPF_GLOBAL int xdp_payload_split(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader = xdp_reader(ctx, READ_XDP, packet);

	return packet ? packet_inspect_payload(&reader, packet) : false;
}

/*
 * Inspects the linear part by packet_inspect(). If the linear part is too short, inspects all
 * fragments. deep: bits of enum sl_deep
 */
BPF_GLOBAL int xdp_inspect(struct xdp_md *ctx, struct packet *packet, __u32 deep)
{
	struct reader reader = xdp_reader(ctx, READ_LINEAR, packet);
	enum packet_transport transport =
		packet ? packet_inspect(&reader, packet) : TRANSPORT_SHORT;

	if (transport == TRANSPORT_SHORT && reader_is_partial(&reader))
		transport = xdp_inspect_split(ctx, packet);
	if (deep & SL_DEEP_PAYLOAD && packet && !packet_inspect_payload(&reader, packet) &&
	    reader_is_partial(&reader))
		xdp_payload_split(ctx, packet);
	return transport;
}

/*
 * Parses the linear part by packet_parse(). If the linear part is too short, parses all fragments.
 */
static __always_inline enum sl_reason xdp_parse(struct xdp_md *ctx, struct packet *packet)
{
	struct reader reader;
	enum sl_reason reason;

	packet->packets = 1;
	packet->bytes = frame_length(bpf_xdp_get_buff_len(ctx));
	reader = xdp_reader(ctx, READ_LINEAR, packet);
	reason = packet_parse(&reader, 0, packet);
	if (reason == PARSED)
		return reason;
	return parse_is_partial(&reader, reason) ? xdp_parse_split(ctx, packet) : reason;
}

#endif
