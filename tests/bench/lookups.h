/* SPDX-License-Identifier: GPL-2.0 */
/* What the bare lookups of bench.bpf.c share with the benchmarks. */
#ifndef SLUICE_BENCH_LOOKUPS_H
#define SLUICE_BENCH_LOOKUPS_H

#include "sluice.h"

#define LOOKUP_SOURCES_MAX (1 << 20)

/* Of a shared map: a cache line. Of a per-CPU map: more, as counters and credit need it. */
#define LOOKUP_VALUE	 64
#define LOOKUP_VALUE_MAX 168

/* The variables of bench.bpf.c. */
struct lookup_counts {
	__u64 found;
	__u64 missed;
};

#endif
