/* SPDX-License-Identifier: GPL-2.0 */
/* The programs of bench.bpf.c. */
#ifndef SLUICE_BENCH_BEHIND_H
#define SLUICE_BENCH_BEHIND_H

#include <bpf/libbpf.h>

#include "bench.h"
#include "gate/gate.h"

/* Loads them, on maps of their own; NULL: it said why not. */
struct bpf_object *bench_load(void);

/* A program with a map for many sources. */
struct sized_map {
	const char *program;
	const char *name;
	enum bpf_map_type type;
	uint32_t value_size; /* 0: as in bench.bpf.c */
	uint32_t sources;
};

/* Loads them with such a map, and puts its program behind those that change a frame's source. */
struct bpf_object *bench_load_sized(const struct sized_map *map, int *ret_prog);

/* Counts the packets since the object was loaded whose source had no entry in the map. */
int bench_missed(const struct bpf_object *object, __u64 *ret);

/* Loads them with a program behind those that change a frame's source. */
struct bpf_object *bench_load_before(int prog);

int bench_program(const struct bpf_object *object, const char *name);

/* --- Known sources --------------------------------------------------------------------------- */

/*
 * Sends a packet from each source through the program behind those of `object`. sources: as of
 * sources_parse(), of IPv4 or by /64.
 */
int sources_walk(const struct bpf_object *object, const char *sources);

/*
 * Makes the sources known to the gate. At the pace of a benchmark they would count as a flood, so
 * for this moment the gate lets all new sources pass.
 */
int establish(struct gate *gate, const struct bpf_object *object, const char *sources);

#endif
