/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: the named lists of a gate or of a rules file. A list has a name, an access (allow or
 * deny), an end, and a place, which is its bit in the rules that it names. The lists are an array
 * of SL_LIST_PLACES; a place without a name is free.
 */
#ifndef SLUICE_LISTS_H
#define SLUICE_LISTS_H

#include <stdint.h>

#include "rules/value.h"

/* The place of the list of that name; -1: none. */
int lists_find(const struct sl_list_info *lists, const char *name);

/* The place of the list that list_name_of() names for that file; -1: none. */
int lists_find_file(const struct sl_list_info *lists, const char *file);

/* Puts a list into a free place. Fails when there are SL_LISTS_MAX already. */
int lists_put(struct sl_list_info *lists, const struct sl_list_info *list, int place);

/*
 * For each list, its place in another array: that of the same list, or else one that is free there.
 * Both arrays have at most SL_LISTS_MAX lists.
 */
void lists_match(const struct sl_list_info *lists, const struct sl_list_info *others,
		 int ret_places[SL_LIST_PLACES]);

unsigned int lists_count(const struct sl_list_info *lists);

/* Whether both have the same name, access and end. */
bool list_same(const struct sl_list_info *a, const struct sl_list_info *b);

/* The commands "allow" and "deny", by enum sl_access. */
extern const char *const access_words[];

/* What such a word does to a prefix: "allowed", "denied". */
extern const char *const access_done[];

/* "allows" or "denies". */
const char *access_verb(enum sl_access access);

/* What the lists of these bits together say of a prefix; SL_ACCESS_NONE: there are no bits. */
enum sl_access lists_access(const struct sl_list_info *lists, uint64_t bits);

/*
 * Whether the prefix is shorter than /8 (IPv4) or /16 (IPv6). Entries of lists and denies by hand
 * with such a prefix need the word `force`: most of them are mistakes, and lock out the operator.
 */
bool entry_is_wide(const struct sl_prefix *prefix);

/* Refuses a wide prefix. force: how to accept it, for the message; NULL: it is accepted. */
int entry_check_width(const struct sl_prefix *prefix, const char *force);

/* Whether the list's end is past. */
bool list_ended(const struct sl_list_info *list);

/*
 * Checks a name: printable ASCII without blanks, quotes and backslashes, of less than SL_LIST_NAME
 * characters.
 */
int list_name_check(const char *name);

/* Whether a command could have written a list: its name and its access are known. */
bool list_is_sound(const struct sl_list_info *list);

/* The places that have a list, as bits. */
uint64_t lists_bits(const struct sl_list_info *lists);

/*
 * The name of the list of a file: its absolute path, with links unresolved. "-", standard input,
 * keeps its name.
 */
int list_name_of(const char *file, char name[SL_LIST_NAME]);

#endif
