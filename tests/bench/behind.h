/* SPDX-License-Identifier: GPL-2.0 */
/* Loads the programs of bench.bpf.c. Makes gates add a state for each source. */
#ifndef SLUICE_BENCH_BEHIND_H
#define SLUICE_BENCH_BEHIND_H

#include <bpf/libbpf.h>

#include "bench.h"
#include "gate/gate.h"

/* Loads the programs of bench.bpf.c with new maps. On failure, adds an error and returns NULL. */
struct bpf_object *bench_load(void);

/* A BPF program, and the map that it uses. */
struct sized_map {
	const char *program;
	const char *name;
	enum bpf_map_type type;
	uint32_t value_size; /* bytes of a value; 0: as in bench.bpf.c */
	uint32_t sources;
};

/*
 * Loads bench.bpf.c with this map. The programs that change the source of a frame then call
 * map->program.
 */
struct bpf_object *bench_load_sized(const struct sized_map *map, int *ret_prog);

/* Returns how many packets, since the programs were loaded, had a source without an entry. */
int bench_missed(const struct bpf_object *object, __u64 *ret);

/* Loads bench.bpf.c. Its programs that change the source of a frame then call `prog`. */
struct bpf_object *bench_load_before(int prog);

int bench_program(const struct bpf_object *object, const char *name);

/* --- Known sources --------------------------------------------------------------------------- */

/*
 * Sends one packet of each source in `sources`, a text for sources_parse(): each IPv4 address, or
 * one address of each IPv6 /64.
 */
int sources_walk(const struct bpf_object *object, const char *sources);

/*
 * Sends a packet of each source, so that each source gets a state. Raises the flood threshold until
 * the end, so that the gate does not treat these packets as a flood.
 */
int establish(struct gate *gate, const struct bpf_object *object, const char *sources);

#endif
