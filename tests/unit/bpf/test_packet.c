// SPDX-License-Identifier: GPL-2.0
/*
 * Tests bpf/packet.h with a frame of each kind. Parses the whole frame, the frame cut at each
 * length, and the frame with a linear part of each length. Each part is in a buffer of its size, so
 * that AddressSanitizer reports reads past its end.
 */
#include "test.h"
#include "packet_frames.h"
#include "packet_model.h"

static const uint8_t source4[16] = {192, 0, 2, 1};
static const uint8_t source6[16] = {0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9};
static const uint8_t destination4[16] = {198, 51, 100, 7};
static const uint8_t destination6[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

static size_t size_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A frame. Its first `linear` bytes are in the linear part of the packet buffer. */
struct split {
	uint8_t *linear_bytes; /* linear part; the buffer has exactly its size */
	uint8_t *bytes;
	struct reader linear;
	struct reader whole;
};

static struct split split_make(const struct wire_frame *frame, size_t size, size_t linear)
{
	struct split split = {
		.linear_bytes = frame_copy(frame->bytes, linear),
		.bytes = frame_copy(frame->bytes, size),
	};

	split.linear = reader_linear(split.linear_bytes + FRAME_ALIGN, linear, size);
	split.whole =
		(struct reader){.kind = READ_XDP, .ctx = split.bytes + FRAME_ALIGN, .size = size};
	return split;
}

static void split_free(struct split *split)
{
	free(split->linear_bytes);
	free(split->bytes);
}

static enum sl_reason expected_reason(const struct wire_frame *frame, size_t size)
{
	size_t header = 0;

	if (frame->reason == PARSED)
		header = frame->family == 4 ? 20 : 40;
	else if (frame->reason == SL_PASS_BAD_HEADER)
		header = frame->bytes[frame->link - 2] == 0x08 ? 20 : 40;
	if (size < frame->link)
		return SL_PASS_SHORT;
	return size < frame->link + header ? SL_DROP_UNREADABLE : frame->reason;
}

static void check_source(const struct wire_frame *frame, const struct packet *packet)
{
	bool is_ipv4 = frame->family == 4;

	assert_int_equal(packet->source.family, htonl(frame->family));
	assert_int_equal(packet->source.bits, is_ipv4 ? 64 : 160);
	assert_memory_equal(packet->source.addr, is_ipv4 ? source4 : source6, 16);
	assert_int_equal(packet->ip_offset, frame->link);
	assert_int_equal(packet->facts.vlan, frame->vlan);
	assert_false(packet->inspected);
}

/* Returns the expected `facts` after parsing the first `size` bytes of a frame. */
static uint16_t expected_facts(const struct wire_frame *frame, size_t size)
{
	uint16_t hidden = 0, facts;

	/* the protocol number of IPv6 is after the extension headers */
	if (frame->family == 6 && size < frame->transport_at)
		hidden = ~SL_FACT_ANY;
	if (size < frame->transport_at + 4 || frame->transport != TRANSPORT_OK)
		hidden |= SL_FACT_PORT | SL_FACT_SYN;
	if (size < frame->transport_at + (frame->facts & SL_FACT_TCP ? 14 : 1) ||
	    frame->transport != TRANSPORT_OK)
		hidden |= SL_FACT_SYN | SL_FACT_DETAIL;
	facts = frame->facts & ~hidden;
	if (frame->fragment_at && size >= frame->fragment_at)
		facts |= SL_FACT_FRAGMENT;
	return facts;
}

/* Returns the expected enum packet_transport after parsing the first `size` bytes of a frame. */
static enum packet_transport expected_answer(const struct wire_frame *frame, size_t size)
{
	size_t least = 0;

	/* the fixed header of IPv4 shows whether a packet is a fragment */
	if (frame->family == 4 && frame->transport == TRANSPORT_HIDDEN)
		return TRANSPORT_HIDDEN;
	if (size < frame->transport_at)
		return TRANSPORT_SHORT;
	if (frame->transport != TRANSPORT_OK)
		return frame->transport;
	if (frame->facts & SL_FACT_TCP)
		least = 14;
	else if (frame->facts & SL_FACT_UDP)
		least = 4;
	else if (frame->facts & SL_FACT_ICMP)
		least = 1;
	return size < frame->transport_at + least ? TRANSPORT_SHORT : TRANSPORT_OK;
}

static void check_facts(const struct wire_frame *frame, const struct packet *packet,
			enum packet_transport answer, size_t size)
{
	uint16_t facts;

	if (frame->end && size > frame->end)
		size = frame->end;
	facts = expected_facts(frame, size);
	if (answer == TRANSPORT_SHORT || answer == TRANSPORT_TOO_DEEP)
		facts |= SL_FACT_UNREAD | (facts & SL_FACT_TCP ? SL_FACT_SYN | SL_FACT_TLS : 0) |
			 (facts & SL_FACT_UDP ? SL_FACT_QUIC | SL_FACT_DNS : 0);
	assert_true(facts_are_sound(packet));
	assert_true(answer_is_sound(packet, answer));
	assert_int_equal(answer, expected_answer(frame, size));
	assert_int_equal(packet->facts.facts, facts);
	assert_int_equal(packet->facts.proto, facts & SL_FACT_PROTO ? frame->proto : 0);
	assert_int_equal(packet->facts.port, facts & SL_FACT_PORT ? frame->port : 0);
	assert_int_equal(packet->facts.vlan, frame->vlan);
	assert_memory_equal(packet->destination, frame->family == 4 ? destination4 : destination6,
			    16);
	if (answer != TRANSPORT_SHORT)
		assert_int_equal(packet->headers, frame->transport_at + frame->transport_size);
}

static void check_frame(const struct wire_frame *frame, size_t size, size_t linear)
{
	struct split split = split_make(frame, size, linear);
	struct packet packet = {0}, first;
	enum sl_reason reason = parse_both(&split.linear, &split.whole, &packet);

	if (reason != expected_reason(frame, size))
		fail_msg("%s, %zu of %zu bytes, %zu linear: reason %d", frame->name, size,
			 frame->size, linear, reason);
	if (reason == PARSED) {
		check_source(frame, &packet);
		check_facts(frame, &packet, inspect_both(&split.linear, &split.whole, &packet),
			    size);
		/* a second inspection gives the same facts */
		first = packet;
		memset(&packet.facts, 0xff, sizeof(packet.facts));
		packet.facts.vlan = frame->vlan;
		inspect_both(&split.linear, &split.whole, &packet);
		assert_memory_equal(&packet, &first, sizeof(packet));
	}
	split_free(&split);
}

TEST(test_each_whole_frame_is_read)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		print_message("%s\n", frames[i].name);
		check_frame(&frames[i], frames[i].size, frames[i].size);
	}
}

