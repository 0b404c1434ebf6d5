/* SPDX-License-Identifier: GPL-2.0 */
/* Attaching and detaching. */
#ifndef SLUICE_ATTACH_H
#define SLUICE_ATTACH_H

#include "attach/attachment.h"
#include "base/log.h"
#include "gate/object.h"

/*
 * Looks for the attachment of a device of the current network namespace. Refuses one that is alive in another
 * mode than is asked for; clears away one that is not.
 */
enum status attach_find(const struct gate *gate, const struct device *device, enum hook hook,
			enum mode mode, struct attachment *ret, bool *ret_found);

/*
 * Attaches the gate's program to a device of the current network namespace, on which attach_find() found none. Hook xdp
 * in mode auto is native XDP, or else hook ingress, said on standard error; there, an attachment may have been already.
 */
enum status attach_device(const struct gate *gate, const struct programs *programs,
			  const struct device *device, enum hook hook, enum mode mode,
			  struct attachment *ret, bool *ret_was_there);

/*
 * Detaches, wherever the device is, and removes the pin. What is gone already counts as
 * detached.
 */
enum status detach(const struct gate *gate, const struct attachment *attachment);

#endif
