/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: the BPF object embedded in this binary: the maps of a gate, and the programs. */
#ifndef SLUICE_OBJECT_H
#define SLUICE_OBJECT_H

#include <stdint.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "gate/gate.h"
#include "rules/devices.h"

/* Opens the object without loading it. Returns NULL and adds an error if that fails. */
struct bpf_object *object_open(void);
void object_close(struct bpf_object **object);

#define _cleanup_object_ _cleanup_(object_close)

struct bpf_map *object_map(const struct bpf_object *object, enum gate_map map);

/*
 * The programs of this binary on a gate's maps. They live as long as an fd or a link refers to
 * them.
 */
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

#endif
