/* SPDX-License-Identifier: GPL-2.0 */
/* The gate that a resize or an upgrade makes beside the running one: its plan, its maps and rules, and its pins. */
#ifndef SLUICE_NEXT_GATE_H
#define SLUICE_NEXT_GATE_H

#include "gate/gate.h"
#include "gate/rulemap.h"
#include "rules/sizes.h"

struct resize_plan {
	struct gate_sizes sizes;
	bool fresh[GATE_MAPS];
	uint32_t *number;   /* of each policy: what it will be called; 0: it is not in force */
	uint32_t seen;	    /* no number from here on will be in use */
	uint32_t in_force;  /* policies */
	bool is_renumbered; /* the records that rules and buckets name are others then */
	struct rulemap_entry *rules; /* if their maps are fresh */
	unsigned int count;
};

/* Settles the rules, and plans. Refuses sizes in which they do not fit. plan: zeroed; to be freed in any case. */
enum status resize_plan_make(struct gate *gate, const struct gate_sizes *old,
			     const struct gate_sizes *new, struct resize_plan *plan);

/*
 * Plans a gate of this schema with the sizes of the old one, so that all rules fit. Does not settle
 * the rules: the next change in the new gate undoes one that was cut off.
 */
enum status resize_plan_upgrade(const struct gate *gate, struct resize_plan *plan);

void resize_plan_free(struct resize_plan *plan);

/* --- The gate ------------------------------------------------------------------------------- */

/*
 * Makes the maps, and copies policies and rules into them; also renumbers the rules of the plan
 * where policies get other numbers. `next` begins closed, and is to be closed in any case.
 */
enum status next_gate_make(const struct gate *gate, struct resize_plan *plan, struct gate *next);

/* --- Its pins ------------------------------------------------------------------------------- */

/* Each is given the running gate, which is locked. */

/* Pins `gate`, and the maps that are fresh. On failure next_remove() removes what is there. */
enum status next_pin(const struct gate *gate, const struct gate *next, const bool fresh[GATE_MAPS]);
enum status next_remove(const struct gate *gate);

/* Opens their directory. OK and a closed `ret`: there is none, as no resize was cut off. */
enum status next_open(const struct gate *gate, struct pins *ret);

/* Whether the old gate is the one still. */
bool next_is_prepared(const struct pins *pins);

/* Gives the pins their names; with that of `gate` the new gate begins. Goes on where that was cut off. */
enum status next_rename(const struct gate *gate);

#endif
