// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/capture/capture.h, which reads all formats and link types, and refuses hostile files.
 */
#include "capture/capture.h"

#include <errno.h>
#include "test.h"
#include "base/error.h"
#include "capture_bytes.h"

#define ETHERNET 1
#define SLL	 113
#define SLL2	 276

/* Part of a frame of 60 bytes, with a UDP packet from 192.0.2.1. */
#define MAC_A 0x52, 0x54, 0, 0, 0, 0xa
#define MAC_B 0x52, 0x54, 0, 0, 0, 0xb
#define IPV4_UDP                                                                                   \
	0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7, 0, 9, 0, 9, 0,    \
		26, 0, 0, [45] = 0
static const uint8_t ip[] = {IPV4_UDP}, ip6[40] = {0x60}, frame[60] = {MAC_A, MAC_B, 8, 0, 0x45};
#define SECOND 1700000000U

static const struct capture_choice all = {0};

static struct capture *opened(const struct capture_bytes *file, const struct capture_choice *choice)
{
	FILE *stream = fmemopen((void *)file->bytes, file->size, "r");
	struct capture *capture = NULL;

	error_drop(0);
	assert_int_equal(capture_open_stream(stream, "file", choice, &capture), 0);
	return capture;
}

/* Checks that the next packets of the file have these numbers, and that the file then ends. */
static void expect_packets(const struct capture_bytes *file, const struct capture_choice *choice,
			   const uint64_t numbers[], unsigned int count)
{
	struct capture *capture = opened(file, choice);
	struct capture_packet packet;

	for (unsigned int i = 0; i < count; i++) {
		assert_int_equal(capture_next(capture, &packet), 1);
		assert_int_equal(packet.number, numbers[i]);
	}
	assert_int_equal(capture_next(capture, &packet), 0);
	assert_int_equal(capture_totals(capture)->packets, count);
	capture_close(&capture);
}

/* --- Formats -------------------------------------------------------------------------------- */

static void format_make(struct capture_bytes *file, bool is_pcapng, bool is_big, bool is_nano)
{
	uint64_t unit = is_nano ? SEC_NS : 1000000;

	*file = (struct capture_bytes){.is_big = is_big};
	if (is_pcapng) {
		put_section(file);
		put_interface(file, ETHERNET, 65535, is_nano ? 9 : 6, "eth0");
		put_packet(file, 0, SECOND * unit + unit / 2, frame, 60, 60);
		put_packet(file, 0, SECOND * unit + unit - 1, frame, 41, 60);
	} else {
		put_pcap(file, is_nano ? 0xa1b23c4d : 0xa1b2c3d4, ETHERNET);
		put_pcap_packet(file, SECOND, unit / 2, frame, 60, 60);
		put_pcap_packet(file, SECOND, unit - 1, frame, 41, 60);
	}
}

TEST(test_formats_and_byte_orders_have_the_same_packets)
{
	static struct capture_bytes file;

	for (unsigned int i = 0; i < 8; i++) {
		bool is_nano = i & 4;
		struct capture_packet packet;
		struct capture *capture;

		format_make(&file, i & 1, i & 2, is_nano);
		capture = opened(&file, &all);
		assert_int_equal(capture_next(capture, &packet), 1);
		assert_int_equal(packet.ns, SECOND * SEC_NS + SEC_NS / 2);
		assert_int_equal(packet.length, 60);
		assert_int_equal(packet.size, 60);
		assert_memory_equal(packet.bytes, frame, 60);
		assert_false(packet.is_cut);
		assert_int_equal(capture_next(capture, &packet), 1);
		assert_int_equal(packet.number, 2);
		assert_int_equal(packet.ns, (SECOND + 1) * SEC_NS - (is_nano ? 1 : 1000));
		assert_int_equal(packet.length, 60);
		assert_int_equal(packet.size, 41);
		assert_true(packet.is_cut);
		assert_int_equal(capture_next(capture, &packet), 0);
		assert_int_equal(capture_totals(capture)->cut, 1);
		assert_int_equal(capture_totals(capture)->offset, file.size);
		capture_close(&capture);
	}
}

/* --- Link types ----------------------------------------------------------------------------- */

