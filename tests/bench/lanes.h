/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sends real packets over lanes. A lane is a veth pair and a CPU. The CPU sends packets into one
 * end of the pair and receives them from the other end. scripts/bench makes a network namespace for
 * each side.
 */
#ifndef SLUICE_BENCH_LANES_H
#define SLUICE_BENCH_LANES_H

#include "bench.h"
#include "run.h"

#define LANES_MAX RUN_CPUS

/* The names of the receiving devices begin with this prefix: in0, in1. */
#define LANE_DEVICE "in"

/* Enters the network namespace of the receiving ends, and loads a generator for each lane. */
int lanes_make(unsigned int lanes);
void lanes_free(void);

/* Attaches an XDP program of bench.bpf.c to all receiving devices; NULL detaches it. */
int lanes_attach(const char *program);

/* Returns how many packets bench_drop() has dropped since the last call. */
uint64_t lanes_take_dropped(void);

/* Packets that lanes have sent, and their rate. */
struct sent {
	double mpps;	  /* rate while all lanes sent */
	uint64_t packets; /* sent by all lanes */
};

/*
 * Sends packets from random sources for `ns` nanoseconds. The first `count` lanes send at the same
 * time.
 */
int lanes_send(unsigned int count, const char *sources, uint64_t ns, struct sent *ret);

/*
 * Sends one packet from each IPv4 source. The lanes send equal parts, whose size is a power of two.
 */
int lanes_walk(unsigned int count, const char *sources, uint64_t *ret_packets);

#endif
