/* SPDX-License-Identifier: GPL-2.0 */
/* Changes of a gate's named lists: each is one step of its rules, all or nothing. */
#ifndef SLUICE_LIST_CHANGE_H
#define SLUICE_LIST_CHANGE_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/* What became of the entries of a list. */
struct list_counts {
	unsigned int fresh; /* named, and not on the list before */
	unsigned int same;  /* named, and on it before */
	unsigned int gone;  /* no longer on it */
};

/*
 * Puts the prefixes of `entries` on a list, which is made, with this word and end, if there is none of that name. A list
 * that is there keeps its word and end: `list` gets that end where it has none, and another word or end is refused.
 * replace: it gets this word and end instead, and what else was on it goes.
 */
enum status list_put(struct gate *gate, struct sl_list_info *list, bool replace,
		     struct ruleset *entries, struct list_counts *ret);

/* Takes prefixes off a list; refuses those that are not on it. */
enum status list_take(struct gate *gate, const char *name, struct ruleset *entries,
		      struct list_counts *ret);

/* Takes a whole list back. */
enum status list_drop(struct gate *gate, const char *name, struct list_counts *ret);

/* The list of that name. */
enum status list_named(const struct gate *gate, const char *name, struct sl_list_info *ret);

/* The list that -f means: that of the file, or the one with this text as its name; refuses where both are there. */
enum status list_of_file(const struct gate *gate, const char *text, struct sl_list_info *ret);

#endif