#define IP4	 ip, sizeof(ip)
#define IP6	 ip6, sizeof(ip6)
#define FROM_B	 [6] = MAC_B
#define SLL2_IP4 8, 0, 0, 0, 0, 0, 0
#define SLL2_IP6 0x86, 0xdd, 0, 0, 0, 0, 0

static unsigned int header_size_of(uint32_t link)
{
	return link == SLL ? 16 : link == SLL2 ? 20 : 0;
}

TEST(test_link_types_become_ethernet_frames)
{
	static const struct {
		uint32_t link;
		uint8_t header[20];
		const uint8_t *ip;
		unsigned int ip_size;
		uint8_t mac[14];
		enum capture_direction direction;
		uint32_t interface;
	} cases[] = {
		{SLL, {0, 0, 0, 1, 0, 6, MAC_B, 0, 0, 8, 0}, IP4, {FROM_B, 8, 0}, CAPTURE_IN, 0},
		{SLL, {0, 4, 0, 1, 0, 6, MAC_B, 0, 0, 8, 0}, IP4, {FROM_B, 8, 0}, CAPTURE_OUT, 0},
		{SLL, {0, 0, 2, 0, 0, 0, MAC_B, 0, 0, 8, 0}, IP4, {[12] = 8, 0}, CAPTURE_IN, 0},
		{SLL2, {SLL2_IP6, 7, 0, 1, 0, 6, MAC_B}, IP6, {FROM_B, 0x86, 0xdd}, CAPTURE_IN, 7},
		{SLL2, {SLL2_IP4, 9, 0, 1, 4, 6, MAC_B}, IP4, {FROM_B, 8, 0}, CAPTURE_OUT, 9},
		{SLL2, {SLL2_IP4, 9, 2, 0, 0, 0, MAC_B}, IP4, {[12] = 8, 0}, CAPTURE_IN, 9},
		{101, {0}, IP4, {[12] = 8, 0}, CAPTURE_ANY, 0},
		{101, {0}, IP6, {[12] = 0x86, 0xdd}, CAPTURE_ANY, 0},
		{101, {0}, ip, 0, {[12] = 8, 0}, CAPTURE_ANY, 0},
		{12, {0}, IP4, {[12] = 8, 0}, CAPTURE_ANY, 0},
		{14, {0}, IP4, {[12] = 8, 0}, CAPTURE_ANY, 0},
		{228, {0}, IP4, {[12] = 8, 0}, CAPTURE_ANY, 0},
		{228, {0}, IP6, {[12] = 8, 0}, CAPTURE_ANY, 0},
		{229, {0}, IP6, {[12] = 0x86, 0xdd}, CAPTURE_ANY, 0},
	};

	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		static struct capture_bytes file;
		unsigned int at = i / 2, header_size = header_size_of(cases[at].link);
		unsigned int size = header_size + cases[at].ip_size;
		struct capture_packet packet;
		struct capture *capture;
		uint8_t bytes[128] = {0};

		memcpy(bytes, cases[at].header, header_size);
		memcpy(bytes + header_size, cases[at].ip, cases[at].ip_size);
		file = (struct capture_bytes){0};
		if (i & 1) {
			put_section(&file);
			put_interface(&file, cases[at].link, 0, 6, "any");
			put_packet(&file, 0, 0, bytes, size, size + 100);
		} else {
			put_pcap(&file, 0xa1b2c3d4, cases[at].link);
			put_pcap_packet(&file, SECOND, 0, bytes, size, size + 100);
		}
		capture = opened(&file, &all);
		assert_int_equal(capture_next(capture, &packet), 1);
		assert_int_equal(packet.size, 14 + cases[at].ip_size);
		assert_int_equal(packet.length, packet.size + 100);
		assert_memory_equal(packet.bytes, cases[at].mac, 14);
		assert_memory_equal(packet.bytes + 14, cases[at].ip, cases[at].ip_size);
		assert_int_equal(packet.direction, cases[at].direction);
		assert_int_equal(packet.interface, cases[at].interface);
		capture_close(&capture);
	}
}

