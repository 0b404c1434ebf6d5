/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parser: reads the bytes of a frame into the packet context. It also compiles natively, so
 * that the fuzzers test the parser that ships.
 *
 * The rule: a packet that the kernel would deliver is judged. If the gate has rules, a frame that
 * cannot be judged and might be delivered is dropped. Only a frame that no IP stack accepts passes
 * without a verdict. So a frame is judged by its source as soon as its fixed IP header can be read,
 * whatever else is wrong with it. A frame without a source is in one of these classes, which follow
 * from the kernel's receive path:
 *
 *  pass not-ip      No tag, and an EtherType other than IPv4 and IPv6: __netif_receive_skb_core()
 *                   delivers by EtherType, so no IP stack gets the frame. A length in place of the
 *                   EtherType (802.3, below 0x600) goes to LLC (eth_type_trans(),
 *                   vlan_set_encap_proto()), which delivers no IP that came over Ethernet. But a
 *                   host beyond a bridge may accept IP in LLC and SNAP (RFC 1042, 802.1H), which
 *                   stations of an access point use, so the parser skips LLC and SNAP like a tag.
 *                   IP in another EtherType (PPPoE, MPLS, MACsec) is judged on the device that
 *                   unwraps it, or not at all: a documented limitation.
 *  pass short       The frame ends before its last EtherType: eth_type_trans() and skb_vlan_untag()
 *                   find none either. If a bridge to a real NIC pads the frame, the EtherType is 0:
 *                   a length without SNAP.
 *  pass bad-header  The version contradicts the EtherType, or the header of IPv4 is shorter than 20
 *                   bytes: ip_rcv_core() and ip6_rcv_core() check that first and drop the packet.
 *                   So does every host beyond a bridge.
 *  drop unreadable  IPv4 or IPv6, but the frame ends within the fixed header. This kernel drops it,
 *                   but the NIC of a bridge would pad it with zeros, and a host beyond the bridge
 *                   might then accept it. Also a frame that a kernel helper fails to read.
 *  drop vlan-depth  More than VLAN_TAGS_MAX tags: __netif_receive_skb_core() removes any number of
 *                   tags of VLAN 0, or of VLANs that have a device each, and delivers the rest.
 */
#ifndef SLUICE_PACKET_H
#define SLUICE_PACKET_H

#include "context.h"

#ifdef __bpf__
#include <bpf/bpf_endian.h>
#else
#include <string.h>
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/icmp.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#define bpf_htons(x) htons(x)
#define bpf_ntohs(x) ntohs(x)
#define bpf_htonl(x) htonl(x)

/* the kernel's UAPI does not have this type */
struct vlan_hdr {
	__be16 h_vlan_TCI;
	__be16 h_vlan_encapsulated_proto;
};
#endif

/* EtherTypes. vmlinux.h has no macros, because it is made from BTF. */
#define ETHERTYPE_IPV4	 0x0800
#define ETHERTYPE_IPV6	 0x86DD
#define ETHERTYPE_8021Q	 0x8100
#define ETHERTYPE_8021AD 0x88A8
#define ETHERTYPE_LEAST	 0x0600 /* smaller values are a length, followed by an LLC header */

/* Largest number of VLAN tags to skip, including a tag in the metadata. Networks use fewer tags. */
#define VLAN_TAGS_MAX 8

#define PROTO_HOPOPTS  0
#define PROTO_ROUTING  43
#define PROTO_FRAGMENT 44
#define PROTO_AH       51
#define PROTO_DSTOPTS  60

/*
 * Largest number of IPv6 extension headers to skip. RFC 8200 section 4.1 lists seven. Linux accepts
 * more. A packet with more than this number gets SL_FACT_UNREAD.
 */
#define IPV6_EXT_MAX 8

/*
 * Masks of frag_off in an IPv4 header, and of the offset field in an IPv6 fragment header.
 * OFFSET_MASK selects the offset, which is 0 in the first fragment. FRAGMENT also selects the bit
 * "more fragments".
 */
#define IPV4_OFFSET_MASK 0x1FFF
#define IPV4_FRAGMENT	 0x3FFF
#define IPV6_OFFSET_MASK 0xFFF8
#define IPV6_FRAGMENT	 0xFFF9

#define VLAN_ID_MASK 0x0FFF

