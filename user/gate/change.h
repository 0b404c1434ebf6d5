/* SPDX-License-Identifier: GPL-2.0 */
/* The frame of a change of rules: what is begun and not ended is undone by the next. */
#ifndef SLUICE_CHANGE_H
#define SLUICE_CHANGE_H

#include "gate/gate.h"

/* Begins a change. Undoes first what an earlier one, cut off half way, has left. */
enum status change_begin(struct gate *gate);
void change_end(struct gate *gate);

/* Undoes this change; the rules are again what packets see. Ends it. */
enum status change_undo(struct gate *gate);

/* Removes list entries whose time is over. Returns how many. Outside of a change. */
unsigned int change_sweep(struct gate *gate);

/*
 * The same, but only if one of the first rules has ended, or none is in force. So a change of one
 * rule does not read millions, and a gate whose rules have all ended is emptied.
 */
void change_sweep_some(struct gate *gate);

/* The same, but only if a list has ended. Its place becomes free. */
void change_sweep_lists(struct gate *gate);

/* --- Waiting for packets -------------------------------------------------------------------- */

/* Returns when no packet is left that began before the call. */
void packets_outwait(void);

/* --- Lists ---------------------------------------------------------------------------------- */

/* The lists, out of a set of bits, that have not ended. */
uint64_t lists_lasting(const struct gate *gate, uint64_t lists);

/* A copy of the lists that packets see. */
void lists_copy(const struct gate *gate, struct sl_list_info ret[SL_LIST_PLACES]);

/*
 * The steps of a change of the lists, beside one of the rules: prepare, for the next generation; clear away, when no
 * packet uses the generation before. A list that is to have another word or end has another place in `wanted`.
 * 0, or a negative errno.
 */
int lists_prepare(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES]);
void lists_clear(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES]);

/* Undoes a change that was not switched to, ends one that was, and frees the places of `ended`. */
void lists_settle(struct gate *gate, uint64_t ended);

#endif
