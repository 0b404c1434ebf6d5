/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: opens a gate to read or change it, and remakes a running gate with maps of other sizes.
 * A command that changes a gate locks it first, and finishes or undoes what a killed command began.
 */
#ifndef SLUICE_OPEN_H
#define SLUICE_OPEN_H

#include "gate/gate.h"
#include "rules/ruleset.h"

enum gate_access {
	GATE_READ,     /* open the maps without a lock */
	GATE_CHANGE,   /* lock and recover the gate; fail if the gate is on trial */
	GATE_ON_TRIAL, /* like GATE_CHANGE, but accept a gate on trial */
	GATE_MAKE,     /* like GATE_CHANGE, but mount bpffs and make the gate if they are missing */
	GATE_LOCK_ONLY, /* lock the gate's directory, and open no map */
	GATE_NO_MAPS,	/* open the gate's directory if it exists, without a lock; open no map */
};

/*
 * Opens a gate. Waits up to 3 s for its lock. sizes: for GATE_MAKE, the sizes that the user
 * specified, and 0 for default sizes. If this call made the gate and then fails, it removes the
 * gate. After an error, the caller may only close `gate`.
 */
int gate_open(struct gate *gate, const char *name, enum gate_access access,
	      const struct gate_sizes *sizes);

/*
 * Changes the sizes of a gate that is open for a change. Replaces each map whose size differs, and
 * switches all devices to programs that use the new maps. Every packet is judged meanwhile. Keeps
 * rules and counters. If the map of states or buckets is new, it is empty, and a notice reports
 * this. Fails if the rules in force do not fit. After a failure, the gate is unchanged, or a notice
 * reports that the next command will finish the change.
 */
int remake(struct gate *gate, const struct gate_sizes *sizes);

#endif
