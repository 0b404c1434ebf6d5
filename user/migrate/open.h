/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: opens a gate, to read it or to change it, and remakes a running gate with maps of other
 * sizes. A command that changes a gate locks it, and repairs what a killed command left.
 */
#ifndef SLUICE_OPEN_H
#define SLUICE_OPEN_H

#include "gate/gate.h"
#include "rules/ruleset.h"

enum gate_access {
	GATE_READ,	/* no lock */
	GATE_CHANGE,	/* lock and recover; refuse a gate on trial */
	GATE_ON_TRIAL,	/* GATE_CHANGE that accepts a gate on trial */
	GATE_MAKE,	/* GATE_CHANGE that makes a missing gate, and mounts bpffs */
	GATE_LOCK_ONLY, /* lock the directory, and open no map */
	GATE_NO_MAPS,	/* open the directory, which may be missing, without lock and maps */
};

/*
 * Opens a gate. Waits up to 3 seconds for its lock. sizes: those that a user states, for GATE_MAKE;
 * 0: the default. After a failure `gate` can only be closed; a gate that was made is removed.
 */
int gate_open(struct gate *gate, const char *name, enum gate_access access,
	      const struct gate_sizes *sizes);

/*
 * Gives the gate these sizes: makes the maps that differ, keeps the others, and switches all
 * devices to programs on them. No packet passes unjudged. Rules and counters stay. The state of
 * sources stays if its maps do; otherwise it is reset, which is reported. Refuses sizes in which
 * the rules in force do not fit. The gate is open for a change. After a failure it is unchanged, or
 * a notice reports that the next command finishes the remake.
 */
int remake(struct gate *gate, const struct gate_sizes *sizes);

#endif
