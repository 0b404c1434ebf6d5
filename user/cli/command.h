/* SPDX-License-Identifier: GPL-2.0 */
/* Cli: the commands of `sluice`, in files cmd_NAME.c, and the reports and warnings they share. */
#ifndef SLUICE_CLI_COMMAND_H
#define SLUICE_CLI_COMMAND_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attachment.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/gate.h"
#include "gate/rules.h"
#include "migrate/open.h"
#include "program/print_rules.h"
#include "program/program.h"
#include "program/writer.h"
#include "report/parts.h"
#include "rules/limit_words.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"
#include "rules/value.h"
#include "sluice.h"
#include "state/source.h"

struct apply;
struct shadowed;

extern const struct command command_attach, command_detach, command_status, command_doctor,
	command_set, command_newcomers, command_allow, command_deny, command_unallow,
	command_undeny, command_lists, command_del, command_forgive, command_show, command_apply,
	command_confirm, command_keep, command_diff, command_dump, command_check, command_stats,
	command_sources, command_events, command_export, command_upgrade, command_complete;

/* Returns the name of the gate that -g specifies, or NULL without -g. */
const char *gate_named(const struct context *context);

/* Opens, for reading only, the gate of -g or, without -g, the gate of gate_open_named(). */
int gate_open_to_look(struct gate *gate, const struct context *context);

/* Removes a gate without attachments, and its files in /run/sluice. */
int gate_remove(struct gate *gate);

/* Runs `del -f FILE`: removes the list that was made from the file, or whose name is FILE. */
int list_of_file_remove(const struct context *context, const char *file);

/*
 * Adds the error that the rule's prefix has no runtime entry with this access, and returns the
 * errno. For SL_ACCESS_NONE, the error is that the prefix has neither a runtime entry nor limits.
 */
int entry_refuse_absent(const struct gate *gate, const struct rule *rule, enum sl_access access);

#define REMOVAL_TEXT (PREFIX_TEXT + 5 * SL_LIST_NAME) /* for a list's name with shell quoting */

/*
 * Formats the command that removes the entry that decides about a source. If the entry is on
 * several lists, names the first list.
 */
const char *entry_removal(const struct gate *gate, const struct judgement *decides,
			  char text[REMOVAL_TEXT]);

/* --- Trials: confirm.c ---------------------------------------------------------------------- */

/*
 * Opens a gate for a command that changes rules. With --confirm, begins a trial: a background
 * process restores the present rules if the user does not confirm the change in time. The
 * background process continues after this command ends.
 */
int gate_open_to_try(struct gate *gate, const struct context *context);

/*
 * Finishes a command that changes rules. err: result of the command. If the command failed, undoes
 * its change, and ends the trial of gate_open_to_try(). If it succeeded during a trial, prints when
 * the trial ends.
 */
void trial_finish(const struct context *context, int err);

/*
 * Applies `change` for a trial of `ns` nanoseconds. If the user does not run `confirm` in this
 * time, a background process restores the previous rules. If the background process cannot be
 * started, undoes the change, and returns an error.
 */
int change_try(struct gate *gate, struct apply *change, uint64_t ns);

/* --- Reports -------------------------------------------------------------------------------- */

/*
 * Prints an attachment that a command made or removed. In text, prints for example "eth0: attached
 * to gate 'main', hook xdp" if `what` is "attached to". The caller ends the line. In JSON, opens an
 * object. The caller closes it.
 */
void print_attachment_of(const struct gate *gate, const struct attachment *attachment,
			 const char *state, const char *what);

/* --- Warnings: warnings.c ------------------------------------------------------------------- */

/*
 * Warns if packets on new attachments are charged twice, or are merged by GRO or GSO. Returns 0 or
 * a negative errno.
 */
int warn_attached(const struct gate *gate, const struct attachment *made, unsigned int count);

/*
 * Warns of side effects of changed rules. Examples: a limit loses its states, or a limit no longer
 * drops packets, because it now only observes. Prints most warnings only once. before: the previous
 * rules of the prefixes in `after`, in the same order.
 */
void warn_rules(const struct gate *gate, const struct rule *before, const struct rule *after,
		unsigned int count);

/*
 * Warns of side effects of a policy that `set` has changed. inherits: also lists the inherited
 * limits. Once for each gate, warns that `default` has no budget for new sources, or that no
 * process shares limits.
 */
void warn_policy(const struct gate *gate, const struct rule *rule, bool inherits);

/* Returns the policy of exactly this prefix, or NULL. */
const struct sl_policy *policy_of(const struct gate *gate, const struct sl_prefix *prefix);

/*
 * Warns of policies that no longer inherit limits of shorter prefixes. Suggests an edit of the
 * rules file if `file` is set, and a command otherwise.
 */
void warn_shadowed(const struct gate *gate, const struct shadowed *shadowed, bool file);

enum kept_change {
	KEPT_ATTACHMENTS,
	KEPT_LIMITS,
	KEPT_FILE, /* a rules file was applied by `apply` */
};

/*
 * If `sluice keep` keeps the gate, adds a notice of when it will revert the change. file: the rules
 * file that `apply` applied, or NULL. If `sluice keep` uses that file, it will not revert the
 * change, so adds no notice.
 */
void kept_note(const char *gate, enum kept_change change, const char *file);

/*
 * Returns an error if the entries would deny the caller's ssh session, and the gate filters its
 * packets. name: list of the entries; NULL: runtime entries, which have precedence over lists.
 * Returns 0 or a negative errno.
 */
int ssh_check_denies(const struct gate *gate, const struct ruleset *denies, const char *name);

/* Warns if the rules in force deny the caller's ssh session, or have a limit too low for it. */
void ssh_warn(const struct gate *gate);

#endif
