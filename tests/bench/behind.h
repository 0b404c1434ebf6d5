/* SPDX-License-Identifier: GPL-2.0 */
/* The programs of bench.bpf.c. */
#ifndef SLUICE_BENCH_BEHIND_H
#define SLUICE_BENCH_BEHIND_H

#include <bpf/libbpf.h>

#include "bench.h"
#include "lookups.h"

/* Loads them, on maps of their own; NULL: it said why not. */
struct bpf_object *bench_load(void);

/* The map of a bare lookup. */
struct lookup_map {
	enum bpf_map_type type;
	uint32_t value_size;
	uint32_t sources;
};

/* Loads them with such a map, behind those that change a frame's source. */
struct bpf_object *bench_load_lookup(const struct lookup_map *map, int *ret_prog);

/* How often its lookups found their source, and how often not, since it was loaded. */
enum status bench_lookup_counts(const struct bpf_object *object, struct lookup_counts *ret);

/* Loads them with a program behind those that change a frame's source. */
struct bpf_object *bench_load_before(int prog);

int bench_program(const struct bpf_object *object, const char *name);

#endif
