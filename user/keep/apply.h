/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: computes and makes the change from the rules, sizes and devices of a gate to those that a
 * rules file specifies. `sluice keep` attaches devices later, in step_devices.c.
 */
#ifndef SLUICE_APPLY_H
#define SLUICE_APPLY_H

#include "attach/places.h"
#include "config/config.h"
#include "gate/gate.h"
#include "gate/policy.h"
#include "rules/ruleset.h"

/* Counters of changes, for the report of `apply`. */
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
	struct ruleset before;	  /* the same rules before the change; empty if a rule is new */
	bool has_rules;		  /* the change concerns a rule or a list */
	struct shadowed shadowed; /* limits and budgets that policies no longer inherit */
	unsigned int effects[EFFECTS];
	struct room room;	     /* room for old and new rules, which exist at the same time */
	struct gate_sizes specified; /* sizes that the rules file specifies, otherwise 0 */
	struct gate_sizes has;	     /* sizes of the gate before the change */
	struct gate_sizes during;    /* sizes of the gate until the change is in force */
	struct gate_sizes after;
	bool resized;
	/*
	 * sizes_stated of struct sl_gate before and after the change: bits of the sizes that a user
	 * specified. The gate chooses the other sizes, and they grow with the rules.
	 */
	uint32_t was_stated, stated;
	struct placings placings;
};

struct apply_may {
	bool resize;
	bool lack_fq; /* if limits shape, report a device without fq by a notice, not an error */
};

/*
 * Computes the change. Fails if the change needs other sizes and may not resize, or if a device is
 * missing or cannot shape as the limits specify. Call apply_free() even after a failure.
 */
int apply_prepare(struct gate *gate, struct config *config, const struct apply_may *may,
		  struct apply *ret);

/*
 * Resizes to the sizes that the change needs, changes the rules, resizes to the sizes in the file,
 * and then attaches and detaches, so a new device never lets a packet pass unjudged. If a step
 * fails, undoes the steps before it. If the process is killed, nothing is undone.
 */
int apply_make(struct gate *gate, struct apply *apply);

/* Restores the rules and sizes, but not the devices. Maps that grew stay larger. */
int apply_undo_rules(struct gate *gate, struct apply *apply);

void apply_free(struct apply *apply);

#endif