TEST(test_a_cut_link_header_is_an_empty_frame)
{
	struct capture_packet packet;
	struct capture *capture;
	struct capture_bytes file = {0};

	put_pcap(&file, 0xa1b2c3d4, SLL2);
	put_pcap_packet(&file, SECOND, 0, frame, 19, 19);
	capture = opened(&file, &all);
	assert_int_equal(capture_next(capture, &packet), 1);
	assert_int_equal(packet.size, 0);
	assert_true(packet.is_cut);
	capture_close(&capture);
}

/* --- Choices -------------------------------------------------------------------------------- */

TEST(test_a_direction_is_chosen)
{
	static const struct capture_choice in = {.direction = CAPTURE_IN},
					   out = {.direction = CAPTURE_OUT};
	uint8_t bytes[200] = {0, 4, 0, 1, 0, 6, MAC_B, 0, 0, 8, 0, 0x45};
	struct capture_bytes file = {0};

	put_pcap(&file, 0xa1b2c3d4, SLL);
	put_pcap_packet(&file, SECOND, 0, bytes, 62, 62);
	bytes[1] = 0;
	put_pcap_packet(&file, SECOND, 0, bytes, sizeof(bytes), sizeof(bytes));
	expect_packets(&file, &in, (uint64_t[]){2}, 1);
	expect_packets(&file, &out, (uint64_t[]){1}, 1);
	expect_packets(&file, &all, (uint64_t[]){1, 2}, 2);
	file = (struct capture_bytes){0};
	put_pcap(&file, 0xa1b2c3d4, ETHERNET);
	put_pcap_packet(&file, SECOND, 0, frame, 60, 60);
	expect_packets(&file, &out, (uint64_t[]){1}, 1);
}

TEST(test_a_destination_is_chosen)
{
	static const struct capture_choice to_a = {.has_to = true, .to = {MAC_A}},
					   to_b = {.has_to = true, .to = {MAC_B}};
	static const uint8_t group[60] = {1, 0, 0x5e, 0, 0, 1, MAC_B, 8, 0, 0x45};
	struct capture_bytes file = {0};
	struct capture_packet packet;
	struct capture *capture;

	put_pcap(&file, 0xa1b2c3d4, ETHERNET);
	put_pcap_packet(&file, SECOND, 0, frame, 60, 60);
	put_pcap_packet(&file, SECOND, 0, group, 60, 60);
	expect_packets(&file, &to_a, (uint64_t[]){1, 2}, 2);
	expect_packets(&file, &to_b, NULL, 0);
	file = (struct capture_bytes){0};
	put_pcap(&file, 0xa1b2c3d4, SLL);
	put_pcap_packet(&file, SECOND, 0, frame, 60, 60);
	capture = opened(&file, &to_a);
	assert_int_equal(capture_next(capture, &packet), -EINVAL);
	assert_string_equal(error_last(0)->id, "capture-no-mac");
	capture_close(&capture);
}

TEST(test_an_interface_is_chosen_by_number_or_name)
{
	static const struct capture_choice wan = {.interface = "wan"}, first = {.interface = "0"},
					   none = {.interface = "2"};
	struct capture_bytes file = {0};
	struct capture *capture;
	struct capture_packet packet;

	put_section(&file);
	put_interface(&file, 101, 100, 6, "tun");
	put_interface(&file, ETHERNET, 0, 9, "wan");
	put_packet(&file, 0, 0, ip, sizeof(ip), sizeof(ip));
	put_packet(&file, 1, 0, frame, 60, 60);
	put_packet(&file, 0, 0, ip, sizeof(ip), sizeof(ip));
	put_packet(&file, 1, 0, frame, 60, 60);
	expect_packets(&file, &wan, (uint64_t[]){2, 4}, 2);
	expect_packets(&file, &first, (uint64_t[]){1, 3}, 2);
	expect_packets(&file, &none, NULL, 0);
	capture = opened(&file, &wan);
	while (capture_next(capture, &packet) == 1)
		assert_int_equal(packet.interface, 1);
	assert_int_equal(capture_totals(capture)->interfaces, 2);
	assert_int_equal(capture_totals(capture)->left_out, 2);
	assert_string_equal(capture_totals(capture)->interface[1].name, "wan");
	assert_int_equal(capture_totals(capture)->interface[1].packets, 2);
	capture_close(&capture);
}

