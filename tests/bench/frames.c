// SPDX-License-Identifier: GPL-2.0
#include "frames.h"

#include <string.h>

#include "ip_frame.h"

/* Ports, length; a checksum of zero is none. */
static void udp_write(uint8_t *udp, uint32_t size)
{
	memcpy(udp, (uint8_t[]){0x30, 0x39, 0, 9, size >> 8, size, 0, 0}, UDP_SIZE);
}

void vary_write(struct vary *vary, const struct sl_prefix *source, uint64_t seed)
{
	uint8_t mask[16] = {0};

	for (unsigned int bit = source->bits - SL_FAMILY_BITS; bit < 128; bit++)
		mask[bit / 8] |= 0x80 >> bit % 8;
	vary->state = seed * 0x9e3779b97f4a7c15ULL + 1;
	memcpy(vary->base, source->addr, sizeof(vary->base));
	memcpy(vary->mask, mask, sizeof(vary->mask));
}

void frame_write(struct frame *frame, const struct sl_prefix *source, uint64_t seed)
{
	uint32_t payload = prefix_is_ipv4(source) ? IPV4_PAYLOAD : IPV6_PAYLOAD;
	uint8_t *bytes = frame->bytes;
	struct vary vary;

	ip_frame_write(bytes, FRAME_SIZE, source);
	udp_write(bytes + payload - UDP_SIZE, FRAME_SIZE - payload + UDP_SIZE);
	vary_write(&vary, source, seed);
	memcpy(bytes + payload, &vary, sizeof(vary));
}
