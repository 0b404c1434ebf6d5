/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: attaches a gate's programs to devices, replaces and detaches them. */
#ifndef SLUICE_ATTACH_H
#define SLUICE_ATTACH_H

#include "attach/attachment.h"

/*
 * If the device is an ifb, replaces hook xdp in mode auto by hook egress, because redirected
 * packets pass no other hook, and refuses other hooks and modes. reports: note the replacement.
 */
int attach_choose_hook(const struct netdev *device, enum mode mode, bool reports, enum hook *hook);

/*
 * Attaches the gate's program to a device of the current network namespace. Hook xdp in mode auto
 * is native XDP, or otherwise hook ingress, which adds a notice. The programs that this needs are
 * loaded.
 *
 * ret_existed: the hook already has a living attachment of the gate in that mode, which is stored;
 * another mode is refused. An attachment whose program is gone is removed before, also if another
 * device had its name. beside: attaches beside an attachment in another mode.
 */
int attach_device(const struct gate *gate, struct programs *programs, const struct netdev *device,
		  enum hook hook, enum mode mode, bool beside, struct attachment *ret,
		  bool *ret_existed);

/*
 * Detaches the program, in whatever namespace the device is, and removes the pins. An attachment
 * that is gone counts as detached. If it fails, the device filters as before.
 */
int detach(const struct gate *gate, const struct attachment *attachment);

/* --- Replacing programs ---------------------------------------------------------------------- */

struct replacements {
	struct replaced {
		struct attachment attachment; /* with its new program */
		uint32_t before;	      /* the id of the old program */
		int program_fd;		      /* the old program, to put it back */
	} one[ATTACHMENTS_MAX];
	unsigned int count;
};

/*
 * Replaces the programs of every attachment that is alive by the programs of this binary, on the
 * maps of `next`, which may be the same gate, and adds a notice for each other attachment. All or none: if
 * a replacement fails, those before it are undone. The gate is open for a change. The caller
 * closes `ret`.
 */
int programs_replace(const struct gate *gate, const struct gate *next, struct replacements *ret);

void replacements_close(struct replacements *replacements);

#endif
