/* SPDX-License-Identifier: GPL-2.0 */
/* The frame of a change of rules: what is begun and not ended is undone by the next. */
#ifndef SLUICE_CHANGE_H
#define SLUICE_CHANGE_H

#include "gate.h"

/* Undoes what another change, which died half way, has left. */
enum status change_begin(struct gate *gate);
void change_end(struct gate *gate);

/* Undoes this change; the rules are again what packets see. Ends it. */
enum status change_undo(struct gate *gate);

/* Removes list entries whose time is over. Returns how many. Outside of a change. */
unsigned int change_sweep(struct gate *gate);

/*
 * The same, if there are some among the first rules, or if no rule is in force. So a gate whose rules have all ended
 * holds none after it, and a gate of millions is not read for a change of one.
 */
void change_sweep_some(struct gate *gate);

/* Removes them, if there are lists whose time is over: so that they give their places back. */
void change_sweep_lists(struct gate *gate);

#endif
