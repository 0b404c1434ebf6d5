/* SPDX-License-Identifier: GPL-2.0 */
/* Writes Ethernet frames with an IP header for UDP. */
#ifndef SLUICE_TEST_IP_FRAME_H
#define SLUICE_TEST_IP_FRAME_H

#include <stdint.h>
#include <string.h>

#include "header_sizes.h"
#include "rules/prefix.h"

/* Returns the checksum of an IPv4 header without options. The checksum field must be 0. */
static inline uint16_t ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_SIZE; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static inline void ipv4_write(uint8_t *ip, uint32_t size, const uint8_t *source)
{
	uint16_t sum;

	memcpy(ip, (uint8_t[]){0x45, 0, size >> 8, size, 0, 0, 0, 0, 64, 17}, 10);
	memcpy(ip + 12, source, 4);
	memcpy(ip + 16, (uint8_t[]){198, 51, 100, 7}, 4);
	sum = ipv4_checksum(ip);
	ip[10] = sum >> 8;
	ip[11] = sum;
}

static inline void ipv6_write(uint8_t *ip, uint32_t size, const uint8_t *source)
{
	size -= IPV6_SIZE;
	memcpy(ip, (uint8_t[]){0x60, 0, 0, 0, size >> 8, size, 17, 64}, 8);
	memcpy(ip + 8, source, 16);
	memcpy(ip + 24, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4);
}

/*
 * Writes a frame of `size` bytes with the Ethernet and IP headers of a UDP packet, with destination
 * 198.51.100.7 or 2001:db8::. All other bytes are 0.
 */
static inline void ip_frame_write(uint8_t *bytes, uint32_t size, const struct sl_prefix *source)
{
	bool ipv4 = prefix_is_ipv4(source);

	memset(bytes, 0, size);
	memcpy(bytes, (uint8_t[]){2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, 12); /* to, from */
	bytes[12] = ipv4 ? 0x08 : 0x86;
	bytes[13] = ipv4 ? 0x00 : 0xdd;
	if (ipv4)
		ipv4_write(bytes + ETH_SIZE, size - ETH_SIZE, source->addr);
	else
		ipv6_write(bytes + ETH_SIZE, size - ETH_SIZE, source->addr);
}

#endif
