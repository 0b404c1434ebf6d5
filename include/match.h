/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decides whether a limit applies to a packet, by the facts of its headers. Pure functions.
 *
 * If a header should be in the packet but cannot be read (SL_FACT_UNREAD), every requirement on
 * that header is satisfied. Otherwise a packet could evade a limit by headers that are too deep or
 * truncated.
 *
 * A fragment after the first has no ports or flags, so it matches only limits on `fragment`, `any`
 * or its protocol. In IPv6, only the first fragment has the protocol that receivers use. So later
 * fragments (SL_FACT_HIDDEN) match every limit on a protocol.
 */
#ifndef SLUICE_MATCH_H
#define SLUICE_MATCH_H

#include "sluice.h"

/* What a packet's headers show. Limits compare it with their matches. */
struct sl_facts {
	__u16 facts; /* bits of enum sl_fact; SL_FACT_ANY is always set */
	__u8 proto;  /* protocol number after all extension headers, if SL_FACT_PROTO is set */
	__u8 pad;
	__u16 port; /* destination port in host order, if SL_FACT_PORT is set */
	__u16 vlan; /* id of the first VLAN tag with an id other than 0; 0: no such tag */
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

/* Returns the facts of a packet if matches need more of its transport header than can be read. */
static inline __u16 facts_unread(__u16 facts)
{
	/* If the TCP flags cannot be read, assume SYN. A first fragment of 8 bytes has no flags. */
	return facts | SL_FACT_UNREAD | (facts & SL_FACT_TCP ? SL_FACT_SYN : 0);
}

static inline bool match_port(const struct sl_match *match, const struct sl_facts *packet)
{
	if (!(packet->facts & SL_FACT_PORT))
		return packet->facts & SL_FACT_UNREAD;
	for (int i = 0; i < SL_PORTS_MAX && i < match->ports; i++)
		if (packet->port >= match->port[i].first && packet->port <= match->port[i].last)
			return true;
	return false;
}

/* The facts that a match on a protocol requires. A match on `tcp-syn` requires SL_FACT_SYN. */
#define MATCH_PROTOCOLS (SL_FACT_TCP | SL_FACT_UDP | SL_FACT_ICMP | SL_FACT_PROTO)

static inline bool match_packet(const struct sl_match *match, const struct sl_facts *packet)
{
	if (match->vlan && match->vlan != packet->vlan)
		return false;
	if (packet->facts & SL_FACT_UNREAD && !(packet->facts & SL_FACT_PROTO))
		return match->fact;
	if (packet->facts & SL_FACT_HIDDEN && match->fact & MATCH_PROTOCOLS)
		return !match->ports;
	if (!(match->fact & packet->facts))
		return false;
	if (match->fact == SL_FACT_PROTO && match->proto != packet->proto)
		return false;
	return !match->ports || match_port(match, packet);
}

/* Returns whether a limit applies only to packets that the device sends (hook egress). */
static inline bool match_is_egress(const struct sl_limit *limit)
{
	return limit->key_dst || limit->kind == SL_SHAPE;
}

/* Returns whether a limit with match `match` applies to a packet. */
static inline bool match_limit(const struct sl_limit *limit, const struct sl_match *match,
			       const struct sl_facts *packet, bool egress)
{
	return (egress || !match_is_egress(limit)) && match_packet(match, packet);
}

/* Returns whether a match depends on more of a packet than its source address. */
static inline bool match_is_deep(const struct sl_match *match)
{
	return match->fact != SL_FACT_ANY || match->vlan;
}

#endif