#define LENGTH_MAX 0xffffU /* the highest value of a length field */

/* Where the DSCP is in the type of service of IPv4, and in the first two bytes of IPv6. */
#define DSCP4_SHIFT 2
#define DSCP6_SHIFT 6
#define DSCP_MASK   63

/* Offset in a TCP header of two bytes: the data offset (header length), and the flags. */
#define TCP_WORD_OFFSET 12
#define TCP_SYN		0x02
#define TCP_ACK		0x10

/* --- Reading -------------------------------------------------------------------------------- */

enum reader_kind {
	READ_LINEAR, /* reads the linear part in place; cannot read fragments */
	READ_XDP,    /* copies from the linear part or a fragment by bpf_xdp_load_bytes() */
	READ_SKB,    /* copies from the linear part or a fragment by bpf_skb_load_bytes() */
};

/*
 * Reads the bytes of a frame, like the kernel's skb_header_pointer(). A driver may store headers,
 * or all of a frame, in fragments after the linear part (mlx5 with a striding receive queue). So
 * each frame is first read by READ_LINEAR. If the linear part ends too early, the frame is read
 * again by READ_XDP or READ_SKB. `kind` is a constant at every use, so each instance of the parser
 * contains one way of reading.
 */
struct reader {
	void *start; /* start of the linear part */
	void *end;
	void *ctx;  /* context for the helpers that copy; in native builds, the frame */
	__u32 size; /* size of the frame with all its fragments, in bytes */
	enum reader_kind kind;
};

/* Returns whether the frame has fragments, which READ_LINEAR cannot read. */
static __always_inline bool reader_is_partial(const struct reader *linear)
{
	return linear->end - linear->start < linear->size;
}

/* Returns whether a reader can read each of the first `end` bytes of the frame. */
static __always_inline bool reader_has(const struct reader *reader, __u32 end)
{
	if (reader->kind == READ_LINEAR)
		return reader->start + end <= reader->end;
	return end <= reader->size;
}

static __always_inline long reader_copy(const struct reader *reader, __u32 offset, void *buffer,
					__u32 size)
{
#ifdef __bpf__
	if (reader->kind == READ_XDP)
		return bpf_xdp_load_bytes(reader->ctx, offset, buffer, size);
	return bpf_skb_load_bytes(reader->ctx, offset, buffer, size);
#else
	if (!reader->ctx)
		return -1;
	memcpy(buffer, (const char *)reader->ctx + offset, size);
	return 0;
#endif
}

/*
 * Returns a pointer to `size` bytes at an offset of the frame, in place or in `buffer`. Returns
 * NULL if they cannot be read.
 */
static __always_inline const void *reader_get(const struct reader *reader, __u32 offset, __u32 size,
					      void *buffer)
{
	if (reader->kind == READ_LINEAR) {
		const void *header = reader->start + offset;

		return header + size <= reader->end ? header : NULL;
	}
	if (!reader_has(reader, offset + size) || reader_copy(reader, offset, buffer, size))
		return NULL;
	return buffer;
}

/* --- The source ----------------------------------------------------------------------------- */

/* Result of packet_parse() if the frame has a source address. */
#define PARSED SL_PASS_WITHIN

/*
 * Call this if the EtherType cannot be read. Returns the reason under which the frame is counted.
 * end: offset of the end of the EtherType.
 */
static __always_inline enum sl_reason link_refusal(const struct reader *reader, __u32 end)
{
	return reader_has(reader, end) ? SL_DROP_UNREADABLE : SL_PASS_SHORT;
}

static __always_inline bool type_is_tag(__be16 type)
{
	return type == bpf_htons(ETHERTYPE_8021Q) || type == bpf_htons(ETHERTYPE_8021AD);
}

static __always_inline bool type_is_length(__be16 type)
{
	return bpf_ntohs(type) < ETHERTYPE_LEAST;
}

/*
 * Skips VLAN tags, and adds their number to *tags. Sets the packet's VLAN to the first id that is
 * not 0. A tag with id 0 has only a priority.
 */
