/* SPDX-License-Identifier: GPL-2.0 */
/* Cli: the commands of `sluice`. */
#ifndef SLUICE_CLI_COMMAND_H
#define SLUICE_CLI_COMMAND_H

#include "base/log.h"
#include "gate/gate.h"
#include "program/program.h"
#include "rules/ruleset.h"
#include "sluice.h"

extern const struct command command_attach, command_detach, command_status, command_doctor,
	command_set, command_newcomers, command_allow, command_deny, command_unallow,
	command_undeny, command_lists, command_del, command_forgive, command_show, command_apply,
	command_confirm, command_keep, command_diff, command_dump, command_check, command_stats,
	command_sources, command_export, command_upgrade, command_complete;

extern const struct value_type value_given_hook; /* unsigned int: enum hook + 1 */

/* Removes the list of that file or name: `del -f`. */
int list_of_file_remove(const struct context *context, const char *file);

/* Removes a gate without attachments, and what killed processes left in /run/sluice for it. */
int gate_remove(struct gate *gate);

/*
 * Opens the gate that a command only reads. Without -g that is `main`, or, if `main` does not
 * exist, the only gate that exists.
 */
int gate_open_to_look(struct gate *gate, const struct context *context);

#endif
