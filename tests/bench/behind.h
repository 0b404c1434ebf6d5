/* SPDX-License-Identifier: GPL-2.0 */
/* Loads the programs of bench.bpf.c, and makes sources known to them. */
#ifndef SLUICE_BENCH_BEHIND_H
#define SLUICE_BENCH_BEHIND_H

#include <bpf/libbpf.h>

#include "bench.h"
#include "gate/gate.h"

/* Loads the programs with new maps. Returns NULL and adds an error if they cannot be loaded. */
struct bpf_object *bench_load(void);

/* A program under test, and the type and size of its map if a case has many sources. */
struct sized_map {
	const char *program;
	const char *name;
	enum bpf_map_type type;
	uint32_t value_size; /* 0 means the size that bench.bpf.c specifies */
	uint32_t sources;
};

/* Loads the programs with this map. Its program runs after bench_vary4() or another sender. */
struct bpf_object *bench_load_sized(const struct sized_map *map, int *ret_prog);

/* Returns the number of packets since loading whose source had no entry in the map. */
int bench_missed(const struct bpf_object *object, __u64 *ret);

/* Loads the programs. `prog` runs after the programs that change the source of a frame. */
struct bpf_object *bench_load_before(int prog);

/* Returns the fd of a program by its name. */
int bench_program(const struct bpf_object *object, const char *name);

/* --- Known sources --------------------------------------------------------------------------- */

/*
 * Runs the program under test once for each source. sources: a text for sources_parse(), which
 * specifies IPv4 addresses or IPv6 /64s.
 */
int sources_walk(const struct bpf_object *object, const char *sources);

/*
 * Makes the sources known to the gate. The packets arrive so fast that the gate would detect a
 * flood, so the flood threshold is raised while this runs.
 */
int establish(struct gate *gate, const struct bpf_object *object, const char *sources);

#endif
