/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: attaches a gate to the devices that a rules file names, and detaches it from others. */
#ifndef SLUICE_PLACES_H
#define SLUICE_PLACES_H

#include "attach/attachment.h"
#include "attach/shaping.h"
#include "gate/gate.h"
#include "gate/object.h"
#include "rules/devices.h"

/*
 * Returns the mode to write for an attachment: `auto` if `auto` yields its mode here, because
 * another kernel may lack that mode.
 */
enum mode attachment_mode(const struct attachment *attachment);

/* Converts an attachment. Returns false if no file can name it, or its namespace. */
bool attachment_place(const struct attachment *attachment, struct place *ret);

/* Converts all that are alive. Adds a notice for an attachment that no file can name. */
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
	struct placing *list;
	unsigned int count, room;
	struct attachment *wanted; /* all that will be there, for checks */
	unsigned int wanted_count, wanted_room;
	unsigned int failed; /* of placings_*_present(): places and steps that failed */
};

/*
 * Plans what has to be attached and detached. Fails if a device is missing and not optional, or
 * with may_lack adds a notice. If two places mean the same device and hook, the first one counts.
 * Plans nothing if the file names no devices, and nothing for attachments that no file can name.
 */
int placings_plan(const struct gate *gate, const struct places *places, bool may_lack,
		  struct placings *ret);

/*
 * Attaches what is missing, then detaches what is not wanted. A failure undoes what was done. A
 * packet that arrives while a device's mode changes may be charged twice.
 */
int placings_make(const struct gate *gate, struct placings *placings);

/* Copies the attachments that were made. Returns their number. */
unsigned int placings_made(const struct placings *placings, struct attachment ret[ATTACHMENTS_MAX]);

/* Undoes what placings_make() did. After a failure it continues with the other steps. */
int placings_undo(const struct gate *gate, struct placings *placings);

/*
 * The same for a process that tries again: each failure adds an error and is counted, and the other
 * places are attached. If a place cannot be read, nothing is detached. ret_missing: for each place
 * whether its device is missing and not optional. programs: stay open for the next call.
 */
int placings_plan_present(const struct gate *gate, const struct places *places, bool *ret_missing,
			  struct placings *ret);
void placings_make_present(const struct gate *gate, struct programs *programs,
			   struct placings *placings);

void placings_free(struct placings *placings);

#endif
