/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: attaches a gate's programs to devices, and detaches them. */
#ifndef SLUICE_ATTACH_H
#define SLUICE_ATTACH_H

#include "attach/attachment.h"
#include "base/log.h"
#include "gate/object.h"

/*
 * Finds the gate's attachment of a device of the current network namespace. Refuses one that is
 * alive in another mode than requested; removes one whose program is gone, also of a device before
 * it that had its name.
 */
int attach_find(const struct gate *gate, const struct device *device, enum hook hook,
		enum mode mode, struct attachment *ret, bool *ret_found);

struct netdevs;

/*
 * If the device is an ifb, replaces hook xdp in mode auto by hook egress, because redirected
 * packets pass no other hook, and refuses other hooks and modes. reports: note the replacement.
 */
int attach_choose_hook(const struct netdevs *devices, const struct device *device, enum mode mode,
		       bool reports, enum hook *hook);

/* attach_choose_hook(), which reads the devices of the current network namespace itself. */
int attach_find_hook(const struct device *device, enum mode mode, bool reports, enum hook *hook);

/*
 * Attaches the gate's program to a device of the current network namespace on which attach_find()
 * found no attachment. Hook xdp in mode auto is native XDP, or else hook ingress, which is
 * reported; ret_was_there: hook ingress already had an attachment. The programs that this takes are
 * loaded.
 */
int attach_device(const struct gate *gate, struct programs *programs, const struct device *device,
		  enum hook hook, enum mode mode, struct attachment *ret, bool *ret_was_there);

/*
 * Detaches the program, in whatever namespace the device is, and removes the pin. An attachment
 * that is gone counts as detached. If it fails, the device filters as before.
 */
int detach(const struct gate *gate, const struct attachment *attachment);

#endif
