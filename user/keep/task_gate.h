/* SPDX-License-Identifier: GPL-2.0 */
/* Keep: the tasks that follow what commands do to the gate, and save what they gave. */
#ifndef SLUICE_TASK_GATE_H
#define SLUICE_TASK_GATE_H

#include "base/log.h"
#include "keep/keep.h"

/* Makes the gate again if it is gone, repairs its pins, and takes over one that is another. */
int look_run(struct keep *keep);

/* Writes the state file. What is on trial may go again, and is not saved. */
int save_run(struct keep *keep);

#endif
