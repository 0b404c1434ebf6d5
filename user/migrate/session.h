/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A session of a command that changes a gate: it holds the lock, makes the gate where there is none, and repairs what
 * a command that was killed has left.
 */
#ifndef SLUICE_SESSION_H
#define SLUICE_SESSION_H

#include "gate/gate.h"
#include "rules/sizes.h"

/* Opens a gate to change it: as gate_open, and waits a short while for the lock. */
enum status gate_open_to_change(struct gate *gate, const char *name);

/* The same; one of an older schema is opened as gate_open_any does, to be carried over to this one. */
enum status gate_open_to_upgrade(struct gate *gate, const char *name);

/*
 * As gate_open_to_change, but makes the gate where there is none, with the sizes wanted (0: the default);
 * mounts bpffs where it is missing.
 */
enum status gate_open_or_make(struct gate *gate, const char *name, const struct gate_sizes *wanted);

#endif
