/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of a gate. A change prepares records and rules for the next generation, beside those
 * that packets see, then raises the generation. A change that died half way is undone by the next
 * one.
 */
#ifndef SLUICE_RULES_H
#define SLUICE_RULES_H

#include "gate/gate.h"
#include "gate/losses.h"
#include "rules/ruleset.h"

/*
 * Makes the rules of `count` prefixes be what `wanted` says, whole, in one step; one without list and
 * limits is deleted. A limit keeps its id, and so each source its level, while its prefix has a limit of
 * that name with the same key. No prefix is named twice. The gate is open to change. On failure the
 * gate is as it was.
 */
enum status rules_change(struct gate *gate, const struct rule *wanted, unsigned int count);

/* The same, and the gate's lists become wanted->lists: see lists_prepare(). NULL: they stay. */
enum status ruleset_change(struct gate *gate, const struct ruleset *wanted);

/* The same, of one rule or of many, and what policies lose by it; NULL: that is not asked. */
enum status rule_replace(struct gate *gate, const struct rule *wanted, struct losses *ret);
enum status policies_change(struct gate *gate, const struct ruleset *wanted, struct losses *ret);

/* All rules in force, sorted, and the lists. Entries whose time is over are not. */
enum status rules_read(const struct gate *gate, struct ruleset *ret);

/* How many there are: from the gate's own count, or, where a change died half way, by counting. */
enum status rules_count(const struct gate *gate, unsigned int *ret);

/* The rule of just this prefix; none: an empty one. */
enum status rules_get(const struct gate *gate, const struct sl_prefix *prefix, struct rule *ret);

/* What decides about an address, as the packet path finds it. */
struct judgement {
	struct sl_prefix prefix; /* of the rule that decides */
	bool found;		 /* else no rule covers it */
	uint8_t access;		 /* enum sl_list: of the entry that decides */
	uint64_t lists;		 /* those that say it, by place; 0: it is by hand */
	uint32_t until;		 /* of that; 0: for good */
	uint32_t record;	 /* else the policy's record; packets keep it in their buckets */
};

enum status rules_judge(const struct gate *gate, const struct sl_prefix *address,
			struct judgement *ret);

/* The policies in force, ordered by prefix. The caller frees `ret`. */
enum status rules_policies(const struct gate *gate, const struct sl_policy ***ret,
			   unsigned int *ret_count);

#endif
