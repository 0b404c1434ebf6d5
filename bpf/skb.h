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

static __always_inline struct cursor skb_cursor(const struct __sk_buff *skb, __u32 offset)
{
	return (struct cursor){
		.pos = (void *)(long)skb->data + (offset & 0xff),
		.end = (void *)(long)skb->data_end,
	};
}

/* Headers may lie outside the linear part: pulls them in. False: there is nothing more to pull. */
static __always_inline bool skb_pull_headers(struct __sk_buff *skb)
{
	__u32 size = skb->len < SKB_HEADERS_SIZE ? skb->len : SKB_HEADERS_SIZE;

	return skb->data_end - skb->data < size && !bpf_skb_pull_data(skb, size);
}

static __always_inline enum sl_reason skb_parse_linear(struct __sk_buff *skb, struct packet *packet)
{
	struct cursor cursor = skb_cursor(skb, 0);
	enum sl_reason reason = packet_parse(&cursor, packet);

	if (!skb->vlan_present)
		return reason;
	/* TC sees the outer VLAN tag as metadata: what the frame holds are the inner ones */
	packet->vlan = skb->vlan_tci & VLAN_ID_MASK;
	return packet->ip_offset == ETHERNET_SIZE_MAX ? SL_PASS_VLAN_DEPTH : reason;
}

/*
 * As packet_look. Returns the size of all headers up to and with the transport header, 0 if it cannot be told.
 * Global, as ledger_charge is, for the verifier's sake.
 */
__noinline __u32 skb_look(struct __sk_buff *skb, struct packet *packet)
{
	enum packet_transport transport;
	struct cursor cursor;

	if (!packet)
		return 0;
	cursor = skb_cursor(skb, packet->ip_offset);
	transport = packet_look(&cursor, packet);
	if (transport == TRANSPORT_SHORT && skb_pull_headers(skb)) {
		cursor = skb_cursor(skb, packet->ip_offset);
		transport = packet_look(&cursor, packet);
	}
	if (transport != TRANSPORT_OK)
		return 0;
	return cursor.pos - (void *)(long)skb->data +
	       packet_transport_size(&cursor, packet->facts.proto);
}

/*
 * GRO has merged, or GSO will cut: one skb stands for several packets, each with headers of its own. The
 * transport header is the outer one: inside a tunnel the inner headers go uncounted.
 */
static __always_inline void skb_unmerge(struct __sk_buff *skb, struct packet *packet)
{
	__u32 headers = skb_look(skb, packet);
	__u32 segments;

	if (!headers || headers >= skb->len)
		return;
	segments = (skb->len - headers + skb->gso_size - 1) / skb->gso_size;
	packet->packets = segments;
	packet->bytes += (segments - 1) * headers;
}

/* As packet_parse. */
static __always_inline enum sl_reason skb_parse(struct __sk_buff *skb, struct packet *packet)
{
	enum sl_reason reason;

	/* on the wire the outer VLAN tag was in the frame */
	packet->packets = 1;
	packet->bytes = skb->len + (skb->vlan_present ? VLAN_TAG_SIZE : 0);
	reason = skb_parse_linear(skb, packet);
	if (reason == SL_PASS_SHORT && skb_pull_headers(skb))
		reason = skb_parse_linear(skb, packet);
	if (reason == SL_PASS_WITHIN && skb->gso_size)
		skb_unmerge(skb, packet);
	return reason;
}

#endif
