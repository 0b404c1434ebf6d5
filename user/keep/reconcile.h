/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: computes the rules that should be in force from the rules of the rules file and the changes
 * of commands. The order of precedence is: the file, its lists, commands.
 *
 *                     at a reload          when a list file has changed
 *   limits            the file's           unchanged
 *   entries by hand   the file's; and      unchanged
 *                     commands' that it
 *                     does not contradict;
 *                     an allow contradicts
 *                     no list
 *   lists             the file's; and      the file's; and
 *                     commands'            commands'
 */
#ifndef SLUICE_RECONCILE_H
#define SLUICE_RECONCILE_H

#include "config/config.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"

enum renew {
	RENEW_ALL,
	RENEW_LISTS,
};

/* Prefixes that a command changed and that a reload changes again. */
struct undone {
	unsigned int count;
	char first[PREFIX_TEXT];
};

/*
 * Computes the rules that should be in force. file: the rules of the file now. was: the rules of
 * the file when it was last applied, perhaps without limits; other rules in force were made by
 * commands.
 */
int reconcile(const struct ruleset *in_force, const struct ruleset *file, const struct ruleset *was,
	      enum renew renew, struct ruleset *ret, struct undone *ret_undone);

/*
 * Finds the entries and lists that commands made: those in force that `was` does not have, and that
 * `file` does not contradict.
 */
int rules_runtime(const struct ruleset *in_force, const struct ruleset *was,
		  const struct ruleset *file, struct ruleset *ret);

/*
 * Adds to a set the lists of another set that it lacks, and what the rules of the other set have
 * and its own lack: an entry by hand, entries on these lists, or a policy. After a failure the set
 * can only be freed.
 */
int rules_join(struct ruleset *set, const struct ruleset *other);

/*
 * Adds lists that were left out of the file's rules, with their entries in `known`. Skips lists
 * that the rules already have or `known` lacks.
 */
int rules_complete(struct ruleset *file, const struct list_paths *paths,
		   const struct ruleset *known);

#endif
