/* SPDX-License-Identifier: GPL-2.0 */
/* Keep: the tasks that attach devices as the file says, and have programs ready for the next. */
#ifndef SLUICE_TASK_DEVICES_H
#define SLUICE_TASK_DEVICES_H

#include "base/log.h"
#include "gate/gate.h"
#include "keep/keep.h"

/* Attaches the devices that are there, and detaches what the file does not say. */
int attach_run(struct keep *keep);

/*
 * Loads programs for the next device: loading takes up to a second, in which its packets would pass
 * unjudged.
 */
int load_run(struct keep *keep);

/* Checks whether the attachments still filter; if not, makes task attach due. */
int check_run(struct keep *keep);

/*
 * Puts new programs in place of those that are attached. virtio_net comes back from suspension
 * without its XDP program, although the link is there; the same program would be taken for no
 * change.
 */
int renew_run(struct keep *keep);

/* Closes programs that are for other maps than the gate has, as after a resize. */
void programs_match(struct keep *keep, const struct gate *gate);

/* Makes again what another process has changed: at once, and in a dispute ever later. */
void links_await(struct keep *keep);

/* Makes the tasks of these events due: bits of watch_read(). */
void watch_hear(struct keep *keep, unsigned int kinds);

/* Looks for network namespaces again, for a minute, as a name of one has come or gone. */
void netns_await(struct keep *keep);

#endif
