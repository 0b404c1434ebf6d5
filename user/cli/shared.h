/* SPDX-License-Identifier: GPL-2.0 */
/* What commands say of the process that shares a gate's limits (`sluice share`). */
#ifndef SLUICE_SHARED_H
#define SLUICE_SHARED_H

#include "rules/ruleset.h"
#include "share/share_state.h"

/* Who shares the limits, or why nobody does, in a line; nothing where none is to be shared. */
void shared_print(const struct gate *gate, const struct sharing *sharing);

/* Notes once for a gate that no process shares its limits, if limits of the rule are shared. */
void shared_note(const struct gate *gate, const struct rule *rule);

#endif
