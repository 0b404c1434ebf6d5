/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decides whether a limit applies to a packet, by the facts of its headers. Pure functions.
 *
 * If a header should be in the packet but cannot be read (SL_FACT_UNREAD), every requirement on
 * that header is satisfied. Otherwise a packet could evade a limit by headers that are too deep or
 * truncated.
 *
 * A fragment after the first has no ports, flags, type or payload, so it matches only limits on
 * `fragment`, `any`, its protocol or fields of the IP header. In IPv6, only the first fragment has
 * the protocol that receivers use. So later fragments (SL_FACT_HIDDEN) match every limit on a
 * protocol.
 */
#ifndef SLUICE_MATCH_H
#define SLUICE_MATCH_H

#include "sluice.h"

/* What a packet's headers show. Limits compare it with their matches. Ports are in host order. */
struct sl_facts {
	__u16 facts; /* bits of enum sl_fact; SL_FACT_ANY is always set */
	__u8 proto;  /* protocol number after all extension headers, if SL_FACT_PROTO is set */
	__u8 family; /* SL_FAMILY_IPV4 or SL_FAMILY_IPV6; 0: only the source address is known */
	__u16 port;  /* destination port, if SL_FACT_PORT is set */
	__u16 sport; /* source port, if SL_FACT_PORT is set */
	__u16 vlan;  /* id of the first VLAN tag with an id other than 0; 0: no such tag */
	/*
	 * Bytes of the packet from its IP header on, without padding. If the kernel has merged
	 * several packets, the length of the first packet.
	 */
	__u16 length;
	union {			/* if SL_FACT_DETAIL is set */
		__u8 tcp_flags; /* flags, as in byte 13 of the TCP header */
		__u8 icmp_type; /* type of an ICMP or ICMPv6 message */
	};
	__u8 dscp; /* DSCP of the IP header */
};

#define PROTO_ICMP   1
#define PROTO_TCP    6
#define PROTO_UDP    17
#define PROTO_ICMPV6 58

/* Returns the facts of a packet whose transport protocol is `proto`. */
static inline __u16 facts_of_proto(__u8 proto, bool ipv4)
{
	__u8 icmp = ipv4 ? PROTO_ICMP : PROTO_ICMPV6;

	if (proto == PROTO_TCP)
		return SL_FACT_PROTO | SL_FACT_TCP;
	if (proto == PROTO_UDP)
		return SL_FACT_PROTO | SL_FACT_UDP;
	return proto == icmp ? SL_FACT_PROTO | SL_FACT_ICMP : SL_FACT_PROTO;
}

#define PAYLOAD_BYTES 6 /* the first bytes of a payload that matches compare */

/* Compares the known bytes of `head` with a pattern. */
#define HEAD_IS(value, mask) (!((head ^ (value)) & (mask)&known))

/*
 * Returns the facts of a payload of TCP or UDP. head: its first PAYLOAD_BYTES bytes, the first byte
 * highest. known: mask of the bytes that could be read; the other bytes match any pattern.
 *
 * A QUIC Initial packet has a long header, the version, and a type that depends on the version (RFC
 * 9000 section 17.2.2, RFC 9369 section 3.2). Its fixed bit may be 0 (RFC 9287). A TLS record has
 * type 22, a version, a length, and the type of the handshake message, 1 (RFC 8446 section 5.1).
 * Servers may skip records before a ClientHello, so such records also match: OpenSSL skips records
 * of length 0 and type 20 or 22, and Go skips warning alerts. Go accepts any version below 0x1000.
 * A DNS query has QR 0, opcode 0 and one question (RFC 1035 section 4.1.1).
 */
static inline __u16 facts_of_payload(__u16 facts, __u64 head, __u64 known)
{
	if (facts & SL_FACT_TCP)
		return HEAD_IS(0x160000000001, 0xfff0000000ff) ||
				       HEAD_IS(0x140300000000, 0xfdff00ffff00) ||
				       HEAD_IS(0x150000000201, 0xfff000ffffff)
			       ? SL_FACT_TLS
			       : 0;
	if (!(facts & SL_FACT_UDP))
		return 0;
	return (HEAD_IS(0x800000000100, 0xb0ffffffff00) || HEAD_IS(0x906b3343cf00, 0xb0ffffffff00)
			? SL_FACT_QUIC
			: 0) |
	       (HEAD_IS(0x000000000001, 0x0000f800ffff) ? SL_FACT_DNS : 0);
}

