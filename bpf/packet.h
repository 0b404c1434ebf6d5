/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a frame to its source address, and on to what its headers say. Compiles natively too: the
 * parser that ships is the parser that is fuzzed.
 *
 * The rule: what the kernel would deliver is judged; what cannot be judged and might be delivered is
 * dropped, if the gate has rules; only what no IP stack takes passes unjudged. So a frame is judged by its
 * source as soon as its fixed IP header can be read, whatever else is wrong with it. The classes without a
 * source, against the kernel's receive path:
 *
 *   pass not-ip      No tag and neither IPv4's nor IPv6's EtherType: __netif_receive_skb_core() delivers by
 *                    EtherType, so no IP stack gets it. A length in its place (802.3, below 0x600) goes to LLC
 *                    (eth_type_trans(), vlan_set_encap_proto()), which hands no IP on from Ethernet; but behind a
 *                    bridge others may take IP that comes in LLC and SNAP (RFC 1042, 802.1H), such as stations
 *                    of an access point, to whom that is its usual form: so it is read like a tag. What wraps IP
 *                    in an EtherType of its own (PPPoE, MPLS, MACsec) is judged on the device that unwraps it, or
 *                    not at all: the README names it.
 *   pass short       The frame ends before its last EtherType: eth_type_trans() and skb_vlan_untag() find none
 *                    either. Padding, as a bridge to a real NIC adds it, makes it 0: a length, and no SNAP.
 *   pass bad-header  The version is not the EtherType's, or IPv4's header is shorter than 20 bytes:
 *                    ip_rcv_core() and ip6_rcv_core() ask that first, and drop it; so does every host behind.
 *   drop unreadable  IPv4 or IPv6, but the fixed header ends early: the kernel here drops it, but a bridge's NIC
 *                    would pad it with zeros, and then a host behind might take it. And whatever the kernel
 *                    fails to read for us although the frame is long enough.
 *   drop vlan-depth  More than VLAN_TAGS_MAX tags: __netif_receive_skb_core() takes off any number of tags of
 *                    VLAN 0, or of VLANs that have a device each, and delivers.
 */
#ifndef SLUICE_PACKET_H
#define SLUICE_PACKET_H

#include "match.h"

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
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Not in the kernel's UAPI. */
struct vlan_hdr {
	__be16 h_vlan_TCI;
	__be16 h_vlan_encapsulated_proto;
};
#endif

/* #defines of the kernel's UAPI are not in BTF, and so not in vmlinux.h. */
#define ETHERTYPE_IPV4	 0x0800
#define ETHERTYPE_IPV6	 0x86DD
#define ETHERTYPE_8021Q	 0x8100
#define ETHERTYPE_8021AD 0x88A8
#define ETHERTYPE_LEAST	 0x0600 /* below, it is a length: what follows is LLC's */

/* No network has more than a few; a tag in an skb's metadata is one of them. */
#define VLAN_TAGS_MAX 8

#define PROTO_HOPOPTS  0
#define PROTO_ICMP     1
#define PROTO_TCP      6
#define PROTO_UDP      17
#define PROTO_ROUTING  43
#define PROTO_FRAGMENT 44
#define PROTO_AH       51
#define PROTO_ICMPV6   58
#define PROTO_DSTOPTS  60

/*
 * RFC 8200 section 4.1 lists seven headers; one of each, and destination options twice. Linux takes more: behind
 * them a packet is SL_FACT_UNREAD.
 */
#define IPV6_EXT_MAX 8

/* In iphdr.frag_off, and in the fragment header's: more follow, or this is not the first. */
#define IPV4_OFFSET_MASK 0x1FFF
#define IPV4_FRAGMENT	 0x3FFF
#define IPV6_OFFSET_MASK 0xFFF8
#define IPV6_FRAGMENT	 0xFFF9

#define VLAN_ID_MASK 0x0FFF

/* The 13th and 14th byte of a TCP header: its length, and its flags. */
#define TCP_WORD_OFFSET 12
#define TCP_SYN		0x02
#define TCP_ACK		0x10

/* --- Reading -------------------------------------------------------------------------------- */

enum reader_kind {
	READ_LINEAR, /* directly, where the bytes lie: only the linear part can be read */
	READ_XDP,    /* by a copy of bpf_xdp_load_bytes(), from anywhere in the frame */
	READ_SKB,    /* likewise, bpf_skb_load_bytes() */
};

