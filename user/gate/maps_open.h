/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: opens the pinned maps of a gate. Checks each map before its use, because the gate's owner
 * can replace a pin, and write any value to a map.
 */
#ifndef SLUICE_GATE_MAPS_OPEN_H
#define SLUICE_GATE_MAPS_OPEN_H

#include "gate/gate.h"

/*
 * Opens the maps in the gate's open directory. Returns an error if a pin is missing or belongs to
 * another gate, or if the schema differs from this version's schema.
 */
int gate_maps_open(struct gate *gate);

/*
 * Opens the next gate of an open gate during a resize. Its map `gate` is in next/. Each other map
 * is in next/ or in the gate's directory. `ret` gets the maps, but no directories.
 */
int gate_maps_open_next(const struct gate *gate, struct gate *ret);

#endif