TEST(test_a_frame_cut_anywhere_is_read_as_far)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		print_message("%s\n", frames[i].name);
		for (size_t size = 0; size < frames[i].size; size++)
			check_frame(&frames[i], size, size);
	}
}

/* Parses whole and shortened frames. The size of the linear part must not affect the result. */
TEST(test_a_frame_split_anywhere_is_read_the_same)
{
	size_t splits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		for (size_t size = 1; size <= frames[i].size; size++)
			for (size_t linear = 0; linear < size; linear++, splits++)
				check_frame(&frames[i], size, linear);
	print_message("figure: %zu frames, split and cut in %zu ways: each read as if whole\n",
		      ARRAY_SIZE(frames), splits);
}

/* If the kernel fails to copy bytes of a frame, the parser reports the frame as unreadable. */
TEST(test_what_cannot_be_had_is_unreadable)
{
	struct reader reader = {.kind = READ_XDP, .ctx = NULL, .size = 60};
	struct packet packet = {0};

	assert_int_equal(packet_parse(&reader, 0, &packet), SL_DROP_UNREADABLE);
	reader.size = 13;
	assert_int_equal(packet_parse(&reader, 0, &packet), SL_PASS_SHORT);
}

/*
 * The kernel can move a VLAN tag from the frame to the packet's metadata. VLAN_TAGS_MAX also
 * includes this tag.
 */
