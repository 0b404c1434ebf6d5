/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: reads and writes the maps of rules. `hosts4` and `hosts6` contain rules of single
 * addresses. `prefixes` contains all other rules.
 */
#ifndef SLUICE_RULEMAP_H
#define SLUICE_RULEMAP_H

#include <limits.h>

#include "gate/gate.h"
#include "list_ends.h"

/* Returns the access of a rule's runtime entry, or SL_ACCESS_NONE if the entry has ended. */
enum sl_access content_access(const struct sl_rule_content *content);

/*
 * Returns the lists that contain a rule's prefix, as bits. Omits lists that have ended, and lists
 * on which the prefix has ended.
 */
uint64_t content_lists(const struct gate *gate, const struct sl_rule_content *content);

/*
 * Returns whether a rule has no policy, no runtime entry and no list. A rule whose entry or list
 * has ended is not empty.
 */
static inline bool content_is_empty(const struct sl_rule_content *content)
{
	return !content->version && !content->access && !content->list_mask;
}

/*
 * Returns whether a rule has no effect: no policy, no runtime entry in force, and no list in force.
 */
bool content_has_ended(const struct gate *gate, const struct sl_rule_content *content);

/* --- Maps of rules -------------------------------------------------------------------------- */

enum rulemap_action {
	ENTRY_WRITE,
	ENTRY_KEEP,
	ENTRY_REMOVE,
};

/* A rule, and the action of rulemap_write() for it: write, keep or remove. */
struct rulemap_entry {
	struct sl_prefix prefix;
	struct sl_rule rule;
	enum rulemap_action action;
};

/*
 * If the functions below fail, they return a negative errno. They do not call error_add(). -EUCLEAN
 * means that the gate's owner has written a value that no command writes.
 */

/* Reads the rule of exactly this prefix. Returns 1, or 0 if there is no rule. */
int rulemap_get(const struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *ret);

/*
 * Reads the rule of the longest prefix that covers `prefix` and has at most `bits` bits. The rule
 * need not be in force. Returns 1, or 0 if no rule covers `prefix`.
 */
int rulemap_cover(const struct gate *gate, const struct sl_prefix *prefix, uint32_t bits,
		  struct sl_rule *ret);

/* Reads at most `most` rules, in any order. UINT_MAX means all rules. The caller frees `ret`. */
int rulemap_read(const struct gate *gate, unsigned int most, struct rulemap_entry **ret,
		 unsigned int *ret_count);

/*
 * Writes or removes each rule, as its action specifies. Writes all rules before it removes any.
 * After an error, some rules may have changed.
 */
int rulemap_write(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count);

/*
 * Adds `change` to the gate's number of hosts or prefixes. Also adds it to the rule counts of the
 * /64 and of each aggregate that contains the prefix. Changes nothing if it returns an error.
 */
int rule_count_add(struct gate *gate, const struct sl_prefix *prefix, int change);

/*
 * Recounts the rules in each /64 and in each aggregate. Ignores rules that are to be removed. Sorts
 * `entries`.
 */
int splits_set(struct gate *gate, struct rulemap_entry *entries, unsigned int count);

#endif
