/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: errors about a device that cannot get an XDP program, because there is another one. */
#ifndef SLUICE_REFUSE_H
#define SLUICE_REFUSE_H

#include "attach/attachment.h"

/*
 * If a device above or below this device has an XDP program, the kernel refuses an XDP program on
 * this device. Then returns -EBUSY, with an error that names the other device. Otherwise returns 0.
 */
int xdp_relative_refuse(const struct gate *gate, const struct netdev *device);

/* Adds an error that names the owner of the attached XDP program, and suggests a command. */
int xdp_owner_refuse(const struct gate *gate, const struct netdev *device);

#endif
