/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: opens the maps of a gate from its pins. Each pin is checked to be the map that it names. */
#ifndef SLUICE_GATE_MAPS_H
#define SLUICE_GATE_MAPS_H

#include "gate/gate.h"

/*
 * Opens the maps in the gate's open directory. Refuses an incomplete gate and a gate of another
 * schema.
 */
int gate_maps_open(struct gate *gate);

/*
 * Opens the gate whose `gate` is pinned in next/ of an open gate, with its other maps in either
 * directory. `ret` has no directories open.
 */
int gate_maps_open_next(const struct gate *gate, struct gate *ret);

#endif
