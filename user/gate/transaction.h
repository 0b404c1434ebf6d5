/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: changes the rules of a gate in one step. A transaction writes policy versions, lists and
 * rules for the next generation, beside those that packets see, and then raises the generation. If
 * it is killed, the next one recovers: what was not switched to is undone, and what was is
 * completed.
 */
#ifndef SLUICE_TRANSACTION_H
#define SLUICE_TRANSACTION_H

#include "gate/gate.h"
#include "gate/policy.h"
#include "rules/ruleset.h"

/*
 * Replaces the rules of these prefixes in one step, and the gate's lists unless wanted->lists is
 * NULL. A rule without entry, lists and limits is deleted. A limit keeps its id, and so the state
 * of each source, while its prefix has a limit of that name with the same key. No prefix is named
 * twice. A list with another access or end has another index in wanted->lists. ret: the limits that
 * policies lose by the change; NULL: not wanted. The gate is open for a change. After a failure the
 * rules are unchanged.
 */
int rules_change(struct gate *gate, const struct ruleset *wanted, struct shadowed *ret);

/* rules_change() for one rule. */
int rule_change(struct gate *gate, const struct rule *wanted, struct shadowed *ret);

/* Sets only the dates of the lists. No other part of the lists differs from those in force. */
void lists_set_dates(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES]);

/* Recovers from an interrupted transaction: the rules are again those that packets see. */
int rules_recover(struct gate *gate);

/* Removes rules and lists that have ended. Returns the number of rules; 0 on errors. */
unsigned int rules_expire(struct gate *gate);

/*
 * rules_expire(), but only if a list or one of the first 256 rules has ended: a change of one rule
 * does not read millions.
 */
void rules_expire_some(struct gate *gate);

#endif
