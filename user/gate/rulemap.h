/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: the maps of rules: `hosts4` and `hosts6` for whole addresses, `prefixes` for the others. */
#ifndef SLUICE_RULEMAP_H
#define SLUICE_RULEMAP_H

#include "gate/gate.h"
#include "list_ends.h"

/* Returns the access of the runtime entry, until it ends. */
enum sl_access content_access(const struct sl_rule_content *content);

/* Returns the lists on which the prefix is in force: neither list nor entry has ended. */
uint64_t content_lists(const struct gate *gate, const struct sl_rule_content *content);

/* Whether a content has no policy, no entry and no list, ended or not. */
bool content_is_empty(const struct sl_rule_content *content);

/* Whether a content has no policy, and no entry or list that lasts. */
bool content_has_ended(const struct gate *gate, const struct sl_rule_content *content);

/* --- Maps of rules -------------------------------------------------------------------------- */

enum rulemap_action {
	ENTRY_WRITE,
	ENTRY_KEEP,
	ENTRY_REMOVE,
};

/* One rule of a map, and what rulemap_write() does with it. */
struct rulemap_entry {
	struct sl_prefix prefix;
	struct sl_rule rule;
	enum rulemap_action action;
};

/*
 * The functions below return a negative errno without an error. -EUCLEAN: the owner of the gate has
 * written a value that no command writes.
 */

/* Reads the rule of exactly this prefix. Returns 1, or 0 if there is none. */
int rulemap_get(const struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *ret);

/*
 * Reads the rule of the longest prefix that covers a prefix and has at most `bits` bits, in force
 * or not. Returns 1, or 0 if there is none.
 */
int rulemap_cover(const struct gate *gate, const struct sl_prefix *prefix, uint32_t bits,
		  struct sl_rule *ret);

/* Calls for each rule, in no order, until a call returns a negative errno, which is returned. */
typedef int rulemap_call(void *data, const struct rulemap_entry *entry);
int rulemap_walk(const struct gate *gate, rulemap_call *call, void *data);

/* Reads all rules, in no order; the caller frees `ret`. */
int rulemap_read(const struct gate *gate, struct rulemap_entry **ret, unsigned int *ret_count);

/* Writes rules, and then removes others. After a failure it has done any part of this. */
int rulemap_write(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count);

/*
 * Adds `change` to the counts of the /64 and of the aggregates that the prefix divides. After a
 * failure no count is changed.
 */
int split_add(struct gate *gate, const struct sl_prefix *prefix, int change);

/* Sets these counts for all rules but those to remove. Sorts the entries. */
int splits_set(struct gate *gate, struct rulemap_entry *entries, unsigned int count);

#endif
