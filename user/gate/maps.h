/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the BPF object embedded in this binary. Loads its programs on a gate's maps, chooses the
 * sizes of maps, makes them, and opens them from their pins.
 */
#ifndef SLUICE_GATE_MAPS_H
#define SLUICE_GATE_MAPS_H

#include <stdint.h>

#include "gate/gate.h"
#include "rules/devices.h"
#include "rules/ruleset.h"

struct bpf_map;
struct bpf_map_info;
struct bpf_object;

/* Opens the object without loading it. Returns NULL and adds an error if that fails. */
struct bpf_object *object_open(void);
void object_close(struct bpf_object **object);

#define _cleanup_object_ _cleanup_(object_close)

struct bpf_map *object_map(const struct bpf_object *object, enum gate_map map);

/* --- Programs ------------------------------------------------------------------------------- */

/* Programs on a gate's maps. They live as long as an fd or a link refers to them. */
struct programs {
	int fd[HOOKS];
};

#define PROGRAMS_CLOSED ((struct programs){{-1, -1, -1}})

#define HOOK_BIT(hook) (1U << (hook))
#define HOOKS_ALL      (HOOK_BIT(HOOKS) - 1)

/* Loads the programs of those hooks, as bits, that are not loaded yet. A failure loads none. */
int programs_load(const struct gate *gate, unsigned int hooks, struct programs *programs);
void programs_close(struct programs *programs);

/* --- Memory --------------------------------------------------------------------------------- */

/*
 * Returns the bytes of a map with these entries. Entries allocated when the map is made count in
 * full. info: from the kernel, or with the same fields set.
 */
uint64_t map_memory(const struct bpf_map_info *info, uint32_t entries, unsigned int cpus);

/* map_memory() for a map of an open gate. */
int gate_map_memory(const struct gate *gate, enum gate_map map, uint32_t entries, uint64_t *ret);

/* Formats bytes, such as "58.7 MB"; in GB from 10 GB on. */
#define MEMORY_TEXT 32
const char *memory_format(uint64_t bytes, char text[MEMORY_TEXT]);

/* --- Sizes ---------------------------------------------------------------------------------- */

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

/* --- Making --------------------------------------------------------------------------------- */

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

/* --- Opening -------------------------------------------------------------------------------- */

/*
 * Opens the maps in the gate's open directory. Checks that each pin is the map that it names.
 * Refuses an incomplete gate and a gate of another schema.
 */
int gate_maps_open(struct gate *gate);

/*
 * Opens the gate whose `gate` is pinned in next/ of an open gate, with its other maps in either
 * directory. `ret` has no directories open.
 */
int gate_maps_open_next(const struct gate *gate, struct gate *ret);

#endif
