/* SPDX-License-Identifier: GPL-2.0 */
/* Cli: prints the processes that keep a gate and share its limits. */
#ifndef SLUICE_PROCESSES_H
#define SLUICE_PROCESSES_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/*
 * Prints the process that keeps a gate. JSON: "kept": {"pid", "file"}, each null if it is not
 * known; null: the gate is not kept.
 */
void print_kept(const char *gate);

enum kept_change {
	KEPT_ATTACHMENTS,
	KEPT_LIMITS,
	KEPT_FILE, /* `file` was applied */
};

/* Notes what becomes of a change by command if the gate is kept as another file than `file`. */
void kept_note(const char *gate, enum kept_change change, const char *file);

/* Removes what processes that were killed left of a gate that is gone. */
void kept_forget(const char *gate);

/*
 * Prints what shares the limits of a gate, or why they are not shared. JSON: "has_shared_limits",
 * "shared_divided_by", "shared_by" (the process; null: there is none) and "shared" (what it
 * reports; null: it reports nothing).
 */
void print_sharing(const struct gate *gate);

/* Notes once for a gate that no process shares its limits, if limits of the rule are shared. */
void shared_note(const struct gate *gate, const struct rule *rule);

#endif
