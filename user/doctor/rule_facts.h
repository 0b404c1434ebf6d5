/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: rules that have no effect, or too much. */
#ifndef SLUICE_RULE_FACTS_H
#define SLUICE_RULE_FACTS_H

#include "rules/ruleset.h"

/*
 * The rules of one finding. The first is named, the others are counted: a file has up to a million
 * rules, and one mistake is often in all of them.
 */
struct rule_group {
	const struct rule *rule;
	unsigned int count;
};

#define VLAN_IDS 4096

struct rule_facts {
	/*
	 * Entries that deny all IPv4 sources now, also if they expire. To deny IPv6 alone is a
	 * decision. Other rules have no effect then, so the other groups stay empty.
	 */
	struct rule_group denied_all;
	struct rule_group allowed_all; /* both families, and nothing longer drops */
	struct rule_group entries;     /* limits of prefixes that have an entry */
	struct rule_group covered;     /* limits of prefixes that longer rules cover */
	uint64_t vlans[VLAN_IDS / 64]; /* that limits match */
};

/* set: sorted, one rule a prefix, as rules_read() returns it. */
struct rule_facts rule_facts_find(const struct ruleset *set);

/* Returns the entry of a rule, by hand or by lists, that does not expire. */
enum sl_access rule_entry(const struct rule *rule, const struct sl_list_info *lists);

#endif
