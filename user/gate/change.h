/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the begin, the undo and the end of a change of rules. An interrupted change is undone by
 * the next one.
 */
#ifndef SLUICE_CHANGE_H
#define SLUICE_CHANGE_H

#include "gate/gate.h"

/* Begins a change. First undoes a change that was interrupted. */
int change_begin(struct gate *gate);
void change_end(struct gate *gate);

/* Undoes and ends this change: the rules are again those that packets see. */
int change_undo(struct gate *gate);

/* Removes rules that have ended. Returns their number; 0, too, on errors. Not within a change. */
unsigned int change_sweep(struct gate *gate);

/*
 * change_sweep(), but only if one of the first 256 rules has ended. Rules are read on until one is
 * in force. So a change of one rule does not read millions, and a gate whose rules have all ended
 * is emptied.
 */
void change_sweep_some(struct gate *gate);

/* change_sweep(), but only if a list has ended. Its place becomes free. */
void change_sweep_lists(struct gate *gate);

/* --- Named lists ---------------------------------------------------------------------------- */

/* The lists of these bits that have not ended. */
uint64_t lists_lasting(const struct gate *gate, uint64_t lists);

/*
 * Returns the lists of a content on which the prefix is in force: neither list nor entry has expired.
 */
uint64_t content_lists(const struct gate *gate, const struct sl_rule_content *content);

/* Copies the lists that packets see. */
void lists_copy(const struct gate *gate, struct sl_list_info ret[SL_LIST_PLACES]);

/*
 * The steps of a change of the lists, within a change of the rules. lists_prepare() writes them for
 * the next generation. lists_clear() frees places when no packet uses the generation before. A list
 * with another access or end has another place in `wanted`. 0, or a negative errno.
 */
int lists_prepare(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES]);
void lists_clear(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES]);

/*
 * Undoes a change of the lists if its generation is not in force, and else completes it. Frees the
 * places of `ended`.
 */
void lists_settle(struct gate *gate, uint64_t ended);

#endif
