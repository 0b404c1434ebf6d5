/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: reads the rules, the lists and the policies of a gate. gate/transaction.h changes them. */
#ifndef SLUICE_RULES_H
#define SLUICE_RULES_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/* Reads all rules in force, sorted, and the lists. Entries that have ended are left out. */
int rules_read(const struct gate *gate, struct ruleset *ret);

/* Reads the number of rules: the gate's own count, or after an interrupted change by counting. */
int rules_count(const struct gate *gate, unsigned int *ret);

/* Reads the rule of exactly this prefix; an empty rule if there is none. */
int rules_get(const struct gate *gate, const struct sl_prefix *prefix, struct rule *ret);

/* Reads the policies in force, ordered by prefix. The caller frees `ret`. */
int rules_policies(const struct gate *gate, const struct sl_policy ***ret, unsigned int *ret_count);

/* Adds the error that the rules cannot be read. */
int rules_unread(const struct gate *gate, int err);

/* Copies the lists that packets see. */
void lists_copy(const struct gate *gate, struct sl_list_info ret[SL_LIST_PLACES]);

/* Whether packets see a list in a generation. */
bool list_is_seen(const struct sl_list_info *list, uint32_t generation);

/* The rule that decides about an address, found as packets find it. */
struct judgement {
	struct sl_prefix prefix; /* the prefix of that rule */
	bool found;		 /* false: no rule covers the address */
	uint8_t access;		 /* enum sl_access: of the entry that decides */
	uint64_t lists;		 /* the lists of that entry, by index; 0: a runtime entry */
	uint32_t until;		 /* end of that entry; 0: no end */
	uint32_t version;	 /* without entry: the policy's version */
};

int rules_judge(const struct gate *gate, const struct sl_prefix *address, struct judgement *ret);

#endif
