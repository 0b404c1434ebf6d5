/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: computes the rules that should be in force from the rules file and from the changes that
 * commands made. The rules file has precedence over its lists, and its lists over commands.
 *
 *                     at a reload             after a change of a list file
 *   limits            from the file           unchanged
 *   runtime entries   from the file, and      unchanged
 *                     from commands if the
 *                     file does not
 *                     contradict them
 *   lists             from the file, and      from the file, and
 *                     from commands           from commands
 *
 * A list that denies a prefix does not contradict an allow by command: the allow is an exception.
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

/* Prefixes at which a reload reverts the change of a command. */
struct undone {
	unsigned int count;
	char first[PREFIX_TEXT];
};

/*
 * Computes the rules that should be in force. `file` has the rules of the file now. `was` has the
 * rules of the file when it was last applied, perhaps without limits: commands made all other rules
 * in force. Returns 0 or a negative errno.
 */
int reconcile(const struct ruleset *in_force, const struct ruleset *file, const struct ruleset *was,
	      enum renew renew, struct ruleset *ret, struct undone *ret_undone);

/*
 * Finds the entries and lists that commands made: they are in force, `was` does not have them, and
 * `file` does not contradict them.
 */
int rules_runtime(const struct ruleset *in_force, const struct ruleset *was,
		  const struct ruleset *file, struct ruleset *ret);

/*
 * Adds the lists of `other` that `set` lacks, with their entries, and each access and policy of
 * `other` for whose prefix `set` has none. After a failure, `set` must be freed.
 */
int rules_join(struct ruleset *set, const struct ruleset *other);

/*
 * Adds lists whose files were bad to the rules of the file, with their entries in `known`. Skips
 * lists that the rules already have or that `known` lacks.
 */
int rules_complete(struct ruleset *file, const struct list_paths *paths,
		   const struct ruleset *known);

#endif
