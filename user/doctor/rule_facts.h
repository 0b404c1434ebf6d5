/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: finds rules without effect, and rules that allow or deny everything. */
#ifndef SLUICE_RULE_FACTS_H
#define SLUICE_RULE_FACTS_H

#include "rules/ruleset.h"

/*
 * A group of rules that a finding reports. Stores the first rule and the number of rules, because a
 * group may have a million rules.
 */
struct rule_group {
	const struct rule *rule; /* first rule of the group, in the order of the rules */
	unsigned int count;
};

#define VLAN_IDS 4096

struct rule_facts {
	/*
	 * Rules that deny all IPv4 sources now, even if they will expire. If this group is not
	 * empty, all following groups are empty. Ignores rules that deny only IPv6, because users
	 * probably intend them.
	 */
	struct rule_group denied_all;
	struct rule_group allowed_all; /* rules that allow IPv4 and IPv6 without exception */
	/* rules whose limits have no effect, because an entry allows or denies the prefix */
	struct rule_group entries;
	/* rules whose limits have no effect, because rules of longer prefixes cover the prefix */
	struct rule_group covered;
	uint64_t vlans[VLAN_IDS / 64]; /* a bit for each VLAN that a limit matches */
};

/* Finds the facts. `set` must be sorted, with one rule per prefix, as rules_read() returns it. */
struct rule_facts rule_facts_find(const struct ruleset *set);

/* Returns the access of a rule by its runtime entry or lists. Ignores an entry that has an end. */
enum sl_access rule_entry(const struct rule *rule, const struct sl_list_info *lists);

#endif
