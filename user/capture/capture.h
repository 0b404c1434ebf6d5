/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Capture: reads the packets of a pcap or pcapng file as Ethernet frames, in the order of the file.
 * libpcap reads the formats; capture/stream.h reads the fields that libpcap omits. A bad packet
 * ends the reading with an error. Only sluice-replay links libpcap.
 */
#ifndef SLUICE_CAPTURE_H
#define SLUICE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/stream.h"

/*
 * The direction of a packet, as seen by the host that captured it. Only the link types SLL and SLL2
 * (tcpdump -i any) store the direction.
 */
enum capture_direction {
	CAPTURE_ANY, /* in a packet: unknown; in a choice: both directions */
	CAPTURE_IN,
	CAPTURE_OUT,
};

/* Selects packets of a capture. If all members are zero, selects every packet. */
struct capture_choice {
	enum capture_direction direction; /* packets of an unknown direction are always selected */
	/* accept frames to MAC address `to`, and multicast frames from other MAC addresses */
	bool has_to;
	uint8_t to[6];	       /* MAC address */
	const char *interface; /* select this interface, by number or name; NULL: all */
	uint32_t mtu;	       /* MTU, to detect packets that GRO or GSO merged; 0: CAPTURE_MTU */
};

#define CAPTURE_MTU 1500

struct capture_packet {
	uint64_t number;      /* counts all packets of the capture from 1, selected or not */
	uint64_t ns;	      /* time since 1970; never decreases from packet to packet */
	uint32_t length;      /* bytes of the frame on the wire, without the frame check sequence */
	uint32_t size;	      /* bytes of the frame that the capture contains */
	const uint8_t *bytes; /* the captured bytes; valid until the next packet is read */
	/* number of the interface in the pcapng section; in SLL2, the ifindex */
	uint32_t interface;
	enum capture_direction direction;
	bool is_cut;	/* the capture does not contain the whole frame */
	bool is_merged; /* merged by GRO or TSO before the capture */
};

#define CAPTURE_INTERFACES 64

/*
 * Counts of packets read so far. Only `left_out`, `other_way` and `interface` count packets
 * that are not selected.
 */
struct capture_totals {
	uint64_t packets, cut, merged;
	uint64_t left_out;  /* packets that the choice does not select */
	uint64_t other_way; /* packets that are left out because of their direction */
	uint64_t backward;  /* packets whose time was before an earlier packet's */
	uint64_t offset;    /* bytes read from the file */
	uint64_t file_size; /* size of the file in bytes; 0 if it is a pipe */
	unsigned int interfaces;
	/* the first CAPTURE_INTERFACES interfaces with packets, selected or not */
	struct capture_interface {
		uint32_t number;
		uint64_t packets;
		/* "" if the capture file has no name for the interface */
		char name[CAPTURE_NAME];
	} interface[CAPTURE_INTERFACES];
};

struct capture;

/*
 * Opens a capture file, or standard input if the path is "-". `choice` must stay valid until the
 * capture is closed. Returns 0 or a negative errno.
 */
int capture_open(const char *path, const struct capture_choice *choice, struct capture **ret);

/*
 * Like capture_open(), for a stream. The capture owns `stream` from then on. name: name of the
 * stream in errors.
 */
int capture_open_stream(FILE *stream, const char *name, const struct capture_choice *choice,
			struct capture **ret);

/* Reads the next selected packet. Returns 1, 0 at the end of the capture, or a negative errno. */
int capture_next(struct capture *capture, struct capture_packet *ret);

const struct capture_totals *capture_totals(const struct capture *capture);

/* Closes a capture if it is open. For _cleanup_(). */
void capture_close(struct capture **capture);

/* Parses a MAC address, such as "52:54:00:12:34:56". Returns 0, or -EINVAL and adds an error. */
int mac_parse(const char *text, uint8_t ret[6]);

#endif
