/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: the change from what a gate has to what a rules file specifies: rules, sizes and devices. A
 * process that keeps a gate attaches its devices later: step_devices.c.
 */
#ifndef SLUICE_APPLY_H
#define SLUICE_APPLY_H

#include "attach/places.h"
#include "config/config.h"
#include "gate/gate.h"
#include "gate/policy.h"
#include "rules/ruleset.h"

/* The counters of the report. */
enum effect {
	POLICIES_ADDED,
	POLICIES_CHANGED,
	POLICIES_DELETED,
	NOW_DENIED,
	NOW_ALLOWED,
	NO_LONGER_DENIED,
	NO_LONGER_ALLOWED,
	EFFECTS,
};

struct apply {
	struct ruleset wanted;	  /* the rules that change; an empty rule is deleted */
	struct ruleset before;	  /* the same rules before; an empty rule did not exist */
	bool has_rules;		  /* rules or lists change, perhaps only a list without entries */
	struct shadowed shadowed; /* limits and budgets that policies no longer inherit */
	unsigned int effects[EFFECTS];
	struct room room;	     /* old and new rules, which exist together during the change */
	struct gate_sizes specified; /* by the file */
	struct gate_sizes has;	     /* of the gate */
	struct gate_sizes during;    /* what the change needs until it is in force */
	struct gate_sizes after;
	bool resized;
	/*
	 * Bits of the sizes that a user stated, before and after the change, as in struct sl_gate.
	 * The gate chooses the other sizes, and they grow with the rules.
	 */
	uint32_t was_stated, stated;
	struct placings placings;
};

/* What the user permits. */
struct apply_may {
	bool resize;
	bool lack_fq;
};

/*
 * Computes the change. Refuses a change that needs other sizes unless it may resize, and devices
 * that are missing or cannot do what the limits shape. apply_free() ends it, also after a failure.
 */
int apply_prepare(struct gate *gate, struct config *config, const struct apply_may *may,
		  struct apply *ret);

/*
 * Resizes to what the change needs, changes the rules, resizes to what the file specifies, and then
 * attaches and detaches, so that no packet passes a new device unjudged. A failure undoes the steps
 * that were made. A kill leaves the step that it hit.
 */
int apply_make(struct gate *gate, struct apply *apply);

/* Restores the rules and sizes, but not the devices. Maps that grew stay larger. */
int apply_undo_rules(struct gate *gate, struct apply *apply);

void apply_free(struct apply *apply);

#endif
