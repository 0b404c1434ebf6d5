/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a frame to its source address, and on to what its headers say. Compiles natively too: the
 * parser that ships is the parser that is fuzzed.
 *
 * The rule: what has a readable source address is judged by it, whatever else is wrong with the
 * frame; a frame without one passes, counted by cause. So nothing is dropped that no limit names,
 * and nobody escapes a limit by spoiling a frame behind its addresses.
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
#endif

/* #defines of the kernel's UAPI are not in BTF, and so not in vmlinux.h. */
#define ETHERTYPE_IPV4	  0x0800
#define ETHERTYPE_IPV6	  0x86DD
#define ETHERTYPE_8021Q	  0x8100
#define ETHERTYPE_8021AD  0x88A8
#define VLAN_TAGS_MAX	  2
#define ETHERNET_SIZE_MAX (14 + 4 * VLAN_TAGS_MAX)

#define PROTO_HOPOPTS  0
#define PROTO_ICMP     1
#define PROTO_TCP      6
#define PROTO_UDP      17
#define PROTO_ROUTING  43
#define PROTO_FRAGMENT 44
#define PROTO_AH       51
#define PROTO_ICMPV6   58
#define PROTO_DSTOPTS  60

/* RFC 8200 section 4.1 lists seven headers; one of each, and destination options twice. */
#define IPV6_EXT_MAX 8

/* In iphdr.frag_off, and in the fragment header's: more follow, or this is not the first. */
#define IPV4_OFFSET_MASK 0x1FFF
#define IPV4_FRAGMENT	 0x3FFF
#define IPV6_OFFSET_MASK 0xFFF8
#define IPV6_FRAGMENT	 0xFFF9

#define VLAN_ID_MASK 0x0FFF

/* The flags of a TCP header are in its 14th byte. */
#define TCP_FLAGS 13
#define TCP_SYN	  0x02
#define TCP_ACK	  0x10

/* What is left of a frame: helpers check `end`, advance `pos`. */
struct cursor {
	void *pos;
	void *end;
};

/* What is known of a frame. Pure data: it may be handed to the verifier's global functions. */
struct packet {
	__u32 packets;		 /* on the wire: more than 1 where the kernel has merged them */
	__u32 bytes;		 /* on the wire, Ethernet header included */
	struct sl_prefix source; /* the whole address: as a key it finds the longest prefix */
	__u32 ip_offset;	 /* where the IP header is: 14, and 4 for each VLAN tag */
	__u16 vlan;		 /* the id in the outermost tag; 0: none */
	__u8 egress;
	__u8 looked; /* packet_look() has filled in what follows */
	struct sl_facts facts;
	__u8 destination[16];
};

enum packet_transport {
	TRANSPORT_OK,	   /* `cursor` is at the header of `proto` */
	TRANSPORT_HIDDEN,  /* a fragment but the first: the header is in another packet */
	TRANSPORT_SHORT,   /* the frame ends first */
	TRANSPORT_TOO_DEEP /* more extension headers than IPV6_EXT_MAX */
};

/* What the headers between Ethernet's and the transport's say. */
struct layers {
	__u8 proto;	  /* of the last header that could be read */
	__u8 proto_known; /* it is the transport's, and not an extension header's */
	__u16 fragment;	  /* not 0: this is a fragment; host order */
};

/* Room for `size` more bytes? The one bounds check: every other helper goes through it. */
static __always_inline bool cursor_has(const struct cursor *cursor, __u32 size)
{
	return cursor->pos + size <= cursor->end;
}

/*
 * Steps over the Ethernet header and up to two VLAN tags; returns the EtherType in host order, and the
 * outer tag's id.
 */
static __always_inline enum sl_reason parse_ethernet(struct cursor *cursor, __u16 *ret_type,
						     __u16 *ret_vlan)
{
	struct ethhdr *eth = cursor->pos;
	__be16 type;

	if (!cursor_has(cursor, sizeof(*eth)))
		return SL_PASS_SHORT;
	type = eth->h_proto;
	cursor->pos += sizeof(*eth);

	for (int i = 0; i <= VLAN_TAGS_MAX; i++) {
		__be16 *tag = cursor->pos; /* {priority and id, EtherType of what follows} */

		if (type != bpf_htons(ETHERTYPE_8021Q) && type != bpf_htons(ETHERTYPE_8021AD)) {
			*ret_type = bpf_ntohs(type);
			return SL_PASS_WITHIN;
		}
		if (i == VLAN_TAGS_MAX)
			break;
		if (!cursor_has(cursor, 2 * sizeof(*tag)))
			return SL_PASS_SHORT;
		if (!i)
			*ret_vlan = bpf_ntohs(tag[0]) & VLAN_ID_MASK;
		type = tag[1];
		cursor->pos += 2 * sizeof(*tag);
	}
	return SL_PASS_VLAN_DEPTH;
}

