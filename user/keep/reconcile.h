/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: the rules that shall be in force, of those of the rules file and those that commands have
 * made. The order in which they count is: the file, its lists, commands.
 *
 *                     at a reload          when a list file has changed
 *   limits            the file's           stay
 *   entries by hand   the file's; and      stay
 *                     commands' that it
 *                     does not contradict;
 *                     an allow contradicts
 *                     no list
 *   lists             the file's; and      the file's; and
 *                     commands'            commands'
 */
#ifndef SLUICE_RECONCILE_H
#define SLUICE_RECONCILE_H

#include "rules/list_file.h"
#include "rules/ruleset.h"

enum renew {
	RENEW_ALL,
	RENEW_LISTS,
};

/* Prefixes or lists of which a message tells the number and the first names. */
#define NAMED_SHOWN 3
#define NAMED_TEXT  512

struct named {
	unsigned int count;
	char text[NAMED_TEXT];
};

/* What a command did and a reload undoes. */
struct undone {
	struct named policies; /* limits and budgets, by `set`, `newcomers` and `del` */
	struct named differed; /* the same, or the file has changed: it is not known */
	struct named entries;  /* entries and lists that the file contradicts */
	struct named returned; /* entries and lists of the file that had been taken back */
};

/*
 * Computes the rules that shall be in force. file: the rules of the file now. was: those that it
 * had when it was applied last; what is in force beside these was made by command. policies_known:
 * `was` has its limits too, and not the entries alone; else limits in force that the file does not
 * have are told, whoever changed them.
 */
int reconcile(const struct ruleset *in_force, const struct ruleset *file,
		      const struct ruleset *was, bool policies_known, enum renew renew,
		      struct ruleset *ret, struct undone *ret_undone);

/* Adds the entries and lists of `given` to rules that say nothing by hand of the same prefix. */
int rules_restore(struct ruleset *rules, const struct ruleset *given);

/*
 * The entries and lists in force that were given by command, as a reload would leave them: ret,
 * which has no limits.
 */
int rules_given(const struct ruleset *in_force, const struct ruleset *file,
			struct ruleset *ret);

/*
 * Adds lists that were left out of the file's rules, with their entries in `known`. Skips lists
 * that the rules already have or `known` lacks.
 */
int rules_complete(struct ruleset *file, const struct list_paths *paths,
			   const struct ruleset *known);

/* The content of a copy of the lists: the lists of rules with their entries, without ends. */
int rules_lists(const struct ruleset *rules, struct ruleset *ret);

/* The entries by hand of rules, and the names of their lists: what a state file has of a file. */
int rules_entries(const struct ruleset *rules, struct ruleset *ret);

#endif
