// SPDX-License-Identifier: GPL-2.0
/* Makes the frames that the rig sends. */
#include "rig.h"

#include <arpa/inet.h>

#include "ip_frame.h"

/* Parses an address. IPv4-mapped IPv6 addresses stay IPv6, unlike in prefix_of(). */
static struct sl_prefix address_of(const char *text)
{
	struct sl_prefix address = {.bits = SL_FAMILY_BITS + 32, .family = htonl(SL_FAMILY_IPV4)};

	if (inet_pton(AF_INET, text, address.addr) == 1)
		return address;
	address.bits = SL_FAMILY_BITS + 128;
	address.family = htonl(SL_FAMILY_IPV6);
	assert_int_equal(inet_pton(AF_INET6, text, address.addr), 1);
	return address;
}

void frame_write(uint8_t *bytes, uint32_t size, const char *source)
{
	struct sl_prefix address = address_of(source);

	ip_frame_write(bytes, size, &address);
}

struct frame frame_from(const char *source, uint32_t size)
{
	struct frame frame = {.size = size};

	assert_in_range(size, ETH_SIZE + IPV4_SIZE + UDP_SIZE, FRAME_MAX);
	frame_write(frame.bytes, size, source);
	return frame;
}

struct frame frame_of_proto(const char *source, uint8_t proto)
{
	struct frame frame = frame_from(source, FRAME_LEAST);

	frame_set_proto(&frame, proto);
	return frame;
}

struct frame frame_of(uint32_t number)
{
	struct frame frame = {.size = FRAME_LEAST};
	struct sl_prefix source = {.family = htonl(SL_FAMILY_IPV4), .bits = SL_FAMILY_BITS + 32};
	uint32_t addr = htonl(10 << 24 | number);

	memcpy(source.addr, &addr, sizeof(addr));
	ip_frame_write(frame.bytes, frame.size, &source);
	return frame;
}

/* --- Changes -------------------------------------------------------------------------------- */

static bool frame_is_ipv4(const struct frame *frame)
{
	return frame->bytes[12] == 0x08;
}

void frame_set_destination(struct frame *frame, const char *destination)
{
	struct sl_prefix to = address_of(destination);

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
