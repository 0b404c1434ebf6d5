// SPDX-License-Identifier: GPL-2.0
#include "frames.h"

#include <string.h>

#include "rules/prefix.h"

static const uint8_t macs[12] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}; /* to, from */

/* Of 20 bytes, with zero where the sum will stand. */
static uint16_t ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_SIZE; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static void ipv4_write(uint8_t *ip, uint32_t size, const uint8_t *source)
{
	uint16_t sum;

	memcpy(ip, (uint8_t[]){0x45, 0, size >> 8, size, 0, 0, 0, 0, 64, 17}, 10);
	memcpy(ip + 12, source, 4);
	memcpy(ip + 16, (uint8_t[]){198, 51, 100, 7}, 4);
	sum = ipv4_checksum(ip);
	ip[10] = sum >> 8;
	ip[11] = sum;
}

static void ipv6_write(uint8_t *ip, uint32_t size, const uint8_t *source)
{
	size -= IPV6_SIZE;
	memcpy(ip, (uint8_t[]){0x60, 0, 0, 0, size >> 8, size, 17, 64}, 8);
	memcpy(ip + 8, source, 16);
	memcpy(ip + 24, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4);
}

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
	bool ipv4 = prefix_is_ipv4(source);
	uint32_t payload = ipv4 ? IPV4_PAYLOAD : IPV6_PAYLOAD;
	uint8_t *bytes = frame->bytes;
	struct vary vary;

	memset(bytes, 0, FRAME_SIZE);
	memcpy(bytes, macs, sizeof(macs));
	bytes[12] = ipv4 ? 0x08 : 0x86;
	bytes[13] = ipv4 ? 0x00 : 0xdd;
	if (ipv4)
		ipv4_write(bytes + ETH_SIZE, FRAME_SIZE - ETH_SIZE, source->addr);
	else
		ipv6_write(bytes + ETH_SIZE, FRAME_SIZE - ETH_SIZE, source->addr);
	udp_write(bytes + payload - UDP_SIZE, FRAME_SIZE - payload + UDP_SIZE);
	vary_write(&vary, source, seed);
	memcpy(bytes + payload, &vary, sizeof(vary));
}