TEST(test_tags_before_the_frame)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		size_t tags = (frames[i].link - 14) / 4;

		for (__u16 vlan = 0; vlan < 2; vlan++) {
			struct split split = split_make(&frames[i], frames[i].size, frames[i].size);
			struct packet packet = {.facts.vlan = vlan};
			enum sl_reason reason = packet_parse(&split.linear, 1, &packet);

			assert_int_equal(reason, tags >= VLAN_TAGS_MAX ? SL_DROP_VLAN_DEPTH
								       : frames[i].reason);
			if (reason == PARSED)
				assert_int_equal(packet.facts.vlan, vlan ? vlan : frames[i].vlan);
			split_free(&split);
		}
	}
}

/*
 * Parses arbitrary bytes. The parser must not read past the frame, and the packet's facts must not
 * contradict each other.
 */
static void check_any(const uint8_t *bytes, size_t size)
{
	struct wire_frame frame = {.bytes = bytes, .size = size};
	struct split split = split_make(&frame, size, size / 2);
	struct packet packet = {0};

	if (parse_both(&split.linear, &split.whole, &packet) == PARSED) {
		enum packet_transport answer = inspect_both(&split.linear, &split.whole, &packet);

		assert_true(facts_are_sound(&packet));
		assert_true(answer_is_sound(&packet, answer));
	}
	split_free(&split);
}

/* The headers contain each value in each byte. The parser must not read past the frame. */
TEST(test_every_byte_spoilt)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		for (size_t at = 12; at < size_min(frames[i].size, 130); at++) {
			uint8_t *buffer = frame_copy(frames[i].bytes, frames[i].size);

			for (int value = 0; value < 256; value++) {
				buffer[FRAME_ALIGN + at] = value;
				check_any(buffer + FRAME_ALIGN, frames[i].size);
			}
			free(buffer);
		}
	}
}

/* --- TCP's flags ----------------------------------------------------------------------------- */

/* A TCP packet with SYN and without ACK counts as SYN. All other flags of TCP are ignored. */
static void check_flags(const struct wire_frame *frame, unsigned int flags)
{
	uint8_t *buffer = frame_copy(frame->bytes, frame->size);
	struct packet packet = {0};
	struct reader reader = reader_linear(buffer + FRAME_ALIGN, frame->size, frame->size);
	uint16_t expected = SL_FACT_ANY | F_TCP;

	buffer[FRAME_ALIGN + frame->transport_at + 12] |= flags >> 8;
	buffer[FRAME_ALIGN + frame->transport_at + 13] = flags & 0xff;
	if ((flags & 0x02) && !(flags & 0x10))
		expected |= SL_FACT_SYN;
	if (frame->fragment_at)
		expected |= SL_FACT_FRAGMENT;
	assert_int_equal(packet_parse(&reader, 0, &packet), PARSED);
	assert_int_equal(packet_inspect(&reader, &packet), TRANSPORT_OK);
	assert_int_equal(packet.facts.facts, expected);
	free(buffer);
}

TEST(test_every_flag_of_tcp)
{
	int checked = 0;

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		if (!(frames[i].facts & SL_FACT_SYN) || frames[i].end ||
		    frames[i].transport != TRANSPORT_OK ||
		    frames[i].size < frames[i].transport_at + 20)
			continue;
		for (unsigned int flags = 0; flags < 512; flags++)
			check_flags(&frames[i], flags);
		checked++;
	}
	assert_true(checked > 10);
}

/* --- The payload ------------------------------------------------------------------------------ */