TEST(test_interfaces_beyond_the_table_are_chosen_but_not_counted)
{
	static const struct capture_choice last = {.interface = "65"};
	uint8_t bytes[66] = {SLL2_IP4, 0, 0, 1, 0, 6, MAC_B, 0, 0, 0x45};
	struct capture_bytes file = {0};
	struct capture_packet packet;
	struct capture *capture;

	put_pcap(&file, 0xa1b2c3d4, SLL2);
	for (bytes[7] = 1; bytes[7] <= CAPTURE_INTERFACES + 1; bytes[7]++)
		put_pcap_packet(&file, SECOND, 0, bytes, sizeof(bytes), sizeof(bytes));
	expect_packets(&file, &last, (uint64_t[]){65}, 1);
	capture = opened(&file, &all);
	while (capture_next(capture, &packet) == 1)
		;
	assert_int_equal(capture_totals(capture)->packets, CAPTURE_INTERFACES + 1);
	assert_int_equal(capture_totals(capture)->interfaces, CAPTURE_INTERFACES);
	capture_close(&capture);
}

/* Adds an interface block with these options. */
static void put_options(struct capture_bytes *file, const void *options, size_t size)
{
	put_number(file, 1, 4);
	put_number(file, 20 + size, 4);
	put_number(file, ETHERNET, 2);
	put_number(file, 0, 6);
	put_bytes(file, options, size);
	put_number(file, 20 + size, 4);
}

TEST(test_the_name_of_an_interface)
{
#define NAME_OPTION 2, 0, 3, 0, 'w', 'a', 'n', 0
	static const uint8_t after_another[] = {1, 0, 5, 0, [12] = NAME_OPTION, 0, 0, 0, 0},
			     too_long[44] = {2, 0, 36, 0, [4 ... 39] = 'w'},
			     beyond_the_stage[5016] = {1, 0, 0x88, 0x13, [5004] = NAME_OPTION},
			     none[4] = {0};
	static const struct {
		const uint8_t *options;
		size_t size;
		const char *name;
	} cases[] = {
		{after_another, sizeof(after_another), "wan"},
		{too_long, sizeof(too_long), "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"},
		{beyond_the_stage, sizeof(beyond_the_stage), ""},
		{none, sizeof(none), ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static struct capture_bytes file;
		struct capture_packet packet;
		struct capture *capture;

		file = (struct capture_bytes){0};
		put_section(&file);
		put_options(&file, cases[i].options, cases[i].size);
		put_packet(&file, 0, SECOND, frame, 60, 60);
		capture = opened(&file, &all);
		assert_int_equal(capture_next(capture, &packet), 1);
		assert_string_equal(capture_totals(capture)->interface[0].name, cases[i].name);
		capture_close(&capture);
	}
}

TEST(test_each_section_has_its_own_interfaces)
{
	for (int is_big = 0; is_big <= 1; is_big++) {
		static struct capture_bytes file;
		struct capture_packet packet;
		struct capture *capture;

		file = (struct capture_bytes){.is_big = is_big};
		put_section(&file);
		put_interface(&file, ETHERNET, 0, 6, "eth0");
		put_packet(&file, 0, SECOND, frame, 60, 60);
		put_section(&file);
		put_interface(&file, 101, 0, 6, "tun0");
		put_packet(&file, 0, SECOND, ip, sizeof(ip), sizeof(ip));
		capture = opened(&file, &all);
		assert_int_equal(capture_next(capture, &packet), 1);
		assert_int_equal(packet.size, 60);
		assert_int_equal(capture_next(capture, &packet), 1);
		assert_int_equal(packet.size, 14 + sizeof(ip));
		capture_close(&capture);
	}
}

TEST(test_an_obsolete_packet_block)
{
	static const struct capture_choice wan = {.interface = "wan"};
	struct capture_bytes file = {0};

	put_section(&file);
	put_interface(&file, ETHERNET, 0, 6, "lan");
	put_interface(&file, ETHERNET, 0, 6, "wan");
	put_packet(&file, 0, SECOND, frame, 60, 60);
	put_number(&file, 2, 4);
	put_number(&file, 32 + 60, 4);
	put_number(&file, 1, 2); /* the interface */
	put_number(&file, 0, 2);
	put_number(&file, 0, 4);
	put_number(&file, SECOND, 4);
	put_number(&file, 60, 4);
	put_number(&file, 60, 4);
	put_bytes(&file, frame, 60);
	put_number(&file, 32 + 60, 4);
	expect_packets(&file, &wan, (uint64_t[]){2}, 1);
}

TEST(test_a_mac_address_is_parsed)
{
	static const char *const wrong[] = {"",
					    "52:54:00:12:34",
					    "52:54:00:12:34:5",
					    "52:54:00:12:34:56:78",
					    "52-54-00-12-34-56",
					    "192.0.2.1"};
	uint8_t mac[6];

	assert_int_equal(mac_parse("52:54:00:00:00:0a", mac), 0);
	assert_memory_equal(mac, frame, 6);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(mac_parse(wrong[i], mac), -EINVAL);
}

/* --- Times and lengths ---------------------------------------------------------------------- */

TEST(test_time_does_not_go_back)
{
	static const uint32_t seconds[] = {10, 7, 9, 11}, expected[] = {10, 10, 10, 11};
	struct capture_bytes file = {0};
	struct capture_packet packet;
	struct capture *capture;

	put_pcap(&file, 0xa1b2c3d4, ETHERNET);
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++)
		put_pcap_packet(&file, SECOND + seconds[i], 0, frame, 60, 60);
	capture = opened(&file, &all);
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		assert_int_equal(capture_next(capture, &packet), 1);
		assert_int_equal(packet.ns, (SECOND + expected[i]) * SEC_NS);
	}
	assert_int_equal(capture_totals(capture)->backward, 2);
	capture_close(&capture);
}

