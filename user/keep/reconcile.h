/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: computes the rules that should be in force from those of the rules file and those of
 * commands. The order of precedence is: the file, its lists, commands.
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

#include "rules/list_file.h"
#include "rules/ruleset.h"

enum renew {
	RENEW_ALL,
	RENEW_LISTS,
};

#define UNDONE_NAMES 3
#define UNDONE_TEXT  512

/*
 * What commands changed and a reload undoes: limits, budgets, entries and lists that the file
 * contradicts, and entries and lists of the file that commands had removed.
 */
struct undone {
	unsigned int count;
	char names[UNDONE_TEXT]; /* the first prefixes or lists */
};

/*
 * Computes the rules that should be in force. file: the rules of the file now. was: the rules of the
 * file when it was last applied; other rules in force were made by commands. policies_known: `was`
 * has limits, too. Otherwise all limits in force that differ from the file count as undone.
 */
int reconcile(const struct ruleset *in_force, const struct ruleset *file, const struct ruleset *was,
	      bool policies_known, enum renew renew, struct ruleset *ret,
	      struct undone *ret_undone);

/* Adds runtime entries and lists to rules, except entries by hand of prefixes that have one. */
int rules_restore(struct ruleset *rules, const struct ruleset *runtime);

/* Finds the entries and lists in force that commands made and that a reload would leave. */
int rules_runtime(const struct ruleset *in_force, const struct ruleset *file, struct ruleset *ret);

/*
 * Adds lists that were left out of the file's rules, with their entries in `known`. Skips lists that
 * the rules already have or `known` lacks.
 */
int rules_complete(struct ruleset *file, const struct list_paths *paths,
		   const struct ruleset *known);

/*
 * Copies the lists of a set without their ends, and its entries: those by hand, and those on the lists of these bits.
 * Policies and rules without such an entry are left out.
 */
int rules_copy_entries(const struct ruleset *rules, bool by_hand, uint64_t lists,
		       struct ruleset *ret);

#endif
