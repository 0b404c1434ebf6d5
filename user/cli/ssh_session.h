/* SPDX-License-Identifier: GPL-2.0 */
/* The ssh session in which a command is typed: what would lock it out. */
#ifndef SLUICE_SSH_SESSION_H
#define SLUICE_SSH_SESSION_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/*
 * Fails if one of the denies would lock out the ssh session (SSH_CONNECTION) that comes through the
 * gate: its address is within the prefix, and neither a longer prefix nor an allow comes first.
 * name: the list of the denies; NULL: they are by hand.
 */
int ssh_check_denies(const struct gate *gate, const struct ruleset *denies, const char *name);

/* Notes a limit of a rule in force that is too low for the ssh session. */
void ssh_warn_limits(const struct gate *gate, const struct rule *rule);

#endif
