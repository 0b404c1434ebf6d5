/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a frame to its source address, and on to its transport header. Compiles natively too: the
 * parser that ships is the parser that is fuzzed.
 *
 * The rule: what has a readable source address is judged by it, whatever else is wrong with the
 * frame; a frame without one passes, counted by cause. So nothing is dropped that no limit names,
 * and nobody escapes a limit by spoiling a frame behind its addresses.
 */
#ifndef SLUICE_PACKET_H
#define SLUICE_PACKET_H

#include "sluice.h"

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
#define ETHERTYPE_IPV4	 0x0800
#define ETHERTYPE_IPV6	 0x86DD
#define ETHERTYPE_8021Q	 0x8100
#define ETHERTYPE_8021AD 0x88A8
#define VLAN_TAGS_MAX	 2

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

#define IPV4_OFFSET_MASK 0x1FFF /* in iphdr.frag_off */
#define IPV4_MORE	 0x2000
#define IPV6_OFFSET_MASK 0xFFF8 /* in the fragment header's frag_off */
#define IPV6_MORE	 0x0001

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
	__u8 proto;		 /* of what follows the cursor */
	__u8 ip_options;	 /* IPv4: bytes of options at the cursor */
	__u16 fragment;		 /* IPv4's frag_off, host order */
};

enum packet_transport {
	TRANSPORT_OK,	   /* `cursor` is at the header of `proto` */
	TRANSPORT_HIDDEN,  /* a fragment but the first: the header is in another packet */
	TRANSPORT_SHORT,   /* the frame ends first */
	TRANSPORT_TOO_DEEP /* more extension headers than IPV6_EXT_MAX */
};

/* Room for `size` more bytes? The one bounds check: every other helper goes through it. */
static __always_inline bool cursor_has(const struct cursor *cursor, __u32 size)
{
	return cursor->pos + size <= cursor->end;
}

/* Steps over the Ethernet header and up to two VLAN tags; returns the EtherType in host order. */
static __always_inline enum sl_reason parse_ethernet(struct cursor *cursor, __u16 *ret_type)
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
	packet->proto = ip->protocol;
	packet->ip_options = (ip->ihl - 5) * 4;
	packet->fragment = bpf_ntohs(ip->frag_off);
	cursor->pos += sizeof(*ip);
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
	packet->proto = ip->nexthdr;
	cursor->pos += sizeof(*ip);
	return SL_PASS_WITHIN;
}

/*
 * Finds the source address. SL_PASS_WITHIN: found, `packet` is filled in. Any other reason: there
 * is none to be found, for that cause. `packet` begins zeroed. `cursor` moves
 * from the start of the frame to behind the fixed IP header.
 */
static __always_inline enum sl_reason packet_parse(struct cursor *cursor, struct packet *packet)
{
	enum sl_reason reason;
	__u16 type = 0;

	reason = parse_ethernet(cursor, &type);
	if (reason != SL_PASS_WITHIN)
		return reason;
	if (type == ETHERTYPE_IPV4)
		return parse_ipv4(cursor, packet);
	if (type == ETHERTYPE_IPV6)
		return parse_ipv6(cursor, packet);
	return SL_PASS_NOT_IP;
}

/*
 * Steps over one IPv6 extension header, sets `proto` to what follows it and `fragment` to the
 * offset and flag of a fragment header. Returns how far it went, 0 if the frame is too short.
 */
static __always_inline __u32 parse_ipv6_extension(const struct cursor *cursor,
						  struct packet *packet)
{
	__u8 *header = cursor->pos; /* {next header, length or reserved, ...} */
	__u32 size;

	if (!cursor_has(cursor, 8))
		return 0;
	if (packet->proto == PROTO_FRAGMENT) {
		packet->fragment = header[2] << 8 | header[3];
		size = 8;
	} else if (packet->proto == PROTO_AH) {
		size = (header[1] + 2) * 4; /* RFC 4302: in 4-byte units, less 2 */
	} else {
		size = (header[1] + 1) * 8; /* RFC 8200: in 8-byte units, less 1 */
	}
	packet->proto = header[0];
	return size;
}

/* A mask, and not five comparisons: the verifier follows every branch of every round. */
#define IPV6_EXTENSIONS                                                                            \
	(1ULL << PROTO_HOPOPTS | 1ULL << PROTO_ROUTING | 1ULL << PROTO_FRAGMENT |                  \
	 1ULL << PROTO_AH | 1ULL << PROTO_DSTOPTS)

static __always_inline bool is_ipv6_extension(__u8 proto)
{
	return proto < 64 && IPV6_EXTENSIONS >> proto & 1;
}

static __always_inline enum packet_transport find_ipv6_transport(struct cursor *cursor,
								 struct packet *packet)
{
	for (int i = 0; i < IPV6_EXT_MAX; i++) {
		__u32 size;

		if (!is_ipv6_extension(packet->proto))
			return TRANSPORT_OK;
		size = parse_ipv6_extension(cursor, packet);
		if (!size || !cursor_has(cursor, size))
			return TRANSPORT_SHORT;
		cursor->pos += size;
		if (packet->fragment & IPV6_OFFSET_MASK)
			return TRANSPORT_HIDDEN;
	}
	return is_ipv6_extension(packet->proto) ? TRANSPORT_TOO_DEEP : TRANSPORT_OK;
}

static __always_inline enum packet_transport find_ipv4_transport(struct cursor *cursor,
								 struct packet *packet)
{
	if (packet->fragment & IPV4_OFFSET_MASK)
		return TRANSPORT_HIDDEN;
	if (!cursor_has(cursor, packet->ip_options))
		return TRANSPORT_SHORT;
	cursor->pos += packet->ip_options;
	return TRANSPORT_OK;
}

/*
 * Steps to the transport header: over IPv4 options, or a bounded chain of IPv6 extension headers.
 * On any answer but TRANSPORT_OK there is no such header at `cursor`. Call it once, after packet_parse.
 */
static __always_inline enum packet_transport packet_find_transport(struct cursor *cursor,
								   struct packet *packet)
{
	if (packet->source.family == bpf_htonl(SL_FAMILY_IPV4))
		return find_ipv4_transport(cursor, packet);
	return find_ipv6_transport(cursor, packet);
}

/* The size of the transport header at `cursor`, options included; 0 if unknown or cut short. */
static __always_inline __u32 packet_transport_size(const struct cursor *cursor,
						   const struct packet *packet)
{
	const struct tcphdr *tcp = cursor->pos;

	if (packet->proto == PROTO_TCP && cursor_has(cursor, sizeof(*tcp)))
		return tcp->doff * 4;
	if (packet->proto == PROTO_UDP && cursor_has(cursor, sizeof(struct udphdr)))
		return sizeof(struct udphdr);
	return 0;
}

#endif
