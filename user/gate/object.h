/* SPDX-License-Identifier: GPL-2.0 */
/* The BPF object that is embedded in this binary: what maps a gate has, and the programs. */
#ifndef SLUICE_OBJECT_H
#define SLUICE_OBJECT_H

#include <stdint.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "gate/gate.h"

/* Opens the object, not loaded; the caller closes it with bpf_object__close(). NULL: it said why not. */
struct bpf_object *object_open(void);

struct bpf_map *object_map(const struct bpf_object *object, enum gate_map map);

enum hook {
	HOOK_XDP,
	HOOK_INGRESS,
	HOOK_EGRESS,
	HOOKS,
};

/* The programs of this binary on the gate's maps. They live as long as an fd, or a link, does. */
struct programs {
	int fd[HOOKS];
};

#define PROGRAMS_CLOSED ((struct programs){{-1, -1, -1}})

enum status programs_load(const struct gate *gate, struct programs *ret);
void programs_close(struct programs *programs);

/* The programs of bpf/carry_programs.h, on the maps of the gate that is carried to. */
struct carriers {
	int ledger;
	int counters;
};

#define CARRIERS_CLOSED ((struct carriers){-1, -1})

enum status carriers_load(const struct gate *gate, struct carriers *ret);
void carriers_close(struct carriers *carriers);

/* --- Memory --------------------------------------------------------------------------------- */

/*
 * Bytes of a map that holds `entries`; what is set aside when it is made counts in full. info: as the kernel tells it.
 */
uint64_t map_memory(const struct bpf_map_info *info, uint32_t entries, unsigned int cpus);

/* The same for a map of a gate. */
enum status gate_map_memory(const struct gate *gate, enum gate_map map, uint32_t entries,
			    uint64_t *ret);

/* What the machine can give without taking it from others, in bytes: the kernel's own estimate. */
enum status memory_available(uint64_t *ret);

/* "58.7 MB"; from 10 GB on in these. */
#define MEMORY_TEXT 32
const char *memory_format(uint64_t bytes, char text[MEMORY_TEXT]);

#endif
