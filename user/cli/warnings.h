/* SPDX-License-Identifier: GPL-2.0 */
/* What rules, and attachments and the rules of their gate, do to each other that their owner may not expect. */
#ifndef SLUICE_WARNINGS_H
#define SLUICE_WARNINGS_H

#include "attach/attachment.h"
#include "gate/losses.h"
#include "rules/ruleset.h"

/* Says what a new attachment brings with it: packets charged twice, or merged. */
enum status warn_attached(const struct gate *gate, const struct attachment *attachment);

/* Says which of these rules, just set, has a budget for newcomers that drops nothing: all of its limits only observe. */
void warn_newcomers(const struct rule *rules, unsigned int count);

/* Whether a flood of new sources passes by the policy of this prefix: policy_lacks_budget(); and saying so. */
bool prefix_lacks_budget(const struct gate *gate, const struct sl_prefix *prefix);
void warn_budget(const struct gate *gate, const struct sl_prefix *prefix);

/* Says what a new rule in force inherits. */
void warn_inherit(const struct gate *gate, const struct rule *rule);

/* Says which policies lose what by a change, and how that is kept: in a file, or by a command. */
void warn_losses(const struct gate *gate, const struct losses *losses, bool file);

#endif
