/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks that the results of bpf/packet.h are consistent for any frame. Unit tests and a fuzzer use
 * it.
 */
#ifndef SLUICE_TEST_PACKET_MODEL_H
#define SLUICE_TEST_PACKET_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "packet.h"

/* Returns whether the facts about a packet's protocol are free of contradictions. */
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
	/* The parser skips extension headers, so it never returns their numbers as the protocol. */
	return ipv4 || (proto != 0 && proto != 43 && proto != 44 && proto != 51 && proto != 60);
}

/* Returns whether the facts of a packet are free of contradictions. */
static inline bool facts_are_sound(const struct packet *packet)
{
	uint16_t facts = packet->facts.facts;

	if (!packet->inspected || !(facts & SL_FACT_ANY) || !proto_is_sound(packet))
		return false;
	if (facts & SL_FACT_PORT ? !(facts & (SL_FACT_TCP | SL_FACT_UDP))
				 : packet->facts.port || packet->facts.sport)
		return false;
	if (facts & SL_FACT_DETAIL
		    ? !(facts & (SL_FACT_TCP | SL_FACT_ICMP)) || facts & SL_FACT_UNREAD
		    : packet->facts.tcp_flags)
		return false;
	if (packet->facts.family != (packet_is_ipv4(packet) ? 4 : 6) || packet->facts.dscp > 63)
		return false;
	if (facts & SL_FACT_SYN && !(facts & SL_FACT_TCP))
		return false;
	if (facts & SL_FACT_SYN && !(facts & (SL_FACT_PORT | SL_FACT_UNREAD)))
		return false;
	return packet->facts.vlan < 4096;
}

/* Returns whether `answer` is a possible result of packet_inspect() for the packet's facts. */
static inline bool answer_is_sound(const struct packet *packet, enum packet_transport answer)
{
	uint16_t facts = packet->facts.facts;

	switch (answer) {
	case TRANSPORT_OK:
		return facts & SL_FACT_PROTO && !(facts & SL_FACT_UNREAD) &&
		       (facts & SL_FACT_PORT || !(facts & (SL_FACT_TCP | SL_FACT_UDP))) &&
		       (facts & SL_FACT_DETAIL || !(facts & (SL_FACT_TCP | SL_FACT_ICMP)));
	case TRANSPORT_HIDDEN:
		return facts & SL_FACT_FRAGMENT &&
		       !(facts & (SL_FACT_PORT | SL_FACT_DETAIL | SL_FACT_UNREAD)) &&
		       !(facts & SL_FACT_HIDDEN) == packet_is_ipv4(packet);
	case TRANSPORT_TOO_DEEP:
		return facts & SL_FACT_UNREAD && !(facts & SL_FACT_PROTO);
	case TRANSPORT_SHORT:
		return facts & SL_FACT_UNREAD && !(facts & SL_FACT_TCP) == !(facts & SL_FACT_SYN);
	}
	return false;
}

/* --- Frames in two parts --------------------------------------------------------------------- */

/*
 * Offset of a frame in its buffer, as in the kernel (NET_IP_ALIGN). It aligns the IP header to four
 * bytes, because UBSan reports unaligned accesses.
 */
#define FRAME_ALIGN 2

/*
 * Copies a frame to a new buffer that ends with the frame, so that AddressSanitizer detects reads
 * past its end. The frame begins at offset FRAME_ALIGN. The caller frees the buffer.
 */
static inline uint8_t *frame_copy(const uint8_t *bytes, size_t size)
{
	uint8_t *buffer = malloc(FRAME_ALIGN + size);

	if (!buffer)
		abort();
	if (size)
		memcpy(buffer + FRAME_ALIGN, bytes, size);
	return buffer;
}

/*
 * Returns a reader of a frame of `size` bytes. The reader can read only the first `linear_size`
 * bytes.
 */
static inline struct reader reader_linear(const uint8_t *linear, size_t linear_size, size_t size)
{
	return (struct reader){
		.kind = READ_LINEAR,
		.start = (void *)linear,
		.end = (void *)(linear + linear_size),
		.size = (uint32_t)size,
	};
}

/*
 * Parses a frame as the BPF programs do. They first parse the linear part, and parse the whole
 * frame only if the linear part is not enough.
 */
static inline enum sl_reason parse_both(const struct reader *linear, const struct reader *whole,
					struct packet *packet)
{
	enum sl_reason reason = packet_parse(linear, 0, packet);

	return parse_is_partial(linear, reason) ? packet_parse(whole, 0, packet) : reason;
}

static inline enum packet_transport inspect_both(const struct reader *linear,
						 const struct reader *whole, struct packet *packet)
{
	enum packet_transport transport = packet_inspect(linear, packet);

	return transport == TRANSPORT_SHORT && reader_is_partial(linear)
		       ? packet_inspect(whole, packet)
		       : transport;
}

#endif
