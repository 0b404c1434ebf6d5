/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of a gate. A change prepares records and rules for the next generation, beside those
 * that packets see, then raises the generation. A change that died half way is undone by the next
 * one.
 */
#ifndef SLUICE_RULES_H
#define SLUICE_RULES_H

#include "gate.h"

/*
 * Sets the limit of a prefix, whole: the policy of an existing rule keeps its number, its counters
 * and its limit's id, and so each source its level. The gate is open to change.
 */
enum status rules_set(struct gate *gate, const struct sl_prefix *prefix,
		      const struct sl_limit_spec *spec);

/* Deletes the rule of a prefix. */
enum status rules_delete(struct gate *gate, const struct sl_prefix *prefix);

/* The record in force of policy `number`; NULL: it has none. */
const struct sl_policy *rules_policy(const struct gate *gate, unsigned int number);

/* The policies in force, ordered by prefix. Returns how many; at most SL_POLICIES_MAX. */
unsigned int rules_list(const struct gate *gate, const struct sl_policy *ret[SL_POLICIES_MAX]);

/* The number of a policy's record in `policies`. */
unsigned int rules_record(const struct gate *gate, const struct sl_policy *policy);

/* The policy for an address: the longest prefix in force that covers it; NULL: none. */
const struct sl_policy *rules_find(const struct gate *gate, const struct sl_prefix *address);

#endif
