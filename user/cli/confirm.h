/* SPDX-License-Identifier: GPL-2.0 */
/* Rules on trial: what puts back those of before where nobody confirms. */
#ifndef SLUICE_CONFIRM_H
#define SLUICE_CONFIRM_H

#include "keep/apply.h"

/*
 * Makes a change and begins a trial of it, for ns. A process in the background waits for the end of
 * the trial, and puts back the rules of before unless `confirm` came.
 *
 *   - Where the process cannot be started, the change is undone at once.
 *   - It has no terminal and outlives the session. What it did is in the system's log.
 *   - SIGTERM ends its wait: the rules of before come back at once. So it is when a session ends
 *     with all its processes.
 *   - A signal to the command is held until the process is there.
 */
enum status change_try(struct gate *gate, struct change *change, uint64_t ns);

#endif
