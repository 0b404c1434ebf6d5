/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: the session of a command that changes a gate: it locks the gate, makes a missing one,
 * and repairs what a killed command has left.
 */
#ifndef SLUICE_SESSION_H
#define SLUICE_SESSION_H

#include "gate/gate.h"
#include "rules/sizes.h"

/*
 * Opens a gate for a change. Waits up to 3 seconds for its lock. Refuses a gate whose rules are on
 * trial (gate/trial.h).
 */
int gate_open_to_change(struct gate *gate, const char *name);

/* The same, but accepts a gate on trial. */
int gate_open_to_end_trial(struct gate *gate, const char *name);

/*
 * gate_open_to_change() that makes a missing gate, and mounts bpffs if it is not mounted. wanted:
 * the stated sizes; 0 is the default.
 */
int gate_open_or_make(struct gate *gate, const char *name, const struct gate_sizes *wanted);

#endif
