/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: the named lists of a gate or of a rules file: an array of SL_LIST_PLACES. The place of a
 * list is its bit in the rules that it names. A place without a name is free.
 */
#ifndef SLUICE_LISTS_H
#define SLUICE_LISTS_H

#include "rules/value.h"

/* The place of the list of that name, or of the name that list_name_of() gives a file; -1: none. */
int lists_find(const struct sl_list_info *lists, const char *name);
int lists_find_file(const struct sl_list_info *lists, const char *file);

/* Puts a list into a free place. Returns -ENOSPC if SL_LISTS_MAX lists exist. */
int lists_put(struct sl_list_info *lists, const struct sl_list_info *list, int place);

/*
 * For each list, its place in another array: the place of the same list, or a place that is free
 * there. Both arrays have at most SL_LISTS_MAX lists.
 */
void lists_match(const struct sl_list_info *lists, const struct sl_list_info *others,
		 int ret_places[SL_LIST_PLACES]);

/* The places that have a list, as bits, and their number. */
uint64_t lists_bits(const struct sl_list_info *lists);
unsigned int lists_count(const struct sl_list_info *lists);

/* Whether both have the same name, access and end. */
bool list_same(const struct sl_list_info *a, const struct sl_list_info *b);

/* Whether the list's end is past. */
bool list_ended(const struct sl_list_info *list);

/* Whether a command could have written a list: its name and its access are known. */
bool list_is_sound(const struct sl_list_info *list);

/* Checks a name: printable ASCII without blanks, quotes and backslashes, that fits SL_LIST_NAME. */
int list_name_check(const char *name);

/* Names the list of a file by its absolute path, with links unresolved. "-" keeps its name. */
int list_name_of(const char *file, char name[SL_LIST_NAME]);

/* --- Access, by enum sl_access -------------------------------------------------------------- */

extern const char *const access_words[];	/* the commands "allow" and "deny" */
extern const char *const access_done[];		/* "allowed" and "denied" */
const char *access_verb(enum sl_access access); /* "allows" and "denies" */

/* The access of a prefix on the lists of these bits. */
enum sl_access lists_access(const struct sl_list_info *lists, uint64_t bits);

/*
 * Whether the prefix is shorter than /8 (IPv4) or /16 (IPv6). Entries of lists and denies by hand
 * with such a prefix need the word `force`: most of them are mistakes, and lock out the operator.
 */
bool entry_is_wide(const struct sl_prefix *prefix);

/* Refuses a wide prefix. force: how to accept it, for the error; NULL: it is accepted. */
int entry_check_width(const struct sl_prefix *prefix, const char *force);

#endif
