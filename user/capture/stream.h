/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Capture: the stream by which libpcap reads a capture. libpcap does not report the interface of a
 * packet in a pcapng file, and it refuses a file whose interfaces differ in link type or snap
 * length. So this stream parses the blocks of pcapng. It records the interfaces, and gives all
 * interfaces the same link type and snap length.
 */
#ifndef SLUICE_CAPTURE_STREAM_H
#define SLUICE_CAPTURE_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CAPTURE_NAME 32 /* size of the name of an interface, with its NUL */

/* Search the interface's name only in this many bytes of an interface description block. */
#define STREAM_STAGED 4096

struct stream_interface {
	uint16_t link; /* LINKTYPE_ number in the file */
	char name[CAPTURE_NAME];
};

/* Facts about a packet of a pcapng file that libpcap does not report. */
struct stream_packet {
	uint32_t number; /* number of the packet's interface within its section */
	/*
	 * index in stream.interface of the packet's interface; UINT32_MAX: the file does not
	 * describe it
	 */
	uint32_t interface;
	bool has_no_time; /* the packet is in a simple packet block, which has no time */
};

/* Bytes that libpcap reads ahead. A block has at most one packet, and at least 12 bytes. */
#define STREAM_AHEAD   65536
#define STREAM_PACKETS (STREAM_AHEAD / 8)

struct stream {
	FILE *in;
	uint64_t offset; /* bytes of the file that libpcap has read */
	bool is_begun;
	bool is_pcapng;
	bool is_swapped; /* pcapng: the section's byte order is not this machine's */
	uint64_t left;	 /* bytes of the current block that are not in `stage` */
	uint32_t staged; /* bytes of the current block in `stage` */
	uint32_t taken;	 /* bytes of `stage` that libpcap has read */
	struct stream_interface *interface;
	unsigned int interfaces, room;
	unsigned int section; /* index in `interface` of the current section's first interface */
	uint8_t stage[STREAM_STAGED];
	char ahead[STREAM_AHEAD];
	/* ring of packets that libpcap has read, but not returned */
	struct stream_packet packet[STREAM_PACKETS];
	unsigned int packets_begin, packets_end;
};

/*
 * Opens the stream for libpcap. fclose() frees `interface`, but does not close `in`. Returns NULL
 * if there is no memory.
 */
FILE *stream_open(struct stream *stream);

/*
 * Removes from the ring the packet that libpcap returned last. Returns false if the ring is empty.
 */
bool stream_take(struct stream *stream, struct stream_packet *ret);

#endif