/*
 * Access to the bytes of a frame, in the manner of the kernel's skb_header_pointer(). A driver may keep headers
 * in fragments behind the linear part, or all of a frame (mlx5's striding receive queue): so each frame is
 * read by READ_LINEAR, and if the linear part ends too early, once more by a kind that copies. `kind` is a constant at
 * every use, so that each instance of the parser has but one way.
 */
struct reader {
	void *start; /* of the linear part */
	void *end;
	void *ctx; /* what the helpers copy from; natively: the frame in one piece, NULL: they fail */
	__u32 size; /* of the whole frame */
	enum reader_kind kind;
};

/* Whether the frame has bytes that READ_LINEAR cannot see. */
static __always_inline bool reader_is_partial(const struct reader *linear)
{
	return linear->end - linear->start < linear->size;
}

/* Whether there are bytes up to this offset. */
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

/* `size` bytes at an offset: where they lie, or in `buffer`; NULL: they cannot be read. */
static __always_inline const void *reader_get(const struct reader *reader, __u32 offset, __u32 size,
					      void *buffer)
{
	const void *header = reader->start + offset;

	if (reader->kind == READ_LINEAR)
		return header + size <= reader->end ? header : NULL;
	if (!reader_has(reader, offset + size) || reader_copy(reader, offset, buffer, size))
		return NULL;
	return buffer;
}

/* --- The source ----------------------------------------------------------------------------- */

/*
 * The outcome of admission for one key, a source or the key of a limit, that has no purse on this CPU. A scalar, because
 * a global BPF function takes and returns no structure. From ADMISSION_GRANTED on it counts the earlier packets of the
 * key that no ledger was charged for.
 */
enum admission {
	ADMISSION_REFUSED = -2, /* unknown: no ledger is looked up, and none is made */
	ADMISSION_KNOWN = -1,	/* probably has a ledger, which is looked up; none is made */
	ADMISSION_GRANTED = 0,	/* a ledger is looked up, and made where there is none */
};

/* The packet context: what every step needs of the packet. No pointers, so that global functions take it. */
struct packet {
	__u64 jiffy;		 /* the jiffy in which it came */
	__u32 packets;		 /* on the wire: more than 1 where the kernel has merged them */
	__u32 bytes;		 /* on the wire, Ethernet header included */
	struct sl_prefix source; /* the whole address: as a key it finds the longest prefix */
	__u32 generation;	 /* of the rules that it is judged under */
	__u16 ip_offset; /* where the IP header is: 14, and 4 for each VLAN tag, 8 for a SNAP header */
	__u16 headers; /* bytes of them, as far as packet_look() could read: below 17,000 */
	__u16 vlan;    /* the id of the first tag that has one; 0: none */
	__u8 egress;
	__u8 looked; /* packet_look() has filled in what follows */
	struct sl_facts facts;
	enum admission admission; /* of the source; ADMISSION_GRANTED, 0, if it has a bucket */
	__u8 destination[16];
};

/* It lies on the stack below up to four calls: Linux 6.1 has 512 bytes for all of them. */
_Static_assert(sizeof(struct packet) == 80, "room on the stack");

/* Why there is no EtherType: the frame ends before `end`, or cannot be read that far. */
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
 * Steps over VLAN tags, of which `tags` came before. A priority tag, of id 0, is no VLAN: the first tag with
 * another id tells it.
 */
static __always_inline enum sl_reason parse_tags(const struct reader *reader, __u32 *tags,
						 struct packet *packet, __u32 *offset, __be16 *type)
{
	for (; *tags < VLAN_TAGS_MAX && type_is_tag(*type); ++*tags) {
		struct vlan_hdr buffer;
		const struct vlan_hdr *tag = reader_get(reader, *offset, sizeof(buffer), &buffer);

		if (!tag)
			return link_refusal(reader, *offset + sizeof(buffer));
		if (!packet->vlan)
			packet->vlan = bpf_ntohs(tag->h_vlan_TCI) & VLAN_ID_MASK;
		*type = tag->h_vlan_encapsulated_proto;
		*offset += sizeof(*tag);
	}
	return type_is_tag(*type) ? SL_DROP_VLAN_DEPTH : SL_PASS_WITHIN;
}

/* LLC's DSAP, SSAP and control, and an organization: 0, or 802.1H's F8; then an EtherType. */
struct snap_hdr {
	__be16 sap;
	__be16 control; /* and the organization's first byte */
	__be16 organization;
	__be16 type;
};

