/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The change from what a gate has to what a rules file says: rules, sizes and devices. A keeper
 * leaves the devices to task_devices.c.
 */
#ifndef SLUICE_APPLY_H
#define SLUICE_APPLY_H

#include "attach/places.h"
#include "config/config.h"
#include "gate/gate.h"
#include "gate/losses.h"
#include "rules/ruleset.h"
#include "rules/sizes.h"

/* What a change does: the counters of the report. */
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

struct change {
	struct ruleset wanted; /* the rules that change; an empty one deletes */
	struct ruleset before; /* the same as they were; an empty one was not there */
	const struct sl_list_info
		*from; /* the lists of before, at the places that they have in `wanted` */
	bool lists_changed;
	struct losses losses; /* of policies that now inherit less */
	unsigned int effects[EFFECTS];
	/* Old and new rules stand beside each other until the change is in force. */
	struct room room;
	struct gate_sizes said;	  /* by the file */
	struct gate_sizes has;	  /* what the gate has */
	struct gate_sizes during; /* what the change needs until it is in force */
	struct gate_sizes after;
	bool resized;
	/*
	 * The sizes that somebody stated, as in struct sl_gate: those of the gate before, and those
	 * after the change. Others are what the gate has, and grow while the rules change.
	 */
	uint32_t was_stated, stated;
	struct placings placings;
};

/* What the user allows beyond the usual. */
struct apply_may {
	bool resize;
	bool lack_fq;
};

/* True also where only a list without entries comes or goes. */
bool change_has_rules(const struct change *change);

/*
 * Computes the change, and refuses one that needs other sizes unless it may resize, and devices
 * that are missing or cannot do what the limits shape. ret: change_free() ends it, also on failure.
 */
int change_prepare(struct gate *gate, struct config *config, const struct apply_may *may,
			   struct change *ret);

/*
 * Resizes to what the change needs, changes the rules, resizes to what the file says, and then
 * attaches and detaches, so that no packet passes a new device unjudged. A failure puts back what
 * was done. A kill leaves the step that it hit.
 */
int change_make(struct gate *gate, struct change *change);

/*
 * Puts back the rules and the sizes that were there before the change, but not the devices. What
 * grew stays so.
 */
int change_undo_rules(struct gate *gate, struct change *change);

void change_free(struct change *change);

#endif
