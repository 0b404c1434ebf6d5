/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one source within its limit would cost on 64 CPUs, of which this machine need not have more
 * than one. Its limit is split for 64, and one CPU's share of its packets is sent, at their pace:
 * each change of the state is counted, which on 64 CPUs is a draw from a cache line that another
 * CPU has just written.
 */
#ifndef SLUICE_BENCH_MODEL_H
#define SLUICE_BENCH_MODEL_H

#include "base/error.h"

/* Counts, and prints the table. */
int model_run(void);

#endif
