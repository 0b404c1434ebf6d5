/* SPDX-License-Identifier: GPL-2.0 */
/* The named lists of a gate: what packets see of them, and how they change. See lists.h. */
#ifndef SLUICE_GATE_LISTS_H
#define SLUICE_GATE_LISTS_H

#include "gate.h"

/* Those of the lists whose time is not over; as the packet path's lists_in_force. */
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
