/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Real packets: a veth pair for each CPU. What is sent by a CPU into one end is received at the
 * other by the same CPU. The sending ends are in one network namespace, the receiving ones in
 * another, which scripts/bench has made and will remove.
 */
#ifndef SLUICE_BENCH_LANES_H
#define SLUICE_BENCH_LANES_H

#include "bench.h"
#include "run.h"

#define LANES_MAX RUN_CPUS

/* Devices that receive: the first, and the second where there is one. */
#define LANE_DEVICE "in"

/* Enters the receiving namespace for good, and loads a generator for each lane. */
int lanes_make(unsigned int lanes);
void lanes_free(void);

/* The XDP program of bench.bpf.c of that name on all receiving devices; NULL: none. */
int lanes_attach(const char *program);

/* How many packets bench_drop has dropped since this was last asked. */
uint64_t lanes_take_dropped(void);

/* What was sent by all lanes: in a microsecond, while all of them were sending; and altogether. */
struct sent {
	double mpps;
	uint64_t packets;
};

/* Sends packets, from sources within a prefix, on the first so many lanes at once, for so long. */
int lanes_send(unsigned int count, const char *sources, uint64_t ns, struct sent *ret);

/*
 * Sends one packet from each source of IPv4, in order: each lane its part of them, a power of two.
 */
int lanes_walk(unsigned int count, const char *sources, uint64_t *ret_packets);

#endif
