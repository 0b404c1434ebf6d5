/* SPDX-License-Identifier: GPL-2.0 */
/* What holds of every frame that bpf/packet.h has looked at: shared by its tests and its fuzzer. */
#ifndef SLUICE_TEST_PACKET_MODEL_H
#define SLUICE_TEST_PACKET_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include "packet.h"

/* All of `some` are in `facts`. */
static inline bool facts_have(uint16_t facts, uint16_t some)
{
	return (facts & some) == some;
}

/* Whether what is said of the protocol agrees with itself. */
static inline bool proto_is_sound(const struct packet *packet)
{
	uint16_t facts = packet->facts.facts;
	uint8_t proto = packet->facts.proto;
	bool known = facts & SL_FACT_PROTO, ipv4 = packet_is_ipv4(packet);

	if (facts & SL_FACT_HIDDEN && (ipv4 || known || !(facts & SL_FACT_FRAGMENT)))
		return false;

	if (!!(facts & SL_FACT_TCP) != (known && proto == 6) ||
	    !!(facts & SL_FACT_UDP) != (known && proto == 17) ||
	    !!(facts & SL_FACT_ICMP) != (known && proto == (ipv4 ? 1 : 58)))
		return false;
	if (!known)
		return !proto && !ipv4;
	/* an IPv6 extension header is no protocol */
	return ipv4 || (proto != 0 && proto != 43 && proto != 44 && proto != 51 && proto != 60);
}

/* A packet says no more than its headers can. */
static inline bool facts_are_sound(const struct packet *packet)
{
	uint16_t facts = packet->facts.facts;

	if (!packet->inspected || !(facts & SL_FACT_ANY) || !proto_is_sound(packet))
		return false;
	if (facts & SL_FACT_PORT ? !(facts & (SL_FACT_TCP | SL_FACT_UDP)) : packet->facts.port)
		return false;
	if (facts & SL_FACT_SYN && !(facts & SL_FACT_TCP))
		return false;
	if (facts & SL_FACT_SYN && !(facts & (SL_FACT_PORT | SL_FACT_UNREAD)))
		return false;
	return packet->facts.vlan == packet->vlan && packet->vlan < 4096 && !packet->facts.pad;
}

/* Whether the answer of packet_inspect() agrees with what it found. */
static inline bool answer_is_sound(const struct packet *packet, enum packet_transport answer)
{
	uint16_t facts = packet->facts.facts;

	switch (answer) {
	case TRANSPORT_OK:
		return facts & SL_FACT_PROTO && !(facts & SL_FACT_UNREAD) &&
		       (facts & SL_FACT_PORT || !(facts & (SL_FACT_TCP | SL_FACT_UDP)));
	case TRANSPORT_HIDDEN:
		return facts & SL_FACT_FRAGMENT && !(facts & (SL_FACT_PORT | SL_FACT_UNREAD)) &&
		       !(facts & SL_FACT_HIDDEN) == packet_is_ipv4(packet);
	case TRANSPORT_TOO_DEEP:
		return facts & SL_FACT_UNREAD && !(facts & SL_FACT_PROTO);
	case TRANSPORT_SHORT:
		return facts & SL_FACT_UNREAD && !(facts & SL_FACT_TCP) == !(facts & SL_FACT_SYN);
	}
	return false;
}

#endif
