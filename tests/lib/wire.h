/* SPDX-License-Identifier: GPL-2.0 */
/* Bytes of frames. The source is 192.0.2.1 or 2001:db8:1:2::9. */
#ifndef SLUICE_TEST_WIRE_H
#define SLUICE_TEST_WIRE_H

#define U16(x)	 (x) >> 8, (x)&0xff
#define ZEROS4	 0, 0, 0, 0
#define SOURCE_4 192, 0, 2, 1
#define SOURCE_6 0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, ZEROS4, 0, 0, 0, 9
#define TARGET_4 198, 51, 100, 7
#define TARGET_6 0x20, 1, 0xd, 0xb8, ZEROS4, ZEROS4, 0, 0, 0, 1

/* Ethernet headers and VLAN tags. `type` is the next EtherType. TAG has VLAN id 100. */
#define ETH(type)	  2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, U16(type)
#define TAG_OF(tci, type) U16(tci), U16(type)
#define TAG(type)	  TAG_OF(0x6064, type)
#define SNAP(last, type)  0xaa, 0xaa, 3, 0, 0, last, U16(type)

/* Seven VLAN tags with id 0, after EtherType 0x8100 or 0x88a8. */
#define TAGS_7                                                                                     \
	TAG_OF(0, 0x8100), TAG_OF(0, 0x88a8), TAG_OF(0, 0x8100), TAG_OF(0, 0x8100),                \
		TAG_OF(0, 0x88a8), TAG_OF(0, 0x8100), TAG_OF(0, 0x8100)

/*
 * IP headers. `first` is the first byte. `fragment` is the fragment field of IPv4. `length` is the
 * length field. If `length` is 0, the packet ends with the frame.
 */
#define IPV4_OF(length, first, proto, fragment)                                                    \
	first, 0, U16(length), U16(1), U16(fragment), 64, proto, 0, 0, SOURCE_4, TARGET_4
#define IPV4_WORD(first, proto, fragment) IPV4_OF(0, first, proto, fragment)
#define IPV4(proto)			  IPV4_WORD(0x45, proto, 0)
#define IPV6_OF(length, first, next)	  first, 0, 0, 0, U16(length), next, 64, SOURCE_6, TARGET_6
#define IPV6_WORD(first, next)		  IPV6_OF(0, first, next)
#define IPV6(next)			  IPV6_WORD(0x60, next)

/* IPv6 extension headers: options of 8 and 16 bytes, a fragment header, and AH of 24 bytes. */
#define EXT(next)			      next, 0, 1, 4, ZEROS4
#define EXT16(next)			      next, 1, 1, 12, ZEROS4, ZEROS4, ZEROS4
#define FRAGMENT_WORD(next, reserved, offset) next, reserved, U16(offset), 0, 0, 0, 7
#define FRAGMENT(next, offset)		      FRAGMENT_WORD(next, 0, offset)
#define AH(next)			      next, 4, 0, 0, ZEROS4, ZEROS4, ZEROS4, ZEROS4, ZEROS4

/* Transport headers. `words` is TCP's data offset, in units of 4 bytes. */
#define UDP_TO(port) U16(53), U16(port), U16(8), 0, 0
#define UDP	     UDP_TO(5353)
#define TCP_TO(port, words, flags)                                                                 \
	U16(443), U16(port), ZEROS4, ZEROS4, (words) << 4, flags, 0, 0, 0, 0, 0, 0

/* Sets the fields `bytes` and `size` of a struct to a frame of these bytes. */
#define FRAME(...)                                                                                 \
	.bytes = (const uint8_t[]){__VA_ARGS__}, .size = sizeof((const uint8_t[]){__VA_ARGS__})

#endif
