/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: makes the maps of a gate, and chooses their sizes. */
#ifndef SLUICE_GATE_MAKE_H
#define SLUICE_GATE_MAKE_H

#include "gate/gate.h"
#include "rules/ruleset.h"

struct bpf_object;

struct gate_sizes gate_sizes_default(const struct machine *machine);

/* Reads the sizes of an open gate. */
int gate_sizes_read(const struct gate *gate, struct gate_sizes *ret);

/* Reads the sizes that a user stated. The others, which grow with the rules, are 0. */
int gate_sizes_read_stated(const struct gate *gate, struct gate_sizes *ret);

/* Returns the wanted sizes, with defaults for those that are 0. */
struct gate_sizes gate_sizes_complete(const struct gate_sizes *wanted,
				      const struct machine *machine);

/* Returns the parameters of admission for a gate of these sizes. */
struct sl_params gate_params(const struct gate_sizes *sizes, const struct machine *machine);

/* Sets the sizes of the maps of an object that is not loaded. */
void gate_sizes_set(struct bpf_object *object, const struct gate_sizes *sizes,
		    const struct machine *machine);

/*
 * Makes and pins the gate's maps; gate_undo() removes them. The gate's directory is locked. wanted:
 * the sizes that a user states; 0: the default.
 */
int gate_make(struct gate *gate, const struct gate_sizes *wanted);

/*
 * Makes a gate of these sizes that shares the maps of another gate whose number of entries stays.
 * The other maps are new and empty, except `gate`, which has the state of the other gate and the
 * ids of the maps. Nothing is pinned.
 */
int gate_make_next(const struct gate *gate, const struct gate_sizes *sizes, struct gate *ret);

/* Makes a gate of unpinned maps, for tests. */
int gate_make_unpinned(struct gate *gate, const struct gate_sizes *sizes,
		       const struct machine *machine);

/* Removes the gate if this command made it, after a failure. */
void gate_undo(struct gate *gate);

#endif
