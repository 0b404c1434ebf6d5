// SPDX-License-Identifier: GPL-2.0
#include "replay/rss.h"

#include <stdbool.h>
#include <string.h>
#include <net/ethernet.h>
#include <netinet/in.h>

#define TABLE_SIZE   128
#define ETHERTYPE_AD 0x88a8

#define IPV4_SIZE 20
#define IPV6_SIZE 40

static const uint8_t key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static uint16_t half_at(const uint8_t *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

/* Returns the xor of the 32-bit windows of the key at all bits of the input that are set. */
static uint32_t toeplitz(const uint8_t *input, unsigned int size)
{
	uint32_t hash = 0, window;

	memcpy(&window, key, sizeof(window));
	window = ntohl(window);
	for (unsigned int i = 0; i < size; i++)
		for (int bit = 7; bit >= 0; bit--) {
			unsigned int next = i * 8 + (7 - bit) + 32;

			if (input[i] >> bit & 1)
				hash ^= window;
			window = window << 1 | (key[next / 8] >> (7 - next % 8) & 1);
		}
	return hash;
}

/*
 * Appends the ports to the addresses in the input, if the packet is TCP or UDP. Returns the size of
 * the input.
 */
static unsigned int ports_add(uint8_t *input, unsigned int size, uint8_t proto,
			      const uint8_t *ports, const uint8_t *end)
{
	if ((proto != IPPROTO_TCP && proto != IPPROTO_UDP) || end - ports < 4)
		return size;
	memcpy(input + size, ports, 4);
	return size + 4;
}

uint32_t rss_hash(const uint8_t *frame, uint32_t size)
{
	const uint8_t *end = frame + size, *ip;
	uint32_t at = 2 * ETHER_ADDR_LEN;
	uint8_t input[36];
	uint16_t type = 0;

	for (; at + 2 <= size; at += 4) {
		type = half_at(frame + at);
		if (type != ETHERTYPE_VLAN && type != ETHERTYPE_AD)
			break;
	}
	ip = frame + at + 2;
	if (type == ETHERTYPE_IP && end - ip >= IPV4_SIZE) {
		bool is_fragment = half_at(ip + 6) & 0x3fff;

		memcpy(input, ip + 12, 8);
		return toeplitz(
			input,
			is_fragment ? 8 : ports_add(input, 8, ip[9], ip + (ip[0] & 15) * 4, end));
	}
	if (type == ETHERTYPE_IPV6 && end - ip >= IPV6_SIZE) {
		memcpy(input, ip + 8, 32);
		return toeplitz(input, ports_add(input, 32, ip[6], ip + IPV6_SIZE, end));
	}
	return 0;
}

unsigned int rss_cpu(uint32_t hash, unsigned int cpus)
{
	return hash % TABLE_SIZE % cpus;
}
