/* SPDX-License-Identifier: GPL-2.0 */
/* What gate.c, gate_make.c and gate_sizes.c share, and nobody else needs. */
#ifndef SLUICE_GATE_PARTS_H
#define SLUICE_GATE_PARTS_H

#include "gate.h"

struct bpf_object;

/* A closed gate of that name, on this machine. */
enum status gate_begin(struct gate *gate, const char *name);

/* Maps the memory of the map `gate`, and of those that hold rules and are arrays. They are open. */
enum status gate_map_state(struct gate *gate);
enum status gate_map_rules(struct gate *gate);

/* The id of a map; 0: it is none. */
uint32_t gate_map_id(int fd);

/* How many entries a map has room for. */
enum status gate_map_size(const struct gate *gate, enum gate_map map, uint32_t *ret);

/* The sizes wanted, with the default for those that are 0. */
struct gate_sizes gate_sizes_complete(const struct gate_sizes *wanted,
				      const struct machine *machine);

/* How a gate of these sizes meets newcomers; the secret is `secret`. */
struct sl_meeting gate_meeting(const struct gate_sizes *sizes, const struct machine *machine,
			       const __u64 secret[SL_SECRETS]);

/* Gives the maps of an object, not loaded, these sizes. */
void gate_sizes_set(struct bpf_object *object, const struct gate_sizes *sizes,
		    const struct machine *machine);

/* Makes the gate's maps and pins them; gate_undo() removes them. The gate's directory is locked. */
enum status gate_make(struct gate *gate, struct bpf_object *object,
		      const struct gate_sizes *wanted);

#endif