static __always_inline enum sl_reason parse_tags(const struct reader *reader, __u32 *tags,
						 struct packet *packet, __u32 *offset, __be16 *type)
{
	for (; *tags < VLAN_TAGS_MAX && type_is_tag(*type); ++*tags) {
		struct vlan_hdr buffer;
		const struct vlan_hdr *tag = reader_get(reader, *offset, sizeof(buffer), &buffer);

		if (!tag)
			return link_refusal(reader, *offset + sizeof(buffer));
		if (!packet->facts.vlan)
			packet->facts.vlan = bpf_ntohs(tag->h_vlan_TCI) & VLAN_ID_MASK;
		*type = tag->h_vlan_encapsulated_proto;
		*offset += sizeof(*tag);
	}
	return type_is_tag(*type) ? SL_DROP_VLAN_DEPTH : PARSED;
}

/* Header of LLC (DSAP, SSAP, control), then SNAP (organization 0 or 0000f8, EtherType). */
struct snap_hdr {
	__be16 sap;
	__be16 control; /* control field of LLC, then the first byte of the SNAP organization */
	__be16 organization;
	__be16 type;
};

/*
 * Skips the LLC and SNAP headers, and reads the EtherType from the SNAP header. Returns
 * SL_PASS_NOT_IP if there is no SNAP header.
 */
static __always_inline enum sl_reason parse_snap(const struct reader *reader, __u32 *offset,
						 __be16 *type)
{
	struct snap_hdr buffer;
	const struct snap_hdr *snap = reader_get(reader, *offset, sizeof(buffer), &buffer);

	if (!snap)
		return link_refusal(reader, *offset + sizeof(buffer));
	if (snap->sap != bpf_htons(0xaaaa) || snap->control != bpf_htons(0x0300) ||
	    (snap->organization && snap->organization != bpf_htons(0x00f8)))
		return SL_PASS_NOT_IP;
	*type = snap->type;
	*offset += sizeof(*snap);
	return PARSED;
}

/* Skips VLAN tags, LLC and SNAP, and reads the EtherType. tags: number of tags in the metadata. */
static __always_inline enum sl_reason parse_link(const struct reader *reader, __u32 tags,
						 struct packet *packet, __u32 *offset, __be16 *type)
{
	enum sl_reason reason = parse_tags(reader, &tags, packet, offset, type);

	if (reason != PARSED || !type_is_length(*type))
		return reason;
	reason = parse_snap(reader, offset, type);
	/* As the kernel does, skip a VLAN tag that follows the SNAP header. */
	return reason != PARSED ? reason : parse_tags(reader, &tags, packet, offset, type);
}

/* Returns two 32-bit parts of an address, in network byte order, as one 64-bit word. */
static __always_inline __u64 addr_word(__u32 first, __u32 second)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (__u64)second << 32 | first;
#else
	return (__u64)first << 32 | second;
#endif
}

/*
 * Stores the source address as two 64-bit words. Later loads have this width. A load that is wider
 * than the earlier store would wait until the store has left the CPU's store buffer. This wait
 * costs a third of the time of a hot packet.
 */
static __always_inline void source_set(struct packet *packet, __u64 upper, __u64 lower)
{
	__u64 *words = (__u64 *)packet->source.addr;

	words[0] = upper;
	words[1] = lower;
}

static __always_inline enum sl_reason parse_ipv4(const struct reader *reader, __u32 offset,
						 struct packet *packet)
{
	struct iphdr buffer;
	const struct iphdr *ip = reader_get(reader, offset, sizeof(buffer), &buffer);

	if (!ip)
		return SL_DROP_UNREADABLE;
	if (ip->version != 4 || ip->ihl < 5)
		return SL_PASS_BAD_HEADER;

	packet->source.family = bpf_htonl(SL_FAMILY_IPV4);
	packet->source.bits = SL_FAMILY_BITS + 32;
	source_set(packet, addr_word(ip->saddr, 0), 0);
	return PARSED;
}

static __always_inline enum sl_reason parse_ipv6(const struct reader *reader, __u32 offset,
						 struct packet *packet)
{
	struct ipv6hdr buffer;
	const struct ipv6hdr *ip = reader_get(reader, offset, sizeof(buffer), &buffer);
	const __be32 *from;

	if (!ip)
		return SL_DROP_UNREADABLE;
	if (ip->version != 6)
		return SL_PASS_BAD_HEADER;

	from = (const __be32 *)&ip->saddr;
	packet->source.family = bpf_htonl(SL_FAMILY_IPV6);
	packet->source.bits = SL_FAMILY_BITS + 128;
	source_set(packet, addr_word(from[0], from[1]), addr_word(from[2], from[3]));
	return PARSED;
}

