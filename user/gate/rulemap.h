/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: the maps of rules: `hosts4` and `hosts6` for whole addresses, `prefixes` for the others. */
#ifndef SLUICE_RULEMAP_H
#define SLUICE_RULEMAP_H

#include <stddef.h>

#include "gate/gate.h"

/* The generation that packets see. */
uint32_t rulemap_generation(const struct gate *gate);

/* The content of a rule that packets see in that generation. */
const struct sl_rule_content *rulemap_content(const struct sl_rule *rule, uint32_t generation);

/* The access of the entry by hand, until it ends. */
enum sl_access content_access(const struct sl_rule_content *content);

/* Whether a content has no policy, no entry and no list, ended or not. */
bool content_is_empty(const struct sl_rule_content *content);

/* One rule of a map. */
struct rulemap_entry {
	struct sl_prefix prefix;
	struct sl_rule rule;
};

/* Reads the rule of exactly this prefix. 1; 0: there is none; or a negative errno. */
int rulemap_get(const struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *ret);

/*
 * Reads the rule of the longest prefix that covers a prefix and has at most `bits` bits, in force
 * or not. 1; 0: there is none; or a negative errno.
 */
int rulemap_cover(const struct gate *gate, const struct sl_prefix *prefix, uint32_t bits,
		  struct sl_rule *ret);

/* Calls for each rule, in no order, until a call returns a negative errno, which is returned. */
typedef int rulemap_call(void *data, const struct rulemap_entry *entry);
int rulemap_walk(const struct gate *gate, rulemap_call *call, void *data);

/* Reads all rules, in no order; the caller frees `ret`. 0, or a negative errno. */
int rulemap_read(const struct gate *gate, struct rulemap_entry **ret, unsigned int *ret_count);

/* Write and remove many rules. 0, or a negative errno after any part of them. */
int rulemap_write(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count);
int rulemap_remove(const struct gate *gate, const struct rulemap_entry *entries,
		   unsigned int count);

/* --- Counts of split /64s and of aggregates ------------------------------------------------- */

/*
 * Adds `change` to the counts of the /64 and of the aggregates that the prefix divides. 0, or a
 * negative errno and no count is changed.
 */
int split_add(struct gate *gate, const struct sl_prefix *prefix, int change);

/* Sets both maps to the counts of these rules. Sorts the entries. 0, or a negative errno. */
int splits_set(struct gate *gate, struct rulemap_entry *entries, unsigned int count);

#endif
