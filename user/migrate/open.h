/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: opens a gate to read or to change it, and remakes a running gate with maps of other
 * sizes. A command that changes a gate locks it first, and finishes or undoes what a killed command
 * began.
 */
#ifndef SLUICE_OPEN_H
#define SLUICE_OPEN_H

#include "gate/gate.h"
#include "rules/ruleset.h"

enum gate_access {
	GATE_READ,	/* open the maps without a lock */
	GATE_CHANGE,	/* lock and recover the gate; return an error if the gate is on trial */
	GATE_ON_TRIAL,	/* like GATE_CHANGE, but a gate on trial is accepted */
	GATE_MAKE,	/* like GATE_CHANGE, but a missing gate is made, and bpffs mounted */
	GATE_LOCK_ONLY, /* lock the directory of the gate, and open no map */
	GATE_NO_MAPS, /* open the gate's directory without a lock, if it exists, and open no map */
};

/*
 * Opens a gate. Waits up to 3 seconds for its lock. `sizes` is for GATE_MAKE: the sizes that the
 * user specified, and 0 for default sizes. After an error `gate` can only be closed, and a gate
 * that this call made is removed.
 */
int gate_open(struct gate *gate, const char *name, enum gate_access access,
	      const struct gate_sizes *sizes);

/*
 * Changes the sizes of a gate that is open for a change. Makes the maps whose sizes differ, keeps
 * all other maps, and switches all devices to programs that use them. Every packet is judged
 * meanwhile. Rules and counters stay. If the maps of states or buckets are new, they are empty, and
 * a notice reports it. Returns an error if the rules in force do not fit. After an error the gate
 * is unchanged, or a notice reports that the next command finishes the remake.
 */
int remake(struct gate *gate, const struct gate_sizes *sizes);

#endif
