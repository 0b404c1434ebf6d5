// SPDX-License-Identifier: GPL-2.0
/* Tests include/match.h: each match with each kind of packet. */
#include "test.h"
#include "match.h"
#include "rules/matches.h"

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
	[TCP_SYN] = {.facts = TCP | PORT | SYN, .proto = 6, .port = 80},
	[TCP_ACK] = {.facts = TCP | PORT, .proto = 6, .port = 80},
	[TCP_443] = {.facts = TCP | PORT | SYN, .proto = 6, .port = 443, .vlan = 10},
	[TCP_CUT] = {.facts = TCP | PORT | SYN | UNREAD, .proto = 6, .port = 80},
	[TCP_NO_PORT] = {.facts = TCP | SYN | UNREAD, .proto = 6},
	[TCP_FIRST] = {.facts = TCP | PORT | SYN | FRAG, .proto = 6, .port = 80},
	[TCP_LATER] = {.facts = TCP | FRAG, .proto = 6},
	[UDP_53] = {.facts = UDP | PORT, .proto = 17, .port = 53},
	[UDP_0] = {.facts = UDP | PORT, .proto = 17},
	[UDP_65535] = {.facts = UDP | PORT, .proto = 17, .port = 65535, .vlan = 4095},
	[UDP_NO_PORT] = {.facts = UDP | UNREAD, .proto = 17},
	[UDP_FIRST] = {.facts = UDP | PORT | FRAG, .proto = 17, .port = 53},
	[UDP_LATER] = {.facts = UDP | FRAG, .proto = 17, .vlan = 10},
	[ICMP_V4] = {.facts = ICMP, .proto = 1},
	[ICMP_V6] = {.facts = ICMP, .proto = 58},
	[ICMP_LATER] = {.facts = ICMP | FRAG, .proto = 1},
	[ICMP_STRAY] = {.facts = OTHER, .proto = 58},
	[ESP] = {.facts = OTHER, .proto = 50},
	[GRE] = {.facts = OTHER, .proto = 47, .vlan = 10},
	[HOPOPT] = {.facts = OTHER, .proto = 0},
	[PROTO_255] = {.facts = OTHER, .proto = 255},
	[UNKNOWN] = {.facts = ANY | UNREAD, .proto = 0},
	[UNKNOWN_FIRST] = {.facts = ANY | FRAG | UNREAD, .proto = 0, .vlan = 10},
	[LATER_V6] = {.facts = ANY | FRAG | SL_FACT_HIDDEN, .proto = 0},
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
			bool matches = match_packet(&cases[i].match, &packets[kind], NULL);

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

			assert_int_equal(match_packet(&matches[i], &facts, NULL),
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
	assert_false(match_packet(match, &facts, NULL));
	match->port[SL_PORTS_MAX - 1] = (struct sl_range){53, 53};
	assert_true(match_packet(match, &facts, NULL));
	free(match);
}

/* --- Further fields ------------------------------------------------------------------------ */

#define DETAIL SL_FACT_DETAIL
#define HIDDEN SL_FACT_HIDDEN
#define V4     .family = SL_FAMILY_IPV4
#define V6     .family = SL_FAMILY_IPV6

/* Kinds of packets for the fields. Each case has a bit mask of the packets it accepts. */
enum sent {
	ANSWER,	     /* a DNS answer over IPv4 to 192.0.2.1 */
	ANSWER_6,    /* a DNS answer over IPv6 to 2001:db8:0:1::1 */
	ANSWER_CUT,  /* a UDP packet, cut off before its ports */
	ANSWER_LATE, /* a later fragment over IPv4 */
	OPENING,     /* a SYN, 60 bytes */
	OPENED,	     /* SYN and ACK, DSCP 46 */
	SEGMENT,     /* ACK and PSH, 1500 bytes */
	CLOSED,	     /* RST */
	FLAGS_CUT,   /* a TCP packet, cut off before its flags */
	ECHO,	     /* an ICMP echo request */
	ECHO_6,	     /* an ICMPv6 echo request */
	ICMP_8,	     /* an ICMPv6 message of type 8 */
	ICMP_CUT,    /* an ICMP packet, cut off before its type */
	ICMP_LATE,   /* a later fragment of an ICMP packet */
	TOO_DEEP,    /* more extension headers than the parser reads */
	LATE_6,	     /* a later IPv6 fragment */
	QUIC,	     /* a QUIC Initial packet */
	TLS,	     /* a ClientHello */
	DNS,	     /* a DNS query */
	UNSEEN,	     /* only the source address is known */
	SENTS,
};

