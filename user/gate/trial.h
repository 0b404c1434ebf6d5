/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: a trial. A change that a command made with --confirm is undone unless it is confirmed in
 * time (user/cli/confirm.c). Until then no other command changes the gate.
 */
#ifndef SLUICE_TRIAL_H
#define SLUICE_TRIAL_H

#include "gate/gate.h"

/* How late the process that waits may be. After that it counts as dead. */
#define TRIAL_GRACE_NS 30000000000ULL

/* Begins a trial of `ns`. Returns its number, which no other trial of a gate of that name has. */
uint32_t trial_begin(struct gate *gate, uint64_t ns);

/* Whether that trial goes on: it was neither confirmed nor ended. state: of an open gate. */
bool trial_goes_on(const struct sl_gate *state, uint32_t trial);

/* Returns the time left of the gate's trial, in ns; 0: there is none. */
uint64_t trial_left_ns(const struct sl_gate *state);

/* Whether its process may still use the gate: until TRIAL_GRACE_NS after the end. */
bool trial_is_awaited(const struct sl_gate *state);

/* Ends the trial: what is in force stays. */
void trial_end(struct gate *gate);

/* Refuses a change while a trial goes on. Ends a trial whose process is dead, and reports it. */
int trial_refuse(struct gate *gate);

#endif
