/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: records the last command that changed the rules, in /run/sluice/GATE.change (mode 0640,
 * owner of /run/sluice, group of the gate). Does not write the file if /run/sluice does not exist.
 * Does not trust the file if another user could have written it.
 */
#ifndef SLUICE_GATE_CHANGED_H
#define SLUICE_GATE_CHANGED_H

#include <sys/types.h>

#include "gate/gate.h"

#define CHANGE_COMMAND 256

struct gate_change {
	uint32_t generation;	      /* generation of the rules after the command; 0 if unknown */
	uid_t user;		      /* login uid of the process, or its real uid if it has none */
	char command[CHANGE_COMMAND]; /* command line; may be truncated */
};

/*
 * Records the command of this process as the command that makes `generation`. Called just before
 * the rules change, so that a process that sees the generation finds the record. Ignores failures.
 */
void gate_change_record(const struct gate *gate, uint32_t generation);

/* Reads the record of the last change. If there is no valid record, stores generation 0. */
void gate_change_read(const struct gate *gate, struct gate_change *ret);

/* Removes the record of the last change. Called when the gate is removed. */
void gate_change_forget(const char *gate);

#endif
