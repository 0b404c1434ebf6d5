// SPDX-License-Identifier: GPL-2.0
/* Tests include/match.h: each match with each kind of packet. */
#include "test.h"
#include "match.h"

#define ANY    SL_FACT_ANY
#define TCP    (SL_FACT_ANY | SL_FACT_PROTO | SL_FACT_TCP)
#define UDP    (SL_FACT_ANY | SL_FACT_PROTO | SL_FACT_UDP)
#define ICMP   (SL_FACT_ANY | SL_FACT_PROTO | SL_FACT_ICMP)
#define OTHER  (SL_FACT_ANY | SL_FACT_PROTO)
#define PORT   SL_FACT_PORT
#define SYN    SL_FACT_SYN
#define FRAG   SL_FACT_FRAGMENT
#define UNREAD SL_FACT_UNREAD

/* Kinds of packets. Each case below has a bit mask of the kinds that a match accepts. */
enum kind {
	TCP_SYN,     /* a SYN to port 80 */
	TCP_ACK,     /* an ACK to port 80 */
	TCP_443,     /* a SYN to port 443, in VLAN 10 */
	TCP_CUT,     /* a TCP packet to port 80, cut off before its flags */
	TCP_NO_PORT, /* a TCP packet, cut off before its ports */
	TCP_FIRST,   /* the first fragment of a SYN to port 80 */
	TCP_LATER,   /* a later fragment of a TCP packet */
	UDP_53,	     /* a DNS query */
	UDP_0,	     /* a UDP packet to port 0 */
	UDP_65535,   /* a UDP packet to port 65535, in the reserved VLAN 4095 */
	UDP_NO_PORT, /* a UDP packet, cut off before its ports */
	UDP_FIRST,   /* the first fragment of a UDP packet to port 53 */
	UDP_LATER,   /* a later fragment of a UDP packet, in VLAN 10 */
	ICMP_V4,     /* an IPv4 packet with protocol 1 */
	ICMP_V6,
	ICMP_LATER, /* a later fragment of an ICMP packet */
	ICMP_STRAY, /* an IPv4 packet with protocol 58 (ICMPv6) */
	ESP,
	GRE,	       /* a GRE packet in VLAN 10 */
	HOPOPT,	       /* an IPv4 packet with protocol 0 */
	PROTO_255,     /* a packet with the reserved protocol 255 */
	UNKNOWN,       /* a packet with more extension headers than the parser reads */
	UNKNOWN_FIRST, /* a first fragment with too many extension headers, in VLAN 10 */
	LATER_V6,      /* a later IPv6 fragment; the protocol is unknown */
	KINDS,
};

static const struct sl_facts packets[KINDS] = {
	[TCP_SYN] = {TCP | PORT | SYN, 6, 0, 80, 0},
	[TCP_ACK] = {TCP | PORT, 6, 0, 80, 0},
	[TCP_443] = {TCP | PORT | SYN, 6, 0, 443, 10},
	[TCP_CUT] = {TCP | PORT | SYN | UNREAD, 6, 0, 80, 0},
	[TCP_NO_PORT] = {TCP | SYN | UNREAD, 6, 0, 0, 0},
	[TCP_FIRST] = {TCP | PORT | SYN | FRAG, 6, 0, 80, 0},
	[TCP_LATER] = {TCP | FRAG, 6, 0, 0, 0},
	[UDP_53] = {UDP | PORT, 17, 0, 53, 0},
	[UDP_0] = {UDP | PORT, 17, 0, 0, 0},
	[UDP_65535] = {UDP | PORT, 17, 0, 65535, 4095},
	[UDP_NO_PORT] = {UDP | UNREAD, 17, 0, 0, 0},
	[UDP_FIRST] = {UDP | PORT | FRAG, 17, 0, 53, 0},
	[UDP_LATER] = {UDP | FRAG, 17, 0, 0, 10},
	[ICMP_V4] = {ICMP, 1, 0, 0, 0},
	[ICMP_V6] = {ICMP, 58, 0, 0, 0},
	[ICMP_LATER] = {ICMP | FRAG, 1, 0, 0, 0},
	[ICMP_STRAY] = {OTHER, 58, 0, 0, 0},
	[ESP] = {OTHER, 50, 0, 0, 0},
	[GRE] = {OTHER, 47, 0, 0, 10},
	[HOPOPT] = {OTHER, 0, 0, 0, 0},
	[PROTO_255] = {OTHER, 255, 0, 0, 0},
	[UNKNOWN] = {ANY | UNREAD, 0, 0, 0, 0},
	[UNKNOWN_FIRST] = {ANY | FRAG | UNREAD, 0, 0, 0, 10},
	[LATER_V6] = {ANY | FRAG | SL_FACT_HIDDEN, 0, 0, 0, 0},
};

