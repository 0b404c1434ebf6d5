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

static __always_inline enum sl_reason skb_parse_linear(struct __sk_buff *skb, struct cursor *cursor,
						       struct packet *packet)
{
	*cursor = (struct cursor){(void *)(long)skb->data, (void *)(long)skb->data_end};
	*packet = (struct packet){
		.packets = 1,
		/* TC sees the outer VLAN tag as metadata: on the wire it was in the frame */
		.bytes = skb->len + (skb->vlan_present ? VLAN_TAG_SIZE : 0),
	};
	return packet_parse(cursor, packet);
}

/*
 * The size of all headers up to and with the transport header, given where the fixed IP header ends; 0 if
 * it cannot be told. Global, as ledger_charge is, for the verifier's sake.
 */
__noinline __u32 skb_headers_size(struct __sk_buff *skb, struct packet *packet, __u32 ip_end)
{
	void *data = (void *)(long)skb->data;
	struct cursor cursor = {data + (ip_end & 0xff), (void *)(long)skb->data_end};

	if (!packet || packet_find_transport(&cursor, packet) != TRANSPORT_OK)
		return 0;
	return cursor.pos - data + packet_transport_size(&cursor, packet);
}

/*
 * GRO has merged, or GSO will cut: one skb stands for several packets, each with headers of its own. The
 * transport header is the outer one: inside a tunnel the inner headers go uncounted.
 */
static __always_inline void skb_unmerge(struct __sk_buff *skb, struct packet *packet, __u32 ip_end)
{
	__u32 headers = skb_headers_size(skb, packet, ip_end);
	__u32 segments;

	if (!headers || headers >= skb->len)
		return;
	segments = (skb->len - headers + skb->gso_size - 1) / skb->gso_size;
	packet->packets = segments;
	packet->bytes += (segments - 1) * headers;
}

/* As packet_parse. The headers may lie outside the linear part: then they are pulled in, once. */
static __always_inline enum sl_reason skb_parse(struct __sk_buff *skb, struct packet *packet)
{
	struct cursor cursor;
	enum sl_reason reason = skb_parse_linear(skb, &cursor, packet);

	if (reason == SL_PASS_SHORT && skb->data_end - skb->data < skb->len) {
		__u32 size = skb->len < SKB_HEADERS_SIZE ? skb->len : SKB_HEADERS_SIZE;

		if (!bpf_skb_pull_data(skb, size))
			reason = skb_parse_linear(skb, &cursor, packet);
	}
	if (reason == SL_PASS_WITHIN && skb->gso_size)
		skb_unmerge(skb, packet, cursor.pos - (void *)(long)skb->data);
	return reason;
}

#endif
