/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parser on TC. It reads an skb for packet.h, and computes what was on the wire. The kernel may
 * have moved a VLAN tag to the metadata of the skb. It may have merged several packets into one
 * buffer.
 */
#ifndef SLUICE_SKB_H
#define SLUICE_SKB_H

#include "base.h"
#include "packet.h"

#define TC_ACT_UNSPEC (-1)
#define TC_ACT_SHOT   2

#define VLAN_TAG_SIZE 4

/*
 * Value of `tstamp_type` in the kernel's UAPI: `tstamp` is a departure time on the monotonic clock.
 */
#define BPF_SKB_TSTAMP_DELIVERY_MONO 1

static __always_inline struct reader skb_reader(struct __sk_buff *skb, enum reader_kind kind)
{
	return (struct reader){
		.kind = kind,
		.start = (void *)(long)skb->data,
		.end = (void *)(long)skb->data_end,
		.ctx = skb,
		.size = frame_length(skb->len),
	};
}

/*
 * Returns 1 if the outer VLAN tag is in the metadata, otherwise 0. Uses no branch, because the
 * verifier would then walk the parser twice.
 */
static __always_inline __u32 skb_tags(const struct __sk_buff *skb)
{
	return skb->vlan_present & 1;
}

/*
 * Calls packet_parse() with the VLAN tag in the metadata. The frame itself contains only the inner
 * tags.
 */
static __always_inline enum sl_reason
skb_parse_by(struct __sk_buff *skb, const struct reader *reader, struct packet *packet)
{
	__u32 tags = skb_tags(skb);

	/*
	 * If `tags` is 0, vlan_tci may contain the id of a removed tag. The mask makes this id 0.
	 */
	packet->facts.vlan = skb->vlan_tci & VLAN_ID_MASK & -tags;
	return packet_parse(reader, tags, packet);
}

/* Parses an skb with all its fragments by packet_parse(). */
BPF_GLOBAL int skb_parse_split(struct __sk_buff *skb, struct packet *packet)
{
	struct reader reader = skb_reader(skb, READ_SKB);

	return packet ? skb_parse_by(skb, &reader, packet) : SL_DROP_UNREADABLE;
}

/* Inspects an skb with all its fragments by packet_inspect(). */
BPF_GLOBAL int skb_inspect_split(struct __sk_buff *skb, struct packet *packet)
{
	struct reader reader = skb_reader(skb, READ_SKB);

	return packet ? packet_inspect(&reader, packet) : TRANSPORT_SHORT;
}

/* Inspects the payload in an skb with all its fragments. */
BPF_GLOBAL int skb_payload_split(struct __sk_buff *skb, struct packet *packet)
{
	struct reader reader = skb_reader(skb, READ_SKB);

	return packet ? packet_inspect_payload(&reader, packet) : false;
}

/*
 * Inspects the linear part by packet_inspect(). If the linear part is too short, inspects all
 * fragments. deep: bits of enum sl_deep
 */
BPF_GLOBAL int skb_inspect(struct __sk_buff *skb, struct packet *packet, __u32 deep)
{
	struct reader reader = skb_reader(skb, READ_LINEAR);
	enum packet_transport transport;

	if (!packet)
		return TRANSPORT_SHORT;
	transport = packet_inspect(&reader, packet);
	if (transport == TRANSPORT_SHORT && reader_is_partial(&reader))
		transport = skb_inspect_split(skb, packet);
	if (skb->gso_size)
		packet_cut_length(packet, skb->gso_size);
	if (deep & SL_DEEP_PAYLOAD && !packet_inspect_payload(&reader, packet) &&
	    reader_is_partial(&reader))
		skb_payload_split(skb, packet);
	return transport;
}

/*
 * Parses the linear part by packet_parse(). If the linear part is too short, parses all fragments.
 * If the buffer contains merged packets, also inspects it, because the cost depends on the headers
 * of these packets.
 */
static __always_inline enum sl_reason skb_parse(struct __sk_buff *skb, struct packet *packet)
{
	struct reader reader = skb_reader(skb, READ_LINEAR);
	__u32 tag = skb_tags(skb) * VLAN_TAG_SIZE; /* bytes of the VLAN tag in the metadata */
	enum sl_reason reason;

	packet->packets = 1;
	packet->bytes = frame_length(skb->len) + tag;
	reason = skb_parse_by(skb, &reader, packet);
	if (parse_is_partial(&reader, reason))
		reason = skb_parse_split(skb, packet);
	if (reason == PARSED && skb->gso_size) {
		struct merged merged = {
			.size = skb->len,
			.gso_size = skb->gso_size,
			.gso_segs = skb->gso_segs,
			.tag = tag,
		};

		skb_inspect(skb, packet, SL_DEEP_HEADERS);
		packet_unmerge(packet, &merged);
	}
	return reason;
}

/*
 * Returns the departure time, in ticks, that TCP pacing or SO_TXTIME has set. Returns 0 if it is
 * not set. Ignores a time of another clock, as fq does. Linux before 6.12 does not report the clock
 * of a packet socket's SO_TXTIME, so there a shape replaces that time.
 */
static __always_inline __u64 skb_earliest(const struct __sk_buff *skb)
{
	return skb->tstamp_type == BPF_SKB_TSTAMP_DELIVERY_MONO ? skb->tstamp * SL_TICKS_PER_NS : 0;
}

/* Sets the departure time of an skb, rounded up to 1 ns. The fq qdisc delays the skb until then. */
static __always_inline void skb_depart(struct __sk_buff *skb, __u64 ticks)
{
	__u64 ns = (ticks + SL_TICKS_PER_NS - 1) / SL_TICKS_PER_NS;

	/*
	 * If the frame has a VLAN tag, bpf_skb_set_tstamp() fails. Then `tstamp` is enough, because
	 * fq reads the departure time from it.
	 */
	if (bpf_skb_set_tstamp(skb, ns, BPF_SKB_TSTAMP_DELIVERY_MONO))
		skb->tstamp = ns;
}

#endif
