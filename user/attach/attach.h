/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: attaches a gate's programs to devices, replaces the programs, and detaches them. */
#ifndef SLUICE_ATTACH_H
#define SLUICE_ATTACH_H

#include "attach/attachment.h"

/*
 * Chooses the hook of an ifb. In an ifb, redirected packets pass only hook egress, so changes hook
 * xdp in mode auto to egress. Returns an error for any other hook or mode on an ifb. reports: add a
 * notice of the change.
 */
int attach_choose_hook(const struct netdev *device, enum mode mode, bool reports, enum hook *hook);

/* How to attach a device. */
struct way {
	enum hook hook;
	enum mode mode;
	struct array_slot slot; /* for mode array */
	unsigned int priority;	/* for mode libxdp: run priority; 0: any, 50 for a new component */
};

/* Returns whether the attachment, whose hook is way->hook, is attached in this way. */
bool attachment_serves(const struct attachment *attachment, const struct way *way);

/*
 * Attaches the gate's program to a device of the current network namespace. Loads the program if it
 * is not in `programs`. In mode auto, hook xdp means native XDP; if the device has no native XDP,
 * uses hook ingress and adds a notice. If the gate is attached to the device on this hook in this
 * mode already, stores that attachment and sets `ret_existed`. If the gate is attached in another
 * mode, fails unless `beside` is set.
 */
int attach_device(const struct gate *gate, struct programs *programs, const struct netdev *device,
		  const struct way *way, bool beside, struct attachment *ret, bool *ret_existed);

/*
 * Detaches an attachment in any network namespace, and removes its pins. If the program is already
 * detached, only removes the pins. If this fails, the device still filters packets.
 */
int detach(const struct gate *gate, const struct attachment *attachment);

/* --- Replacing programs ---------------------------------------------------------------------- */

struct replacements {
	struct replaced {
		struct attachment attachment; /* the attachment with its new program_id */
		uint32_t before;	      /* id of the old program */
		int program_fd; /* fd of the replaced program, to undo the replacement */
		int chain_fd;	/* in modes chain and array: fd of the new program; otherwise -1 */
	} one[ATTACHMENTS_MAX];
	unsigned int count;
};

/*
 * Replaces the programs of all attachments by the program in this binary, which uses the maps of
 * `next`. `next` may be `gate`. An attachment whose device or filter is gone only adds a notice. If
 * a replacement fails, undoes the earlier replacements. `gate` must be open for a change. The
 * caller must call replacements_close().
 */
int programs_replace(const struct gate *gate, const struct gate *next, struct replacements *ret);

void replacements_close(struct replacements *replacements);

#endif
