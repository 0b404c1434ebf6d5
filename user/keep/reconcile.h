/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: computes the rules that should be in force from the rules file and from the changes that
 * commands made. The rules file takes precedence over its lists. Its lists take precedence over
 * commands. The source of each part is:
 *
 *                    at a reload             after a change of a list file
 *  limits            from the file           unchanged
 *  runtime entries   from the file, and      unchanged
 *                    from commands if the
 *                    file does not
 *                    contradict them
 *  lists             from the file, and      from the file, and
 *                    from commands           from commands
 *
 * A list that denies a prefix does not contradict a command that allows it, because the command
 * makes an exception.
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

/* Prefixes whose rules were changed by commands. A reload undoes these changes. */
struct undone {
	unsigned int count;
	char first[PREFIX_TEXT];
};

/*
 * Computes the rules that should be in force. `file` has the rules that are now in the file. `was`
 * has the rules that were in the file when it was last applied, perhaps without limits. Rules in
 * force that are not in `was` were made by commands. Returns 0 or a negative errno.
 */
int reconcile(const struct ruleset *in_force, const struct ruleset *file, const struct ruleset *was,
	      enum renew renew, struct ruleset *ret, struct undone *ret_undone);

/*
 * Stores the runtime entries and lists that commands made. They are in `in_force`, but not in
 * `was`. Omits entries and lists that `file` contradicts.
 */
int rules_runtime(const struct ruleset *in_force, const struct ruleset *was,
		  const struct ruleset *file, struct ruleset *ret);

/*
 * Adds the lists of `other` that `set` does not have, with their entries. If a rule of `set` has no
 * access, adds the access of the rule of `other`. If it has no policy, adds the policy. After an
 * error, the caller must free `set`.
 */
int rules_join(struct ruleset *set, const struct ruleset *other);

/*
 * Adds each list that was omitted because its file is bad. Takes the list's entries from `known`.
 * Skips a list that `file` already has, and a list that `known` does not have.
 */
int rules_complete(struct ruleset *file, const struct list_paths *paths,
		   const struct ruleset *known);

#endif
