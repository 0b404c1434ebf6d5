/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: attaches a gate to the devices in a rules file, and detaches it from all others. */
#ifndef SLUICE_PLACES_H
#define SLUICE_PLACES_H

#include "attach/attachment.h"

/*
 * Returns the mode that a rules file should have for an attachment: auto if auto selects its mode
 * on this kernel, because another kernel may lack the mode.
 */
enum mode attachment_mode(const struct attachment *attachment);

/*
 * Converts a gate's attachments to places, except attachments without a program. Adds a notice for
 * each device that a rules file cannot name. The caller frees `ret`.
 */
int gate_places(const struct gate *gate, struct places *ret);

/* One step: attach a device, detach it, or replace its attachment by one in another mode. */
struct placing {
	struct attachment attachment; /* the attachment that this step makes or removes */
	struct attachment before;     /* if `replaces`: the replaced attachment */
	bool detaches;
	bool replaces;
	bool done;
};

struct placings {
	struct placing list[2 * ATTACHMENTS_MAX];
	struct attachment wanted[ATTACHMENTS_MAX]; /* all attachments of the gate after all steps */
	unsigned int count, wanted_count;
	unsigned int failed; /* number of places and steps that failed */
};

/* How a missing device, and a place without effect, are reported. */
enum missing {
	MISSING_FAILS,	/* a missing device is an error, unless the place is optional */
	MISSING_NOTED,	/* a missing device adds a notice */
	MISSING_SILENT, /* a missing device is not reported, because the caller tries again later */
};

/*
 * Plans the steps after which a gate is attached to the devices of `places`, and to no others. If
 * two places have the same device and hook, the first is used. Plans nothing if the rules file has
 * no `attach`. Attachments that a rules file cannot name stay.
 *
 * With MISSING_SILENT, a place that cannot be read adds an error and is counted as failed, and no
 * device is detached. If `ret_missing` is not NULL, stores for each place whether it lacks a device
 * and is not optional.
 */
int placings_plan(const struct gate *gate, const struct places *places, enum missing missing,
		  bool *ret_missing, struct placings *ret);

/*
 * Executes the plan: attaches devices first, then detaches others. If a step fails, the earlier
 * steps are undone. A packet that arrives while a device's mode changes may be charged twice.
 */
int placings_make(const struct gate *gate, struct placings *placings);

/*
 * Executes the plan for a caller that tries again later: if a step fails, adds an error, counts it
 * in `failed`, and continues. The caller keeps `programs` open for its next call.
 */
void placings_make_present(const struct gate *gate, struct programs *programs,
			   struct placings *placings);

/* Copies the attachments that the executed plan has made. Returns their number. */
unsigned int placings_made(const struct placings *placings, struct attachment ret[ATTACHMENTS_MAX]);

/* Undoes the executed steps. If undoing a step fails, continues with the other steps. */
int placings_undo(const struct gate *gate, struct placings *placings);

#endif
