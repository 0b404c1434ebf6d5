/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: finds rules without effect, and rules that allow or deny everything. */
#ifndef SLUICE_RULE_FACTS_H
#define SLUICE_RULE_FACTS_H

#include "rules/ruleset.h"

/*
 * The rules of one finding. It is reported once, with the first rule and the number of rules,
 * because a file has up to a million rules, and a mistake is often in all of them.
 */
struct rule_group {
	const struct rule *rule; /* the first rule of the group */
	unsigned int count;
};

#define VLAN_IDS 4096

struct rule_facts {
	/*
	 * Rules that deny all IPv4 sources now, even if they expire later. The other groups are
	 * then empty. A rule that denies only IPv6 does not count: it is probably intended.
	 */
	struct rule_group denied_all;
	struct rule_group allowed_all; /* rules that allow both families without exception */
	struct rule_group entries;     /* rules with limits whose prefix is allowed or denied */
	struct rule_group covered;     /* rules with limits that longer rules cover completely */
	uint64_t vlans[VLAN_IDS / 64]; /* a bit for each VLAN that a limit matches */
};

/* Requires a sorted set with one rule for each prefix, as rules_read() returns it. */
struct rule_facts rule_facts_find(const struct ruleset *set);

/* Returns the access that a runtime entry or lists give a rule, if that access does not expire. */
enum sl_access rule_entry(const struct rule *rule, const struct sl_list_info *lists);

#endif