static const struct sl_facts sent[SENTS] = {
	[ANSWER] = {UDP | PORT, 17, V4, .sport = 53, .port = 4000, .length = 512},
	[ANSWER_6] = {UDP | PORT, 17, V6, .sport = 53, .port = 4000, .length = 513},
	[ANSWER_CUT] = {UDP | UNREAD | SL_FACT_QUIC | SL_FACT_DNS, 17, V4, .length = 513},
	[ANSWER_LATE] = {UDP | FRAG, 17, V4, .length = 1500},
	[OPENING] = {TCP | PORT | SYN | DETAIL, 6, V4, .port = 80, .sport = 1024, .length = 60,
		     .tcp_flags = 0x02},
	[OPENED] = {TCP | PORT | DETAIL, 6, V4, .port = 80, .sport = 1025, .length = 60,
		    .tcp_flags = 0x12, .dscp = 46},
	[SEGMENT] = {TCP | PORT | DETAIL, 6, V4, .port = 80, .sport = 1026, .length = 1500,
		     .tcp_flags = 0x18},
	[CLOSED] = {TCP | PORT | DETAIL, 6, V6, .port = 80, .sport = 80, .length = 60,
		    .tcp_flags = 0x04},
	[FLAGS_CUT] = {TCP | PORT | SYN | UNREAD | SL_FACT_TLS, 6, V4, .port = 80, .sport = 1024,
		       .length = 60},
	[ECHO] = {ICMP | DETAIL, 1, V4, .length = 84, .icmp_type = 8},
	[ECHO_6] = {ICMP | DETAIL, 58, V6, .length = 84, .icmp_type = 128},
	[ICMP_8] = {ICMP | DETAIL, 58, V6, .length = 84, .icmp_type = 8},
	[ICMP_CUT] = {ICMP | UNREAD, 1, V4, .length = 20},
	[ICMP_LATE] = {ICMP | FRAG, 1, V4, .length = 1500},
	[TOO_DEEP] = {ANY | UNREAD, 0, V6, .length = 200, .dscp = 46},
	[LATE_6] = {ANY | FRAG | HIDDEN, 0, V6, .length = 1500},
	[QUIC] = {UDP | PORT | SL_FACT_QUIC, 17, .sport = 9, .port = 443},
	[TLS] = {TCP | PORT | DETAIL | SL_FACT_TLS, 6, .sport = 9, .port = 443, .tcp_flags = 0x18},
	[DNS] = {UDP | PORT | SL_FACT_DNS, 17, .sport = 9, .port = 53},
	[UNSEEN] = {ANY},
};

/* Every packet of `sent` has one of these destinations. */
static const union {
	__u8 bytes[16];
	__be32 words[4];
} destination4 = {{192, 0, 2, 1, 0x55, 0x55, 0x55, 0x55}},
  destination6 = {{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}};

#define SENT_V4                                                                                    \
	(BIT(ANSWER) | BIT(ANSWER_CUT) | BIT(ANSWER_LATE) | BIT(OPENING) | BIT(OPENED) |           \
	 BIT(SEGMENT) | BIT(FLAGS_CUT) | BIT(ECHO) | BIT(ICMP_CUT) | BIT(ICMP_LATE))
#define SENT_V6                                                                                    \
	(BIT(ANSWER_6) | BIT(CLOSED) | BIT(ECHO_6) | BIT(ICMP_8) | BIT(TOO_DEEP) | BIT(LATE_6))
#define SENT_TCP (BIT(OPENING) | BIT(OPENED) | BIT(SEGMENT) | BIT(CLOSED) | BIT(FLAGS_CUT))