#define BIT(kind) (1U << (kind))
#define ALL	  (BIT(KINDS) - 1)
/* Packets without a readable transport header. Each match on a transport header accepts them. */
#define ALL_UNKNOWN (BIT(UNKNOWN) | BIT(UNKNOWN_FIRST))
#define ALL_TCP                                                                                    \
	(BIT(TCP_SYN) | BIT(TCP_ACK) | BIT(TCP_443) | BIT(TCP_CUT) | BIT(TCP_NO_PORT) |            \
	 BIT(TCP_FIRST) | BIT(TCP_LATER) | BIT(LATER_V6) | ALL_UNKNOWN)
#define ALL_UDP                                                                                    \
	(BIT(UDP_53) | BIT(UDP_0) | BIT(UDP_65535) | BIT(UDP_NO_PORT) | BIT(UDP_FIRST) |           \
	 BIT(UDP_LATER) | BIT(LATER_V6) | ALL_UNKNOWN)
#define ALL_ICMP (BIT(ICMP_V4) | BIT(ICMP_V6) | BIT(ICMP_LATER) | BIT(LATER_V6) | ALL_UNKNOWN)
#define ALL_SYN                                                                                    \
	(BIT(TCP_SYN) | BIT(TCP_443) | BIT(TCP_FIRST) | BIT(TCP_CUT) | BIT(TCP_NO_PORT) |          \
	 ALL_UNKNOWN)
#define ALL_FRAG                                                                                   \
	(BIT(TCP_FIRST) | BIT(TCP_LATER) | BIT(UDP_FIRST) | BIT(UDP_LATER) | BIT(ICMP_LATER) |     \
	 BIT(LATER_V6) | ALL_UNKNOWN)
#define VLAN_10 (BIT(TCP_443) | BIT(UDP_LATER) | BIT(GRE) | BIT(UNKNOWN_FIRST))
/* Packets whose ports cannot be read. A match on a port of their protocol always accepts them. */
#define NO_PORT_TCP (BIT(TCP_NO_PORT) | ALL_UNKNOWN)
#define NO_PORT_UDP (BIT(UDP_NO_PORT) | ALL_UNKNOWN)
#define PORT_80	    (BIT(TCP_SYN) | BIT(TCP_ACK) | BIT(TCP_CUT) | BIT(TCP_FIRST) | NO_PORT_TCP)
#define PORT_53	    (BIT(UDP_53) | BIT(UDP_FIRST) | NO_PORT_UDP)

#define ON(what, ...)                                                                              \
	{                                                                                          \
		.fact = SL_FACT_##what, __VA_ARGS__                                                \
	}
#define PORTS(count, ...) .ports = (count), .port = {__VA_ARGS__}

