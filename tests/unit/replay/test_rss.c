// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/replay/rss.h, which hashes packets by Microsoft's specification of receive side
 * scaling.
 */
#include "replay/rss.h"

#include <arpa/inet.h>
#include "test.h"

/*
 * Writes a TCP frame with these addresses and ports. tag: EtherType of a VLAN tag, or 0. Returns
 * the size of the frame.
 */
static uint32_t frame_make(uint8_t frame[128], const char *from, const char *to, uint16_t sport,
			   uint16_t dport, uint16_t tag)
{
	bool is_ipv6 = strchr(from, ':');
	uint8_t *ip = frame + (tag ? 18 : 14);
	uint16_t type = htons(is_ipv6 ? 0x86dd : 0x0800), ports[2] = {htons(sport), htons(dport)};

	memset(frame, 0, 128);
	frame[12] = tag >> 8;
	frame[13] = tag;
	memcpy(ip - 2, &type, 2);
	ip[0] = is_ipv6 ? 0x60 : 0x45;
	ip[is_ipv6 ? 6 : 9] = IPPROTO_TCP;
	inet_pton(is_ipv6 ? AF_INET6 : AF_INET, from, ip + (is_ipv6 ? 8 : 12));
	inet_pton(is_ipv6 ? AF_INET6 : AF_INET, to, ip + (is_ipv6 ? 24 : 16));
	memcpy(ip + (is_ipv6 ? 40 : 20), ports, sizeof(ports));
	return ip + (is_ipv6 ? 40 : 20) + 20 - frame;
}

TEST(test_the_examples_of_the_specification)
{
	static const uint16_t tags[] = {0, 0x8100, 0x88a8};
	static const struct {
		const char *from, *to;
		uint16_t sport, dport;
		uint32_t hash, hash_without_ports;
	} cases[] = {
		{"66.9.149.187", "161.142.100.80", 2794, 1766, 0x51ccc178, 0x323e8fc2},
		{"199.92.111.2", "65.69.140.83", 14230, 4739, 0xc626b0ea, 0xd718262a},
		{"24.19.198.95", "12.22.207.184", 12898, 38024, 0x5c2b394a, 0xd2d0a5de},
		{"38.27.205.30", "209.142.163.6", 48228, 2217, 0xafc7327f, 0x82989176},
		{"3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x40207d3d, 0x2cc18cd5},
		{"3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0xdde51bbf, 0x0f0c461c},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t tag = 0; tag < ARRAY_SIZE(tags); tag++) {
			uint8_t frame[128];
			uint32_t size = frame_make(frame, cases[i].from, cases[i].to,
						   cases[i].sport, cases[i].dport, tags[tag]);

			assert_int_equal(rss_hash(frame, size), cases[i].hash);
			/* if the frame ends within the ports, only the addresses are hashed */
			assert_int_equal(rss_hash(frame, size - 18), cases[i].hash_without_ports);
			assert_int_equal(rss_hash(frame, size - 24), 0);
		}
	}
}

TEST(test_a_fragment_has_no_ports)
{
	uint8_t frame[128];
	uint32_t size = frame_make(frame, "66.9.149.187", "161.142.100.80", 2794, 1766, 0);

	frame[14 + 6] = 0x20;
	assert_int_equal(rss_hash(frame, size), 0x323e8fc2);
}

TEST(test_udp_has_ports_and_icmp_has_none)
{
	uint8_t frame[128];
	uint32_t size = frame_make(frame, "66.9.149.187", "161.142.100.80", 2794, 1766, 0);

	frame[14 + 9] = IPPROTO_UDP;
	assert_int_equal(rss_hash(frame, size), 0x51ccc178);
	frame[14 + 9] = IPPROTO_ICMP;
	assert_int_equal(rss_hash(frame, size), 0x323e8fc2);
}

TEST(test_ports_follow_the_options_of_ipv4)
{
	uint8_t frame[128];
	uint32_t size = frame_make(frame, "66.9.149.187", "161.142.100.80", 2794, 1766, 0);

	frame[14] = 0x46;
	memmove(frame + 14 + 24, frame + 14 + 20, 4);
	memset(frame + 14 + 20, 1, 4);
	assert_int_equal(rss_hash(frame, size), 0x51ccc178);
}

TEST(test_any_bytes_are_hashed_within_their_bounds)
{
	uint32_t seed = 1;

	for (int i = 0; i < 100000; i++) {
		uint8_t *frame = malloc(64);
		uint32_t size = (seed = seed * 1103515245 + 12345) >> 16 & 63;

		for (uint32_t at = 0; at < size; at++)
			frame[at] = (seed = seed * 1103515245 + 12345) >> 16;
		if (size > 14 && i & 1)
			memcpy(frame + 12, i & 2 ? "\x08\0" : "\x86\xdd", 2);
		frame = realloc(frame, size ?: 1);
		rss_hash(frame, size);
		free(frame);
	}
}

TEST(test_cpus_take_turns)
{
	unsigned int counts[3] = {0};

	for (uint32_t hash = 0; hash < 128 * 5; hash++)
		counts[rss_cpu(hash, 3)]++;
	assert_int_equal(counts[0], 43 * 5);
	assert_int_equal(counts[1], 43 * 5);
	assert_int_equal(counts[2], 42 * 5);
}

TESTS(NULL, NULL)
