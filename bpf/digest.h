/* SPDX-License-Identifier: GPL-2.0 */
/* Whose packet it is, hashed. */
#ifndef SLUICE_DIGEST_H
#define SLUICE_DIGEST_H

#include "hash.h"
#include "maps.h"
#include "packet.h"

/* A source is who has one bucket: an IPv4 address, or an IPv6 /64. (What shares a digest shares it harmlessly.) */
static __always_inline struct digest digest_of(const struct packet *packet,
					       const struct sl_meeting *meeting)
{
	const __u32 *addr = (const __u32 *)packet->source.addr;
	__u32 word[2] = {addr[0], packet_is_ipv4(packet) ? ~0U : addr[1]};

	return digest_words(meeting, word, 2);
}

/* Where a limit's key is not the source, each key is somebody of its own to that limit. */
static __always_inline struct digest digest_key(const struct packet *packet,
						const struct sl_limit *limit,
						const struct sl_meeting *meeting)
{
	const __u32 *addr =
		(const __u32 *)(limit->key_dst ? packet->destination : packet->source.addr);
	__u32 word[4] = {addr[0] & (__u32)limit->mask[0]};

	if (!packet_is_ipv4(packet)) {
		word[1] = addr[1] & limit->mask[0] >> 32;
		word[2] = addr[2] & (__u32)limit->mask[1];
		word[3] = addr[3] & limit->mask[1] >> 32;
	}
	word[3] ^= limit->id << 1 | packet_is_ipv4(packet);
	return digest_words(meeting, word, 4);
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