static const struct {
	const char *words;
	struct sl_match match;
	uint32_t kinds;
} cases[] = {
	{"any", ON(ANY), ALL},
	{"tcp", ON(TCP), ALL_TCP},
	{"udp", ON(UDP), ALL_UDP},
	{"icmp", ON(ICMP), ALL_ICMP},
	{"tcp-syn", ON(SYN), ALL_SYN},
	{"fragment", ON(FRAGMENT), ALL_FRAG},
	/* protocols by number or name */
	{"proto 6", ON(PROTO, .proto = 6), ALL_TCP},
	{"proto 17", ON(PROTO, .proto = 17), ALL_UDP},
	{"proto 1", ON(PROTO, .proto = 1),
	 BIT(ICMP_V4) | BIT(ICMP_LATER) | BIT(LATER_V6) | ALL_UNKNOWN},
	{"proto 58", ON(PROTO, .proto = 58),
	 BIT(ICMP_V6) | BIT(ICMP_STRAY) | BIT(LATER_V6) | ALL_UNKNOWN},
	{"proto 50", ON(PROTO, .proto = 50), BIT(ESP) | BIT(LATER_V6) | ALL_UNKNOWN},
	{"proto 47", ON(PROTO, .proto = 47), BIT(GRE) | BIT(LATER_V6) | ALL_UNKNOWN},
	{"proto 0", ON(PROTO, .proto = 0), BIT(HOPOPT) | BIT(LATER_V6) | ALL_UNKNOWN},
	{"proto 255", ON(PROTO, .proto = 255), BIT(PROTO_255) | BIT(LATER_V6) | ALL_UNKNOWN},
	{"proto 132", ON(PROTO, .proto = 132), BIT(LATER_V6) | ALL_UNKNOWN},
	{"proto 44", ON(PROTO, .proto = 44), BIT(LATER_V6) | ALL_UNKNOWN},
	/* ports */
	{"tcp port 80", ON(TCP, PORTS(1, {80, 80})), PORT_80},
	{"tcp port 80,443", ON(TCP, PORTS(2, {80, 80}, {443, 443})), PORT_80 | BIT(TCP_443)},
	{"tcp port 443,80", ON(TCP, PORTS(2, {443, 443}, {80, 80})), PORT_80 | BIT(TCP_443)},
	{"tcp port 53", ON(TCP, PORTS(1, {53, 53})), NO_PORT_TCP},
	{"tcp port 81-442", ON(TCP, PORTS(1, {81, 442})), NO_PORT_TCP},
	{"tcp port 80-443", ON(TCP, PORTS(1, {80, 443})), PORT_80 | BIT(TCP_443)},
	{"tcp port 0-65535", ON(TCP, PORTS(1, {0, 65535})), PORT_80 | BIT(TCP_443)},
	{"tcp-syn port 80", ON(SYN, PORTS(1, {80, 80})),
	 BIT(TCP_SYN) | BIT(TCP_FIRST) | BIT(TCP_CUT) | NO_PORT_TCP},
	{"udp port 53", ON(UDP, PORTS(1, {53, 53})), PORT_53},
	{"udp port 0", ON(UDP, PORTS(1, {0, 0})), BIT(UDP_0) | NO_PORT_UDP},
	{"udp port 65535", ON(UDP, PORTS(1, {65535, 65535})), BIT(UDP_65535) | NO_PORT_UDP},
	{"udp port 1024-65535", ON(UDP, PORTS(1, {1024, 65535})), BIT(UDP_65535) | NO_PORT_UDP},
	{"udp port 1-65534", ON(UDP, PORTS(1, {1, 65534})), PORT_53},
	{"udp port 1-52,54-65534", ON(UDP, PORTS(2, {1, 52}, {54, 65534})), NO_PORT_UDP},
	{"udp port, the eighth of eight",
	 ON(UDP, PORTS(8, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 7}, {53, 53})),
	 PORT_53},
	{"udp port, one after the last",
	 ON(UDP, PORTS(7, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 7}, {53, 53})),
	 NO_PORT_UDP},
	/* VLANs */
	{"any vlan 10", ON(ANY, .vlan = 10), VLAN_10},
	{"any vlan 11", ON(ANY, .vlan = 11), 0},
	{"any vlan 4095", ON(ANY, .vlan = 4095), BIT(UDP_65535)},
	{"tcp vlan 10", ON(TCP, .vlan = 10), BIT(TCP_443) | BIT(UNKNOWN_FIRST)},
	{"udp vlan 10", ON(UDP, .vlan = 10), BIT(UDP_LATER) | BIT(UNKNOWN_FIRST)},
	{"icmp vlan 10", ON(ICMP, .vlan = 10), BIT(UNKNOWN_FIRST)},
	{"tcp-syn vlan 10", ON(SYN, .vlan = 10), BIT(TCP_443) | BIT(UNKNOWN_FIRST)},
	{"fragment vlan 10", ON(FRAGMENT, .vlan = 10), BIT(UDP_LATER) | BIT(UNKNOWN_FIRST)},
	{"proto 47 vlan 10", ON(PROTO, .proto = 47, .vlan = 10), BIT(GRE) | BIT(UNKNOWN_FIRST)},
	{"proto 47 vlan 20", ON(PROTO, .proto = 47, .vlan = 20), 0},
	{"tcp port 443 vlan 10", ON(TCP, PORTS(1, {443, 443}), .vlan = 10),
	 BIT(TCP_443) | BIT(UNKNOWN_FIRST)},
	{"tcp port 80 vlan 10", ON(TCP, PORTS(1, {80, 80}), .vlan = 10), BIT(UNKNOWN_FIRST)},
	{"udp port 53 vlan 10", ON(UDP, PORTS(1, {53, 53}), .vlan = 10), BIT(UNKNOWN_FIRST)},
};