static __always_inline enum sl_reason parse_ipv4(struct cursor *cursor, struct packet *packet)
{
	struct iphdr *ip = cursor->pos;

	if (!cursor_has(cursor, sizeof(*ip)))
		return SL_PASS_SHORT;
	if (ip->version != 4 || ip->ihl < 5)
		return SL_PASS_BAD_HEADER;

	packet->source.family = bpf_htonl(SL_FAMILY_IPV4);
	packet->source.bits = SL_FAMILY_BITS + 32;
	__builtin_memcpy(packet->source.addr, &ip->saddr, 4);
	return SL_PASS_WITHIN;
}

static __always_inline enum sl_reason parse_ipv6(struct cursor *cursor, struct packet *packet)
{
	struct ipv6hdr *ip = cursor->pos;

	if (!cursor_has(cursor, sizeof(*ip)))
		return SL_PASS_SHORT;
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

/*
 * Finds the source address. SL_PASS_WITHIN: found, `packet` is filled in. Any other reason: there
 * is none to be found, for that cause. `packet` begins zeroed. `cursor` moves
 * from the start of the frame to the IP header.
 */
static __always_inline enum sl_reason packet_parse(struct cursor *cursor, struct packet *packet)
{
	void *start = cursor->pos;
	enum sl_reason reason;
	__u16 type = 0;

	reason = parse_ethernet(cursor, &type, &packet->vlan);
	if (reason != SL_PASS_WITHIN)
		return reason;
	packet->ip_offset = cursor->pos - start;
	if (type == ETHERTYPE_IPV4)
		return parse_ipv4(cursor, packet);
	if (type == ETHERTYPE_IPV6)
		return parse_ipv6(cursor, packet);
	return SL_PASS_NOT_IP;
}

/* --- Behind the source: only where a limit asks for it -------------------------------------- */

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
 * Steps over one IPv6 extension header, noting what follows it, and what a fragment header says. Returns
 * how far it went, 0 if the frame is too short.
 *
 * Lengths: in 8-byte units, less 1 (RFC 8200); AH in 4-byte units, less 2 (RFC 4302); a fragment header
 * has none.
 */
static __always_inline __u32 parse_ipv6_extension(const struct cursor *cursor,
						  struct layers *layers)
{
	__u8 *header = cursor->pos; /* {next header, length or reserved, ...} */
	__u32 is_ah = proto_is_in(1ULL << PROTO_AH, layers->proto);
	__u32 is_fragment = proto_is_in(1ULL << PROTO_FRAGMENT, layers->proto);
	__u32 size;

	if (!cursor_has(cursor, 8))
		return 0;
	layers->fragment |= (header[2] << 8 | header[3]) & IPV6_FRAGMENT & -is_fragment;
	layers->proto = header[0];
	size = ((header[1] & (is_fragment - 1)) + 1 + is_ah) << (3 - is_ah);
	__asm__ volatile("" : "+r"(size)); /* else clang finds out that the mask changes nothing */
	return size & 0xfff;
}

static __always_inline enum packet_transport find_ipv6_transport(struct cursor *cursor,
								 struct layers *layers)
{
	struct ipv6hdr *ip = cursor->pos;

	if (!cursor_has(cursor, sizeof(*ip)))
		return TRANSPORT_SHORT;
	layers->proto = ip->nexthdr;
	cursor->pos += sizeof(*ip);
	for (int i = 0; i < IPV6_EXT_MAX; i++) {
		__u32 size;

		if (!proto_is_in(IPV6_EXTENSIONS, layers->proto))
			break;
		size = parse_ipv6_extension(cursor, layers);
		if (!size || !cursor_has(cursor, size))
			return TRANSPORT_SHORT;
		cursor->pos += size;
		if (layers->fragment & IPV6_OFFSET_MASK) {
			layers->proto_known = !proto_is_in(IPV6_EXTENSIONS, layers->proto);
			return TRANSPORT_HIDDEN;
		}
	}
	layers->proto_known = !proto_is_in(IPV6_EXTENSIONS, layers->proto);
	return layers->proto_known ? TRANSPORT_OK : TRANSPORT_TOO_DEEP;
}

static __always_inline enum packet_transport find_ipv4_transport(struct cursor *cursor,
								 struct layers *layers)
{
	struct iphdr *ip = cursor->pos;
	__u32 size;
	__u16 fragment;

	if (!cursor_has(cursor, sizeof(*ip)))
		return TRANSPORT_SHORT;
	layers->proto = ip->protocol;
	layers->proto_known = 1;
	fragment = bpf_ntohs(ip->frag_off);
	layers->fragment = fragment & IPV4_FRAGMENT;
	size = ip->ihl * 4;
	if (fragment & IPV4_OFFSET_MASK)
		return TRANSPORT_HIDDEN;
	if (!cursor_has(cursor, size))
		return TRANSPORT_SHORT;
	cursor->pos += size;
	return TRANSPORT_OK;
}

/*
 * Steps from the IP header to the transport header: over IPv4 options, or a bounded chain of IPv6
 * extension headers. On any answer but TRANSPORT_OK there is no such header at `cursor`.
 */
static __always_inline enum packet_transport
packet_find_transport(struct cursor *cursor, const struct packet *packet, struct layers *layers)
{
	return packet_is_ipv4(packet) ? find_ipv4_transport(cursor, layers)
				      : find_ipv6_transport(cursor, layers);
}

static __always_inline __u8 facts_of_proto(const struct packet *packet, __u8 proto)
{
	__u8 icmp = packet_is_ipv4(packet) ? PROTO_ICMP : PROTO_ICMPV6;

	if (proto == PROTO_TCP)
		return SL_FACT_PROTO | SL_FACT_TCP;
	if (proto == PROTO_UDP)
		return SL_FACT_PROTO | SL_FACT_UDP;
	return proto == icmp ? SL_FACT_PROTO | SL_FACT_ICMP : SL_FACT_PROTO;
}

/*
 * Ports, and the flags of TCP: `cursor` is at the transport header. False: the frame ends before all of it is
 * read.
 */
static __always_inline bool look_at_transport(const struct cursor *cursor, struct sl_facts *facts)
{
	__be16 *port = cursor->pos; /* {source, destination}, in TCP and UDP */
	__u8 *bytes = cursor->pos;

	if (!(facts->facts & (SL_FACT_TCP | SL_FACT_UDP)))
		return true;
	if (!cursor_has(cursor, 4))
		return false;
	facts->facts |= SL_FACT_PORT;
	facts->port = bpf_ntohs(port[1]);
	if (facts->facts & SL_FACT_UDP)
		return true;
	if (!cursor_has(cursor, TCP_FLAGS + 1))
		return false;
	if ((bytes[TCP_FLAGS] & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		facts->facts |= SL_FACT_SYN;
	return true;
}

static __always_inline void look_at_destination(const struct cursor *cursor, struct packet *packet)
{
	if (packet_is_ipv4(packet)) {
		struct iphdr *ip = cursor->pos;

		if (cursor_has(cursor, sizeof(*ip)))
			__builtin_memcpy(packet->destination, &ip->daddr, 4);
	} else {
		struct ipv6hdr *ip = cursor->pos;

		if (cursor_has(cursor, sizeof(*ip)))
			__builtin_memcpy(packet->destination, &ip->daddr, 16);
	}
}

/*
 * Learns what matches and keys may ask for beyond the source. `cursor` is at the IP header of a packet
 * whose source was found. The answer tells whether the transport header could be read.
 */
static __always_inline enum packet_transport packet_look(struct cursor *cursor,
							 struct packet *packet)
{
	struct sl_facts facts = {.facts = SL_FACT_ANY, .vlan = packet->vlan};
	struct layers layers = {0};
	enum packet_transport transport;

	look_at_destination(cursor, packet);
	transport = packet_find_transport(cursor, packet, &layers);
	if (layers.fragment)
		facts.facts |= SL_FACT_FRAGMENT;
	if (layers.proto_known) {
		facts.facts |= facts_of_proto(packet, layers.proto);
		facts.proto = layers.proto;
	}
	if (transport == TRANSPORT_OK && !look_at_transport(cursor, &facts))
		transport = TRANSPORT_SHORT;
	packet->facts = facts;
	packet->looked = 1;
	return transport;
}

/* The size of the transport header at `cursor`, options included; 0 if unknown or cut short. */
static __always_inline __u32 packet_transport_size(const struct cursor *cursor, __u8 proto)
{
	const struct tcphdr *tcp = cursor->pos;

	if (proto == PROTO_TCP && cursor_has(cursor, sizeof(*tcp)))
		return tcp->doff * 4;
	if (proto == PROTO_UDP && cursor_has(cursor, sizeof(struct udphdr)))
		return sizeof(struct udphdr);
	return 0;
}

#endif
