/* SPDX-License-Identifier: GPL-2.0 */
/* What rules, and attachments and the rules of their gate, do to each other that their owner may not expect. */
#ifndef SLUICE_ADVICE_H
#define SLUICE_ADVICE_H

#include "attachment.h"
#include "ruleset.h"

/* Says what a new attachment brings with it: packets charged twice, or merged. */
enum status advice_attached(const struct gate *gate, const struct attachment *attachment);

/* Says which of these rules, just set, has a budget for newcomers that drops nothing: all of its limits only observe. */
void advice_newcomers(const struct rule *rules, unsigned int count);

/* Whether a flood of new sources passes by the policy of this prefix: policy_lacks_budget(); and saying so. */
bool advice_lacks_budget(const struct gate *gate, const struct sl_prefix *prefix);
void advice_budget(const struct gate *gate, const struct sl_prefix *prefix);

/*
 * Says which limits of rules in force take the place of those of shorter prefixes by their name alone, being for other
 * packets.
 */
void advice_replaced(const struct gate *gate, const struct rule *rules, unsigned int count);

/* Says what a rule in force inherits, if that was not said, or which limits of a shorter one it lifts. */
void advice_inherit(const struct gate *gate, const struct rule *rule, enum inherit said);

/* Says that a new policy of all of IPv4, or of IPv6, does not stand in for `default`, where that has a policy, too. */
void advice_family(const struct gate *gate, const struct rule *rule);

/* Says of rules from a file, just put in force, which limits of shorter ones they lift. */
void advice_lifted(const struct gate *gate, const struct rule *rules, unsigned int count);

#endif
