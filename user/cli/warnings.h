/* SPDX-License-Identifier: GPL-2.0 */
/* Warnings: effects of rules and attachments on each other that may surprise. */
#ifndef SLUICE_WARNINGS_H
#define SLUICE_WARNINGS_H

#include "attach/attachment.h"
#include "gate/shadowed.h"
#include "rules/ruleset.h"

/* Warns of packets that attachments which were just made charge twice, or take merged. */
int warn_attached(const struct gate *gate, const struct attachment *made, unsigned int count);

/* Warns of rules just set whose budget for newcomers drops nothing: all their limits observe. */
void warn_newcomers(const struct rule *rules, unsigned int count);

/*
 * Tells which limits of a changed rule count afresh, because what their states hold does not fit
 * any more: limit_keeps_states().
 */
void warn_afresh(const struct rule *before, const struct rule *after);

/* New windows that a packet can exceed alone, if the kernel has merged it of many. */
struct oversize {
	const struct rule *rule; /* of the first */
	const struct limit *limit;
	unsigned int count;
};

/* Adds those of a rule. before: as it was; it may have had no limits. */
void oversize_add(struct oversize *oversize, const struct rule *before, const struct rule *after);

/* Warns of them in one note, where such packets may come. */
void warn_oversize(const struct gate *gate, const struct oversize *oversize);

/*
 * Warns once for a gate that a flood of new sources passes the limits of a rule, which is that of
 * default and inherits nothing. After that only doctor reports it.
 */
void warn_budget(const struct gate *gate, const struct rule *rule);

/* Tells what a new rule in force inherits. */
void warn_inherit(const struct gate *gate, const struct rule *rule);

/*
 * Warns of policies that lose limits by a change, with what keeps them: in a file, or by a command.
 */
void warn_losses(const struct gate *gate, const struct shadowed *losses, bool file);

#endif
