/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: makes the maps of a gate, chooses their sizes, and loads programs that use them. Maps and
 * programs are in the BPF object that this binary contains.
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

/*
 * Opens the embedded BPF object. Does not load it. If this fails, adds an error and returns NULL.
 */
struct bpf_object *object_open(void);
void object_close(struct bpf_object **object);

#define _cleanup_object_ _cleanup_(object_close)

struct bpf_map *object_map(const struct bpf_object *object, enum gate_map map);

/* --- Programs ------------------------------------------------------------------------------- */

/*
 * BPF programs that use a gate's maps. The kernel frees a program when its last fd and link are
 * closed.
 */
struct programs {
	int fd[HOOKS];
};

#define PROGRAMS_CLOSED ((struct programs){{-1, -1, -1}})

#define HOOK_BIT(hook) (1U << (hook))
#define HOOKS_ALL      (HOOK_BIT(HOOKS) - 1)

/*
 * Loads the programs of these hooks (bits), unless they are loaded already. If this fails, loads no
 * program.
 */
int programs_load(const struct gate *gate, unsigned int hooks, struct programs *programs);
void programs_close(struct programs *programs);

/*
 * Opens the object to load one of its programs with the gate's maps. The caller may change the
 * program, and loads the object. If this fails, adds an error and returns NULL.
 */
struct bpf_object *object_open_for(const struct gate *gate, const char *program);

/*
 * Loads the XDP program of modes chain and array. After a packet has passed, it calls the first
 * program in these slots of program array `array_fd`. has_frags: the programs of the array read
 * packets of several buffers. Returns an fd, or a negative errno and adds an error.
 */
int program_load_chain(const struct gate *gate, int array_fd, struct sl_chain slots,
		       bool has_frags);

/* --- Memory --------------------------------------------------------------------------------- */

/*
 * Returns the memory of a map with `entries` entries, in bytes. `info` is from the kernel, or has
 * the same fields set. If the kernel allocates all entries when it makes the map, uses
 * info->max_entries instead of `entries`.
 */
uint64_t map_memory(const struct bpf_map_info *info, uint32_t entries, unsigned int cpus);

/* Stores the size of one of the gate's maps in memory, in bytes: map_memory(). */
int gate_map_memory(const struct gate *gate, enum gate_map map, uint32_t entries, uint64_t *ret);

/* Formats a number of bytes, such as "58.7 MB". Uses GB from 10 GB on. */
#define MEMORY_TEXT 32
const char *memory_format(uint64_t bytes, char text[MEMORY_TEXT]);

/* --- Sizes ---------------------------------------------------------------------------------- */

struct gate_sizes gate_sizes_default(const struct machine *machine);

/* Reads the current sizes of an open gate. */
int gate_sizes_read(const struct gate *gate, struct gate_sizes *ret);

/*
 * Reads the sizes that a user specified. Sizes that were not specified are 0, because they grow
 * with the rules.
 */
int gate_sizes_read_stated(const struct gate *gate, struct gate_sizes *ret);

/* Returns a copy of `wanted` in which default sizes replace zeros. */
struct gate_sizes gate_sizes_complete(const struct gate_sizes *wanted,
				      const struct machine *machine);

/* Returns the parameters of the packet path for a gate of these sizes. */
struct sl_params gate_params(const struct gate_sizes *sizes, const struct machine *machine);

/* Sets the sizes of maps in an object that is not loaded yet. */
void gate_sizes_set(struct bpf_object *object, const struct gate_sizes *sizes,
		    const struct machine *machine);

/* --- Making --------------------------------------------------------------------------------- */

/*
 * Makes and pins the gate's maps. The caller must have the lock of the gate's directory. wanted:
 * sizes that the user specified, or 0 for a default size. gate_undo() removes the maps.
 */
int gate_make(struct gate *gate, const struct gate_sizes *wanted);

/*
 * Makes the next gate for a resize, with the specified sizes. It shares all maps with `gate` whose
 * number of entries does not change. All other maps are new and empty. The new map `gate` has the
 * state of the old map, and the ids of the next gate's maps. Pins nothing.
 */
int gate_make_next(const struct gate *gate, const struct gate_sizes *sizes, struct gate *ret);

/*
 * Makes a gate without pins. The kernel removes it when this process ends. Used by tests, and by
 * `sluice replay`.
 */
int gate_make_unpinned(struct gate *gate, const struct gate_sizes *sizes,
		       const struct machine *machine);

/* Removes the gate's pins if this command made the gate. Must be called after an error. */
void gate_undo(struct gate *gate);

#endif