/* The first bytes of payloads, and the facts of a packet of UDP and of TCP that has them. */
static const struct {
	const char *name;
	uint8_t bytes[8];
	unsigned int size;
	uint16_t udp, tcp;
} payloads[] = {
	{"QUIC 1, Initial", {0xc3, 0, 0, 0, 1, 8}, 8, SL_FACT_QUIC, 0},
	{"QUIC 1, Initial, fixed bit 0", {0x83, 0, 0, 0, 1, 8}, 8, SL_FACT_QUIC, 0},
	{"QUIC 1, 0-RTT", {0xd3, 0, 0, 0, 1, 8}, 8, 0, 0},
	{"QUIC 1, Handshake", {0xe3, 0, 0, 0, 1, 8}, 8, 0, 0},
	{"QUIC 1, Retry", {0xf3, 0, 0, 0, 1, 8}, 8, 0, 0},
	{"QUIC, short header", {0x43, 0, 0, 0, 1, 8}, 8, 0, 0},
	{"QUIC 2, Initial", {0xd3, 0x6b, 0x33, 0x43, 0xcf, 8}, 8, SL_FACT_QUIC, 0},
	{"QUIC 2, Retry", {0xc3, 0x6b, 0x33, 0x43, 0xcf, 8}, 8, 0, 0},
	{"QUIC 2, 0-RTT", {0xe3, 0x6b, 0x33, 0x43, 0xcf, 8}, 8, 0, 0},
	{"QUIC, version negotiation", {0xc3, 0, 0, 0, 0, 8}, 8, 0, 0},
	{"QUIC, another version", {0xc3, 0xff, 0, 0, 29, 8}, 8, 0, 0},
	{"TLS ClientHello, over UDP a DNS query", {22, 3, 1, 2, 0, 1}, 8, SL_FACT_DNS, SL_FACT_TLS},
	{"TLS ClientHello, record 3.3", {22, 3, 3, 0, 99, 1}, 8, 0, SL_FACT_TLS},
	{"TLS ServerHello", {22, 3, 3, 0, 99, 2}, 8, 0, 0},
	{"TLS application data", {23, 3, 3, 0, 99, 1}, 8, 0, 0},
	{"TLS ClientHello, record 0.0", {22, 0, 0, 0, 99, 1}, 8, 0, SL_FACT_TLS},
	{"HTTP", {'G', 'E', 'T', ' ', '/', ' '}, 8, 0, 0},
	{"TLS, empty record", {22, 3, 1, 0, 0, 22}, 8, 0, SL_FACT_TLS},
	{"TLS, empty ChangeCipherSpec", {20, 3, 1, 0, 0, 22}, 8, 0, SL_FACT_TLS},
	{"TLS ChangeCipherSpec", {20, 3, 3, 0, 1, 1}, 8, 0, 0},
	{"TLS, empty alert", {21, 3, 3, 0, 0, 22}, 8, 0, 0},
	{"TLS, warning alert", {21, 3, 1, 0, 2, 1}, 8, 0, SL_FACT_TLS},
	{"TLS, fatal alert", {21, 3, 1, 0, 2, 2}, 8, 0, 0},
	{"TLS, alert of three bytes", {21, 3, 1, 0, 3, 1}, 8, 0, 0},
	{"TLS ClientHello, record 16.0", {22, 16, 0, 0, 99, 1}, 8, 0, 0},
	{"TLS, empty application data", {23, 3, 3, 0, 0, 22}, 8, 0, 0},
	{"DNS query", {0x12, 0x34, 1, 0, 0, 1}, 8, SL_FACT_DNS, 0},
	{"DNS query, checking disabled", {0x12, 0x34, 7, 0xff, 0, 1}, 8, SL_FACT_DNS, 0},
	{"DNS answer", {0x12, 0x34, 0x81, 0x80, 0, 1}, 8, 0, 0},
	{"DNS update", {0x12, 0x34, 0x28, 0, 0, 1}, 8, 0, 0},
	{"DNS, two questions", {0x12, 0x34, 1, 0, 0, 2}, 8, 0, 0},
	{"DNS, no question", {0x12, 0x34, 1, 0, 0, 0}, 8, 0, 0},
	/* a shorter payload is compared as far as it goes */
	{"one byte of TLS", {22}, 1, SL_FACT_DNS, SL_FACT_TLS},
	{"five bytes of TLS", {22, 3, 1, 2, 0}, 5, SL_FACT_DNS, SL_FACT_TLS},
	{"one byte of HTTP", {'G'}, 1, SL_FACT_DNS, 0},
	{"one byte of QUIC", {0xc3}, 1, SL_FACT_QUIC | SL_FACT_DNS, 0},
	{"no payload", {0}, 0, 0, 0},
};

