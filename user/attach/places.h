/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: attaches a gate to the devices that a rules file names, and detaches it from others. */
#ifndef SLUICE_PLACES_H
#define SLUICE_PLACES_H

#include "attach/attachment.h"

/*
 * Returns the mode to write for an attachment: `auto` if `auto` yields its mode here, because
 * another kernel may lack that mode.
 */
enum mode attachment_mode(const struct attachment *attachment);

/* Converts the attachments that are alive. Adds a notice for those that no file can name. */
int gate_places(const struct gate *gate, struct places *ret);

/* One step from the attachments that exist to the wanted ones. */
struct placing {
	struct attachment attachment; /* to be made or removed; after that as it was made */
	struct attachment before;     /* the attachment in another mode that this replaces */
	bool detaches;
	bool replaces;
	bool done;
};

struct placings {
	struct placing list[2 * ATTACHMENTS_MAX];
	struct attachment wanted[ATTACHMENTS_MAX]; /* all that will exist, for checks */
	unsigned int count, wanted_count;
	unsigned int failed; /* with MISSING_SILENT: places and steps that failed */
};

/* How to report a device that is missing, and an item that has no effect. */
enum missing {
	MISSING_FAILS,	/* as an error, unless the place is optional */
	MISSING_NOTED,	/* as a notice */
	MISSING_SILENT, /* not at all, for a process that tries again */
};

/*
 * Plans what has to be attached and detached. If two places mean the same device and hook, the
 * first counts. Plans nothing if the file names no devices, and nothing for attachments that no
 * file can name.
 *
 * MISSING_SILENT: a place that cannot be read adds an error and is counted, and nothing is
 * detached. ret_missing: for each place whether its device is missing and not optional; or NULL.
 */
int placings_plan(const struct gate *gate, const struct places *places, enum missing missing,
		  bool *ret_missing, struct placings *ret);

/*
 * Attaches what is missing, then detaches what is not wanted. A failure undoes what was done. A
 * packet that arrives while a device's mode changes may be charged twice.
 */
int placings_make(const struct gate *gate, struct placings *placings);

/*
 * The same for a process that tries again: a failure adds an error and is counted, and the other
 * steps are made. programs: stay open for the next call.
 */
void placings_make_present(const struct gate *gate, struct programs *programs,
			   struct placings *placings);

/* Copies the attachments that were made. Returns their number. */
unsigned int placings_made(const struct placings *placings, struct attachment ret[ATTACHMENTS_MAX]);

/* Undoes what placings_make() did. After a failure it continues with the other steps. */
int placings_undo(const struct gate *gate, struct placings *placings);

#endif
