/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: what the maps of a gate tell: counters, room, newcomers; and who shares its limits. */
#ifndef SLUICE_GATE_CHECKS_H
#define SLUICE_GATE_CHECKS_H

#include "doctor/finding.h"
#include "gate/gate.h"
#include "keep/lock_file.h"
#include "rules/ruleset.h"
#include "share/share_state.h"
#include "state/stats.h"
#include "state/table_fill.h"

/* Tells limits that observe, and have found what they would drop. set: the rules in force. */
void observes_check(const char *gate, const struct stats *stats, const struct ruleset *set,
		    struct findings *findings);

/* Tells a map that is nearly full. */
void room_check(const char *gate, enum gate_map map, const struct occupancy *occupancy,
		struct findings *findings);

/* Tells that the table of states has no room for all levels. */
void table_check(const char *gate, const struct table_fill *fill, struct findings *findings);

/*
 * Tells that policies have no budget for newcomers. count: how many; prefix: of the first. id:
 * FIND_FLOOD_PASSES or FIND_NO_BUDGET.
 */
void budget_tell(const char *gate, enum finding_id id, const struct sl_prefix *prefix,
		 unsigned int count, const struct ruleset *set, struct findings *findings);

/*
 * Tells limits that are to be shared and are not, or are divided. has_unit: systemd runs, and its
 * unit has a file for the gate.
 */
void sharing_check(const char *gate, const struct sharing *sharing, bool has_unit,
		   struct findings *findings);

/* Reports the lists of a kept gate whose files are bad. */
void lists_check(const char *gate, const struct lock_holder *keeper, struct findings *findings);

/* Reads and judges all of it. */
int gate_examine(const struct gate *gate, const struct ruleset *set, struct findings *findings);

#endif
