/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: reads and changes the rules of a gate. A change prepares records and rules for the next
 * generation, beside those that packets see, and then raises the generation. The next change undoes
 * an interrupted one.
 */
#ifndef SLUICE_RULES_H
#define SLUICE_RULES_H

#include "gate/gate.h"
#include "gate/losses.h"
#include "rules/ruleset.h"

/*
 * Replaces the rules of `count` prefixes in one step. A rule without entry, lists and limits is
 * deleted. A limit keeps its id, and so the level of each source, while its prefix has a limit of
 * that name with the same key. No prefix is named twice. The gate is open for a change. After a
 * failure the rules are unchanged.
 */
int rules_change(struct gate *gate, const struct rule *wanted, unsigned int count);

/*
 * rules_change() for a set, which also replaces the gate's lists: see lists_prepare().
 * wanted->lists NULL: the lists stay.
 */
int ruleset_change(struct gate *gate, const struct ruleset *wanted);

/*
 * rules_change() for one rule, and ruleset_change(), which also find what policies lose by the
 * change. ret NULL: not wanted.
 */
int rule_replace(struct gate *gate, const struct rule *wanted, struct losses *ret);
int policies_change(struct gate *gate, const struct ruleset *wanted, struct losses *ret);

/* Reads all rules in force, sorted, and the lists. Entries that have ended are left out. */
int rules_read(const struct gate *gate, struct ruleset *ret);

/*
 * The number of rules: the gate's own count, or after an interrupted change the rules are counted.
 */
int rules_count(const struct gate *gate, unsigned int *ret);

/* Reads the rule of exactly this prefix; an empty rule if there is none. */
int rules_get(const struct gate *gate, const struct sl_prefix *prefix, struct rule *ret);

/* The rule that decides about an address, found as packets find it. */
struct judgement {
	struct sl_prefix prefix; /* the prefix of that rule */
	bool found;		 /* false: no rule covers the address */
	uint8_t access;		 /* enum sl_access: of the entry that decides */
	uint64_t lists;		 /* the lists of that entry, by place; 0: by hand */
	uint32_t until;		 /* end of that entry; 0: no end */
	uint32_t record;	 /* without entry: the policy's record */
};

int rules_judge(const struct gate *gate, const struct sl_prefix *address, struct judgement *ret);

/* Reads the policies in force, ordered by prefix. The caller frees `ret`. */
int rules_policies(const struct gate *gate, const struct sl_policy ***ret, unsigned int *ret_count);

#endif
