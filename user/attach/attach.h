/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: attaches a gate's programs to devices, replaces and detaches them. */
#ifndef SLUICE_ATTACH_H
#define SLUICE_ATTACH_H

#include "attach/attachment.h"

/*
 * Redirected packets pass an ifb device on hook egress only. If the device is an ifb, replaces hook
 * xdp in mode auto by hook egress, and fails for other hooks and modes. If `reports` is set, a
 * replacement adds a notice.
 */
int attach_choose_hook(const struct netdev *device, enum mode mode, bool reports, enum hook *hook);

/*
 * Attaches the gate's program to a device of the current network namespace, and loads the program
 * if `programs` lacks it. Hook xdp in mode auto is native XDP. If the device has no native XDP,
 * hook ingress is used, and a notice is added.
 *
 * If the gate is attached to the hook in that mode already, sets `ret_existed` and stores that
 * attachment. Fails if it is attached in another mode, unless `beside` is set.
 */
int attach_device(const struct gate *gate, struct programs *programs, const struct netdev *device,
		  enum hook hook, enum mode mode, bool beside, struct attachment *ret,
		  bool *ret_existed);

/*
 * Detaches the program, also in another network namespace, and removes the pins. If the attachment
 * is gone already, only the pins are removed. If a step fails, the device filters as before.
 */
int detach(const struct gate *gate, const struct attachment *attachment);

/* --- Replacing programs ---------------------------------------------------------------------- */

struct replacements {
	struct replaced {
		struct attachment attachment; /* its program_id is the id of the new program */
		uint32_t before;	      /* id of the program that was replaced */
		int program_fd;		      /* fd of the old program, to undo the replacement */
	} one[ATTACHMENTS_MAX];
	unsigned int count;
};

/*
 * Replaces the program of every attachment by this binary's program on the maps of `next`, which
 * may be the same gate. An attachment whose device or filter is gone is skipped with a notice. If
 * one replacement fails, the earlier ones are undone. The gate is open for a change. The caller
 * closes `ret`.
 */
int programs_replace(const struct gate *gate, const struct gate *next, struct replacements *ret);

void replacements_close(struct replacements *replacements);

#endif