/* Makes a frame of UDP or TCP with a payload, and of IPv4 or IPv6. Returns its size. */
static size_t payload_frame(bool ipv4, bool tcp, bool fragment, unsigned int n, uint8_t frame[128])
{
	static const uint8_t eth4[] = {ETH(0x0800)}, eth6[] = {ETH(0x86dd)};
	static const uint8_t ip4[] = {IPV4_OF(0, 0x45, 17, 0)}, ip6[] = {IPV6(17)};
	static const uint8_t udp[] = {UDP}, tcp_header[] = {TCP_TO(443, 6, 0x10), ZEROS4};
	size_t at = sizeof(eth4), ip_at = at, length;

	memcpy(frame, ipv4 ? eth4 : eth6, at);
	memcpy(frame + at, ipv4 ? ip4 : ip6, ipv4 ? sizeof(ip4) : sizeof(ip6));
	frame[at + (ipv4 ? 9 : 6)] = tcp ? 6 : 17;
	if (ipv4)
		frame[at + 6] = fragment ? 0x20 : 0;
	at += ipv4 ? sizeof(ip4) : sizeof(ip6);
	memcpy(frame + at, tcp ? tcp_header : udp, tcp ? sizeof(tcp_header) : sizeof(udp));
	at += tcp ? sizeof(tcp_header) : sizeof(udp);
	memcpy(frame + at, payloads[n].bytes, payloads[n].size);
	at += payloads[n].size;
	length = at - ip_at - (ipv4 ? 0 : 40);
	frame[ip_at + (ipv4 ? 3 : 5)] = length;
	memset(frame + at, 0xc3, 8); /* padding, which is not read */
	return at + 8;
}

/* Returns the facts of the payload in the first `size` bytes of a frame. */
static uint16_t payload_facts(const uint8_t *bytes, size_t size, size_t linear, bool *ret_is_read)
{
	const struct wire_frame frame = {.bytes = bytes, .size = size};
	struct split split = split_make(&frame, size, linear);
	struct packet packet = {0};

	assert_int_equal(parse_both(&split.linear, &split.whole, &packet), PARSED);
	inspect_both(&split.linear, &split.whole, &packet);
	*ret_is_read = packet_inspect_payload(&split.linear, &packet);
	if (!*ret_is_read && reader_is_partial(&split.linear))
		*ret_is_read = packet_inspect_payload(&split.whole, &packet);
	split_free(&split);
	return packet.facts.facts & SL_FACT_PAYLOAD;
}

TEST(test_each_payload_in_each_packet)
{
	for (unsigned int n = 0; n < 4 * ARRAY_SIZE(payloads); n++) {
		bool ipv4 = n & 1, tcp = n & 2, is_read;
		uint8_t frame[128];
		size_t size = payload_frame(ipv4, tcp, false, n / 4, frame);
		uint16_t expected = tcp ? payloads[n / 4].tcp : payloads[n / 4].udp;

		for (size_t linear = 0; linear <= size; linear++) {
			if (payload_facts(frame, size, linear, &is_read) != expected || !is_read)
				fail_msg("%s, %s, %s, %zu linear", payloads[n / 4].name,
					 ipv4 ? "IPv4" : "IPv6", tcp ? "TCP" : "UDP", linear);
		}
	}
}

/* The rest of an empty payload is in the next fragment, so it matches. */
TEST(test_a_first_fragment_without_payload_matches)
{
	bool is_read;
	uint8_t frame[128];
	size_t size = payload_frame(true, false, true, ARRAY_SIZE(payloads) - 1, frame);

	assert_int_equal(payload_facts(frame, size, size, &is_read), SL_FACT_QUIC | SL_FACT_DNS);
	size = payload_frame(true, true, true, ARRAY_SIZE(payloads) - 1, frame);
	assert_int_equal(payload_facts(frame, size, size, &is_read), SL_FACT_TLS);
	size = payload_frame(true, true, true, 14, frame); /* TLS application data */
	assert_int_equal(payload_facts(frame, size, size, &is_read), 0);
}

