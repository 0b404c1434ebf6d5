/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: all values of an array map in memory. Mapped, so that packets go on to change what is read;
 * or a copy, for a reader that may not map it (struct gate: copied).
 */
#ifndef SLUICE_ARRAY_VIEW_H
#define SLUICE_ARRAY_VIEW_H

#include "gate/gate.h"

struct array_view {
	void *values;
	uint32_t count;
	uint32_t value_size;
	bool is_copied;
};

#define ARRAY_VIEW_CLOSED ((struct array_view){0})

/* Opens a map whose flags have BPF_F_MMAPABLE. value_size: a multiple of 8. */
int array_view_open(const struct gate *gate, enum gate_map map, uint32_t value_size,
		    struct array_view *ret);
void array_view_close(struct array_view *view);

/*
 * Copies one value of the map; view NULL: by a call of the kernel. Returns 0, or a negative errno.
 */
int array_value_read(const struct gate *gate, enum gate_map map, const struct array_view *view,
		     uint32_t index, void *ret);

#endif
