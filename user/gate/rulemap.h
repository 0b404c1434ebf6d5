/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: the maps of rules: `hosts4` and `hosts6` for whole addresses, `prefixes` for the rest. */
#ifndef SLUICE_RULEMAP_H
#define SLUICE_RULEMAP_H

#include <limits.h>

#include "gate/gate.h"
#include "list_ends.h"

/* Returns the access of the runtime entry, or SL_ACCESS_NONE if the entry has ended. */
enum sl_access content_access(const struct sl_rule_content *content);

/* Returns the bits of lists with this prefix, if neither the list nor its entry has ended. */
uint64_t content_lists(const struct gate *gate, const struct sl_rule_content *content);

/* Returns whether a content has no policy, no entry and no list, even one that has ended. */
static inline bool content_is_empty(const struct sl_rule_content *content)
{
	return !content->version && !content->access && !content->list_mask;
}

/* Returns whether a content has no policy, and no entry and no list that is still in force. */
bool content_has_ended(const struct gate *gate, const struct sl_rule_content *content);

/* --- Maps of rules -------------------------------------------------------------------------- */

enum rulemap_action {
	ENTRY_WRITE,
	ENTRY_KEEP,
	ENTRY_REMOVE,
};

/* A rule, and the action of rulemap_write() for it. */
struct rulemap_entry {
	struct sl_prefix prefix;
	struct sl_rule rule;
	enum rulemap_action action;
};

/*
 * If a function below fails, it returns a negative errno and adds no error. -EUCLEAN means that the
 * owner of the gate has written a value that no command writes.
 */

/* Reads the rule of exactly this prefix. Returns 1, or 0 if there is no rule. */
int rulemap_get(const struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *ret);

/*
 * Reads the rule of the longest prefix that covers a prefix and has at most `bits` bits, whether
 * the rule is in force or not. Returns 1, or 0 if there is no rule.
 */
int rulemap_cover(const struct gate *gate, const struct sl_prefix *prefix, uint32_t bits,
		  struct sl_rule *ret);

/* Reads at most `most` rules, UINT_MAX for all, in no order. The caller frees `ret`. */
int rulemap_read(const struct gate *gate, unsigned int most, struct rulemap_entry **ret,
		 unsigned int *ret_count);

/* First writes rules, then removes rules. After an error any part of this may be done. */
int rulemap_write(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count);

/*
 * Adds `change` to the number of hosts or prefixes, and to the numbers of rules in the /64 and in
 * the aggregates that the prefix divides. After an error no count is changed.
 */
int rule_count_add(struct gate *gate, const struct sl_prefix *prefix, int change);

/* Recounts the rules in /64s and aggregates, without rules to remove. Sorts the entries. */
int splits_set(struct gate *gate, struct rulemap_entry *entries, unsigned int count);

#endif
