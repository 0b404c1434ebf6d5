/* SPDX-License-Identifier: GPL-2.0 */
/* What a resize comes to: which maps are made anew, what policies are called then, and whether all rules fit. */
#ifndef SLUICE_RESIZE_PLAN_H
#define SLUICE_RESIZE_PLAN_H

#include "rulemap.h"

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
 * Plans the gate of this version's schema that takes over from one of an older schema: of the same sizes, so that all
 * rules fit. They are not settled: of a change that was cut off the next one undoes what is left, in the new gate.
 */
enum status resize_plan_upgrade(const struct gate *gate, struct resize_plan *plan);

void resize_plan_free(struct resize_plan *plan);

#endif