TEST(test_a_packet_is_as_long_as_its_captured_bytes)
{
	struct capture_bytes file = {0};
	struct capture_packet packet;
	struct capture *capture;

	put_pcap(&file, 0xa1b2c3d4, ETHERNET);
	put_pcap_packet(&file, SECOND, 0, frame, 60, 40);
	capture = opened(&file, &all);
	assert_int_equal(capture_next(capture, &packet), 1);
	assert_int_equal(packet.length, 60);
	assert_int_equal(packet.size, 60);
	assert_false(packet.is_cut);
	capture_close(&capture);
}

TEST(test_an_ip_packet_above_the_mtu_is_merged)
{
	static const uint8_t tagged[64] = {MAC_A, MAC_B, 0x81, 0, 0, 5, 8, 0, 0x45},
			     service[64] = {MAC_A, MAC_B, 0x88, 0xa8, 0, 5, 8, 0, 0x45},
			     six[60] = {MAC_A, MAC_B, 0x86, 0xdd, 0x60},
			     other[60] = {MAC_A, MAC_B, 0x88, 0x63};
	static const struct {
		const uint8_t *bytes;
		uint32_t length, mtu;
		bool is_merged;
	} cases[] = {
		{frame, 1514, 0, false}, {frame, 1515, 0, true},     {tagged, 1518, 0, false},
		{tagged, 1519, 0, true}, {service, 1519, 0, true},   {six, 1515, 0, true},
		{other, 9000, 0, false}, {frame, 9014, 9000, false}, {frame, 9015, 9000, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct capture_choice choice = {.mtu = cases[i].mtu};
		static struct capture_bytes file;
		struct capture_packet packet;
		struct capture *capture;

		file = (struct capture_bytes){0};
		put_pcap(&file, 0xa1b2c3d4, ETHERNET);
		put_pcap_packet(&file, SECOND, 0, cases[i].bytes, 60, cases[i].length);
		capture = opened(&file, &choice);
		assert_int_equal(capture_next(capture, &packet), 1);
		assert_int_equal(packet.is_merged, cases[i].is_merged);
		assert_int_equal(capture_totals(capture)->merged, cases[i].is_merged);
		capture_close(&capture);
	}
}

/* --- Hostile files -------------------------------------------------------------------------- */

/* A change that makes a valid file with one packet invalid. */
typedef void spoil(struct capture_bytes *file);

static void truncate_header(struct capture_bytes *file)
{
	file->size += 7;
}

static void truncate_packet(struct capture_bytes *file)
{
	put_packet(file, 0, 0, frame, 60, 60);
	file->size -= 10;
}

static void claim_long_block(struct capture_bytes *file)
{
	put_number(file, 6, 4);
	put_number(file, UINT32_MAX & ~3U, 4);
	put_bytes(file, frame, 60);
}

static void claim_short_block(struct capture_bytes *file)
{
	put_number(file, 6, 4);
	put_number(file, 4, 4);
	put_bytes(file, frame, 60);
}

static void claim_capture(struct capture_bytes *file)
{
	size_t at = file->size + 20;

	put_packet(file, 0, 0, frame, 60, 60);
	memset(file->bytes + at, 0xff, 4);
}

static void claim_length(struct capture_bytes *file)
{
	put_packet(file, 0, 0, frame, 60, UINT32_MAX);
}

static void claim_time(struct capture_bytes *file)
{
	put_packet(file, 0, UINT64_MAX, frame, 60, 60);
}

static void use_no_interface(struct capture_bytes *file)
{
	put_packet(file, 7, 0, frame, 60, 60);
}

static void use_other_link(struct capture_bytes *file)
{
	put_interface(file, 105, 0, 6, "wifi");
	put_packet(file, 1, 0, frame, 60, 60);
}

static void use_no_time(struct capture_bytes *file)
{
	put_number(file, 3, 4);
	put_number(file, 76, 4);
	put_number(file, 60, 4);
	put_bytes(file, frame, 60);
	put_number(file, 76, 4);
}

TEST(test_a_hostile_file_ends_with_the_number_of_the_packet)
{
	static const struct {
		const char *name;
		spoil *spoil;
		const char *id;
	} cases[] = {
		{"truncated block header", truncate_header, "capture-bad"},
		{"truncated packet", truncate_packet, "capture-bad"},
		{"4 GB block", claim_long_block, "capture-bad"},
		{"block shorter than its header", claim_short_block, "capture-bad"},
		{"4 GB captured", claim_capture, "capture-bad"},
		{"4 GB on the wire", claim_length, "capture-bad"},
		{"time beyond the year 2262", claim_time, "capture-bad"},
		{"unknown interface", use_no_interface, "capture-bad"},
		{"unsupported link type", use_other_link, "capture-link"},
		{"simple packet block", use_no_time, "capture-bad"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static struct capture_bytes file;
		struct capture_packet packet;
		struct capture *capture;

		file = (struct capture_bytes){0};
		put_section(&file);
		put_interface(&file, ETHERNET, 65535, 0, "eth0");
		put_packet(&file, 0, SECOND, frame, 60, 60);
		cases[i].spoil(&file);
		capture = opened(&file, &all);
		assert_int_equal(capture_next(capture, &packet), 1);
		if (capture_next(capture, &packet) >= 0)
			fail_msg("%s: no error", cases[i].name);
		assert_string_equal(error_last(0)->id, cases[i].id);
		assert_non_null(strstr(error_last(0)->text, "packet 2: "));
		assert_int_equal(capture_totals(capture)->packets, 1);
		capture_close(&capture);
		error_drop(0);
	}
}

TEST(test_other_files_are_refused)
{
	static const struct {
		const char *bytes;
		size_t size;
	} cases[] = {
		{"#", 1},
		{"\x1f\x8b\x08\0\0\0\0\0\0\0\0\0", 12},
		{"\x0a\x0d\x0d\x0a\xff\xff\xff\xff\x4d\x3c\x2b\x1a", 12},
		{"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0", 19},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		FILE *stream = fmemopen((void *)cases[i].bytes, cases[i].size, "r");
		struct capture *capture = NULL;

		assert_int_equal(capture_open_stream(stream, "file", &all, &capture), -EINVAL);
		assert_string_equal(error_last(0)->id, "capture-format");
		assert_null(capture);
		error_drop(0);
	}
}

TEST(test_an_unsupported_link_type_is_refused_before_the_first_packet)
{
	struct capture_bytes file = {0};
	struct capture *capture = NULL;

	put_pcap(&file, 0xa1b2c3d4, 105);
	assert_int_equal(
		capture_open_stream(fmemopen(file.bytes, file.size, "r"), "file", &all, &capture),
		-EINVAL);
	assert_string_equal(error_last(0)->id, "capture-link");
	error_drop(0);
}

TESTS(NULL, NULL)
