/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: reads the rules, lists and policies of a gate. gate/transaction.h changes them. */
#ifndef SLUICE_RULES_H
#define SLUICE_RULES_H

#include "gate/gate.h"
#include "rules/ruleset.h"

/* Reads the lists and all rules in force, sorted by prefix. Omits entries that have ended. */
int rules_read(const struct gate *gate, struct ruleset *ret);

/*
 * Stores the number of rules. If a change is in progress or was interrupted, reads all rules to
 * count them.
 */
int rules_count(const struct gate *gate, unsigned int *ret);

/* Reads the rule of exactly this prefix, or an empty rule if there is no rule. */
int rules_get(const struct gate *gate, const struct sl_prefix *prefix, struct rule *ret);

/* Lists the policies in force, sorted by prefix. The caller frees `ret`. */
int rules_policies(const struct gate *gate, const struct sl_policy ***ret, unsigned int *ret_count);

/* Adds the error that the rules cannot be read. */
int rules_unread(const struct gate *gate, int err);

/* Copies the lists that packets use in the current generation. */
void lists_copy(const struct gate *gate, struct sl_list_info ret[SL_LIST_PLACES]);

/* Returns whether packets use a list in this generation of the rules. */
bool list_is_seen(const struct sl_list_info *list, uint32_t generation);

/* The decision of the rules about an address. The packet path makes the same decision. */
struct judgement {
	struct sl_prefix prefix; /* prefix of the rule that decides */
	bool found;		 /* false if no rule covers the address */
	uint8_t access;		 /* enum sl_access of the runtime entry or lists that decide */
	uint64_t lists;		 /* bits of the lists that decide; 0 if lists do not decide */
	uint32_t until; /* end of the entry or lists that decide, in 2^SL_UNTIL_SHIFT ns; 0: none */
	uint32_t version; /* policy version that decides; 0 if the runtime entry or lists decide */
};

int rules_judge(const struct gate *gate, const struct sl_prefix *address, struct judgement *ret);

#endif