/*
 * Finds the source address of a frame. Returns PARSED, or if the frame has no source, the reason
 * under which the frame is counted. The caller has set `packet` to zeros, except for facts.vlan.
 * tags: number of tags in the metadata.
 */
static __always_inline enum sl_reason packet_parse(const struct reader *reader, __u32 tags,
						   struct packet *packet)
{
	struct ethhdr buffer;
	const struct ethhdr *eth = reader_get(reader, 0, sizeof(buffer), &buffer);
	__u32 offset = sizeof(*eth);
	enum sl_reason reason;
	__be16 type;

	if (!eth)
		return link_refusal(reader, sizeof(*eth));
	type = eth->h_proto;
	/* Test for IP first, because most frames are IP without a VLAN tag. */
	if (type != bpf_htons(ETHERTYPE_IPV4) && type != bpf_htons(ETHERTYPE_IPV6)) {
		reason = parse_link(reader, tags, packet, &offset, &type);
		if (reason != PARSED)
			return reason;
	}
	packet->ip_offset = offset;
	if (type == bpf_htons(ETHERTYPE_IPV4))
		return parse_ipv4(reader, offset, packet);
	if (type == bpf_htons(ETHERTYPE_IPV6))
		return parse_ipv6(reader, offset, packet);
	return SL_PASS_NOT_IP;
}

/*
 * The parser has failed on the linear part of a frame. Returns whether it may succeed if it reads
 * all fragments.
 */
static __always_inline bool parse_is_partial(const struct reader *linear, enum sl_reason reason)
{
	return (reason == SL_PASS_SHORT || reason == SL_DROP_UNREADABLE) &&
	       reader_is_partial(linear);
}

/* --- After the source: only if a limit needs it --------------------------------------------- */

enum packet_transport {
	TRANSPORT_OK,	   /* the offset of the transport header is known */
	TRANSPORT_HIDDEN,  /* a fragment after the first, so it has no transport header */
	TRANSPORT_SHORT,   /* the transport header is not in the frame, or not in its linear part */
	TRANSPORT_TOO_DEEP /* more extension headers than IPV6_EXT_MAX */
};

/* What is known about the headers of a packet, from the IP header to the transport header. */
struct layers {
	/*
	 * offset of the end of the headers that were read, or of the transport header if
	 * TRANSPORT_OK
	 */
	__u32 offset;
	__u32 end;  /* offset of the end of the IP packet; padding may follow */
	__u8 proto; /* protocol number from the last header that was read */
	/* 1 if `proto` is the transport protocol; a later IPv6 fragment does not contain it */
	__u8 has_transport;
	/* IPV4_FRAGMENT or IPV6_FRAGMENT bits, in host order; 0: not a fragment */
	__u16 fragment;
};

/*
 * Returns the end of an IP packet. Receivers ignore the padding after this end, so the parser must
 * not read a header there. If the length field is 0 (BIG TCP, jumbograms), returns the largest
 * number.
 */
static __always_inline __u32 layers_end(__u32 start, __u32 length)
{
	return length ? start + length : ~0U;
}

/* Returns whether the first `end` bytes of the frame can be read and are not padding. */
static __always_inline bool layers_have(const struct reader *reader, const struct layers *layers,
					__u32 end)
{
	return end <= layers->end && reader_has(reader, end);
}

/*
 * Extension headers to skip, as a bit mask. A mask needs no branches, which would multiply the
 * verifier's paths.
 */
#define IPV6_EXTENSIONS                                                                            \
	(1ULL << PROTO_HOPOPTS | 1ULL << PROTO_ROUTING | 1ULL << PROTO_FRAGMENT |                  \
	 1ULL << PROTO_AH | 1ULL << PROTO_DSTOPTS)

/* Returns 1 if bit `proto` of the mask is set, otherwise 0. The empty asm prevents a branch. */
static __always_inline __u32 proto_is_in(__u64 mask, __u8 proto)
{
	__asm__ volatile("" : "+r"(mask));
	return proto < 64 ? mask >> proto & 1 : 0;
}