TEST(test_every_match_and_kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (int kind = 0; kind < KINDS; kind++) {
			bool matches = match_packet(&cases[i].match, &packets[kind]);

			if (matches != !!(cases[i].kinds & BIT(kind)))
				fail_msg("%s, packet %d: %d", cases[i].words, kind, matches);
		}
	}
}

/* --- Ports ----------------------------------------------------------------------------------- */

static bool oracle_port(const struct sl_match *match, unsigned int port)
{
	bool found = false;

	for (int i = 0; i < match->ports; i++)
		for (unsigned int p = match->port[i].first; p <= match->port[i].last; p++)
			found |= p == port;
	return found;
}

TEST(test_every_port_matches_as_the_oracle_says)
{
	static const struct sl_match matches[] = {
		ON(UDP, PORTS(1, {0, 0})),
		ON(UDP, PORTS(1, {65535, 65535})),
		ON(UDP, PORTS(2, {0, 0}, {65535, 65535})),
		ON(UDP, PORTS(3, {255, 257}, {32767, 32768}, {65534, 65535})),
		ON(UDP,
		   PORTS(8, {9, 9}, {7, 7}, {5, 5}, {3, 3}, {1, 1}, {100, 102}, {90, 99}, {0, 0})),
	};

	for (size_t i = 0; i < ARRAY_SIZE(matches); i++) {
		for (unsigned int port = 0; port < 65536; port++) {
			struct sl_facts facts = {.facts = UDP | PORT, .proto = 17, .port = port};

			assert_int_equal(match_packet(&matches[i], &facts),
					 oracle_port(&matches[i], port));
		}
	}
}

/*
 * match_packet() never reads beyond the array of ports, even if the match has a wrong number of
 * ports.
 */
TEST(test_count_of_ports_is_bounded)
{
	struct sl_match *match = calloc(1, sizeof(*match));
	struct sl_facts facts = packets[UDP_53];

	assert_non_null(match);
	match->fact = SL_FACT_UDP;
	match->ports = 255;
	assert_false(match_packet(match, &facts));
	match->port[SL_PORTS_MAX - 1] = (struct sl_ports){53, 53};
	assert_true(match_packet(match, &facts));
	free(match);
}

/* --- Deep matches ---------------------------------------------------------------------------- */

TEST(test_only_any_without_a_vlan_needs_no_look)
{
	static const struct sl_facts not_looked;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(match_is_deep(&cases[i].match), i > 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_false(match_packet(&cases[i].match, &not_looked));
}

/* A match of zero bytes matches no packet. */
TEST(test_a_match_of_zeros_matches_nothing)
{
	static const struct sl_match none;

	for (int kind = 0; kind < KINDS; kind++)
		assert_false(match_packet(&none, &packets[kind]));
}

TESTS(NULL, NULL)
