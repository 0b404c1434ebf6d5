// SPDX-License-Identifier: GPL-2.0
/*
 * bpf/packet.h on one frame of each kind, whole and cut at every length. Each frame lies in a
 * buffer of exactly its size, so that AddressSanitizer sees a read past its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "packet.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define U16(x)	  (x) >> 8, (x)&0xff
#define ZEROS4	  0, 0, 0, 0
#define ETH(type) 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, U16(type)
#define TAG(type) U16(0x6064), U16(type)
#define IPV4_WORD(first, proto, fragment)                                                          \
	first, 0, U16(60), U16(1), U16(fragment), 64, proto, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7
#define IPV4(proto) IPV4_WORD(0x45, proto, 0)
#define IPV6_WORD(first, next)                                                                     \
	first, 0, 0, 0, U16(8), next, 64, 0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, ZEROS4, 0, 0, 0, 9,      \
		0x20, 1, 0xd, 0xb8, ZEROS4, ZEROS4, 0, 0, 0, 1
#define IPV6(next)	       IPV6_WORD(0x60, next)
#define EXT(next)	       next, 0, 1, 4, ZEROS4
#define EXT16(next)	       next, 1, 1, 4, ZEROS4, ZEROS4, ZEROS4
#define FRAGMENT(next, offset) next, 0, U16(offset), 0, 0, 0, 7
#define AH(next)	       next, 4, 0, 0, ZEROS4, ZEROS4, ZEROS4, ZEROS4, ZEROS4
#define UDP		       U16(53), U16(5353), U16(8), 0, 0
#define TCP(words)	       U16(443), U16(1025), ZEROS4, ZEROS4, (words) << 4, 2, 0, 0, 0, 0, 0, 0
#define ICMP		       8, 0, 0, 0, 0, 1, 0, 1

#define FRAME(...)                                                                                 \
	.bytes = (const uint8_t[]){__VA_ARGS__}, .size = sizeof((const uint8_t[]){__VA_ARGS__})

/* The fields of struct frame that belong together: no source is found, and why; a source is found;
 * where the search for the transport header ends. */
#define NO_SOURCE(why, link_end) .link = (link_end), .reason = (why)
#define SOURCE(version, link_end, next)                                                            \
	.link = (link_end), .reason = SL_PASS_WITHIN, .family = (version), .proto = (next)
#define ENDS(answer, next, at, header)                                                             \
	.transport = TRANSPORT_##answer, .last_proto = (next), .transport_at = (at),               \
	.transport_size = (header)

/* Behind a first extension header: seven more of 8 bytes each. */
#define EXT_CHAIN_7 EXT(43), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60)

