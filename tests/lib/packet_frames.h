/* SPDX-License-Identifier: GPL-2.0 */
/* Frames of all kinds, and the results that bpf/packet.h must return for these frames. */
#ifndef SLUICE_TEST_PACKET_FRAMES_H
#define SLUICE_TEST_PACKET_FRAMES_H

#include "packet.h"
#include "wire.h"

#define TCP_WORD(words, flags) TCP_TO(1025, words, flags)
#define TCP(words)	       TCP_WORD(words, 2)
#define ICMP		       8, 0, 0, 0, 0, 1, 0, 1

/*
 * These macros initialize fields of struct wire_frame. NO_SOURCE sets the reason why the frame has
 * no source. SOURCE sets the IP version of the source. ENDS sets the expected result of
 * packet_inspect() and the position of the transport header. FACTS sets the facts that
 * packet_inspect() must find.
 */
#define NO_SOURCE(why, link_end)  .link = (link_end), .reason = (why)
#define SOURCE(version, link_end) .link = (link_end), .reason = PARSED, .family = (version)
#define ENDS(answer, at, header)                                                                   \
	.transport = TRANSPORT_##answer, .transport_at = (at), .transport_size = (header)
#define FACTS(known, number, dport)                                                                \
	.facts = SL_FACT_ANY | (known), .proto = (number), .port = (dport)
#define IS_FRAGMENT(from) .fragment_at = (from)
#define IN_VLAN(id)	  .vlan = (id)

#define KNOWN  SL_FACT_PROTO
#define F_TCP  (KNOWN | SL_FACT_TCP | SL_FACT_PORT | SL_FACT_DETAIL)
#define F_SYN  (F_TCP | SL_FACT_SYN)
#define F_UDP  (KNOWN | SL_FACT_UDP | SL_FACT_PORT)
#define F_ICMP (KNOWN | SL_FACT_ICMP | SL_FACT_DETAIL)
#define IS_TCP FACTS(F_SYN, 6, 1025)
#define IS_UDP FACTS(F_UDP, 17, 5353)

/*
 * Seven IPv6 extension headers of 8 bytes each. In a frame, another extension header must be in
 * front of these headers.
 */
#define EXT_CHAIN_7 EXT(43), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60)

