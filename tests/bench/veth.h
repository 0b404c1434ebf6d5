/* SPDX-License-Identifier: GPL-2.0 */
/* Real packets through Sluice and other limiters, side by side. */
#ifndef SLUICE_BENCH_VETH_H
#define SLUICE_BENCH_VETH_H

#include "bench.h"

/* Runs all of them, each on one CPU and on two. The caller frees `ret`. */
int veth_run(unsigned int rounds, struct veth_result **ret, size_t *ret_count);

void veth_report(const struct veth_result *results, size_t count);

#endif
