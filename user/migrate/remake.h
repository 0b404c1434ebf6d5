/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: remakes a running gate with maps of other sizes, because its rules grow or a file states
 * other sizes.
 */
#ifndef SLUICE_REMAKE_H
#define SLUICE_REMAKE_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/*
 * Gives the gate these sizes: makes the maps that differ, keeps the others, and switches all
 * devices to programs on them. No packet passes unjudged. Rules and counters stay. The state of
 * sources stays if its maps do; otherwise it is reset, which is reported. Refuses sizes in which
 * the rules in force do not fit. The gate is open for a change. After a failure it is unchanged, or
 * a message says that the next command finishes the remake.
 */
int remake(struct gate *gate, const struct gate_sizes *sizes);

/*
 * Finishes an interrupted remake if its maps were complete, and undoes it otherwise. The gate is
 * open for a change.
 */
int remake_recover(struct gate *gate);

/*
 * Remakes the gate for a change of rules that finds no room (gate_grow_fn), and reports which sizes
 * grew. Refuses if the process lacks a capability for that.
 */
int remake_grow(struct gate *gate, const struct gate_sizes *sizes);

#endif