/* Steps over the header of LLC and SNAP that says an EtherType behind a length. SL_PASS_NOT_IP: it is another. */
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
	return SL_PASS_WITHIN;
}

/* Steps over what stands before the EtherType of what is in the frame; `tags` came before. */
static __always_inline enum sl_reason parse_link(const struct reader *reader, __u32 tags,
						 struct packet *packet, __u32 *offset, __be16 *type)
{
	enum sl_reason reason = parse_tags(reader, &tags, packet, offset, type);

	if (reason != SL_PASS_WITHIN || !type_is_length(*type))
		return reason;
	reason = parse_snap(reader, offset, type);
	/* who takes the SNAP header off finds a tag as if it had always been there */
	return reason != SL_PASS_WITHIN ? reason : parse_tags(reader, &tags, packet, offset, type);
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
	__builtin_memcpy(packet->source.addr, &ip->saddr, 4);
	return SL_PASS_WITHIN;
}

static __always_inline enum sl_reason parse_ipv6(const struct reader *reader, __u32 offset,
						 struct packet *packet)
{
	struct ipv6hdr buffer;
	const struct ipv6hdr *ip = reader_get(reader, offset, sizeof(buffer), &buffer);

	if (!ip)
		return SL_DROP_UNREADABLE;
	if (ip->version != 6)
		return SL_PASS_BAD_HEADER;

	packet->source.family = bpf_htonl(SL_FAMILY_IPV6);
	packet->source.bits = SL_FAMILY_BITS + 128;
	__builtin_memcpy(packet->source.addr, &ip->saddr, 16);
	return SL_PASS_WITHIN;
}

static __always_inline bool packet_is_ipv4(const struct packet *packet)
{
	return packet->source.bits == SL_FAMILY_BITS + 32;
}

static __always_inline enum sl_family packet_family(const struct packet *packet)
{
	return packet_is_ipv4(packet) ? SL_IPV4 : SL_IPV6;
}

/*
 * Finds the source address. SL_PASS_WITHIN: found, `packet` is filled in. Any other reason: there
 * is none to be found, for that cause. `packet` begins zeroed, but for a `vlan` that is known already;
 * `tags`: how many tags precede what the frame says.
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
	/* IP first: the tags of others cost an untagged frame nothing */
	if (type != bpf_htons(ETHERTYPE_IPV4) && type != bpf_htons(ETHERTYPE_IPV6)) {
		reason = parse_link(reader, tags, packet, &offset, &type);
		if (reason != SL_PASS_WITHIN)
			return reason;
	}
	packet->ip_offset = offset;
	if (type == bpf_htons(ETHERTYPE_IPV4))
		return parse_ipv4(reader, offset, packet);
	if (type == bpf_htons(ETHERTYPE_IPV6))
		return parse_ipv6(reader, offset, packet);
	return SL_PASS_NOT_IP;
}

/* Whether READ_LINEAR gave this reason only because the linear part ends before the frame does. */
static __always_inline bool parse_is_partial(const struct reader *linear, enum sl_reason reason)
{
	return (reason == SL_PASS_SHORT || reason == SL_DROP_UNREADABLE) &&
	       reader_is_partial(linear);
}

/* --- Behind the source: only where a limit asks for it -------------------------------------- */

enum packet_transport {
	TRANSPORT_OK,	   /* its header was read */
	TRANSPORT_HIDDEN,  /* a fragment but the first: the header is in another packet */
	TRANSPORT_SHORT,   /* the frame, or what can be read of it, ends first */
	TRANSPORT_TOO_DEEP /* more extension headers than IPV6_EXT_MAX */
};

/* What the headers between Ethernet's and the transport's say. */
struct layers {
	__u32 offset; /* how far they were read: TRANSPORT_OK: there is the header of `proto` */
	__u32 end;    /* of the packet, as IP's length tells it: what follows is padding */
	__u8 proto;   /* of the last header that could be read */
	__u8 proto_known; /* it is the transport's: not an extension header's, and not an IPv6 fragment's word for it */
	__u16 fragment; /* not 0: this is a fragment; host order */
};

/*
 * Where the packet ends. Receivers cut off what is behind, such as the padding of a short frame: it must not stand for
 * headers that a fragment does not have. A length of 0 (BIG TCP, jumbograms) tells nothing.
 */
static __always_inline __u32 layers_end(__u32 start, __u32 length)
{
	return length ? start + length : ~0U;
}