/* Cases with the words that users write. */
static const struct {
	const char *words;
	uint32_t sent;
} field_cases[] = {
	{"udp sport 53", BIT(ANSWER) | BIT(ANSWER_6) | BIT(ANSWER_CUT) | BIT(TOO_DEEP)},
	{"sport 53", BIT(ANSWER) | BIT(ANSWER_6) | BIT(ANSWER_CUT) | BIT(ICMP_CUT) | BIT(TOO_DEEP)},
	{"udp sport 54", BIT(ANSWER_CUT) | BIT(TOO_DEEP)},
	{"udp sport 1,2,50-53", BIT(ANSWER) | BIT(ANSWER_6) | BIT(ANSWER_CUT) | BIT(TOO_DEEP)},
	{"udp sport 53 port 4001", BIT(ANSWER_CUT) | BIT(TOO_DEEP)},
	{"tcp sport 1025-65535", BIT(OPENED) | BIT(SEGMENT) | BIT(TOO_DEEP)},
	{"tcp sport 80 port 80", BIT(CLOSED) | BIT(TOO_DEEP)},
	{"port 80", SENT_TCP | BIT(ANSWER_CUT) | BIT(ICMP_CUT) | BIT(TOO_DEEP)},
	{"to 192.0.2.1", SENT_V4},
	{"to 192.0.2.0/31", SENT_V4},
	{"to 192.0.2.2/31", 0},
	{"to 128.0.0.0/1", SENT_V4},
	{"to 0.0.0.0/0", SENT_V4},
	{"to 2001:db8:0:1::1", SENT_V6},
	{"to 2001:db8:0:1::/127", SENT_V6},
	{"to 2001:db8:0:1::2/127", 0},
	{"to 2001:db8:0:1::/64", SENT_V6},
	{"to 2001:db8::/64", 0},
	{"to 2001:db8::/33", SENT_V6},
	{"to ::/0", SENT_V6},
	{"udp to 192.0.2.0/24", BIT(ANSWER) | BIT(ANSWER_CUT) | BIT(ANSWER_LATE)},
	{"flags syn,!ack", BIT(OPENING) | BIT(FLAGS_CUT) | BIT(TOO_DEEP)},
	{"flags syn,ack", BIT(OPENED) | BIT(FLAGS_CUT) | BIT(TOO_DEEP)},
	{"flags syn", BIT(OPENING) | BIT(OPENED) | BIT(FLAGS_CUT) | BIT(TOO_DEEP)},
	{"flags !syn", BIT(TLS) | BIT(SEGMENT) | BIT(CLOSED) | BIT(FLAGS_CUT) | BIT(TOO_DEEP)},
	{"flags rst", BIT(CLOSED) | BIT(FLAGS_CUT) | BIT(TOO_DEEP)},
	{"flags fin", BIT(FLAGS_CUT) | BIT(TOO_DEEP)},
	{"tcp-syn flags !rst", BIT(OPENING) | BIT(FLAGS_CUT) | BIT(TOO_DEEP)},
	{"icmp-type echo-request", BIT(ECHO) | BIT(ECHO_6) | BIT(ICMP_CUT) | BIT(TOO_DEEP)},
	{"icmp-type 8", BIT(ECHO) | BIT(ICMP_8) | BIT(ICMP_CUT) | BIT(TOO_DEEP)},
	{"icmp-type packet-too-big", BIT(ICMP_CUT) | BIT(TOO_DEEP)},
	{"icmp-type timestamp-request", BIT(ICMP_CUT) | BIT(TOO_DEEP)},
	{"length 60", SENT_TCP & ~BIT(SEGMENT)},
	{"length 513-1500", BIT(ANSWER_6) | BIT(ANSWER_CUT) | BIT(ANSWER_LATE) | BIT(SEGMENT) |
				    BIT(ICMP_LATE) | BIT(LATE_6)},
	{"length 0-65535", SENT_V4 | SENT_V6},
	{"dscp 46", BIT(OPENED) | BIT(TOO_DEEP)},
	{"dscp 0", (SENT_V4 | SENT_V6) & ~(BIT(OPENED) | BIT(TOO_DEEP))},
	{"fragment length 1500", BIT(ANSWER_LATE) | BIT(ICMP_LATE) | BIT(LATE_6)},
	{"proto 1 length 0-100", BIT(ECHO) | BIT(ICMP_CUT)},
	{"quic-initial", BIT(QUIC) | BIT(ANSWER_CUT) | BIT(TOO_DEEP)},
	{"quic-initial port 443", BIT(QUIC) | BIT(ANSWER_CUT) | BIT(TOO_DEEP)},
	{"quic-initial port 444", BIT(ANSWER_CUT) | BIT(TOO_DEEP)},
	{"tls-hello", BIT(TLS) | BIT(FLAGS_CUT) | BIT(TOO_DEEP)},
	{"tls-hello flags psh port 443", BIT(TLS) | BIT(TOO_DEEP)},
	{"dns-query", BIT(DNS) | BIT(ANSWER_CUT) | BIT(TOO_DEEP)},
	/* all words together */
	{"tcp flags syn sport 1025 port 80 to 192.0.2.0/24 length 40-60 dscp 46", BIT(OPENED)},
	{"tcp flags syn sport 1024 port 80 to 192.0.2.0/24 length 40-60 dscp 46", 0},
};

TEST(test_every_field_and_packet)
{
	for (size_t i = 0; i < ARRAY_SIZE(field_cases); i++) {
		struct sl_match match;

		assert_int_equal(match_parse(field_cases[i].words, &match), 0);
		assert_true(match_is_deep(&match));
		for (int n = 0; n < SENTS; n++) {
			const __be32 *to = sent[n].family == SL_FAMILY_IPV4 ? destination4.words
									    : destination6.words;
			bool matches = match_packet(&match, &sent[n], to);

			if (matches != !!(field_cases[i].sent & BIT(n)))
				fail_msg("%s, packet %d: %d", field_cases[i].words, n, matches);
			if (match.fields & SL_FIELD_TO)
				assert_false(match_packet(&match, &sent[n], NULL));
		}
	}
}

/* --- Deep matches ---------------------------------------------------------------------------- */

TEST(test_only_any_without_a_vlan_needs_no_look)
{
	static const struct sl_facts not_looked;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(match_is_deep(&cases[i].match), i > 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_false(match_packet(&cases[i].match, &not_looked, NULL));
}

/* A match of zero bytes matches no packet. */
TEST(test_a_match_of_zeros_matches_nothing)
{
	static const struct sl_match none;

	for (int kind = 0; kind < KINDS; kind++)
		assert_false(match_packet(&none, &packets[kind], NULL));
}

TESTS(NULL, NULL)
