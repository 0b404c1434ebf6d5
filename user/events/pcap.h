/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: writes samples of dropped packets to a pcapng file (draft-ietf-opsawg-pcapng). Each
 * packet has a comment with the reason, the limit and the policy.
 */
#ifndef SLUICE_EVENTS_PCAP_H
#define SLUICE_EVENTS_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAP_COMMENT 160
#define PCAP_FRAME   1518 /* longest recorded part of a frame, including a VLAN tag */

struct events_pcap {
	int fd; /* -1: there is no file */
	const char *path;
	unsigned int most; /* largest number of packets to write in a second */
	uint64_t second;   /* second (CLOCK_REALTIME) to which `written` belongs */
	unsigned int written;
};

struct pcap_packet {
	uint64_t time_ns; /* CLOCK_REALTIME */
	const uint8_t *bytes;
	uint32_t length; /* recorded bytes */
	uint32_t size;	 /* length of the frame on the wire */
	uint16_t vlan_tci;
	uint16_t vlan_proto; /* EtherType of the tag in network byte order; 0: no tag was removed */
	bool is_sent;	     /* true: the device sends the packet; false: the device received it */
	char comment[PCAP_COMMENT];
};

/* Creates the file. Returns 0, or a negative errno with an error. */
int events_pcap_open(const char *path, unsigned int most, struct events_pcap *ret);
void events_pcap_close(struct events_pcap *pcap);

/*
 * Writes a packet, unless `most` packets of this second are already written, or the packet is too
 * long. Returns 0, or a negative errno with an error.
 */
int events_pcap_write(struct events_pcap *pcap, const struct pcap_packet *packet);

#endif
