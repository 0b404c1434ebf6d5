/* SPDX-License-Identifier: GPL-2.0 */
/* Loads the programs of bench.bpf.c, and makes sources known to them. */
#ifndef SLUICE_BENCH_BEHIND_H
#define SLUICE_BENCH_BEHIND_H

#include <bpf/libbpf.h>

#include "bench.h"
#include "gate/gate.h"

/* Loads the programs with new maps. Returns NULL, with an error, if that fails. */
struct bpf_object *bench_load(void);

/* A program, and the type and size of its map for many sources. */
struct sized_map {
	const char *program;
	const char *name;
	enum bpf_map_type type;
	uint32_t value_size; /* 0 means the size that bench.bpf.c specifies */
	uint32_t sources;
};

/* Loads the programs with this map. The map's program runs after bench_vary4() and so on. */
struct bpf_object *bench_load_sized(const struct sized_map *map, int *ret_prog);

/* Returns how many packets since the load came from a source without an entry in the map. */
int bench_missed(const struct bpf_object *object, __u64 *ret);

/* Loads the programs. `prog` runs after bench_vary4() and so on have changed a frame's source. */
struct bpf_object *bench_load_before(int prog);

/* Returns the fd of a program by its name. */
int bench_program(const struct bpf_object *object, const char *name);

/* --- Known sources --------------------------------------------------------------------------- */

/*
 * Runs the program under test once for each source. sources: a text for sources_parse(), with
 * addresses of IPv4 or with /64s of IPv6.
 */
int sources_walk(const struct bpf_object *object, const char *sources);

/*
 * Makes the sources known to the gate. A benchmark sends so fast that the gate would detect a
 * flood, so the flood threshold is raised meanwhile.
 */
int establish(struct gate *gate, const struct bpf_object *object, const char *sources);

#endif