/* If the frame ends within the packet, the payload matches. */
TEST(test_a_payload_that_the_frame_lacks_matches)
{
	bool is_read;
	uint8_t frame[128];
	size_t end = payload_frame(true, true, false, 16, frame) - 8; /* HTTP */

	assert_int_equal(payload_facts(frame, end, end, &is_read), 0);
	for (size_t size = end - 8; size < end - 2; size++) {
		assert_int_equal(payload_facts(frame, size, size, &is_read), SL_FACT_TLS);
		assert_false(is_read);
	}
}

/* --- Numbers --------------------------------------------------------------------------------- */

static const struct wire_frame *frame_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		if (!strcmp(frames[i].name, name))
			return &frames[i];
	fail_msg("no frame '%s'", name);
	return NULL;
}

/* Writes `number` to the two bytes at offset `at` of a frame, and parses the frame. */
static struct packet look_with(const char *name, size_t at, unsigned int number)
{
	const struct wire_frame *frame = frame_find(name);
	uint8_t *buffer = frame_copy(frame->bytes, frame->size);
	struct reader reader = reader_linear(buffer + FRAME_ALIGN, frame->size, frame->size);
	struct packet packet = {0};

	buffer[FRAME_ALIGN + at] = number >> 8;
	buffer[FRAME_ALIGN + at + 1] = number & 0xff;
	assert_int_equal(packet_parse(&reader, 0, &packet), PARSED);
	packet_inspect(&reader, &packet);
	assert_true(facts_are_sound(&packet));
	free(buffer);
	return packet;
}

TEST(test_every_port_is_read)
{
	for (unsigned int port = 0; port < 65536; port++) {
		struct sl_facts to4 = look_with("IPv4 UDP", 36, port).facts;
		struct sl_facts from4 = look_with("IPv4 UDP", 34, port).facts;
		struct sl_facts to6 = look_with("IPv6 TCP", 56, port).facts;
		struct sl_facts from6 = look_with("IPv6 TCP", 54, port).facts;

		assert_true(to4.port == port && to4.sport == 53);
		assert_true(from4.port == 5353 && from4.sport == port);
		assert_true(to6.port == port && to6.sport == 443);
		assert_true(from6.port == 1025 && from6.sport == port);
	}
}

/* Checks the type of service of IPv4, the traffic class of IPv6, and the types of ICMP. */
TEST(test_every_dscp_and_icmp_type_is_read)
{
	for (unsigned int value = 0; value < 256; value++) {
		struct sl_facts ipv4 = look_with("IPv4 UDP", 14, 0x4500 | value).facts;
		struct sl_facts ipv6 = look_with("IPv6 UDP", 14, 0x6000 | value << 4).facts;

		assert_int_equal(ipv4.dscp, value / 4);
		assert_int_equal(ipv6.dscp, value / 4);
		assert_int_equal(look_with("IPv6 UDP", 14, 0x600f).facts.dscp, 0);
		assert_int_equal(look_with("IPv4 ICMP", 34, value << 8).facts.icmp_type, value);
		assert_int_equal(look_with("IPv6 ICMPv6", 54, value << 8).facts.icmp_type, value);
	}
}

/*
 * The length is the length field of IPv4, or that of IPv6 and its header. If the field is 0, the
 * packet ends with the frame.
 */
TEST(test_every_length_is_read)
{
	size_t ipv4 = frame_find("IPv4 UDP")->size - 14, ipv6 = frame_find("IPv6 UDP")->size - 14;

	for (unsigned int length = 1; length < 65536; length++) {
		assert_int_equal(look_with("IPv4 UDP", 16, length).facts.length, length);
		assert_int_equal(look_with("IPv6 UDP", 18, length).facts.length,
				 length + 40 < 65535 ? length + 40 : 65535);
	}
	assert_int_equal(look_with("IPv4 UDP", 16, 0).facts.length, ipv4);
	assert_int_equal(look_with("IPv6 UDP", 18, 0).facts.length, ipv6);
}

