/* SPDX-License-Identifier: GPL-2.0 */
/* What commands print of the process that shares a gate's limits (`sluice share`). */
#ifndef SLUICE_SHARED_H
#define SLUICE_SHARED_H

#include "rules/ruleset.h"
#include "sharing/share_state.h"

/*
 * Prints what shares the limits of a gate, or why they are not shared. JSON: "has_shared_limits",
 * "shared_divided_by", "shared_by" (the process; null: there is none) and "shared" (what it
 * reports; null: it reports nothing).
 */
void print_sharing(const struct gate *gate);

/* Notes once for a gate that no process shares its limits, if limits of the rule are shared. */
void shared_note(const struct gate *gate, const struct rule *rule);

#endif
