/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: changes the rules of a gate in one step, a transaction. A transaction first writes the new
 * rules for the next generation. Packets ignore these rules until the transaction raises the
 * generation. If a command is killed during a transaction, the next change recovers the gate. It
 * completes the transaction if the generation was raised. Otherwise it undoes the transaction.
 */
#ifndef SLUICE_TRANSACTION_H
#define SLUICE_TRANSACTION_H

#include "gate/gate.h"
#include "gate/policy.h"
#include "rules/ruleset.h"

/*
 * Replaces the rules of the prefixes in `wanted`. Each prefix must occur once. Deletes a rule if
 * its new rule has no entry, no lists and no limits. Replaces the gate's lists unless wanted->lists
 * is NULL. A list whose access or end changes must have a new index in wanted->lists. A limit keeps
 * its id and its states if the prefix already has a limit of the same name and key. If `ret` is not
 * NULL, adds the limits of parents that policies no longer inherit. The gate must be open for a
 * change. If this fails, the rules are unchanged.
 */
int rules_change(struct gate *gate, const struct ruleset *wanted, struct shadowed *ret);

/*
 * Stores field `replaced` of each list. All other fields of `wanted` must equal the lists in force.
 */
void lists_set_dates(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES]);

/*
 * Recovers from an interrupted transaction. Restores the rules that packets see. Also removes rules
 * and lists that have ended. If `ret_ended` is not NULL, stores the number of rules that had ended.
 */
int rules_recover(struct gate *gate, unsigned int *ret_ended);

/*
 * Removes rules and lists that have ended. Returns the number of removed rules, or 0 after an
 * error.
 */
unsigned int rules_expire(struct gate *gate);

/*
 * Calls rules_expire() if a list, or one of the first 256 rules, has ended. Reads no other rules,
 * so that a change of one rule stays fast.
 */
void rules_expire_some(struct gate *gate);

#endif
