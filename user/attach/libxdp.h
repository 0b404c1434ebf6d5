/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: mode libxdp, in which Sluice's program is a component of the dispatcher of libxdp. The
 * dispatcher calls its components in the order of their run priority. Sluice's component goes on to
 * the next component on XDP_PASS.
 *
 * libxdp changes the components of a device by a new dispatcher, which replaces the old dispatcher
 * in one step. It pins the components in /sys/fs/bpf/xdp (protocol.org of libxdp), so they run
 * without a process. libxdp is loaded by dlopen() when a component is added or removed. Readers
 * need only the pins.
 *
 * libxdp loads the program, so the pin of the attachment cannot be the program: PIN_ATTACHMENT is
 * map `secret`. The component that uses this map is Sluice's, also after a resize.
 */
#ifndef SLUICE_LIBXDP_H
#define SLUICE_LIBXDP_H

#include "attach/attachment.h"
#include "gate/gate.h"

/* Adds a component to the device, and stores the attachment. priority: run priority. */
int libxdp_attach(const struct gate *gate, const struct netdev *device, unsigned int priority,
		  struct attachment *ret);

/* Removes Sluice's components from the device, and then the pin. */
int libxdp_detach(const struct gate *gate, struct attachment attachment);

/*
 * Removes the second component of each device that has two. A killed libxdp_replace() may have left
 * two, and packets are then charged twice. Writes PIN_WORDS if it is missing. The caller must have
 * the gate's lock.
 */
int libxdp_expire(const struct gate *gate);

/*
 * Adds a component that uses the maps of `next`, and then removes the old component. Both judge the
 * packets in between. priority: run priority; 0: keep the priority. Updates
 * attachment->program_id.
 */
int libxdp_replace(const struct gate *gate, const struct gate *next, unsigned int priority,
		   struct attachment *attachment);

#endif
