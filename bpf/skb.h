/* SPDX-License-Identifier: GPL-2.0 */
/* From an skb to a packet: what only TC has to undo, so that it judges what was or will be on the
 * wire. */
#ifndef SLUICE_SKB_H
#define SLUICE_SKB_H

#include "packet.h"

#define TC_ACT_UNSPEC (-1)
#define TC_ACT_SHOT   2

#define VLAN_TAG_SIZE 4

/* Ethernet, two tags, IPv6, a few extension headers, TCP with options. */
#define SKB_HEADERS_SIZE 256

static __always_inline enum sl_reason skb_parse_linear(struct __sk_buff *skb, struct packet *packet)
{
	*packet = (struct packet){
		.cursor = {(void *)(long)skb->data, (void *)(long)skb->data_end},
		.packets = 1,
		/* TC sees the outer VLAN tag as metadata: on the wire it was in the frame */
		.bytes = skb->len + (skb->vlan_present ? VLAN_TAG_SIZE : 0),
	};
	return packet_parse(packet);
}

/*
 * GRO has merged, or GSO will cut: one skb stands for several packets, each with headers of its
 * own. The transport header is the outer one: inside a tunnel the inner headers go uncounted.
 */
static __always_inline void skb_unmerge(struct __sk_buff *skb, struct packet *packet)
{
	__u32 headers, payload, segments;

	if (packet_find_transport(packet) != TRANSPORT_OK)
		return;
	headers = packet->cursor.pos - (void *)(long)skb->data + packet_transport_size(packet);
	if (headers >= skb->len)
		return;
	payload = skb->len - headers;
	segments = (payload + skb->gso_size - 1) / skb->gso_size;
	packet->packets = segments;
	packet->bytes += (segments - 1) * headers;
}

/* As packet_parse. The headers may lie outside the linear part: then they are pulled in, once. */
static __always_inline enum sl_reason skb_parse(struct __sk_buff *skb, struct packet *packet)
{
	enum sl_reason reason = skb_parse_linear(skb, packet);

	if (reason == SL_PASS_SHORT && skb->data_end - skb->data < skb->len) {
		__u32 size = skb->len < SKB_HEADERS_SIZE ? skb->len : SKB_HEADERS_SIZE;

		if (!bpf_skb_pull_data(skb, size))
			reason = skb_parse_linear(skb, packet);
	}
	if (reason == SL_PASS_WITHIN && skb->gso_size)
		skb_unmerge(skb, packet);
	return reason;
}

#endif
