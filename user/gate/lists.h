/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: changes of a gate's named lists. Each is one change of its rules, all or nothing. */
#ifndef SLUICE_GATE_LISTS_H
#define SLUICE_GATE_LISTS_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/* How the entries of a list changed, without entries that had ended before. */
struct list_counts {
	unsigned int fresh; /* prefixes given that were not on the list */
	unsigned int same;  /* prefixes given that were on it */
	unsigned int gone;  /* prefixes that are no longer on it */
	unsigned int cut;   /* prefixes that would have been on it longer, or without an end */
	unsigned int ended; /* prefixes given that have ended */
};

/*
 * Puts the prefixes of `entries` on a list, each until its `list_until`. If there is no list of
 * that name, it is made with this access and end. An existing list keeps its access and end: an end
 * that `list` lacks is set from it, and another access or end is refused. replace: the list gets
 * this access and end, and its other prefixes are removed.
 */
int list_put(struct gate *gate, struct sl_list_info *list, bool replace, struct ruleset *entries,
	     struct list_counts *ret);

/* Removes prefixes from a list. Refuses prefixes that are not on it, unless `force`. */
int list_take(struct gate *gate, const char *name, struct ruleset *entries, bool force,
	      struct list_counts *ret);

/* Removes a whole list. */
int list_drop(struct gate *gate, const char *name, struct list_counts *ret);

/* Finds the list of that name, or fails. */
int list_named(const struct gate *gate, const char *name, struct sl_list_info *ret);

/*
 * Finds the list that -f names, by its file or by its name. Refuses the text if both exist and
 * differ.
 */
int list_of_file(const struct gate *gate, const char *text, struct sl_list_info *ret);

#endif