/* Whether the packet has bytes up to this offset, and they can be read. */
static __always_inline bool layers_have(const struct reader *reader, const struct layers *layers,
					__u32 end)
{
	return end <= layers->end && reader_has(reader, end);
}

/* One bit each: a mask, and not comparisons, as the verifier follows every branch of every round. */
#define IPV6_EXTENSIONS                                                                            \
	(1ULL << PROTO_HOPOPTS | 1ULL << PROTO_ROUTING | 1ULL << PROTO_FRAGMENT |                  \
	 1ULL << PROTO_AH | 1ULL << PROTO_DSTOPTS)

/* Whether `proto` is in such a mask: 0 or 1. The empty asm keeps clang from making it a branch again. */
static __always_inline __u32 proto_is_in(__u64 mask, __u8 proto)
{
	__asm__ volatile("" : "+r"(mask));
	return proto < 64 ? mask >> proto & 1 : 0;
}

/*
 * Reads one IPv6 extension header, noting what follows it, and what a fragment header says. Returns
 * its size, 0 if the frame is too short.
 *
 * Lengths: in 8-byte units, less 1 (RFC 8200); AH in 4-byte units, less 2 (RFC 4302); a fragment header
 * has none.
 */
static __always_inline __u32 parse_ipv6_extension(const struct reader *reader,
						  struct layers *layers)
{
	__u8 buffer[8];
	/* {next header, length or reserved, ...} */
	const __u8 *header = reader_get(reader, layers->offset, sizeof(buffer), buffer);
	__u32 is_ah = proto_is_in(1ULL << PROTO_AH, layers->proto);
	__u32 is_fragment = proto_is_in(1ULL << PROTO_FRAGMENT, layers->proto);
	__u32 size;

	if (!header || layers->offset + sizeof(buffer) > layers->end)
		return 0;
	layers->fragment |= (header[2] << 8 | header[3]) & IPV6_FRAGMENT & -is_fragment;
	layers->proto = header[0];
	size = ((header[1] & (is_fragment - 1)) + 1 + is_ah) << (3 - is_ah);
	__asm__ volatile("" : "+r"(size)); /* else clang finds out that the mask changes nothing */
	size &= 0xfff;
	return layers_have(reader, layers, layers->offset + size) ? size : 0;
}

/* As find_transport. */
static __always_inline enum packet_transport
find_ipv6_transport(const struct reader *reader, struct packet *packet, struct layers *layers)
{
	struct ipv6hdr buffer;
	const struct ipv6hdr *ip = reader_get(reader, layers->offset, sizeof(buffer), &buffer);

	if (!ip)
		return TRANSPORT_SHORT;
	__builtin_memcpy(packet->destination, &ip->daddr, 16);
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
	layers->proto_known = !proto_is_in(IPV6_EXTENSIONS, layers->proto);
	return layers->proto_known ? TRANSPORT_OK : TRANSPORT_TOO_DEEP;
}

/* As find_transport. */
static __always_inline enum packet_transport
find_ipv4_transport(const struct reader *reader, struct packet *packet, struct layers *layers)
{
	struct iphdr buffer;
	const struct iphdr *ip = reader_get(reader, layers->offset, sizeof(buffer), &buffer);

	if (!ip)
		return TRANSPORT_SHORT;
	__builtin_memcpy(packet->destination, &ip->daddr, 4);
	layers->proto = ip->protocol;
	layers->proto_known = 1;
	layers->fragment = bpf_ntohs(ip->frag_off) & IPV4_FRAGMENT;
	layers->end = layers_end(layers->offset, bpf_ntohs(ip->tot_len));
	layers->offset += ip->ihl * 4;
	if (layers->fragment & IPV4_OFFSET_MASK)
		return TRANSPORT_HIDDEN;
	return layers_have(reader, layers, layers->offset) ? TRANSPORT_OK : TRANSPORT_SHORT;
}

/*
 * Steps from the IP header, whose destination it notes, to the transport header: over IPv4 options, or a bounded
 * chain of IPv6 extension headers.
 */
static __always_inline enum packet_transport
find_transport(const struct reader *reader, struct packet *packet, struct layers *layers)
{
	layers->offset = packet->ip_offset & 0xff; /* for the verifier: at most 54 */
	return packet_is_ipv4(packet) ? find_ipv4_transport(reader, packet, layers)
				      : find_ipv6_transport(reader, packet, layers);
}

