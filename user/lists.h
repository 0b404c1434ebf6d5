/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The named lists of a gate or of a rules file: where each has a name, a word (allow or deny), an end, and a place,
 * which is its bit in the rules that name it. In memory an array of SL_LIST_PLACES; a place without a name is free.
 */
#ifndef SLUICE_LISTS_H
#define SLUICE_LISTS_H

#include "gate.h"

/* The place of the list of that name; -1: there is none. */
int lists_find(const struct sl_list_info *lists, const char *name);

/* Puts a list into a free place. Refuses one more than SL_LISTS_MAX. */
enum status lists_add(struct sl_list_info *lists, const struct sl_list_info *list, int *ret_place);

unsigned int lists_count(const struct sl_list_info *lists);

/* Whether both have the same name, word and end. */
bool list_same(const struct sl_list_info *a, const struct sl_list_info *b);

/* Whether its time is over. */
bool list_ended(const struct sl_list_info *list);

/* A name is printable ASCII without blanks, quotes and backslashes, of less than SL_LIST_NAME characters. */
enum status list_name_check(const char *name);

/* The name of a file's list: its absolute path, by its words alone. "-", standard input, is its own name. */
enum status list_name_of(const char *file, char name[SL_LIST_NAME]);

/* --- Of a gate ------------------------------------------------------------------------------ */

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
