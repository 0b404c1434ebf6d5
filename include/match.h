/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whether a limit is for a packet: pure functions over facts, compiled into the packet path, `check`
 * and the tests.
 *
 * What cannot be read is not matched: the ports of a fragment but the first, the protocol behind too
 * many extension headers, a TCP header that is cut short. `any` matches everything, and `fragment` every
 * fragment, so a policy can name what its other limits cannot see.
 */
#ifndef SLUICE_MATCH_H
#define SLUICE_MATCH_H

#include "sluice.h"

/* What the headers of a packet say. */
struct sl_facts {
	__u8 facts; /* enum sl_fact, or-ed; SL_FACT_ANY always */
	__u8 proto; /* with SL_FACT_PROTO: the protocol behind all extension headers */
	__u16 port; /* with SL_FACT_PORT: the destination port, host order */
	__u16 vlan; /* of the outermost tag; 0: none */
	__u16 pad;
};

static inline bool match_port(const struct sl_match *match, __u16 port)
{
	for (int i = 0; i < SL_PORTS_MAX && i < match->ports; i++)
		if (port >= match->port[i].first && port <= match->port[i].last)
			return true;
	return false;
}

static inline bool match_packet(const struct sl_match *match, const struct sl_facts *packet)
{
	if (match->vlan && match->vlan != packet->vlan)
		return false;
	if (!(match->fact & packet->facts))
		return false;
	if (match->fact == SL_FACT_PROTO && match->proto != packet->proto)
		return false;
	if (!match->ports)
		return true;
	return packet->facts & SL_FACT_PORT && match_port(match, packet->port);
}

/* Whether the source alone is not enough to tell. */
static inline bool match_is_deep(const struct sl_match *match)
{
	return match->fact != SL_FACT_ANY || match->vlan;
}

#endif
