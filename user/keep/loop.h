/* SPDX-License-Identifier: GPL-2.0 */
/* Keep: the loop that waits for events, and runs the tasks that are due. */
#ifndef SLUICE_LOOP_H
#define SLUICE_LOOP_H

#include "base/log.h"
#include "keep/keep.h"

/* Keeps the gate until SIGTERM or SIGINT. Fails at once if the file cannot be put in force. */
int keep_run(const struct keep_args *args);

#endif
