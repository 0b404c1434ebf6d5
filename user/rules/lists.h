/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The named lists of a gate or of a rules file: where each has a name, a word (allow or deny), an end, and a place,
 * which is its bit in the rules that name it. In memory an array of SL_LIST_PLACES; a place without a name is free.
 */
#ifndef SLUICE_LISTS_H
#define SLUICE_LISTS_H

#include <stdint.h>

#include "base/log.h"
#include "sluice.h"

/* The place of the list of that name; -1: there is none. */
int lists_find(const struct sl_list_info *lists, const char *name);

/* The place of the list of that file, by the name that list_name_of() gives it; -1: there is none. */
int lists_find_file(const struct sl_list_info *lists, const char *file);

/* Puts a list into a free place. Refuses one more than SL_LISTS_MAX. */
enum status lists_put(struct sl_list_info *lists, const struct sl_list_info *list, int place);

/*
 * The places of the lists of one array in another one: the same place for the same list, and else one that is free
 * there. Both have SL_LISTS_MAX at most.
 */
void lists_match(const struct sl_list_info *lists, const struct sl_list_info *others,
		 int ret_places[SL_LIST_PLACES]);

unsigned int lists_count(const struct sl_list_info *lists);

/* Whether both have the same name, word and end. */
bool list_same(const struct sl_list_info *a, const struct sl_list_info *b);

/* By enum sl_list: the commands "allow" and "deny". */
extern const char *const list_words[];

/* "allows" or "denies". */
const char *list_says(enum sl_list word);

/* What lists that name a prefix say of it together; SL_LIST_NONE: no list names it. */
enum sl_list lists_word(const struct sl_list_info *lists, uint64_t bits);

/* Whether its time is over. */
bool list_ended(const struct sl_list_info *list);

/* A name is printable ASCII without blanks, quotes and backslashes, of less than SL_LIST_NAME characters. */
enum status list_name_check(const char *name);

/* The name of a file's list: its absolute path, by its words alone. "-", standard input, is its own name. */
enum status list_name_of(const char *file, char name[SL_LIST_NAME]);

#endif