/* A merged packet has the length of its first packet. */
TEST(test_merged_packets_have_the_length_of_the_first)
{
	struct packet packet = {.headers = 54, .ip_offset = 14, .facts.length = 20040};

	packet_cut_length(&packet, 1400);
	assert_int_equal(packet.facts.length, 1440);
	packet.facts.length = 640; /* a single packet, shorter than the size of segments */
	packet_cut_length(&packet, 1400);
	assert_int_equal(packet.facts.length, 640);
}

TEST(test_every_vlan_is_read)
{
	for (unsigned int tci = 0; tci < 65536; tci++) {
		assert_int_equal(look_with("IPv4, 1 tag", 14, tci).facts.vlan, tci % 4096);
		/* the parser ignores VLAN id 0 */
		assert_int_equal(look_with("IPv6, 2 tags", 14, tci).facts.vlan,
				 tci % 4096 ? tci % 4096 : 100);
		assert_int_equal(look_with("IPv6, 2 tags", 18, tci).facts.vlan, 100);
		assert_int_equal(look_with("8 priority tags", 42, tci).facts.vlan, tci % 4096);
	}
}

/* An IPv4 packet is a fragment if its 13-bit offset or its more-fragments flag is not 0. */
TEST(test_every_fragment_field)
{
	for (unsigned int field = 0; field < 65536; field++) {
		struct packet ipv4 = look_with("IPv4 UDP", 20, field);
		struct packet ipv6 = look_with("IPv6, atomic fragment", 56, field);

		assert_int_equal(!!(ipv4.facts.facts & SL_FACT_FRAGMENT), !!(field & 0x3fff));
		assert_int_equal(!!(ipv4.facts.facts & SL_FACT_PORT), !(field & 0x1fff));
		assert_int_equal(!!(ipv6.facts.facts & SL_FACT_FRAGMENT), !!(field & 0xfff9));
		assert_int_equal(!!(ipv6.facts.facts & SL_FACT_PORT), !(field & 0xfff8));
	}
}

static uint16_t fact_of_proto(bool is_ipv4, unsigned int proto)
{
	if (proto == 6)
		return F_SYN;
	if (proto == 17)
		return F_UDP;
	return proto == (is_ipv4 ? 1 : 58) ? F_ICMP : KNOWN;
}

/* The parser reports any protocol number. The payload is always a TCP header. */
TEST(test_every_protocol_is_read)
{
	for (unsigned int proto = 0; proto < 256; proto++) {
		struct packet ipv4 = look_with("IPv4 TCP SYN", 22, 64 << 8 | proto);
		struct packet ipv6 = look_with("IPv6 TCP", 20, proto << 8 | 64);

		assert_int_equal(ipv4.facts.proto, proto);
		assert_int_equal(ipv4.facts.facts, SL_FACT_ANY | fact_of_proto(true, proto));
		if (proto == 0 || proto == 43 || proto == 44 || proto == 51 || proto == 60)
			continue;
		assert_int_equal(ipv6.facts.proto, proto);
		assert_int_equal(ipv6.facts.facts, SL_FACT_ANY | fact_of_proto(false, proto));
	}
}

/* --- Long extension headers ------------------------------------------------------------------ */

/*
 * Parses a UDP packet with `count` extension headers of this type and length, without the last
 * `missing` bytes of the frame.
 */
static struct packet look_behind(uint8_t type, uint8_t length, int count, size_t missing,
				 enum packet_transport *ret_answer)
{
	const struct wire_frame *frame = frame_find("IPv6 UDP");
	size_t header = type == 51 ? 4 * (length + 2U) : 8 * (length + 1U);
	size_t size = frame->size + count * header - missing;
	uint8_t *buffer = calloc(1, FRAME_ALIGN + frame->size + count * header),
		*at = buffer + FRAME_ALIGN + 54;
	uint8_t *exact = malloc(FRAME_ALIGN + size);
	struct packet packet = {0};
	struct reader reader = reader_linear(exact + FRAME_ALIGN, size, size);

