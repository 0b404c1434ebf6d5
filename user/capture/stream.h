/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Capture: the bytes that libpcap reads from a capture. libpcap does not report from which
 * interface of a pcapng file a packet is, and refuses a file whose interfaces differ in link type
 * or snap length. So this stream follows the blocks of pcapng on their way to libpcap. It notes the
 * interfaces, and gives all of them one link type and snap length. pcap files pass unchanged.
 */
#ifndef SLUICE_CAPTURE_STREAM_H
#define SLUICE_CAPTURE_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CAPTURE_NAME 32 /* size of the name of an interface, with its NUL */

/* A description of an interface, with up to this many bytes of options, is read for its name. */
#define STREAM_STAGED 4096

struct stream_interface {
	uint16_t link; /* LINKTYPE_ of the file format */
	char name[CAPTURE_NAME];
};

struct stream {
	FILE *in;
	uint64_t offset; /* bytes that libpcap has read */
	bool is_begun;
	bool is_pcapng;
	bool is_swapped;  /* pcapng: the section has the byte order of another machine */
	bool has_no_time; /* pcapng: the last packet is in a simple packet block */
	uint32_t current; /* pcapng: interface of the last packet */
	uint64_t left;	  /* bytes of the current block after the staged bytes */
	uint32_t staged;  /* bytes in `stage` */
	uint32_t taken;	  /* bytes of `stage` that libpcap has read */
	struct stream_interface *interface;
	unsigned int interfaces, room;
	uint8_t stage[STREAM_STAGED];
};

/*
 * Opens the stream that libpcap shall read. It has no buffer, so `current` is the interface of the
 * packet that libpcap returned last. Closing it frees `interface`, but does not close `in`. Returns
 * NULL if there is no memory.
 */
FILE *stream_open(struct stream *stream);

#endif
