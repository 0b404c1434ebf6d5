/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: changes named lists. Each function makes its whole change at once, or changes nothing if it
 * fails.
 */
#ifndef SLUICE_GATE_LISTS_H
#define SLUICE_GATE_LISTS_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/*
 * How a change affects the prefixes of a list. Prefixes that ended before the change do not count.
 */
struct list_counts {
	unsigned int fresh; /* specified prefixes that were not on the list */
	unsigned int same;  /* specified prefixes that were on the list */
	unsigned int gone;  /* prefixes that were removed from the list */
	unsigned int cut;   /* prefixes whose new end is earlier than their old end */
	unsigned int ended; /* specified prefixes that have already ended */
};

/*
 * Adds the prefixes of `entries` to a list, each until its `list_until`. If the list does not
 * exist, creates it with the access and the end of `list`. If the list exists, its access and end
 * must equal those in `list`. If `list` has no end, it gets the end of the existing list. If
 * `replace` is set, the existing list gets the access and the end of `list`, and loses all prefixes
 * that are not in `entries`.
 */
int list_put(struct gate *gate, struct sl_list_info *list, bool replace, struct ruleset *entries,
	     struct list_counts *ret);

/* Removes prefixes from a list. Without `force`, a prefix that is not on the list is an error. */
int list_take(struct gate *gate, const char *name, struct ruleset *entries, bool force,
	      struct list_counts *ret);

/* Removes a list with all its prefixes. */
int list_drop(struct gate *gate, const char *name, struct list_counts *ret);

/* Copies the list with this name. Returns an error if the list does not exist. */
int list_named(const struct gate *gate, const char *name, struct sl_list_info *ret);

/*
 * Copies the list that option -f specifies. `text` is the name of the list, or its file. Returns an
 * error if there is no such list, or if `text` is the name of one list and the file of another
 * list.
 */
int list_of_file(const struct gate *gate, const char *text, struct sl_list_info *ret);

#endif
