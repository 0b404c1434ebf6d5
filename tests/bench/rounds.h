/* SPDX-License-Identifier: GPL-2.0 */
/* BPF_PROG_TEST_RUN of the chosen cases, one after the other, again and again. */
#ifndef SLUICE_BENCH_ROUNDS_H
#define SLUICE_BENCH_ROUNDS_H

#include "bench.h"

/* A case's run takes so long in each round, whatever a packet costs. */
struct plan {
	unsigned int rounds;
	double run_ns;
	double warm_ns; /* before the first round: floods need time to be recognised */
};

/* `results`: one for each case. */
int cases_run(const struct plan *plan, struct result *results);

#endif
