/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: makes the attachments of a gate those that a rules file names, and tells them as such a
 * file does.
 */
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

/* Tells an attachment. False: no file can name it, or its namespace. */
bool attachment_place(const struct attachment *attachment, struct place *ret);

/* Tells the attachments that are alive. One that no file can name is left out, and noted. */
int gate_places(const struct gate *gate, struct places *ret);

/* One step from the attachments that are there to those that are wanted. */
struct placing {
	struct attachment attachment; /* to be made, and then as it was made; or to be removed */
	struct attachment before;     /* what is there in another mode */
	bool detaches;
	bool replaces; /* there is one before */
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
 * Finds what has to be attached and detached. Fails for a device that is not there and not
 * optional, unless may_lack, with which it is noted; and for more than a gate can hold. Where a
 * pattern and a name mean the same device, the first of them counts; a mode of the other that has
 * no effect so is noted. Nothing is done where the file says nothing of devices, nor to attachments
 * that no file can name.
 */
int placings_plan(const struct gate *gate, const struct places *places, bool may_lack,
		  struct placings *ret);

/*
 * Attaches what is missing, then detaches what is not wanted. All or none: a failure undoes what
 * was done. A packet that comes while a device's mode changes may be charged twice.
 */
int placings_make(const struct gate *gate, struct placings *placings);

/* Copies the attachments that were made. Returns their number. */
unsigned int placings_made(const struct placings *placings, struct attachment ret[ATTACHMENTS_MAX]);

/*
 * Puts back what placings_make() changed: as much of it as can be, whatever has become of the rest.
 */
int placings_undo(const struct gate *gate, struct placings *placings);

/*
 * The same for a process that tries again: what is missing or cannot be attached keeps no other
 * device from its place. Each failure is reported and counted. Where a place cannot be looked at,
 * nothing is detached. ret_missing: for each place whether no device of it is there although it is
 * not optional, which is not reported. programs: stay open, so that the next device need not wait
 * for them.
 */
int placings_plan_present(const struct gate *gate, const struct places *places, bool *ret_missing,
			  struct placings *ret);
void placings_make_present(const struct gate *gate, struct programs *programs,
			   struct placings *placings);

void placings_free(struct placings *placings);

#endif
