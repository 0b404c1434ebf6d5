/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: writes samples of dropped packets to a pcapng file (draft-ietf-opsawg-pcapng). The
 * comment of each packet has the reason, the limit and the policy.
 */
#ifndef SLUICE_EVENTS_PCAP_H
#define SLUICE_EVENTS_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAP_COMMENT 160
#define PCAP_FRAME   1518 /* longest recorded part of a frame, with a VLAN tag */

struct events_pcap {
	int fd; /* -1 if there is no file */
	const char *path;
	unsigned int most; /* packets that are written in a second */
	uint64_t second;   /* second, by CLOCK_REALTIME, that `written` counts */
	unsigned int written;
	uint64_t left_out; /* packets above `most` */
};

struct pcap_packet {
	uint64_t time_ns; /* CLOCK_REALTIME */
	const uint8_t *bytes;
	uint32_t length; /* recorded bytes */
	uint32_t size;	 /* bytes of the frame */
	uint16_t vlan_tci;
	uint16_t vlan_proto; /* in network byte order; 0 if no tag was removed from the frame */
	bool is_sent;	     /* the device sends the packet; otherwise it has received it */
	char comment[PCAP_COMMENT];
};

/* Creates the file. Returns 0, or a negative errno with an error. */
int events_pcap_open(const char *path, unsigned int most, struct events_pcap *ret);
void events_pcap_close(struct events_pcap *pcap);

/*
 * Writes a packet, unless `most` packets were written in its second. Returns 0, or a negative errno
 * with an error.
 */
int events_pcap_write(struct events_pcap *pcap, const struct pcap_packet *packet);

#endif
