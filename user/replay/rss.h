/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: selects the CPU of a packet as receive side scaling (RSS) of a NIC does. The Toeplitz
 * hash uses the key of Microsoft's specification. Its input is the addresses and, for TCP and UDP
 * packets that are not fragments, the ports. A table of 128 entries maps the hash to CPUs in turn,
 * as drivers do by default.
 */
#ifndef SLUICE_REPLAY_RSS_H
#define SLUICE_REPLAY_RSS_H

#include <stdint.h>

/*
 * Returns the RSS hash of an Ethernet frame. Returns 0 if it is not IP, or its addresses were cut
 * off.
 */
uint32_t rss_hash(const uint8_t *frame, uint32_t size);

/* Returns the index of the CPU that RSS selects for a hash, below `cpus`. */
unsigned int rss_cpu(uint32_t hash, unsigned int cpus);

#endif
