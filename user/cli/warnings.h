/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cli: warns of effects that a change may have without being meant: on other rules, on
 * attachments, on a process that keeps the gate, on the ssh session of the operator.
 */
#ifndef SLUICE_WARNINGS_H
#define SLUICE_WARNINGS_H

#include "attach/attachment.h"
#include "gate/shadowed.h"
#include "keep/lock_file.h"
#include "rules/ruleset.h"

/* Warns of packets that new attachments charge twice, or receive merged. */
int warn_attached(const struct gate *gate, const struct attachment *made, unsigned int count);

/*
 * Warns of changed rules: limits that lose their states, windows that one merged packet exceeds,
 * and budgets for new sources that drop nothing. before: the rules of the same prefixes, in the
 * same order.
 */
void warn_rules(const struct gate *gate, const struct rule *before, const struct rule *after,
		unsigned int count);

/*
 * Warns of a policy that was set: of what it inherits, if `inherits`; and, once for each gate, if
 * `default` has no budget for new sources, and if no process shares its shared limits.
 */
void warn_policy(const struct gate *gate, const struct rule *rule, bool inherits);

/* Returns the policy in force of a prefix, or NULL. */
const struct sl_policy *policy_of(const struct gate *gate, const struct sl_prefix *prefix);

/* Warns of policies that lose limits, with the words that keep them: of a file, or a command. */
void warn_shadowed(const struct gate *gate, const struct shadowed *shadowed, bool file);

#define KEPT_TEXT (PATH_MAX + 64)

/*
 * Finds the process that keeps a gate, and formats "kept by process 4711 as /etc/sluice/main".
 * Returns false if there is none, or if the caller may not read its lock.
 */
bool keeper_find(const char *gate, struct lock_holder *ret, char text[KEPT_TEXT]);

enum kept_change {
	KEPT_ATTACHMENTS,
	KEPT_LIMITS,
	KEPT_FILE, /* `file` was applied */
};

/* Notes how long a change lasts if the gate is kept as another file than `file`. */
void kept_note(const char *gate, enum kept_change change, const char *file);

/*
 * Refuses entries that would deny the ssh session of the caller, if the gate filters its packets.
 * name: of their list; NULL: denied by hand, which beats any list.
 */
int ssh_check_denies(const struct gate *gate, const struct ruleset *denies, const char *name);

/* Notes a limit of the rule that would drop the packets of that session. */
void ssh_warn_limits(const struct gate *gate, const struct rule *rule);

#endif
