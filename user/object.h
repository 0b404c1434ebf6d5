/* SPDX-License-Identifier: GPL-2.0 */
/* The BPF object that is embedded in this binary: what maps a gate has, and the programs. */
#ifndef SLUICE_OBJECT_H
#define SLUICE_OBJECT_H

#include <bpf/libbpf.h>

#include "gate.h"

/* Opens the object, not loaded; the caller closes it with bpf_object__close(). NULL: it said why not. */
struct bpf_object *object_open(void);

struct bpf_map *object_map(const struct bpf_object *object, enum gate_map map);

/* The programs of this binary on the gate's maps. They live as long as an fd, or a link, does. */
struct programs {
	int xdp;
	int tc;
};

#define PROGRAMS_CLOSED ((struct programs){-1, -1})

enum status programs_load(const struct gate *gate, struct programs *ret);
void programs_close(struct programs *programs);

#endif
