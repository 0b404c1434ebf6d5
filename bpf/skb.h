/* SPDX-License-Identifier: GPL-2.0 */
/* From an skb to a packet: what only TC has to undo, so that it judges what was or will be on the
 * wire. */
#ifndef SLUICE_SKB_H
#define SLUICE_SKB_H

#include "compiler.h"
#include "packet.h"

#define TC_ACT_UNSPEC (-1)
#define TC_ACT_SHOT   2

#define VLAN_TAG_SIZE 4

static __always_inline struct reader skb_reader(struct __sk_buff *skb, enum reader_kind kind)
{
	return (struct reader){
		.kind = kind,
		.start = (void *)(long)skb->data,
		.end = (void *)(long)skb->data_end,
		.ctx = skb,
		.size = skb->len,
	};
}

/* Whether the outer VLAN tag is metadata: 0 or 1, and not a branch, whose two ways the verifier would follow. */
static __always_inline __u32 skb_tags(const struct __sk_buff *skb)
{
	return skb->vlan_present & 1;
}

/* On TC what the frame holds are the inner tags. */
static __always_inline enum sl_reason
skb_parse_by(struct __sk_buff *skb, const struct reader *reader, struct packet *packet)
{
	__u32 tags = skb_tags(skb);

	packet->vlan = skb->vlan_tci & VLAN_ID_MASK &
		       -tags; /* a tag that is gone may leave its id behind */
	return packet_parse(reader, tags, packet);
}

/* As packet_parse, wherever the headers lie. */
BPF_GLOBAL int skb_parse_split(struct __sk_buff *skb, struct packet *packet)
{
	struct reader reader = skb_reader(skb, READ_SKB);

	return packet ? skb_parse_by(skb, &reader, packet) : SL_DROP_UNREADABLE;
}

/* As packet_look, wherever the headers lie. */
BPF_GLOBAL int skb_look_split(struct __sk_buff *skb, struct packet *packet)
{
	struct reader reader = skb_reader(skb, READ_SKB);

	return packet ? packet_look(&reader, packet) : TRANSPORT_SHORT;
}

/* As packet_look. */
BPF_GLOBAL int skb_look(struct __sk_buff *skb, struct packet *packet)
{
	struct reader reader = skb_reader(skb, READ_LINEAR);
	enum packet_transport transport;

	if (!packet)
		return TRANSPORT_SHORT;
	transport = packet_look(&reader, packet);
	if (transport == TRANSPORT_SHORT && reader_is_partial(&reader))
		return skb_look_split(skb, packet);
	return transport;
}

/* As packet_parse; of a merged packet also what packet_look and packet_unmerge find. */
static __always_inline enum sl_reason skb_parse(struct __sk_buff *skb, struct packet *packet)
{
	struct reader reader = skb_reader(skb, READ_LINEAR);
	__u32 tag = skb_tags(skb) * VLAN_TAG_SIZE; /* on the wire it was in the frame */
	enum sl_reason reason;

	packet->packets = 1;
	packet->bytes = skb->len + tag;
	reason = skb_parse_by(skb, &reader, packet);
	if (parse_is_partial(&reader, reason))
		reason = skb_parse_split(skb, packet);
	if (reason == SL_PASS_WITHIN && skb->gso_size) {
		struct merged merged = {
			.size = skb->len,
			.gso_size = skb->gso_size,
			.gso_segs = skb->gso_segs,
			.tag = tag,
		};

		skb_look(skb, packet);
		packet_unmerge(packet, &merged);
	}
	return reason;
}

#endif