	assert_true(buffer && exact);
	memcpy(buffer + FRAME_ALIGN, frame->bytes, 54);
	buffer[FRAME_ALIGN + 20] = type;
	for (int i = 0; i < count; i++, at += header) {
		at[0] = i < count - 1 ? type : 17;
		at[1] = length;
	}
	memcpy(at, frame->bytes + 54, 8);
	memcpy(exact, buffer, FRAME_ALIGN + size);
	assert_int_equal(packet_parse(&reader, 0, &packet), PARSED);
	*ret_answer = packet_inspect(&reader, &packet);
	assert_true(facts_are_sound(&packet) && answer_is_sound(&packet, *ret_answer));
	free(buffer);
	free(exact);
	return packet;
}

TEST(test_every_length_of_extension)
{
	static const uint8_t types[] = {0, 43, 51, 60};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		for (unsigned int length = 0; length < 256; length++) {
			for (int count = 1; count <= 8; count += 7) {
				enum packet_transport answer;
				struct packet packet =
					look_behind(types[i], length, count, 0, &answer);

				assert_int_equal(answer, TRANSPORT_OK);
				assert_int_equal(packet.facts.facts, SL_FACT_ANY | F_UDP);
				assert_int_equal(packet.facts.port, 5353);
				/* the frame lacks the UDP header and the byte before it */
				packet = look_behind(types[i], length, count, 9, &answer);
				assert_int_equal(answer, TRANSPORT_SHORT);
				assert_int_equal(packet.facts.facts, SL_FACT_ANY | SL_FACT_UNREAD);
			}
		}
	}
}

/* --- Merged packets -------------------------------------------------------------------------- */

static const struct {
	const char *name;
	struct merged merged;
	uint32_t headers;
	uint32_t packets, bytes; /* number of merged packets, and sum of their sizes */
} unmerged[] = {
	{"45 full segments of TCP", {54 + 45 * 1460, 1460, 45, 0}, 54, 45, 45 * 1514},
	{"the last one short", {54 + 2 * 1000 + 1, 1000, 3, 0}, 54, 3, 2001 + 3 * 54},
	{"one segment", {54 + 1000, 1000, 1, 0}, 54, 1, 1054},
	{"no payload", {54, 1000, 0, 0}, 54, 1, 54},
	{"headers that say they are longer than the buffer", {60, 1000, 0, 0}, 74, 1, 60},
	{"each has the tag that is metadata", {54 + 3000, 1000, 3, 4}, 54, 3, 3 * 1058},
	{"headers that could not be read are payload", {14 + 40 + 4000, 1000, 0, 0}, 14, 5, 4110},
	{"of SCTP the kernel's count, as it is not cut by size",
	 {34 + 3000, 65535, 3, 0},
	 34,
	 3,
	 3000 + 3 * 34},
	{"a count that a virtual machine made up", {54 + 4500, 100, 1, 0}, 54, 45, 45 * 154},
	{"gso_size 1", {54 + 60000, 1, 0, 0}, 54, 60000, 60000 * 55},
	{"gso_size 1 of a buffer of 512 kB: at most 65535 packets",
	 {54 + 524288, 1, 0, 0},
	 54,
	 65535,
	 524288 + 65535 * 54},
	{"and the longest headers that are read: nothing wraps",
	 {16618 + 524288, 1, 65535, 4},
	 16618,
	 65535,
	 524288 + 65535U * 16622},
};

TEST(test_each_packet_of_a_merged_one_counts)
{
	for (size_t i = 0; i < ARRAY_SIZE(unmerged); i++) {
		const struct merged *merged = &unmerged[i].merged;
		struct packet packet = {
			.packets = 1,
			.bytes = merged->size + merged->tag,
			.headers = unmerged[i].headers,
		};

		packet_unmerge(&packet, merged);
		print_message("%s\n", unmerged[i].name);
		assert_int_equal(packet.packets, unmerged[i].packets);
		assert_int_equal(packet.bytes, unmerged[i].bytes);
	}
}

TESTS(NULL, NULL)
