/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: the tasks that put the rules file in force, and the lists that it names. What counts, in
 * this order: the file, its lists, what commands gave (reconcile.h).
 */
#ifndef SLUICE_TASK_RULES_H
#define SLUICE_TASK_RULES_H

#include "base/log.h"
#include "keep/reconcile.h"
#include "keep/keep.h"

/* Applies the file and all that it names. The first one that fails ends the process. */
int reload_run(struct keep *keep);

/* Refuses a state path at which something else is than a state file. Touches nothing. */
int state_check(const struct keep_args *args);

/* Looks whether files have changed. A rules file that has is only reported. */
int files_run(struct keep *keep);

/* Reads the lists again, for the rules file as it was applied last. */
int lists_run(struct keep *keep);

/*
 * Applies a config to the gate, and makes the gate if there is none. Adds the last good copies of
 * lists that were left out to the config.
 */
int rules_apply(struct keep *keep, struct config *config, enum renew renew);

#endif
