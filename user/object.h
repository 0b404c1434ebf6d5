/* SPDX-License-Identifier: GPL-2.0 */
/* The BPF object that is embedded in this binary: what maps a gate has, and the programs. */
#ifndef SLUICE_OBJECT_H
#define SLUICE_OBJECT_H

#include <bpf/libbpf.h>

#include "gate.h"
#include "hook.h"

/* Opens the object, not loaded; the caller closes it with bpf_object__close(). NULL: it said why not. */
struct bpf_object *object_open(void);

struct bpf_map *object_map(const struct bpf_object *object, enum gate_map map);

/* The programs of this binary on the gate's maps. They live as long as an fd, or a link, does. */
struct programs {
	int fd[HOOKS];
};

#define PROGRAMS_CLOSED ((struct programs){{-1, -1, -1}})

enum status programs_load(const struct gate *gate, struct programs *ret);
void programs_close(struct programs *programs);

/* The programs of bpf/carry.h, on the maps of the gate that is carried to. */
struct carriers {
	int ledger;
	int counters;
};

#define CARRIERS_CLOSED ((struct carriers){-1, -1})

enum status carriers_load(const struct gate *gate, struct carriers *ret);
void carriers_close(struct carriers *carriers);

#endif
