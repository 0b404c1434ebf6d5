/* SPDX-License-Identifier: GPL-2.0 */
/* Keep: how it goes, in the line of `systemctl status`. */
#ifndef SLUICE_STATUS_LINE_H
#define SLUICE_STATUS_LINE_H

#include "keep/keep.h"

/* Tells systemd, where the line is another than before. */
void status_say(struct keep *keep);

#endif
