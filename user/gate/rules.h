/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: reads the rules, lists and policies of a gate. gate/transaction.h changes them. */
#ifndef SLUICE_RULES_H
#define SLUICE_RULES_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/* Reads the lists and all rules in force, sorted. Omits entries that have ended. */
int rules_read(const struct gate *gate, struct ruleset *ret);

/* Stores the number of rules. Counts the rules if a change was interrupted. */
int rules_count(const struct gate *gate, unsigned int *ret);

/* Reads the rule of exactly this prefix, or an empty rule if there is no rule. */
int rules_get(const struct gate *gate, const struct sl_prefix *prefix, struct rule *ret);

/* Reads the policies in force, in the order of prefixes. The caller frees `ret`. */
int rules_policies(const struct gate *gate, const struct sl_policy ***ret, unsigned int *ret_count);

/* Adds the error that the rules cannot be read. */
int rules_unread(const struct gate *gate, int err);

/* Copies the lists of the generation that packets see. */
void lists_copy(const struct gate *gate, struct sl_list_info ret[SL_LIST_PLACES]);

/* Returns whether packets see a list in a generation. */
bool list_is_seen(const struct sl_list_info *list, uint32_t generation);

/* The decision of the rules about an address. Packets are judged in the same way. */
struct judgement {
	struct sl_prefix prefix; /* prefix of the rule that decides */
	bool found;		 /* false if no rule covers the address */
	uint8_t access;		 /* enum sl_access of the entry that decides */
	uint64_t lists;		 /* bits of the lists that decide, or 0 for a runtime entry */
	uint32_t until;		 /* end of the entry, in 2^SL_UNTIL_SHIFT ns, or 0 for no end */
	uint32_t version;	 /* policy version that decides, or 0 if an entry does */
};

int rules_judge(const struct gate *gate, const struct sl_prefix *address, struct judgement *ret);

#endif