static const struct wire_frame {
	const char *name;
	const uint8_t *bytes;
	size_t size;
	size_t link;	       /* size of the Ethernet header and parsed VLAN tags */
	enum sl_reason reason; /* what the parser must return for the whole frame */
	uint32_t family;       /* 4 or 6; 0: there is no source, so the fields below are unused */
	/* end of the packet by the length field of IP; 0: end of the frame */
	size_t end;
	enum packet_transport transport;
	size_t transport_at;   /* offset of the transport header; may be beyond the frame */
	size_t transport_size; /* size of the transport header; 0: the parser does not read it */
	/* shortest length at which a truncated frame still shows that it is a fragment; 0: never */
	size_t fragment_at;
	uint16_t facts; /* facts of the whole frame, but never SL_FACT_FRAGMENT or SL_FACT_UNREAD */
	uint8_t proto;
	uint16_t port;
	uint16_t vlan;
} frames[] = {
	/* IPv4 */
	{"IPv4 UDP", FRAME(ETH(0x0800), IPV4(17), UDP), SOURCE(4, 14), ENDS(OK, 34, 8), IS_UDP},
	{"IPv4 TCP SYN", FRAME(ETH(0x0800), IPV4(6), TCP(5), 1, 2, 3), SOURCE(4, 14),
	 ENDS(OK, 34, 20), IS_TCP},
	{"IPv4 TCP SYN ACK", FRAME(ETH(0x0800), IPV4(6), TCP_WORD(5, 0x12)), SOURCE(4, 14),
	 ENDS(OK, 34, 20), FACTS(F_TCP, 6, 1025)},
	{"IPv4 TCP, options", FRAME(ETH(0x0800), IPV4(6), TCP(7), ZEROS4, ZEROS4), SOURCE(4, 14),
	 ENDS(OK, 34, 28), IS_TCP},
	{"IPv4 ICMP", FRAME(ETH(0x0800), IPV4(1), ICMP), SOURCE(4, 14), ENDS(OK, 34, 0),
	 FACTS(F_ICMP, 1, 0)},
	{"IPv4 ESP", FRAME(ETH(0x0800), IPV4(50), ZEROS4, 0, 0, 0, 1), SOURCE(4, 14),
	 ENDS(OK, 34, 0), FACTS(KNOWN, 50, 0)},
	{"IPv4 GRE", FRAME(ETH(0x0800), IPV4(47), 0, 0, U16(0x0800)), SOURCE(4, 14),
	 ENDS(OK, 34, 0), FACTS(KNOWN, 47, 0)},
	{"IPv4 SCTP: its ports are not read", FRAME(ETH(0x0800), IPV4(132), UDP), SOURCE(4, 14),
	 ENDS(OK, 34, 0), FACTS(KNOWN, 132, 0)},
	{"IPv4 AH: what follows is not read", FRAME(ETH(0x0800), IPV4(51), AH(17), UDP),
	 SOURCE(4, 14), ENDS(OK, 34, 0), FACTS(KNOWN, 51, 0)},
	{"IPv4 in IPv4", FRAME(ETH(0x0800), IPV4(4), IPV4(17), UDP), SOURCE(4, 14), ENDS(OK, 34, 0),
	 FACTS(KNOWN, 4, 0)},
	{"IPv4, protocol 0", FRAME(ETH(0x0800), IPV4(0), EXT(17), UDP), SOURCE(4, 14),
	 ENDS(OK, 34, 0), FACTS(KNOWN, 0, 0)},
	{"IPv4, protocol 255", FRAME(ETH(0x0800), IPV4(255), UDP), SOURCE(4, 14), ENDS(OK, 34, 0),
	 FACTS(KNOWN, 255, 0)},
	{"IPv4, ICMPv6's number", FRAME(ETH(0x0800), IPV4(58), ICMP), SOURCE(4, 14),
	 ENDS(OK, 34, 0), FACTS(KNOWN, 58, 0)},
	{"IPv4, no payload", FRAME(ETH(0x0800), IPV4(17)), SOURCE(4, 14), ENDS(OK, 34, 0), IS_UDP},
	{"IPv4 TCP, no payload", FRAME(ETH(0x0800), IPV4(6)), SOURCE(4, 14), ENDS(OK, 34, 0),
	 IS_TCP},
	{"IPv4, 4 bytes of options", FRAME(ETH(0x0800), IPV4_WORD(0x46, 17, 0), ZEROS4, UDP),
	 SOURCE(4, 14), ENDS(OK, 38, 8), IS_UDP},
	{"IPv4, 40 bytes of options",
	 FRAME(ETH(0x0800), IPV4_WORD(0x4f, 6, 0), ZEROS4, ZEROS4, ZEROS4, ZEROS4, ZEROS4, ZEROS4,
	       ZEROS4, ZEROS4, ZEROS4, ZEROS4, TCP(5)),
	 SOURCE(4, 14), ENDS(OK, 74, 20), IS_TCP},
	{"IPv4, header longer than the frame",
	 FRAME(ETH(0x0800), IPV4_WORD(0x4f, 6, 0), ZEROS4, ZEROS4), SOURCE(4, 14), ENDS(OK, 74, 0),
	 IS_TCP},
	/* IPv4 fragments */
	{"IPv4, first fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x2000), UDP),
	 SOURCE(4, 14), ENDS(OK, 34, 8), IS_UDP, IS_FRAGMENT(34)},
	{"IPv4, first fragment, options",
	 FRAME(ETH(0x0800), IPV4_WORD(0x46, 6, 0x2000), ZEROS4, TCP(5)), SOURCE(4, 14),
	 ENDS(OK, 38, 20), IS_TCP, IS_FRAGMENT(34)},
	{"IPv4 TCP, a first fragment of 8 bytes, padded with an ACK",
	 FRAME(ETH(0x0800), IPV4_OF(28, 0x45, 6, 0x2000), U16(443), U16(1025), ZEROS4, ZEROS4, 0x50,
	       0x10, ZEROS4, ZEROS4),
	 SOURCE(4, 14), ENDS(OK, 34, 0), .end = 42, IS_TCP, IS_FRAGMENT(34)},
	{"IPv4, do not fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x4000), UDP),
	 SOURCE(4, 14), ENDS(OK, 34, 8), IS_UDP},
	{"IPv4, the evil bit", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x8000), UDP), SOURCE(4, 14),
	 ENDS(OK, 34, 8), IS_UDP},
	{"IPv4, middle fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x2001), UDP),
	 SOURCE(4, 14), ENDS(HIDDEN, 34, 0), FACTS(F_UDP, 17, 0), IS_FRAGMENT(34)},
	{"IPv4, last fragment", FRAME(ETH(0x0800), IPV4_WORD(0x46, 17, 0x1fff), ZEROS4, UDP),
	 SOURCE(4, 14), ENDS(HIDDEN, 38, 0), FACTS(F_UDP, 17, 0), IS_FRAGMENT(34)},
	{"IPv4, last fragment of TCP", FRAME(ETH(0x0800), IPV4_WORD(0x45, 6, 0x0001), TCP(5)),
	 SOURCE(4, 14), ENDS(HIDDEN, 34, 0), FACTS(F_TCP, 6, 0), IS_FRAGMENT(34)},
	{"IPv4, last fragment of ICMP", FRAME(ETH(0x0800), IPV4_WORD(0x45, 1, 0x0100), ICMP),
	 SOURCE(4, 14), ENDS(HIDDEN, 34, 0), FACTS(F_ICMP, 1, 0), IS_FRAGMENT(34)},
	/* no IPv4 */
	{"IPv4, length 4 words", FRAME(ETH(0x0800), IPV4_WORD(0x44, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	{"IPv4, length 0", FRAME(ETH(0x0800), IPV4_WORD(0x40, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	{"IPv4, version 6", FRAME(ETH(0x0800), IPV4_WORD(0x65, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	{"IPv4 by EtherType, IPv6 in truth", FRAME(ETH(0x0800), IPV6(17), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	/* tags */
	{"IPv4, 1 tag", FRAME(ETH(0x8100), TAG(0x0800), IPV4(17), UDP), SOURCE(4, 18),
	 ENDS(OK, 38, 8), IS_UDP, IN_VLAN(100)},
	{"IPv4, 1 service tag", FRAME(ETH(0x88a8), TAG(0x0800), IPV4(17), UDP), SOURCE(4, 18),
	 ENDS(OK, 38, 8), IS_UDP, IN_VLAN(100)},
	{"IPv4, service tag and tag", FRAME(ETH(0x88a8), TAG(0x8100), TAG(0x0800), IPV4(6), TCP(5)),
	 SOURCE(4, 22), ENDS(OK, 42, 20), IS_TCP, IN_VLAN(100)},
	{"IPv6, 2 tags", FRAME(ETH(0x8100), TAG(0x8100), TAG(0x86dd), IPV6(17), UDP), SOURCE(6, 22),
	 ENDS(OK, 62, 8), IS_UDP, IN_VLAN(100)},
	{"QinQ: the outer VLAN counts",
	 FRAME(ETH(0x88a8), TAG_OF(0xf7d0, 0x8100), TAG_OF(0x000a, 0x0800), IPV4(17), UDP),
	 SOURCE(4, 22), ENDS(OK, 42, 8), IS_UDP, IN_VLAN(2000)},
	{"the largest VLAN id", FRAME(ETH(0x8100), TAG_OF(0xffff, 0x86dd), IPV6(6), TCP(5)),
	 SOURCE(6, 18), ENDS(OK, 58, 20), IS_TCP, IN_VLAN(4095)},
	{"a priority tag is no VLAN", FRAME(ETH(0x8100), TAG_OF(0xe000, 0x0800), IPV4(17), UDP),
	 SOURCE(4, 18), ENDS(OK, 38, 8), IS_UDP},
	{"a priority tag around a tag",
	 FRAME(ETH(0x88a8), TAG_OF(0xf000, 0x8100), TAG_OF(0x000a, 0x0800), IPV4(17), UDP),
	 SOURCE(4, 22), ENDS(OK, 42, 8), IS_UDP, IN_VLAN(10)},
	{"a tag around a priority tag",
	 FRAME(ETH(0x88a8), TAG_OF(0x000a, 0x8100), TAG_OF(0xe000, 0x0800), IPV4(17), UDP),
	 SOURCE(4, 22), ENDS(OK, 42, 8), IS_UDP, IN_VLAN(10)},
	{"3 tags", FRAME(ETH(0x88a8), TAG(0x8100), TAG(0x8100), TAG(0x0800), IPV4(17), UDP),
	 SOURCE(4, 26), ENDS(OK, 46, 8), IS_UDP, IN_VLAN(100)},
	{"7 priority tags, and a tag",
	 FRAME(ETH(0x8100), TAG_OF(0xe000, 0x88a8), TAG_OF(0, 0x88a8), TAG_OF(0, 0x8100),
	       TAG_OF(0, 0x8100), TAG_OF(0, 0x88a8), TAG_OF(0, 0x8100), TAG_OF(0, 0x8100),
	       TAG(0x86dd), IPV6(17), UDP),
	 SOURCE(6, 46), ENDS(OK, 86, 8), IS_UDP, IN_VLAN(100)},
	{"8 priority tags", FRAME(ETH(0x8100), TAGS_7, TAG_OF(0, 0x0800), IPV4(6), TCP(5)),
	 SOURCE(4, 46), ENDS(OK, 66, 20), IS_TCP},
	{"9 tags", FRAME(ETH(0x8100), TAGS_7, TAG(0x88a8), TAG(0x0800), IPV4(17), UDP),
	 NO_SOURCE(SL_DROP_VLAN_DEPTH, 46)},
	{"9 tags around ARP", FRAME(ETH(0x8100), TAGS_7, TAG(0x88a8), TAG(0x0806), ZEROS4),
	 NO_SOURCE(SL_DROP_VLAN_DEPTH, 46)},
	{"0x9100, which Linux takes for no tag", FRAME(ETH(0x9100), TAG(0x0800), IPV4(17), UDP),
	 NO_SOURCE(SL_PASS_NOT_IP, 14)},
	{"tagged ARP", FRAME(ETH(0x8100), TAG(0x0806), U16(1), U16(0x0800), 6, 4, U16(1)),
	 NO_SOURCE(SL_PASS_NOT_IP, 18)},
	/* no IP */
	{"ARP", FRAME(ETH(0x0806), U16(1), U16(0x0800), 6, 4, U16(1), ZEROS4),
	 NO_SOURCE(SL_PASS_NOT_IP, 14)},
	{"LLC: a length for an EtherType", FRAME(ETH(0x0026), 0x42, 0x42, 3, ZEROS4, 0),
	 NO_SOURCE(SL_PASS_NOT_IP, 22)},
	{"EtherType with its bytes swapped", FRAME(ETH(0x0008), IPV4(17), UDP),
	 NO_SOURCE(SL_PASS_NOT_IP, 22)},
	/* Frames with LLC or SNAP headers. */
	{"SNAP, IPv4 UDP", FRAME(ETH(0x0024), SNAP(0, 0x0800), IPV4(17), UDP), SOURCE(4, 22),
	 ENDS(OK, 42, 8), IS_UDP},
	{"SNAP of 802.1H, IPv6 TCP SYN", FRAME(ETH(0x0000), SNAP(0xf8, 0x86dd), IPV6(6), TCP(5)),
	 SOURCE(6, 22), ENDS(OK, 62, 20), IS_TCP},
	{"a tag, SNAP, a tag, IPv4 TCP SYN",
	 FRAME(ETH(0x8100), TAG_OF(0, 0x0030), SNAP(0, 0x8100), TAG(0x0800), IPV4(6), TCP(5)),
	 SOURCE(4, 30), ENDS(OK, 50, 20), IS_TCP, IN_VLAN(100)},
	{"the greatest length, SNAP, IPv4 UDP", FRAME(ETH(0x05ff), SNAP(0, 0x0800), IPV4(17), UDP),
	 SOURCE(4, 22), ENDS(OK, 42, 8), IS_UDP},
	{"the least EtherType, and SNAP", FRAME(ETH(0x0600), SNAP(0, 0x0800), IPV4(17), UDP),
	 NO_SOURCE(SL_PASS_NOT_IP, 14)},
	{"SNAP, ARP", FRAME(ETH(0x0024), SNAP(0, 0x0806), ZEROS4), NO_SOURCE(SL_PASS_NOT_IP, 22)},
	{"SNAP of another organization", FRAME(ETH(0x0024), SNAP(0x0c, 0x0800), IPV4(17), UDP),
	 NO_SOURCE(SL_PASS_NOT_IP, 22)},
	{"LLC with a reply's control",
	 FRAME(ETH(0x0024), 0xaa, 0xaa, 0xf3, 0, 0, 0, U16(0x0800), IPV4(17), UDP),
	 NO_SOURCE(SL_PASS_NOT_IP, 22)},
	{"8 tags and SNAP",
	 FRAME(ETH(0x8100), TAGS_7, TAG_OF(0, 0x24), SNAP(0, 0x0800), IPV4(17), UDP), SOURCE(4, 54),
	 ENDS(OK, 74, 8), IS_UDP},
	{"8 tags, SNAP and a tag",
	 FRAME(ETH(0x8100), TAGS_7, TAG_OF(0, 0x24), SNAP(0, 0x8100), TAG(0x0800), IPV4(17), UDP),
	 NO_SOURCE(SL_DROP_VLAN_DEPTH, 54)},
	{"SNAP in SNAP", FRAME(ETH(0x0024), SNAP(0, 0x0024), SNAP(0, 0x0800), IPV4(17), UDP),
	 NO_SOURCE(SL_PASS_NOT_IP, 22)},
	/* IPv6 */
	{"IPv6 UDP", FRAME(ETH(0x86dd), IPV6(17), UDP), SOURCE(6, 14), ENDS(OK, 54, 8), IS_UDP},
	{"IPv6 TCP", FRAME(ETH(0x86dd), IPV6(6), TCP(5)), SOURCE(6, 14), ENDS(OK, 54, 20), IS_TCP},
	{"IPv6 ICMPv6", FRAME(ETH(0x86dd), IPV6(58), ICMP), SOURCE(6, 14), ENDS(OK, 54, 0),
	 FACTS(F_ICMP, 58, 0)},
	{"IPv6, ICMP's number", FRAME(ETH(0x86dd), IPV6(1), ICMP), SOURCE(6, 14), ENDS(OK, 54, 0),
	 FACTS(KNOWN, 1, 0)},
	{"IPv6 ESP", FRAME(ETH(0x86dd), IPV6(50), ZEROS4, 0, 0, 0, 1), SOURCE(6, 14),
	 ENDS(OK, 54, 0), FACTS(KNOWN, 50, 0)},
	{"IPv6 GRE", FRAME(ETH(0x86dd), IPV6(47), 0, 0, U16(0x86dd)), SOURCE(6, 14),
	 ENDS(OK, 54, 0), FACTS(KNOWN, 47, 0)},
	{"IPv6, no next header", FRAME(ETH(0x86dd), IPV6(59)), SOURCE(6, 14), ENDS(OK, 54, 0),
	 FACTS(KNOWN, 59, 0)},
	{"IPv6, protocols from 64 on are no extension headers",
	 FRAME(ETH(0x86dd), IPV6(64 + 44), FRAGMENT(17, 8), UDP), SOURCE(6, 14), ENDS(OK, 54, 0),
	 FACTS(KNOWN, 108, 0)},
	{"IPv6, version 4", FRAME(ETH(0x86dd), IPV6_WORD(0x40, 17), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 14)},
	/* Frames with IPv6 extension headers. */
	{"IPv6 hop by hop", FRAME(ETH(0x86dd), IPV6(0), EXT(17), UDP), SOURCE(6, 14),
	 ENDS(OK, 62, 8), IS_UDP},
	{"IPv6 routing, 16 bytes", FRAME(ETH(0x86dd), IPV6(43), EXT16(6), TCP(6), ZEROS4),
	 SOURCE(6, 14), ENDS(OK, 70, 24), IS_TCP},
	{"IPv6 destination options", FRAME(ETH(0x86dd), IPV6(60), EXT(58), ICMP), SOURCE(6, 14),
	 ENDS(OK, 62, 0), FACTS(F_ICMP, 58, 0)},
	{"IPv6 AH", FRAME(ETH(0x86dd), IPV6(51), AH(17), UDP), SOURCE(6, 14), ENDS(OK, 78, 8),
	 IS_UDP},
	{"IPv6 AH of the least length", FRAME(ETH(0x86dd), IPV6(51), 6, 0, 0, 0, ZEROS4, TCP(5)),
	 SOURCE(6, 14), ENDS(OK, 62, 20), IS_TCP},
	{"IPv6 AH of 12 bytes", FRAME(ETH(0x86dd), IPV6(51), 6, 1, 0, 0, ZEROS4, ZEROS4, TCP(5)),
	 SOURCE(6, 14), ENDS(OK, 66, 20), IS_TCP},
	{"IPv6 hop by hop, then ESP", FRAME(ETH(0x86dd), IPV6(0), EXT(50), ZEROS4), SOURCE(6, 14),
	 ENDS(OK, 62, 0), FACTS(KNOWN, 50, 0)},
	{"IPv6, one header of each",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(60), EXT(43), EXT16(44), FRAGMENT(51, 1), AH(60), EXT(6),
	       TCP(5)),
	 SOURCE(6, 14), ENDS(OK, 126, 20), IS_TCP, IS_FRAGMENT(94)},
	{"IPv6, 8 extension headers", FRAME(ETH(0x86dd), IPV6(0), EXT_CHAIN_7, EXT(17), UDP),
	 SOURCE(6, 14), ENDS(OK, 118, 8), IS_UDP},
	{"IPv6, 8 extension headers, the last a fragment's",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(43), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(44),
	       FRAGMENT(6, 8), TCP(5)),
	 SOURCE(6, 14), ENDS(HIDDEN, 118, 0), FACTS(SL_FACT_HIDDEN, 0, 0), IS_FRAGMENT(118)},
	{"IPv6, 9 extension headers",
	 FRAME(ETH(0x86dd), IPV6(0), EXT_CHAIN_7, EXT(60), EXT(17), UDP), SOURCE(6, 14),
	 ENDS(TOO_DEEP, 118, 0), FACTS(0, 0, 0)},
	{"IPv6, 9 extension headers, the last a fragment's",
	 FRAME(ETH(0x86dd), IPV6(0), EXT_CHAIN_7, EXT(44), FRAGMENT(17, 8), UDP), SOURCE(6, 14),
	 ENDS(TOO_DEEP, 118, 0), FACTS(0, 0, 0)},
	{"IPv6, 9 extension headers, the first a fragment's",
	 FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(0, 1), EXT_CHAIN_7, EXT(60), EXT(17), UDP),
	 SOURCE(6, 14), ENDS(TOO_DEEP, 118, 0), FACTS(0, 0, 0), IS_FRAGMENT(62)},
	{"IPv6, extension header longer than the frame",
	 FRAME(ETH(0x86dd), IPV6(0), 17, 255, 0, 0, ZEROS4, UDP), SOURCE(6, 14),
	 ENDS(OK, 54 + 256 * 8, 0), IS_UDP},
	/* IPv6 fragments */
	{"IPv6, first fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 0x0001), UDP),
	 SOURCE(6, 14), ENDS(OK, 62, 8), IS_UDP, IS_FRAGMENT(62)},
	{"IPv6, first fragment of TCP", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(6, 0x0001), TCP(5)),
	 SOURCE(6, 14), ENDS(OK, 62, 20), IS_TCP, IS_FRAGMENT(62)},
	{"IPv6, atomic fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 0), UDP), SOURCE(6, 14),
	 ENDS(OK, 62, 8), IS_UDP},
	{"IPv6, atomic fragment, reserved bits set",
	 FRAME(ETH(0x86dd), IPV6(44), FRAGMENT_WORD(6, 0xff, 0x0006), TCP(5)), SOURCE(6, 14),
	 ENDS(OK, 62, 20), IS_TCP},
	{"IPv6, first fragment, reserved bits set",
	 FRAME(ETH(0x86dd), IPV6(44), FRAGMENT_WORD(6, 0xff, 0x0007), TCP(5)), SOURCE(6, 14),
	 ENDS(OK, 62, 20), IS_TCP, IS_FRAGMENT(62)},
	{"IPv6, middle fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 0x0009), UDP),
	 SOURCE(6, 14), ENDS(HIDDEN, 62, 0), FACTS(SL_FACT_HIDDEN, 0, 0), IS_FRAGMENT(62)},
	{"IPv6, middle fragment, reserved byte set",
	 FRAME(ETH(0x86dd), IPV6(44), FRAGMENT_WORD(58, 1, 0x0009), ICMP), SOURCE(6, 14),
	 ENDS(HIDDEN, 62, 0), FACTS(SL_FACT_HIDDEN, 0, 0), IS_FRAGMENT(62)},
	{"IPv6, last fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 0xfff8), UDP),
	 SOURCE(6, 14), ENDS(HIDDEN, 62, 0), FACTS(SL_FACT_HIDDEN, 0, 0), IS_FRAGMENT(62)},
	{"IPv6, middle fragment of a chain",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(44), FRAGMENT(60, 0x0008), EXT(17), UDP), SOURCE(6, 14),
	 ENDS(HIDDEN, 70, 0), FACTS(SL_FACT_HIDDEN, 0, 0), IS_FRAGMENT(70)},
	{"IPv6, first fragment, then options",
	 FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(60, 0x0001), EXT(6), TCP(5)), SOURCE(6, 14),
	 ENDS(OK, 70, 20), IS_TCP, IS_FRAGMENT(62)},
	{"IPv6, atomic fragment in a first fragment",
	 FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(44, 0x0001), FRAGMENT(17, 0), UDP), SOURCE(6, 14),
	 ENDS(OK, 70, 8), IS_UDP, IS_FRAGMENT(62)},
	{"IPv6, last fragment in an atomic fragment",
	 FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(44, 0), FRAGMENT(17, 0x0010), UDP), SOURCE(6, 14),
	 ENDS(HIDDEN, 70, 0), FACTS(SL_FACT_HIDDEN, 0, 0), IS_FRAGMENT(70)},
};

#endif
