/* SPDX-License-Identifier: GPL-2.0 */
/* The programs of bench.bpf.c. */
#ifndef SLUICE_BENCH_BEHIND_H
#define SLUICE_BENCH_BEHIND_H

#include <bpf/libbpf.h>

#include "bench.h"

/* Loads them, on maps of their own; NULL: it said why not. */
struct bpf_object *bench_load(void);

/* The same, with a program behind those that change a frame's source. */
struct bpf_object *bench_load_before(int prog);

int bench_program(const struct bpf_object *object, const char *name);

#endif
