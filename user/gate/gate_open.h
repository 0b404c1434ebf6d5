/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: opens a gate from its pins. Each pin is checked to be the map that the programs use. */
#ifndef SLUICE_GATE_OPEN_H
#define SLUICE_GATE_OPEN_H

#include "gate/gate.h"

/* Opens a gate for reading. Refuses an incomplete gate and one of another schema. */
int gate_open(struct gate *gate, const char *name);

/*
 * Opens the gate whose `gate` is pinned in next/ of an open gate, with its other maps in either
 * directory. `ret` has no directories open.
 */
int gate_open_next(const struct gate *gate, struct gate *ret);

/* Locks the gate's directory without opening its maps: for detach. */
int gate_lock_only(struct gate *gate, const char *name);

/* Opens the maps in the gate's open directory. */
int gate_open_pins(struct gate *gate);

#endif