static const struct frame {
	const char *name;
	const uint8_t *bytes;
	size_t size;
	size_t link;	       /* where the Ethernet header and the tags that are read end */
	enum sl_reason reason; /* of the whole frame */
	uint32_t family;       /* 0: none, and what follows means nothing */
	uint8_t proto;	       /* in the IP header */
	uint8_t last_proto;    /* where the search for the transport header ends */
	size_t transport_at;   /* there; more than `size`: the frame ends before */
	enum packet_transport transport;
	size_t transport_size; /* 0: unknown, or more than the frame */
} frames[] = {
	{"IPv4 UDP", FRAME(ETH(0x0800), IPV4(17), UDP), SOURCE(4, 14, 17), ENDS(OK, 17, 34, 8)},
	{"IPv4 TCP", FRAME(ETH(0x0800), IPV4(6), TCP(5), 1, 2, 3), SOURCE(4, 14, 6),
	 ENDS(OK, 6, 34, 20)},
	{"IPv4 TCP, options", FRAME(ETH(0x0800), IPV4(6), TCP(7), ZEROS4, ZEROS4), SOURCE(4, 14, 6),
	 ENDS(OK, 6, 34, 28)},
	{"IPv4 ICMP", FRAME(ETH(0x0800), IPV4(1), ICMP), SOURCE(4, 14, 1), ENDS(OK, 1, 34, 0)},
	{"IPv4, no payload", FRAME(ETH(0x0800), IPV4(17)), SOURCE(4, 14, 17), ENDS(OK, 17, 34, 0)},
	{"IPv4, 4 bytes of options", FRAME(ETH(0x0800), IPV4_WORD(0x46, 17, 0), ZEROS4, UDP),
	 SOURCE(4, 14, 17), ENDS(OK, 17, 38, 8)},
	{"IPv4, 40 bytes of options",
	 FRAME(ETH(0x0800), IPV4_WORD(0x4f, 6, 0), ZEROS4, ZEROS4, ZEROS4, ZEROS4, ZEROS4, ZEROS4,
	       ZEROS4, ZEROS4, ZEROS4, ZEROS4, TCP(5)),
	 SOURCE(4, 14, 6), ENDS(OK, 6, 74, 20)},
	{"IPv4, header longer than the frame",
	 FRAME(ETH(0x0800), IPV4_WORD(0x4f, 6, 0), ZEROS4, ZEROS4), SOURCE(4, 14, 6),
	 ENDS(OK, 6, 74, 0)},
	{"IPv4, first fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x2000), UDP),
	 SOURCE(4, 14, 17), ENDS(OK, 17, 34, 8)},
	{"IPv4, do not fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x4000), UDP),
	 SOURCE(4, 14, 17), ENDS(OK, 17, 34, 8)},
	{"IPv4, middle fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x2001), UDP),
	 SOURCE(4, 14, 17), ENDS(HIDDEN, 17, 34, 0)},
	{"IPv4, last fragment", FRAME(ETH(0x0800), IPV4_WORD(0x46, 17, 0x1fff), ZEROS4, UDP),
	 SOURCE(4, 14, 17), ENDS(HIDDEN, 17, 34, 0)},
	{"IPv4, length 4 words", FRAME(ETH(0x0800), IPV4_WORD(0x44, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	{"IPv4, length 0", FRAME(ETH(0x0800), IPV4_WORD(0x40, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	{"IPv4, version 6", FRAME(ETH(0x0800), IPV4_WORD(0x65, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	{"IPv4 by EtherType, IPv6 in truth", FRAME(ETH(0x0800), IPV6(17), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	{"IPv4, 1 tag", FRAME(ETH(0x8100), TAG(0x0800), IPV4(17), UDP), SOURCE(4, 18, 17),
	 ENDS(OK, 17, 38, 8)},
	{"IPv4, 1 service tag", FRAME(ETH(0x88a8), TAG(0x0800), IPV4(17), UDP), SOURCE(4, 18, 17),
	 ENDS(OK, 17, 38, 8)},
	{"IPv4, service tag and tag", FRAME(ETH(0x88a8), TAG(0x8100), TAG(0x0800), IPV4(6), TCP(5)),
	 SOURCE(4, 22, 6), ENDS(OK, 6, 42, 20)},
	{"IPv6, 2 tags", FRAME(ETH(0x8100), TAG(0x8100), TAG(0x86dd), IPV6(17), UDP),
	 SOURCE(6, 22, 17), ENDS(OK, 17, 62, 8)},
	{"3 tags", FRAME(ETH(0x88a8), TAG(0x8100), TAG(0x8100), TAG(0x0800), IPV4(17), UDP),
	 NO_SOURCE(SL_PASS_VLAN_DEPTH, 22)},
	{"3 service tags", FRAME(ETH(0x88a8), TAG(0x88a8), TAG(0x88a8), TAG(0x0800), IPV4(17)),
	 NO_SOURCE(SL_PASS_VLAN_DEPTH, 22)},
	{"tagged ARP", FRAME(ETH(0x8100), TAG(0x0806), U16(1), U16(0x0800), 6, 4, U16(1)),
	 NO_SOURCE(SL_PASS_NOT_IP, 18)},
	{"ARP", FRAME(ETH(0x0806), U16(1), U16(0x0800), 6, 4, U16(1), ZEROS4),
	 NO_SOURCE(SL_PASS_NOT_IP, 14)},
	{"LLC: a length for an EtherType", FRAME(ETH(0x0026), 0x42, 0x42, 3, ZEROS4),
	 NO_SOURCE(SL_PASS_NOT_IP, 14)},
	{"EtherType with its bytes swapped", FRAME(ETH(0x0008), IPV4(17), UDP),
	 NO_SOURCE(SL_PASS_NOT_IP, 14)},
	{"IPv6 UDP", FRAME(ETH(0x86dd), IPV6(17), UDP), SOURCE(6, 14, 17), ENDS(OK, 17, 54, 8)},
	{"IPv6 TCP", FRAME(ETH(0x86dd), IPV6(6), TCP(5)), SOURCE(6, 14, 6), ENDS(OK, 6, 54, 20)},
	{"IPv6 ICMPv6", FRAME(ETH(0x86dd), IPV6(58), ICMP), SOURCE(6, 14, 58), ENDS(OK, 58, 54, 0)},
	{"IPv6, no next header", FRAME(ETH(0x86dd), IPV6(59)), SOURCE(6, 14, 59),
	 ENDS(OK, 59, 54, 0)},
	{"IPv6, version 4", FRAME(ETH(0x86dd), IPV6_WORD(0x40, 17), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	{"IPv6 hop by hop", FRAME(ETH(0x86dd), IPV6(0), EXT(17), UDP), SOURCE(6, 14, 0),
	 ENDS(OK, 17, 62, 8)},
	{"IPv6 routing, 16 bytes", FRAME(ETH(0x86dd), IPV6(43), EXT16(6), TCP(6), ZEROS4),
	 SOURCE(6, 14, 43), ENDS(OK, 6, 70, 24)},
	{"IPv6 destination options", FRAME(ETH(0x86dd), IPV6(60), EXT(58), ICMP), SOURCE(6, 14, 60),
	 ENDS(OK, 58, 62, 0)},
	{"IPv6 AH", FRAME(ETH(0x86dd), IPV6(51), AH(17), UDP), SOURCE(6, 14, 51),
	 ENDS(OK, 17, 78, 8)},
	{"IPv6, first fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 0x0001), UDP),
	 SOURCE(6, 14, 44), ENDS(OK, 17, 62, 8)},
	{"IPv6, middle fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 0x0009), UDP),
	 SOURCE(6, 14, 44), ENDS(HIDDEN, 17, 62, 0)},
	{"IPv6, last fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 0xfff8), UDP),
	 SOURCE(6, 14, 44), ENDS(HIDDEN, 17, 62, 0)},
	{"IPv6, middle fragment of a chain",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(44), FRAGMENT(60, 0x0008), EXT(17), UDP), SOURCE(6, 14, 0),
	 ENDS(HIDDEN, 60, 70, 0)},
	{"IPv6, one header of each",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(60), EXT(43), EXT16(44), FRAGMENT(51, 1), AH(60), EXT(6),
	       TCP(5)),
	 SOURCE(6, 14, 0), ENDS(OK, 6, 126, 20)},
	{"IPv6, 8 extension headers", FRAME(ETH(0x86dd), IPV6(0), EXT_CHAIN_7, EXT(17), UDP),
	 SOURCE(6, 14, 0), ENDS(OK, 17, 118, 8)},
	{"IPv6, 9 extension headers",
	 FRAME(ETH(0x86dd), IPV6(0), EXT_CHAIN_7, EXT(60), EXT(17), UDP), SOURCE(6, 14, 0),
	 ENDS(TOO_DEEP, 60, 118, 0)},
	{"IPv6, extension header longer than the frame",
	 FRAME(ETH(0x86dd), IPV6(0), 17, 255, 0, 0, ZEROS4, UDP), SOURCE(6, 14, 0),
	 ENDS(OK, 17, 54 + 256 * 8, 0)},
};

static const uint8_t source4[16] = {192, 0, 2, 1};
static const uint8_t source6[16] = {0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9};

static size_t size_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * A copy with nothing behind it. IP headers lie on a multiple of four as drivers see to it: the
 * kernel's NET_IP_ALIGN.
 */
static uint8_t *buffer_of(const struct frame *frame, size_t size)
{
	uint8_t *buffer = malloc(2 + size);

	assert_non_null(buffer);
	memcpy(buffer + 2, frame->bytes, size);
	return buffer;
}

static enum sl_reason expected_reason(const struct frame *frame, size_t size)
{
	size_t header = 0;

	if (frame->reason == SL_PASS_WITHIN)
		header = frame->family == 4 ? 20 : 40;
	else if (frame->reason == SL_PASS_BAD_HEADER)
		header = frame->bytes[frame->link - 2] == 0x08 ? 20 : 40;
	return size < frame->link + header ? SL_PASS_SHORT : frame->reason;
}

static void check_source(const struct frame *frame, const struct packet *packet, size_t ip_end)
{
	bool is_ipv4 = frame->family == 4;

	assert_int_equal(packet->source.family, htonl(frame->family));
	assert_int_equal(packet->source.bits, is_ipv4 ? 64 : 160);
	assert_memory_equal(packet->source.addr, is_ipv4 ? source4 : source6, 16);
	assert_int_equal(packet->proto, frame->proto);
	assert_int_equal(ip_end, frame->link + (is_ipv4 ? 20 : 40));
}

/* A header's size is told as soon as what tells it is in the frame. */
static size_t expected_transport_size(const struct frame *frame, size_t size)
{
	size_t least = frame->last_proto == 6 ? 20 : 8;

	return size < frame->transport_at + least ? 0 : frame->transport_size;
}

static void check_transport(const struct frame *frame, struct cursor *cursor, struct packet *packet,
			    uint8_t *start, size_t size)
{
	enum packet_transport transport = packet_find_transport(cursor, packet);

	/* A fragment is told by IPv4's fixed header, and the options do not matter. */
	if (size < frame->transport_at) {
		assert_int_equal(transport, TRANSPORT_SHORT);
		return;
	}
	assert_int_equal(transport, frame->transport);
	assert_int_equal(packet->proto, frame->last_proto);
	assert_int_equal((uint8_t *)cursor->pos - start, frame->transport_at);
	if (transport == TRANSPORT_OK)
		assert_int_equal(packet_transport_size(cursor, packet),
				 expected_transport_size(frame, size));
}

static void check_frame(const struct frame *frame, size_t size)
{
	uint8_t *buffer = buffer_of(frame, size), *start = buffer + 2;
	struct cursor cursor = {start, start + size};
	struct packet packet = {0};
	enum sl_reason reason = packet_parse(&cursor, &packet);

	if (reason != expected_reason(frame, size))
		fail_msg("%s, %zu of %zu bytes: reason %d", frame->name, size, frame->size, reason);
	if (reason == SL_PASS_WITHIN) {
		check_source(frame, &packet, (uint8_t *)cursor.pos - start);
		check_transport(frame, &cursor, &packet, start, size);
	}
	free(buffer);
}

static void test_whole_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		print_message("%s\n", frames[i].name);
		check_frame(&frames[i], frames[i].size);
	}
}

static void test_every_truncation(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		print_message("%s\n", frames[i].name);
		for (size_t size = 0; size < frames[i].size; size++)
			check_frame(&frames[i], size);
	}
}

/* Whatever the bytes say, parsing ends within the frame: each byte of each header set to each
 * value. */
static void test_every_byte_spoilt(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		for (size_t at = 12; at < size_min(frames[i].size, 130); at++) {
			uint8_t *buffer = buffer_of(&frames[i], frames[i].size),
				*start = buffer + 2;

			for (int value = 0; value < 256; value++) {
				struct cursor cursor = {start, start + frames[i].size};
				struct packet packet = {0};

				start[at] = value;
				if (packet_parse(&cursor, &packet) == SL_PASS_WITHIN &&
				    packet_find_transport(&cursor, &packet) == TRANSPORT_OK)
					packet_transport_size(&cursor, &packet);
				assert_true(cursor.pos <= cursor.end);
			}
			free(buffer);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_frames),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_every_byte_spoilt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