static __always_inline __u16 facts_of_proto(const struct packet *packet, __u8 proto)
{
	__u8 icmp = packet_is_ipv4(packet) ? PROTO_ICMP : PROTO_ICMPV6;

	if (proto == PROTO_TCP)
		return SL_FACT_PROTO | SL_FACT_TCP;
	if (proto == PROTO_UDP)
		return SL_FACT_PROTO | SL_FACT_UDP;
	return proto == icmp ? SL_FACT_PROTO | SL_FACT_ICMP : SL_FACT_PROTO;
}

/*
 * Reads ports, and the flags of TCP, and steps over the transport header if its size can be told. False: the packet
 * ends before all that matches ask for.
 */
static __always_inline bool look_at_transport(const struct reader *reader, struct layers *layers,
					      struct sl_facts *facts)
{
	__be16 ports_buffer[2];
	__u8 word_buffer[2];
	const __be16 *ports; /* {source, destination}, in TCP and UDP */
	const __u8 *word;    /* of TCP: {header length in the upper half, flags} */

	if (!(facts->facts & (SL_FACT_TCP | SL_FACT_UDP)))
		return true;
	ports = reader_get(reader, layers->offset, sizeof(ports_buffer), ports_buffer);
	if (!ports || layers->offset + sizeof(ports_buffer) > layers->end)
		return false;
	facts->facts |= SL_FACT_PORT;
	facts->port = bpf_ntohs(ports[1]);
	if (facts->facts & SL_FACT_UDP) {
		layers->offset += sizeof(struct udphdr);
		return true;
	}
	word = reader_get(reader, layers->offset + TCP_WORD_OFFSET, sizeof(word_buffer),
			  word_buffer);
	if (!word || layers->offset + TCP_WORD_OFFSET + sizeof(word_buffer) > layers->end)
		return false;
	if ((word[1] & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		facts->facts |= SL_FACT_SYN;
	layers->offset += (word[0] >> 4) * 4;
	return true;
}

/*
 * Learns what matches and keys may ask for beyond the source of a packet whose source was found. The answer tells
 * whether the transport header could be read.
 */
static __always_inline enum packet_transport packet_look(const struct reader *reader,
							 struct packet *packet)
{
	struct sl_facts facts = {.facts = SL_FACT_ANY, .vlan = packet->vlan};
	struct layers layers = {0};
	enum packet_transport transport = find_transport(reader, packet, &layers);

	if (layers.fragment)
		facts.facts |= SL_FACT_FRAGMENT;
	if (layers.proto_known) {
		facts.facts |= facts_of_proto(packet, layers.proto);
		facts.proto = layers.proto;
	}
	if (transport == TRANSPORT_HIDDEN && !layers.proto_known)
		facts.facts |= SL_FACT_HIDDEN;
	if (transport == TRANSPORT_OK && !look_at_transport(reader, &layers, &facts))
		transport = TRANSPORT_SHORT;
	if (transport == TRANSPORT_SHORT || transport == TRANSPORT_TOO_DEEP) {
		facts.facts |= SL_FACT_UNREAD;
		/* flags that cannot be read, as in a first fragment of 8 bytes, may be a SYN's */
		if (facts.facts & SL_FACT_TCP)
			facts.facts |= SL_FACT_SYN;
	}
	packet->facts = facts;
	packet->headers = layers.offset;
	packet->looked = 1;
	return transport;
}

/* --- Merged packets ------------------------------------------------------------------------- */

/* The kernel's own count of them has 16 bits. */
#define SEGMENTS_MAX 65535

/* What a buffer stands for that GRO has merged, or GSO will cut. */
struct merged {
	__u32 size;	/* of the buffer */
	__u32 gso_size; /* of each packet's payload; not 0 */
	__u32 gso_segs; /* the kernel's count of them; 0: it has none */
	__u32 tag;	/* bytes of a tag that is metadata */
};

/*
 * Counts the packets, and what they have on the wire: each has headers of its own, and the tag. `packet` has been looked
 * at. Headers that could not be read, those within a tunnel among them, count as payload: so there are rather
 * too many packets than too few, up to SEGMENTS_MAX, whatever gso_size a virtual machine makes up. What is not cut
 * by size (SCTP) the kernel has counted.
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
	/* below 2^31: all headers that are read take less than 17,000 bytes */
	packet->bytes += (segments - 1) * (packet->headers + merged->tag);
}

#endif
