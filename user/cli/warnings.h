/* SPDX-License-Identifier: GPL-2.0 */
/* Warnings: effects of rules and attachments on each other that may surprise. */
#ifndef SLUICE_WARNINGS_H
#define SLUICE_WARNINGS_H

#include "attach/attachment.h"
#include "gate/shadowed.h"
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
 * Warns once for a gate that a flood of new sources passes the limits of a rule, which is the rule
 * of default and inherits nothing. After that only doctor reports it.
 */
void warn_budget(const struct gate *gate, const struct rule *rule);

/* Reports what a new rule in force inherits. */
void warn_inherit(const struct gate *gate, const struct rule *rule);

/*
 * Warns of policies that lose limits by a change, with what keeps them: in a file, or by a command.
 */
void warn_shadowed(const struct gate *gate, const struct shadowed *shadowed, bool file);

#endif
