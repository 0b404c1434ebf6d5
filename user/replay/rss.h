/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: selects the CPU of a packet as receive side scaling of a NIC does: by the Toeplitz hash,
 * with the key of Microsoft's specification, of addresses, and of ports if the packet is TCP or UDP
 * and no fragment. A table of 128 entries maps the hash to CPUs in turn, as drivers set it up.
 */
#ifndef SLUICE_REPLAY_RSS_H
#define SLUICE_REPLAY_RSS_H

#include <stdint.h>

/* Returns the hash of an Ethernet frame, or 0 if it is not IP or its addresses were cut off. */
uint32_t rss_hash(const uint8_t *frame, uint32_t size);

/* Returns the index of the CPU for a hash, below `cpus`. */
unsigned int rss_cpu(uint32_t hash, unsigned int cpus);

#endif
