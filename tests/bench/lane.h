/* SPDX-License-Identifier: GPL-2.0 */
/* What a packet generator and its BPF program share. */
#ifndef SLUICE_BENCH_LANE_H
#define SLUICE_BENCH_LANE_H

#include "vary.h"

/* The variables of generate.bpf.c. */
struct lane_state {
	struct vary vary;
	__u32 ifindex; /* of the device that sends */
	__u32 pad;
	volatile __u64 sent;
};

#endif
