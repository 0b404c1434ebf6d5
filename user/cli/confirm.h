/* SPDX-License-Identifier: GPL-2.0 */
/* Rules on trial: the process that waits for `confirm` and otherwise undoes the change. */
#ifndef SLUICE_CONFIRM_H
#define SLUICE_CONFIRM_H

#include "cli/command.h"
#include "keep/apply.h"

/*
 * Opens a gate for a command that changes its rules. With --confirm it also begins the trial: the
 * process that waits has the previous rules, so it restores them even if the command is killed.
 */
int gate_open_to_try(struct gate *gate, const struct context *context);

/*
 * Ends a command: if it failed, undoes and ends the trial of gate_open_to_try(), if there is one;
 * otherwise prints when the trial of the change ends.
 */
void trial_finish(const struct context *context, int err);

/*
 * Makes the change of a file and begins a trial of it, for ns. A process in the background waits
 * for the end of the trial, and restores the previous rules unless `confirm` was run.
 *
 *   - Where the process cannot be started, the change is undone at once.
 *   - It has no terminal and outlives the session. What it did is in the system's log.
 *   - SIGTERM ends its wait: the rules of before come back at once. So it is when a session ends
 *     with all its processes.
 *   - A signal to the command is held until the process is there.
 */
int change_try(struct gate *gate, struct apply *change, uint64_t ns);

#endif
