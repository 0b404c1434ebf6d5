/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: the gate that a resize makes beside the running one: its plan, its maps,
 * its rules and its pins.
 */
#ifndef SLUICE_NEXT_GATE_H
#define SLUICE_NEXT_GATE_H

#include "gate/gate.h"
#include "gate/rulemap.h"
#include "rules/sizes.h"

struct resize_plan {
	struct gate_sizes sizes;
	bool fresh[GATE_MAPS];	     /* made for the next gate, which shares the others */
	uint32_t *number;	     /* the next number of each policy; 0: not in force */
	uint32_t seen;		     /* all numbers in use will be below this */
	uint32_t in_force;	     /* number of policies in force */
	bool is_renumbered;	     /* the records in rules and bucket entries change */
	struct rulemap_entry *rules; /* the rules, if their maps are fresh */
	unsigned int count;
};

/*
 * Settles the rules and plans a resize. Refuses sizes in which the rules do not fit. plan: zeroed,
 * and always to be freed.
 */
enum status resize_plan_make(struct gate *gate, const struct gate_sizes *old,
			     const struct gate_sizes *new, struct resize_plan *plan);

void resize_plan_free(struct resize_plan *plan);

/* --- Making the gate ------------------------------------------------------------------------ */

/*
 * Makes the maps, and copies policies and rules. If policies get other numbers, the plan's rules
 * are renumbered. `next` is closed at first, and always to be closed.
 */
enum status next_gate_make(const struct gate *gate, struct resize_plan *plan, struct gate *next);

/* --- Pins in next/ -------------------------------------------------------------------------- */

/* All functions take the running gate, which is locked. */

/* Pins `gate` and the fresh maps. After a failure next_remove() removes them. */
enum status next_pin(const struct gate *gate, const struct gate *next, const bool fresh[GATE_MAPS]);
enum status next_remove(const struct gate *gate);

/*
 * Opens the directory. OK and a closed `ret`: it does not exist, because no resize was interrupted.
 */
enum status next_open(const struct gate *gate, struct pins *ret);

/* Whether the old gate is still in force. */
bool next_is_prepared(const struct pins *pins);

/*
 * Moves the pins to the gate's directory. With that of `gate` the new gate begins. Continues an
 * interrupted move.
 */
enum status next_rename(const struct gate *gate);

#endif