/*
 * Reads one IPv6 extension header: the protocol number of the next header and, in a fragment
 * header, the offset. Returns the size of the header, or 0 if the packet ends too early. The size
 * field is in units of 8 bytes, minus 1 (RFC 8200). In AH it is in units of 4 bytes, minus 2 (RFC
 * 4302). A fragment header has no size field. Its size is 8 bytes.
 */
static __always_inline __u32 parse_ipv6_extension(const struct reader *reader,
						  struct layers *layers)
{
	__u8 buffer[8];
	/* first bytes of the header: next protocol number, size or reserved, ... */
	const __u8 *header = reader_get(reader, layers->offset, sizeof(buffer), buffer);
	__u32 is_ah = proto_is_in(1ULL << PROTO_AH, layers->proto);
	__u32 is_fragment = proto_is_in(1ULL << PROTO_FRAGMENT, layers->proto);
	__u32 size;

	if (!header || layers->offset + sizeof(buffer) > layers->end)
		return 0;
	layers->fragment |= (header[2] << 8 | header[3]) & IPV6_FRAGMENT & -is_fragment;
	layers->proto = header[0];
	size = ((header[1] & (is_fragment - 1)) + 1 + is_ah) << (3 - is_ah);
	/*
	 * The verifier needs this mask. The asm keeps clang from removing the mask, which never
	 * changes `size`.
	 */
	__asm__ volatile("" : "+r"(size));
	size &= 0xfff;
	return layers_have(reader, layers, layers->offset + size) ? size : 0;
}

/* IPv6 part of find_transport(). */
static __always_inline enum packet_transport
find_ipv6_transport(const struct reader *reader, struct packet *packet, struct layers *layers)
{
	struct ipv6hdr buffer;
	const struct ipv6hdr *ip = reader_get(reader, layers->offset, sizeof(buffer), &buffer);

	if (!ip)
		return TRANSPORT_SHORT;
	__builtin_memcpy(packet->destination, &ip->daddr, 16);
	packet->facts.dscp = bpf_ntohs(*(const __be16 *)ip) >> DSCP6_SHIFT & DSCP_MASK;
	layers->proto = ip->nexthdr;
	layers->offset += sizeof(*ip);
	layers->end = layers_end(layers->offset, bpf_ntohs(ip->payload_len));
	for (int i = 0; i < IPV6_EXT_MAX; i++) {
		__u32 size;

		if (!proto_is_in(IPV6_EXTENSIONS, layers->proto))
			break;
		size = parse_ipv6_extension(reader, layers);
		if (!size)
			return TRANSPORT_SHORT;
		layers->offset += size;
		if (layers->fragment & IPV6_OFFSET_MASK)
			return TRANSPORT_HIDDEN;
	}
	layers->has_transport = !proto_is_in(IPV6_EXTENSIONS, layers->proto);
	return layers->has_transport ? TRANSPORT_OK : TRANSPORT_TOO_DEEP;
}

/* IPv4 part of find_transport(). */
static __always_inline enum packet_transport
find_ipv4_transport(const struct reader *reader, struct packet *packet, struct layers *layers)
{
	struct iphdr buffer;
	const struct iphdr *ip = reader_get(reader, layers->offset, sizeof(buffer), &buffer);

	if (!ip)
		return TRANSPORT_SHORT;
	__builtin_memcpy(packet->destination, &ip->daddr, 4);
	packet->facts.dscp = ip->tos >> DSCP4_SHIFT;
	layers->proto = ip->protocol;
	layers->has_transport = 1;
	layers->fragment = bpf_ntohs(ip->frag_off) & IPV4_FRAGMENT;
	layers->end = layers_end(layers->offset, bpf_ntohs(ip->tot_len));
	layers->offset += ip->ihl * 4;
	if (layers->fragment & IPV4_OFFSET_MASK)
		return TRANSPORT_HIDDEN;
	return layers_have(reader, layers, layers->offset) ? TRANSPORT_OK : TRANSPORT_SHORT;
}

/*
 * Finds the transport header after IPv4 options or IPv6 extension headers. Copies the destination
 * address to the packet.
 */
static __always_inline enum packet_transport
find_transport(const struct reader *reader, struct packet *packet, struct layers *layers)
{
	layers->offset = packet->ip_offset & 0xff; /* at most 54; the mask is for the verifier */
	return packet_is_ipv4(packet) ? find_ipv4_transport(reader, packet, layers)
				      : find_ipv6_transport(reader, packet, layers);
}

