/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: changes named lists. Each function changes the rules in one step, or not at all. */
#ifndef SLUICE_GATE_LISTS_H
#define SLUICE_GATE_LISTS_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/* The entries of a list that a change affects. Entries that ended before it do not count. */
struct list_counts {
	unsigned int fresh; /* specified prefixes that were not on the list */
	unsigned int same;  /* specified prefixes that were on the list */
	unsigned int gone;  /* prefixes that were removed from the list */
	unsigned int cut;   /* prefixes that now end earlier than before */
	unsigned int ended; /* specified prefixes whose time has passed */
};

/*
 * Adds the prefixes of `entries` to a list, each until its `list_until`. Makes the list with the
 * access and the end of `list` if it does not exist. An existing list keeps its access and end:
 * another access or end is an error, and if `list` has no end, it gets the end of the existing
 * list. If `replace` is set, the list instead gets the access and the end of `list`, and its other
 * prefixes are removed.
 */
int list_put(struct gate *gate, struct sl_list_info *list, bool replace, struct ruleset *entries,
	     struct list_counts *ret);

/* Removes prefixes from a list. A prefix that the list lacks is an error unless `force` is set. */
int list_take(struct gate *gate, const char *name, struct ruleset *entries, bool force,
	      struct list_counts *ret);

/* Removes a whole list. */
int list_drop(struct gate *gate, const char *name, struct list_counts *ret);

/* Copies the list with this name. Returns an error if the list does not exist. */
int list_named(const struct gate *gate, const char *name, struct sl_list_info *ret);

/*
 * Copies the list for the argument of -f, which is its name or its file. Returns an error if there
 * is no such list, or if the name of one list is the file of another list.
 */
int list_of_file(const struct gate *gate, const char *text, struct sl_list_info *ret);

#endif
