/* SPDX-License-Identifier: GPL-2.0 */
/* Whose packet it is, hashed. */
#ifndef SLUICE_DIGEST_H
#define SLUICE_DIGEST_H

#include "hash.h"
#include "maps.h"
#include "packet.h"

/* Of a source, as it has one bucket. (What shares a digest shares it harmlessly.) */
static __always_inline struct digest digest_of(const struct packet *packet,
					       const struct sl_meeting *meeting)
{
	return digest_source(meeting, (const __u64 *)packet->source.addr, packet_is_ipv4(packet));
}

static __always_inline struct digest digest_key(const struct packet *packet,
						const struct sl_limit *limit,
						const struct sl_meeting *meeting)
{
	const __u8 *addr = limit->key_dst ? packet->destination : packet->source.addr;

	return digest_limit(meeting, limit, (const __u64 *)addr, packet_is_ipv4(packet));
}

/* Who sends the packet, to a limit. */
static __always_inline struct digest digest_for(const struct packet *packet,
						const struct sl_limit *limit,
						const struct sl_meeting *meeting)
{
	return limit->apart || limit->shared ? digest_key(packet, limit, meeting)
					     : digest_of(packet, meeting);
}

#endif