/* Reads the type of an ICMP message. Returns false if the packet ends before the type. */
static __always_inline bool inspect_icmp(const struct reader *reader, const struct layers *layers,
					 struct sl_facts *facts)
{
	__u8 buffer;
	const __u8 *type = reader_get(reader, layers->offset, sizeof(buffer), &buffer);

	if (!type || layers->offset + sizeof(buffer) > layers->end)
		return false;
	facts->facts |= SL_FACT_DETAIL;
	facts->icmp_type = *type;
	return true;
}

/*
 * Reads the ports and TCP flags, or the type of an ICMP message. Sets layers->offset to the end of
 * the header of TCP or UDP. Returns false if the packet ends before the last field that matches
 * need.
 */
static __always_inline bool inspect_transport(const struct reader *reader, struct layers *layers,
					      struct sl_facts *facts)
{
	__be16 ports_buffer[2];
	__u8 word_buffer[2];
	const __be16 *ports; /* TCP and UDP: {source port, destination port} */
	const __u8 *word;    /* TCP: {data offset in the upper 4 bits, flags} */

	if (facts->facts & SL_FACT_ICMP)
		return inspect_icmp(reader, layers, facts);
	if (!(facts->facts & (SL_FACT_TCP | SL_FACT_UDP)))
		return true;
	ports = reader_get(reader, layers->offset, sizeof(ports_buffer), ports_buffer);
	if (!ports || layers->offset + sizeof(ports_buffer) > layers->end)
		return false;
	facts->facts |= SL_FACT_PORT;
	facts->sport = bpf_ntohs(ports[0]);
	facts->port = bpf_ntohs(ports[1]);
	if (facts->facts & SL_FACT_UDP) {
		layers->offset += sizeof(struct udphdr);
		return true;
	}
	word = reader_get(reader, layers->offset + TCP_WORD_OFFSET, sizeof(word_buffer),
			  word_buffer);
	if (!word || layers->offset + TCP_WORD_OFFSET + sizeof(word_buffer) > layers->end)
		return false;
	facts->facts |= SL_FACT_DETAIL;
	facts->tcp_flags = word[1];
	if ((word[1] & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		facts->facts |= SL_FACT_SYN;
	layers->offset += (word[0] >> 4) * 4;
	return true;
}

/*
 * Returns the length of a packet from its IP header on. If the length field is 0, the packet ends
 * with the frame. Longer packets than 65,535 bytes exist only in the kernel (BIG TCP).
 */
static __always_inline __u16 layers_length(const struct reader *reader, const struct packet *packet,
					   const struct layers *layers)
{
	__u32 end = layers->end == layers_end(0, 0) ? reader->size : layers->end;
	__u32 length = end - packet->ip_offset;

	return length < LENGTH_MAX ? length : LENGTH_MAX;
}

/*
 * Reads the header fields, other than the source, that matches and keys may need. Call it after
 * packet_parse() has returned PARSED. Writes into the packet itself, because a copy of the facts
 * would take room on the stack. Returns TRANSPORT_OK if the transport header could be read.
 */
static __always_inline enum packet_transport packet_inspect(const struct reader *reader,
							    struct packet *packet)
{
	struct sl_facts *facts = &packet->facts;
	struct layers layers = {0};
	enum packet_transport transport = find_transport(reader, packet, &layers);

	facts->facts = SL_FACT_ANY;
	facts->proto = 0;
	facts->family = packet_is_ipv4(packet) ? SL_FAMILY_IPV4 : SL_FAMILY_IPV6;
	facts->port = 0;
	facts->sport = 0;
	facts->length = layers_length(reader, packet, &layers);
	facts->tcp_flags = 0;
	if (layers.fragment)
		facts->facts |= SL_FACT_FRAGMENT;
	if (layers.has_transport) {
		facts->facts |= facts_of_proto(layers.proto, packet_is_ipv4(packet));
		facts->proto = layers.proto;
	}
	if (transport == TRANSPORT_HIDDEN && !layers.has_transport)
		facts->facts |= SL_FACT_HIDDEN;
	if (transport == TRANSPORT_OK && !inspect_transport(reader, &layers, facts))
		transport = TRANSPORT_SHORT;
	if (transport == TRANSPORT_SHORT || transport == TRANSPORT_TOO_DEEP)
		facts->facts = facts_unread(facts->facts);
	packet->headers = layers.offset;
	packet->inspected = 1;
	return transport;
}

/* --- The payload: only if a match compares it ------------------------------------------------ */

/* Returns the first bytes of a payload as a number, the first byte highest. */
static __always_inline __u64 payload_head(const __u8 bytes[PAYLOAD_BYTES])
{
	return (__u64)bytes[0] << 40 | (__u64)bytes[1] << 32 | (__u64)bytes[2] << 24 |
	       bytes[3] << 16 | bytes[4] << 8 | bytes[5];
}

/*
 * Adds the facts of the payload to a packet that packet_inspect() has inspected. If the payload is
 * shorter than the bytes that matches compare, the bytes that exist decide. The payload of a first
 * fragment may be empty, because the next fragment has the rest. Returns false if the payload could
 * not be read; then it matches.
 */
static __always_inline bool packet_inspect_payload(const struct reader *reader,
						   struct packet *packet)
{
	__u32 offset = packet->headers;
	__u32 end = packet->ip_offset + packet->facts.length;
	__u16 facts = packet->facts.facts & ~SL_FACT_PAYLOAD;
	__u32 missing = 0; /* number of the compared bytes that the payload does not have */
	__u8 buffer[PAYLOAD_BYTES];
	const __u8 *bytes;

	if (!(facts & SL_FACT_PORT) || facts & SL_FACT_UNREAD)
		return true;
	if (offset >= end) {
		if (facts & SL_FACT_FRAGMENT)
			packet->facts.facts = facts | facts_of_payload(facts, 0, 0);
		return true;
	}
	/* read the last PAYLOAD_BYTES bytes instead, which begin in the headers */
	if (offset + PAYLOAD_BYTES > end)
		missing = offset + PAYLOAD_BYTES - end;
	offset = (offset - missing) & 0x7fff; /* the mask is for the verifier */
	bytes = reader_get(reader, offset, sizeof(buffer), buffer);
	if (!bytes)
		facts |= facts_of_payload(facts, 0, 0);
	else if (!missing) /* the usual case, where `known` is a constant */
		facts |= facts_of_payload(facts, payload_head(bytes), ~0ULL);
	else
		facts |= facts_of_payload(facts, payload_head(bytes) << missing * 8,
					  ~0ULL << missing * 8);
	packet->facts.facts = facts;
	return bytes;
}

/* --- Merged packets ------------------------------------------------------------------------- */

/* Largest number of packets in one buffer. The kernel counts them in 16 bits. */
#define SEGMENTS_MAX 65535

/* A buffer that contains several packets. GRO has merged them, or GSO will segment them. */
struct merged {
	__u32 size;	/* size of the buffer, in bytes */
	__u32 gso_size; /* payload bytes of each packet in the buffer; never 0 */
	__u32 gso_segs; /* kernel's number of packets in the buffer; 0: unknown */
	__u32 tag;	/* bytes of the VLAN tag in the metadata; 0: no tag */
};

/*
 * Sets packet->packets and packet->bytes of an inspected buffer. On the wire, each packet has its
 * own headers and tag. Headers that cannot be read, such as headers within a tunnel, count as
 * payload, so the number of packets may be too high. If the kernel does not segment by size (SCTP),
 * uses the kernel's number.
 */
static __always_inline void packet_unmerge(struct packet *packet, const struct merged *merged)
{
	__u32 segments = 1;

	if (packet->headers < merged->size)
		segments =
			(merged->size - packet->headers + merged->gso_size - 1) / merged->gso_size;
	if (segments < merged->gso_segs)
		segments = merged->gso_segs;
	if (segments > SEGMENTS_MAX)
		segments = SEGMENTS_MAX;
	packet->packets = segments;
	/* the product is less than 2^31, because `headers` is less than 17,000 */
	packet->bytes += (segments - 1) * (packet->headers + merged->tag);
}

/*
 * Sets facts.length of an inspected buffer of merged packets to the length of its first packet.
 * gso_size: payload bytes of each packet in the buffer
 */
static __always_inline void packet_cut_length(struct packet *packet, __u32 gso_size)
{
	__u32 length = packet->headers - packet->ip_offset + gso_size;

	if (length < packet->facts.length)
		packet->facts.length = length;
}

#endif
