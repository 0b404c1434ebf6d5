/* SPDX-License-Identifier: GPL-2.0 */
/* Cli: the commands of `sluice`, and what several of them print and warn of. */
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
#include "rules/limit_words.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"
#include "rules/value.h"
#include "sluice.h"
#include "state/source.h"

struct apply;
struct lock_holder;
struct shadowed;

extern const struct command command_attach, command_detach, command_status, command_doctor,
	command_set, command_newcomers, command_allow, command_deny, command_unallow,
	command_undeny, command_lists, command_del, command_forgive, command_show, command_apply,
	command_confirm, command_keep, command_diff, command_dump, command_check, command_stats,
	command_sources, command_export, command_upgrade, command_complete;

extern const struct value_type value_given_hook; /* unsigned int: enum hook + 1 */

/*
 * Opens the gate that a command only reads. Without -g that is `main`, or, if `main` does not
 * exist, the only gate that exists.
 */
int gate_open_to_look(struct gate *gate, const struct context *context);

/* Removes a gate without attachments, and what killed processes left in /run/sluice for it. */
int gate_remove(struct gate *gate);

/* Removes the list of that file or name: `del -f`. */
int list_of_file_remove(const struct context *context, const char *file);

/* Refuses a rule that has no entry by hand with this access. NONE: and no limits. */
int entry_refuse_absent(const struct gate *gate, const struct rule *rule, enum sl_access access);

/* --- Trials: confirm.c ---------------------------------------------------------------------- */

/*
 * Opens a gate for a command that changes its rules. With --confirm it also begins the trial: the
 * process that waits has the previous rules, so it restores them even if the command is killed.
 */
int gate_open_to_try(struct gate *gate, const struct context *context);

/*
 * Ends a command: if it failed, undoes and ends the trial of gate_open_to_try(), if there is one;
 * otherwise prints when the trial of the change ends.
 */
void trial_finish(const struct context *context, int err);

/*
 * Makes the change of a file and begins a trial of it, for ns. A process in the background waits
 * for the end of the trial, and restores the previous rules unless `confirm` was run. It has no
 * terminal, outlives the session, and writes what it did to the system's log. SIGTERM ends its
 * wait, and so the trial. If it cannot be started, the change is undone at once.
 */
int change_try(struct gate *gate, struct apply *change, uint64_t ns);

/* --- Reports -------------------------------------------------------------------------------- */

/* Prints JSON. state: replaces "state"; NULL: attached or gone. */
void print_attachment(const struct attachment *attachment, const char *state);

/*
 * Prints an attachment that a command made or removed, an object and "eth0: attached to gate
 * 'main', hook xdp". The caller ends the object and the line.
 */
void print_attachment_of(const struct gate *gate, const struct attachment *attachment,
			 const char *state, const char *what);

/* Prints JSON: {"packets", "bytes"}. */
void print_packets(const char *key, const struct sl_cell *cell);

/* Prints JSON: the rule that decides about a source. "policy" and "prefix" are null if none does. */
void print_judgement(const struct gate *gate, const struct judgement *judgement);

/* Prints JSON: the words of a limit, and its state, which is null if the key is not known. */
void print_limit_state(const struct source *source, const struct sl_limit *limit,
		       const struct limit_state *state);

/* Returns "packets", or "bytes" of a bit rate; unit_of(): "packet" after 1. */
const char *unit_name(const struct sl_limit *limit);
const char *unit_of(const struct sl_limit *limit, uint64_t count);

/* --- Warnings: warnings.c ------------------------------------------------------------------- */

/* Warns of packets that new attachments charge twice, or receive merged. */
int warn_attached(const struct gate *gate, const struct attachment *made, unsigned int count);

/*
 * Warns of limits that lose their states, of the first window that one merged packet exceeds, and
 * of the first budget for new sources that drops nothing. before: the rules of the same prefixes, in
 * the same order.
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
 * Returns false if no process keeps it, or if the caller may not read the lock.
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
