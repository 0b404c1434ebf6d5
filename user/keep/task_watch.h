/* SPDX-License-Identifier: GPL-2.0 */
/* Keep: the task that looks for changes of which the kernel does not tell, for want of watches. */
#ifndef SLUICE_TASK_WATCH_H
#define SLUICE_TASK_WATCH_H

#include "base/log.h"
#include "keep/keep.h"

/* Tries again to watch what is not watched, and has it looked at. Fails while something is not. */
int watch_run(struct keep *keep);

#endif
