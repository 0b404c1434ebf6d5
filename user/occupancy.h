/* SPDX-License-Identifier: GPL-2.0 */
/* How full the maps of a gate are. */
#ifndef SLUICE_OCCUPANCY_H
#define SLUICE_OCCUPANCY_H

#include <stdint.h>

#include "gate.h"

struct occupancy {
	uint32_t max_entries; /* of maps by policy: policies that have limits */
	uint32_t entries;
	bool counted; /* else counting would take too long: the kernel keeps no count to read */
};

/* The entries that a map has room for: cheap. */
enum status map_max_entries(const struct gate *gate, enum gate_map map, uint32_t *ret);

/* That, and how many there are: walks the map where the gate does not know. */
enum status occupancy_read(const struct gate *gate, enum gate_map map, struct occupancy *ret);

#endif
