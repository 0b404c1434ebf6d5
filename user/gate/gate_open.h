/* SPDX-License-Identifier: GPL-2.0 */
/* Opening a gate by its pins, each of which is checked to be the very map that the programs use. */
#ifndef SLUICE_GATE_OPEN_H
#define SLUICE_GATE_OPEN_H

#include "gate/gate.h"

/* Opens a gate to read it. Refuses one that is incomplete or of another schema. */
enum status gate_open(struct gate *gate, const char *name);

/*
 * Opens a gate to read its rules, sizes and counters: one of an older schema that this version knows, too. That is
 * locked, as what is converted does not follow a change of another command.
 */
enum status gate_open_any(struct gate *gate, const char *name);

/* Only locks the gate's directory, whatever is in it: for detach. */
enum status gate_lock_only(struct gate *gate, const char *name);

/* Opens what is pinned in the gate's directory, which is open, whatever the schema. */
enum status gate_open_pins(struct gate *gate);

/* Refuses a gate of an older schema: for commands that need this version's layouts. */
enum status gate_refuse_old(const struct gate *gate);

#endif
