// SPDX-License-Identifier: GPL-2.0
/* Frames for the rig to send. */
#include "rig.h"

#include <arpa/inet.h>

#define ETH_SIZE  14
#define IPV4_SIZE 20
#define IPV6_SIZE 40
#define UDP_SIZE  8

static void frame_write_ipv4(uint8_t *ip, uint32_t size, const uint8_t *source)
{
	ip[0] = 0x45;
	ip[2] = size >> 8;
	ip[3] = size;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, source, 4);
	memcpy(ip + 16, (uint8_t[]){198, 51, 100, 7}, 4);
}

static void frame_write_ipv6(uint8_t *ip, uint32_t size, const uint8_t *source)
{
	ip[0] = 0x60;
	ip[4] = (size - IPV6_SIZE) >> 8;
	ip[5] = size - IPV6_SIZE;
	ip[6] = 17;
	ip[7] = 64;
	memcpy(ip + 8, source, 16);
	memcpy(ip + 24, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4);
}

static void frame_write_from(uint8_t *bytes, uint32_t size, const struct sl_prefix *source)
{
	bool ipv4 = prefix_is_ipv4(source);

	memset(bytes, 0, size);
	memcpy(bytes, (uint8_t[]){2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}, 12);
	bytes[12] = ipv4 ? 0x08 : 0x86;
	bytes[13] = ipv4 ? 0x00 : 0xdd;
	if (ipv4)
		frame_write_ipv4(bytes + ETH_SIZE, size - ETH_SIZE, source->addr);
	else
		frame_write_ipv6(bytes + ETH_SIZE, size - ETH_SIZE, source->addr);
}

void frame_write(uint8_t *bytes, uint32_t size, const char *source)
{
	struct sl_prefix parsed = rig_prefix(source);

	frame_write_from(bytes, size, &parsed);
}

struct frame frame_from(const char *source, uint32_t size)
{
	struct frame frame = {.size = size};

	assert_in_range(size, ETH_SIZE + IPV4_SIZE + UDP_SIZE, FRAME_MAX);
	frame_write(frame.bytes, size, source);
	return frame;
}

struct frame frame_of(uint32_t number)
{
	struct frame frame = {.size = 60};
	struct sl_prefix source = {.family = htonl(SL_FAMILY_IPV4), .bits = SL_FAMILY_BITS + 32};
	uint32_t addr = htonl(10 << 24 | number);

	memcpy(source.addr, &addr, sizeof(addr));
	frame_write_from(frame.bytes, frame.size, &source);
	return frame;
}

/* --- Changes -------------------------------------------------------------------------------- */

static bool frame_is_ipv4(const struct frame *frame)
{
	return frame->bytes[12] == 0x08;
}

void frame_set_destination(struct frame *frame, const char *destination)
{
	struct sl_prefix to = rig_prefix(destination);

	assert_int_equal(prefix_is_ipv4(&to), frame_is_ipv4(frame));
	if (frame_is_ipv4(frame))
		memcpy(frame->bytes + ETH_SIZE + 16, to.addr, 4);
	else
		memcpy(frame->bytes + ETH_SIZE + 24, to.addr, 16);
}

void frame_set_proto(struct frame *frame, uint8_t proto)
{
	frame->bytes[ETH_SIZE + (frame_is_ipv4(frame) ? 9 : 6)] = proto;
}

void frame_set_port(struct frame *frame, uint16_t port)
{
	uint8_t *udp = frame->bytes + ETH_SIZE + (frame_is_ipv4(frame) ? IPV4_SIZE : IPV6_SIZE);

	udp[2] = port >> 8;
	udp[3] = port;
}