/* Returns the facts of a packet if matches need more of its transport header than can be read. */
static inline __u16 facts_unread(__u16 facts)
{
	/* If the TCP flags cannot be read, assume SYN. A first fragment of 8 bytes has no flags. */
	return facts | SL_FACT_UNREAD | (facts & SL_FACT_TCP ? SL_FACT_SYN : 0) |
	       facts_of_payload(facts, 0, 0);
}

/* Returns whether a port is in one of `count` ranges. */
static inline bool ports_have(const struct sl_range *ranges, __u8 count, __u16 port)
{
	for (int i = 0; i < SL_PORTS_MAX && i < count; i++)
		if (port >= ranges[i].first && port <= ranges[i].last)
			return true;
	return false;
}

/* destination: the packet's destination address; NULL if it is unknown */
static inline bool match_to(const struct sl_match *match, const struct sl_facts *packet,
			    const __be32 *destination)
{
	__be32 differs = 0;

	if (!destination || match->to_family != packet->family)
		return false;
	/* an IPv4 address is the first of four words, and the mask of the others is 0 */
	for (int i = 0; i < 4; i++)
		differs |= (destination[i] ^ match->to[i]) & match->to_mask[i];
	return !differs;
}

/* Compares the TCP flags and the ICMP type. */
static inline bool match_detail(const struct sl_match *match, const struct sl_facts *packet)
{
	enum sl_family family = packet->proto == PROTO_ICMPV6 ? SL_IPV6 : SL_IPV4;

	if (!(packet->facts & SL_FACT_DETAIL))
		return packet->facts & SL_FACT_UNREAD;
	if (match->fields & SL_FIELD_FLAGS)
		return (packet->tcp_flags & match->tcp_mask) == match->tcp_flags;
	return packet->icmp_type == match->icmp_type[family];
}

/* Compares the fields in match->fields. */
static inline bool match_fields(const struct sl_match *match, const struct sl_facts *packet,
				const __be32 *destination)
{
	__u8 fields = match->fields;

	if (fields & (SL_FIELD_LENGTH | SL_FIELD_DSCP) && !packet->family)
		return false;
	if (fields & SL_FIELD_LENGTH &&
	    !(packet->length >= match->length.first && packet->length <= match->length.last))
		return false;
	if (fields & SL_FIELD_DSCP && packet->dscp != match->dscp)
		return false;
	if (fields & SL_FIELD_TO && !match_to(match, packet, destination))
		return false;
	if (fields & (SL_FIELD_FLAGS | SL_FIELD_ICMP) && !match_detail(match, packet))
		return false;
	if (!(fields & SL_FIELD_SPORT))
		return true;
	return packet->facts & SL_FACT_PORT ? ports_have(match->sport, match->sports, packet->sport)
					    : packet->facts & SL_FACT_UNREAD;
}

/* The facts that a match on a protocol requires. A match on `tcp-syn` requires SL_FACT_SYN. */
#define MATCH_PROTOCOLS (SL_FACT_TCP | SL_FACT_UDP | SL_FACT_ICMP | SL_FACT_PROTO)

/* destination: the packet's destination address in network byte order; NULL if it is unknown */
static inline bool match_packet(const struct sl_match *match, const struct sl_facts *packet,
				const __be32 *destination)
{
	if (match->vlan && match->vlan != packet->vlan)
		return false;
	if (match->fields && !match_fields(match, packet, destination))
		return false;
	if (packet->facts & SL_FACT_UNREAD && !(packet->facts & SL_FACT_PROTO))
		return match->fact;
	if (packet->facts & SL_FACT_HIDDEN && match->fact & MATCH_PROTOCOLS)
		return !match->ports;
	if (!(match->fact & packet->facts))
		return false;
	if (match->fact == SL_FACT_PROTO && match->proto != packet->proto)
		return false;
	if (!match->ports)
		return true;
	return packet->facts & SL_FACT_PORT ? ports_have(match->port, match->ports, packet->port)
					    : packet->facts & SL_FACT_UNREAD;
}

/* Returns whether a limit applies only to packets that the device sends (hook egress). */
static inline bool match_is_egress(const struct sl_limit *limit)
{
	return limit->key_dst || limit->kind == SL_SHAPE;
}

/* Returns whether a limit with match `match` applies to a packet. */
static inline bool match_limit(const struct sl_limit *limit, const struct sl_match *match,
			       const struct sl_facts *packet, const __be32 *destination,
			       bool egress)
{
	return (egress || !match_is_egress(limit)) && match_packet(match, packet, destination);
}

/*
 * Returns whether a match depends on more of a packet than its source address. Otherwise it matches
 * any packet.
 */
static inline bool match_is_deep(const struct sl_match *match)
{
	return match->fact != SL_FACT_ANY || match->vlan || match->ports || match->fields;
}

#endif
