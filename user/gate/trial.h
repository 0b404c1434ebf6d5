/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: a trial. A change that a command made with --confirm is undone unless it is confirmed in
 * time (user/cli/confirm.h). Until then no other command changes the gate.
 */
#ifndef SLUICE_TRIAL_H
#define SLUICE_TRIAL_H

#include "gate/gate.h"

/* How late the process that waits may be. Behind that it is taken to be dead. */
#define TRIAL_GRACE_NS 30000000000ULL

/* Begins a trial of `ns`. Returns its number, which no other trial of a gate of that name has. */
uint32_t trial_begin(struct gate *gate, uint64_t ns);

/* Whether that trial goes on: it was neither confirmed nor ended. state: of an open gate. */
bool trial_goes_on(const struct sl_gate *state, uint32_t trial);

/* What is left of the gate's trial, in ns; 0: there is none. */
uint64_t trial_left_ns(const struct sl_gate *state);

/* Whether its process has the gate to itself yet: until TRIAL_GRACE_NS after the end. */
bool trial_is_awaited(const struct sl_gate *state);

/* Ends the trial: what is in force stays. */
void trial_end(struct gate *gate);

/*
 * Refuses a change while a trial goes on. A trial that nobody waits for any more is ended, and that
 * is said.
 */
int trial_refuse(struct gate *gate);

#endif
