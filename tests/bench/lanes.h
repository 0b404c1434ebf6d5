/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sends real packets over lanes. A lane is a veth pair and a CPU, which sends packets into one end
 * and receives them from the other. The sending and the receiving ends are in two network
 * namespaces, which scripts/bench makes and removes.
 */
#ifndef SLUICE_BENCH_LANES_H
#define SLUICE_BENCH_LANES_H

#include "bench.h"
#include "run.h"

#define LANES_MAX RUN_CPUS

/* Prefix of the names of receiving devices, in0 and in1. */
#define LANE_DEVICE "in"

/*
 * Enters the receiving namespace for the rest of the process, and loads a generator for each lane.
 */
int lanes_make(unsigned int lanes);
void lanes_free(void);

/* Attaches an XDP program of bench.bpf.c to all receiving devices, or detaches it if it is NULL. */
int lanes_attach(const char *program);

/* Returns how many packets bench_drop() has dropped since the last call. */
uint64_t lanes_take_dropped(void);

/* Packets that all lanes sent. */
struct sent {
	double mpps;	  /* rate in Mpps while all lanes were sending */
	uint64_t packets; /* total */
};

/* Sends packets from random sources for `ns` on the first `count` lanes at the same time. */
int lanes_send(unsigned int count, const char *sources, uint64_t ns, struct sent *ret);

/*
 * Sends one packet from each IPv4 source, in order. Each lane sends an equal part, a power of two.
 */
int lanes_walk(unsigned int count, const char *sources, uint64_t *ret_packets);

#endif
