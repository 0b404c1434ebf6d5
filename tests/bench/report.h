/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SLUICE_BENCH_REPORT_H
#define SLUICE_BENCH_REPORT_H

#include "bench.h"

/* The table of the cases that were run. */
void report_cases(const struct result *results);

/* All of it as JSON, at `path`. */
int report_json(const char *path, const struct result *results, const struct veth_result *veth,
		size_t veth_count);

#endif
