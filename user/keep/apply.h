/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: computes and makes the change that gives a gate the rules, sizes and devices of a rules
 * file. `sluice keep` attaches devices separately, in step_devices.c.
 */
#ifndef SLUICE_APPLY_H
#define SLUICE_APPLY_H

#include "attach/places.h"
#include "config/config.h"
#include "gate/gate.h"
#include "gate/policy.h"
#include "rules/ruleset.h"

/* Kinds of changes that the report of `apply` counts. */
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
	struct ruleset wanted; /* rules after the change; a rule to delete is empty */
	struct ruleset before; /* rules of these prefixes before the change; a new rule is empty */
	bool has_rules;	       /* a rule or a list changes */
	struct shadowed shadowed; /* limits and budgets that policies no longer inherit */
	unsigned int effects[EFFECTS];
	struct room room;	     /* map entries for the old and the new rules */
	struct gate_sizes specified; /* sizes in the rules file; 0 if not specified */
	struct gate_sizes has;	     /* sizes of the gate before the change */
	struct gate_sizes during;    /* sizes with room for the old and the new rules */
	struct gate_sizes after;
	bool resized;
	/*
	 * Values of sl_gate.sizes_stated before and after the change. A bit is set if a user
	 * specified the size. The gate chooses all other sizes, and they grow with the rules.
	 */
	uint32_t was_stated, stated;
	struct placings placings;
};

struct apply_may {
	bool resize;
	bool lack_fq; /* a device without fq causes a notice instead of an error */
};

/*
 * Computes the change. Returns an error if the change requires a resize that `may` forbids, if a
 * device is missing, or if a device cannot shape. The caller calls apply_free() even after an
 * error.
 */
int apply_prepare(struct gate *gate, struct config *config, const struct apply_may *may,
		  struct apply *ret);

/*
 * Makes the change. First enlarges the gate, because old and new rules must fit. Then changes the
 * rules, and gives the gate the sizes in the file. Changes devices last, so that a new device finds
 * all rules in force. If a step fails, undoes the earlier steps. If the process is killed, nothing
 * is undone.
 */
int apply_make(struct gate *gate, struct apply *apply);

/*
 * Restores the old rules and sizes. Maps that have grown stay larger. Does not undo changes of
 * devices.
 */
int apply_undo_rules(struct gate *gate, struct apply *apply);

void apply_free(struct apply *apply);

#endif
