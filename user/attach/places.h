/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: attaches a gate to the devices of a rules file, and detaches it from other devices. */
#ifndef SLUICE_PLACES_H
#define SLUICE_PLACES_H

#include "attach/attachment.h"

/*
 * Converts the attachments of a gate to the `attach` items of a rules file. Omits attachments whose
 * program is gone. Adds a notice for each device that rules files cannot name. The caller frees
 * `ret`.
 */
int gate_places(const struct gate *gate, struct places *ret);

/*
 * A step of the plan: attaches a device, detaches a device, or changes the mode of an attachment.
 */
struct placing {
	struct attachment attachment; /* attachment to add or to remove */
	struct attachment before;     /* if `replaces` is set: the replaced attachment */
	bool detaches;
	bool replaces;
	bool done;
};

struct placings {
	struct placing list[2 * ATTACHMENTS_MAX];
	struct attachment wanted[ATTACHMENTS_MAX]; /* attachments that the rules file specifies */
	unsigned int count, wanted_count;
	unsigned int failed; /* number of items and changes that failed */
};

/* What placings_plan() does if an `attach` item matches no device. */
enum missing {
	MISSING_FAILS, /* a missing device is an error, unless the item is optional */
	MISSING_NOTED, /* a missing device adds a notice */
	/* a missing device adds no message, because the caller will try again */
	MISSING_SILENT,
};

/*
 * Plans to attach a gate to the devices of `places`, and to detach it from all other devices. If
 * several items match a device and hook, uses the first item. Plans nothing if the rules file has
 * no `attach`. Keeps attachments that no rules file can specify. With MISSING_SILENT, an item that
 * fails adds an error, increments `failed`, and the plan detaches nothing. If `ret_missing` is not
 * NULL, sets element i if item i is not optional and matches no device.
 */
int placings_plan(const struct gate *gate, const struct places *places, enum missing missing,
		  bool *ret_missing, struct placings *ret);

/*
 * Executes the plan. Attaches devices before it detaches devices. If a step fails, undoes the
 * earlier steps. During a change of mode, both programs may charge a packet.
 */
int placings_make(const struct gate *gate, struct placings *placings);

/*
 * Executes the plan. If a step fails, adds an error, increments `failed`, and executes the next
 * step. The caller executes the plan again later, with the same `programs`.
 */
void placings_make_present(const struct gate *gate, struct programs *programs,
			   struct placings *placings);

/* Copies the attachments that the plan has added. Returns their number. */
unsigned int placings_made(const struct placings *placings, struct attachment ret[ATTACHMENTS_MAX]);

/* Undoes the executed steps. If a step cannot be undone, continues with the other steps. */
int placings_undo(const struct gate *gate, struct placings *placings);

#endif
