/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Capture: reads the packets of a pcap or pcapng file as Ethernet frames, in the order of their
 * times. libpcap reads the formats; capture/stream.h adds what libpcap hides. A file may contain
 * any bytes: a reader stops with an error that has the number of the packet, and the packets before
 * it stay valid. Only sluice-replay links libpcap.
 */
#ifndef SLUICE_CAPTURE_H
#define SLUICE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/stream.h"

/*
 * The way of a packet through the host that captured it. Only the link types SLL and SLL2 (tcpdump
 * -i any) store it.
 */
enum capture_direction {
	CAPTURE_ANY, /* unknown, or in a choice: both */
	CAPTURE_IN,
	CAPTURE_OUT,
};

/* The packets to read from a capture. All zero: every packet. */
struct capture_choice {
	enum capture_direction direction; /* packets of an unknown direction are always read */
	bool has_to;	       /* read only frames to `to`, or to a group and not from `to` */
	uint8_t to[6];	       /* MAC address */
	const char *interface; /* number or name of the only interface to read; NULL: all */
	uint32_t mtu;	       /* a longer IP packet is merged; 0: CAPTURE_MTU */
};

#define CAPTURE_MTU 1500

struct capture_packet {
	uint64_t number;      /* from 1, over all packets of the capture, chosen or not */
	uint64_t ns;	      /* time since 1970, not before the time of the previous packet */
	uint32_t length;      /* bytes of the frame on the wire, without its checksum */
	uint32_t size;	      /* bytes of the frame that were captured */
	const uint8_t *bytes; /* the captured bytes; valid until the next packet is read */
	uint32_t interface;   /* number in the capture; SLL2: the kernel's index */
	enum capture_direction direction;
	bool is_cut;	/* the capture has less than the whole frame */
	bool is_merged; /* GRO or TSO merged several packets before the capture */
};

#define CAPTURE_INTERFACES 64

/* Counts of the packets read so far. All but `left_out` count only packets that were chosen. */
struct capture_totals {
	uint64_t packets, cut, merged;
	uint64_t left_out;  /* packets that were not chosen */
	uint64_t backward;  /* packets whose time was before the time of an earlier packet */
	uint64_t back_ns;   /* the longest such time */
	uint64_t offset;    /* bytes read from the file */
	uint64_t file_size; /* size of the file in bytes; 0 if it is a pipe */
	unsigned int interfaces;
	/* interfaces with packets that were chosen; later interfaces are not counted */
	struct capture_interface {
		uint32_t number;
		uint64_t packets;
		char name[CAPTURE_NAME]; /* "" if the capture has no names */
	} interface[CAPTURE_INTERFACES];
};

struct capture;

/*
 * Opens a capture, or standard input if the path is "-". `choice` must stay valid until the capture
 * is closed. Returns 0 or a negative errno.
 */
int capture_open(const char *path, const struct capture_choice *choice, struct capture **ret);

/* Does the work of capture_open() on a stream, and closes the stream. name: for messages. */
int capture_open_stream(FILE *stream, const char *name, const struct capture_choice *choice,
			struct capture **ret);

/* Reads the next packet that was chosen. Returns 1, 0 at the end, or a negative errno. */
int capture_next(struct capture *capture, struct capture_packet *ret);

const struct capture_totals *capture_totals(const struct capture *capture);

/* Closes a capture if it is open. For _cleanup_(). */
void capture_close(struct capture **capture);

/* Parses a MAC address, such as "52:54:00:12:34:56". Returns 0, or -EINVAL and adds an error. */
int mac_parse(const char *text, uint8_t ret[6]);

#endif
