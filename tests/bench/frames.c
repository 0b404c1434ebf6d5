// SPDX-License-Identifier: GPL-2.0
#include "frames.h"

#include <string.h>

#include "ip_frame.h"

#define BY_NETS " by /64"

/* Offsets in an IPv4 header. */
#define IPV4_PROTO 9
#define IPV4_SUM   10

int sources_parse(const char *text, struct sources *ret)
{
	const char *nets = strstr(text, BY_NETS);
	struct sources sources;
	char prefix[PREFIX_TEXT] = "";
	int status;

	if (nets && (size_t)(nets - text) >= sizeof(prefix))
		return error_misuse("bench", NULL, "'%s' is too long", text);
	if (nets)
		memcpy(prefix, text, nets - text);
	status = prefix_parse(nets ? prefix : text, &sources.prefix);
	if (status)
		return status;
	sources.end = SL_FAMILY_BITS + (prefix_is_ipv4(&sources.prefix) ? 32 : 128);
	if (nets)
		sources.end = SL_FAMILY_BITS + 64;
	*ret = sources;
	return 0;
}

uint32_t sources_count(const struct sources *sources)
{
	unsigned int bits = sources->end - sources->prefix.bits;

	return 1U << (bits < 31 ? bits : 31);
}

void vary_write(struct vary *vary, const struct sources *sources, uint64_t seed)
{
	uint8_t mask[16] = {0};

	for (unsigned int bit = sources->prefix.bits; bit < sources->end; bit++)
		mask[(bit - SL_FAMILY_BITS) / 8] |= 0x80 >> bit % 8;
	vary->state = seed * 0x9e3779b97f4a7c15ULL + 1;
	memcpy(vary->base, sources->prefix.addr, sizeof(vary->base));
	memcpy(vary->mask, mask, sizeof(vary->mask));
}

void frame_write(struct frame *frame, const struct sources *sources, uint64_t seed)
{
	const struct sl_prefix *source = &sources->prefix;
	uint32_t payload = prefix_is_ipv4(source) ? IPV4_PAYLOAD : IPV6_PAYLOAD;
	uint32_t udp_size = FRAME_SIZE - payload + UDP_SIZE;
	uint8_t *bytes = frame->bytes;
	struct vary vary;

	ip_frame_write(bytes, FRAME_SIZE, source);
	/* UDP header: source port 12345, port 9, the length, and 0 for no checksum */
	memcpy(bytes + payload - UDP_SIZE,
	       (uint8_t[]){0x30, 0x39, 0, 9, udp_size >> 8, udp_size, 0, 0}, UDP_SIZE);
	vary_write(&vary, sources, seed);
	memcpy(bytes + payload, &vary, sizeof(vary));
}

void frame_replace(struct frame *frame, const struct bench_packet *packet)
{
	uint8_t *ip = frame->bytes + ETH_SIZE;
	uint16_t sum;

	memcpy(ip + IPV4_SIZE, packet->bytes, packet->size);
	ip[IPV4_PROTO] = packet->proto;
	memset(ip + IPV4_SUM, 0, sizeof(sum));
	sum = ipv4_checksum(ip);
	ip[IPV4_SUM] = sum >> 8;
	ip[IPV4_SUM + 1] = sum;
}
