/* SPDX-License-Identifier: GPL-2.0 */
/* Frames byte by byte. Sources: 192.0.2.1, and 2001:db8:1:2::9. */
#ifndef SLUICE_WIRE_H
#define SLUICE_WIRE_H

#define U16(x)		 (x) >> 8, (x)&0xff
#define ZEROS4		 0, 0, 0, 0
#define ETH(type)	 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, U16(type)
#define TAG_OF(id, type) U16(id), U16(type)
#define TAG(type)	 TAG_OF(0x6064, type) /* VLAN 100, priority 3 */
#define IPV4_SOURCE	 192, 0, 2, 1
#define IPV6_SOURCE	 0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, ZEROS4, 0, 0, 0, 9
/* OF: with IP's length; 0 tells nothing, and the packet ends with the frame. */
#define IPV4_OF(length, first, proto, fragment)                                                    \
	first, 0, U16(length), U16(1), U16(fragment), 64, proto, 0, 0, IPV4_SOURCE, 198, 51, 100, 7
#define IPV4(first, proto, fragment) IPV4_OF(0, first, proto, fragment)
#define IPV6_OF(length, first, next)                                                               \
	first, 0, 0, 0, U16(length), next, 64, IPV6_SOURCE, 0x20, 1, 0xd, 0xb8, ZEROS4, ZEROS4,    \
		ZEROS4
#define IPV6(first, next) IPV6_OF(0, first, next)

/* IPv6 extension headers: of 8 bytes, of 16, a fragment's, and AH of 24 */
#define EXT(next)	       next, 0, 1, 4, ZEROS4
#define EXT16(next)	       next, 1, 1, 12, ZEROS4, ZEROS4, ZEROS4
#define FRAGMENT(next, offset) next, 0, U16(offset), 0, 0, 0, 7
#define AH(next)	       next, 4, 0, 0, ZEROS4, ZEROS4, ZEROS4, ZEROS4, ZEROS4

#define UDP_TO(port) U16(53), U16(port), U16(8), 0, 0
#define UDP	     UDP_TO(5353)
#define TCP_TO(port, words, flags)                                                                 \
	U16(443), U16(port), ZEROS4, ZEROS4, (words) << 4, flags, 0, 0, 0, 0, 0, 0

/* Of a struct that has these two fields. */
#define FRAME(...)                                                                                 \
	.bytes = (const uint8_t[]){__VA_ARGS__}, .size = sizeof((const uint8_t[]){__VA_ARGS__})

#endif
