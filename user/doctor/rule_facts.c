// SPDX-License-Identifier: GPL-2.0
#include "doctor/rule_facts.h"

#include "rules/ruleset.h"
#include "rules/prefix.h"

static void group_add(struct rule_group *group, const struct rule *rule)
{
	if (!group->count++)
		group->rule = rule;
}

enum sl_access rule_entry(const struct rule *rule, const struct sl_list_info *lists)
{
	uint64_t bits = rule->lists;

	if (rule->access)
		return rule->until ? SL_ACCESS_NONE : rule->access;
	for (int place = 0; lists && place < SL_LIST_PLACES; place++)
		if (lists[place].until || rule_list_end(rule, place))
			bits &= ~(1ULL << place);
	return lists ? lists_access(lists, bits) : SL_ACCESS_NONE;
}

/* --- Coverage ------------------------------------------------------------------------------- */

/* The part of a prefix that longer prefixes cover, as a fixed-point number. COVER_ALL is 1. */
typedef unsigned __int128 coverage;

#define COVER_ALL ((coverage)1 << 127)

/*
 * Returns the part of a rule's prefix in which the rule's limits have no effect. A rule with a
 * longer prefix has this effect if it allows or denies, or if it has limits and does not inherit.
 */
static coverage coverage_of(const struct ruleset *set, unsigned int index)
{
	const struct sl_prefix *prefix = &set->rules[index].prefix, *counted = NULL;
	coverage sum = 0;

	for (unsigned int i = index + 1; i < set->count; i++) {
		const struct rule *rule = &set->rules[i];
		unsigned int halvings;

		if (!prefix_covers(prefix, &rule->prefix))
			break;
		if ((counted && prefix_covers(counted, &rule->prefix)) ||
		    (!rule_entry(rule, set->lists) && (!rule->limits || rule_inherits(rule))))
			continue;
		counted = &rule->prefix;
		/* in this unit, IPv4 and IPv6 are each one half of `default` */
		halvings = counted->bits - (prefix->bits ?: SL_FAMILY_BITS - 1);
		sum += halvings < 128 ? COVER_ALL >> halvings : 0;
	}
	return sum;
}

/* --- Everything denied or allowed ----------------------------------------------------------- */

/* Returns the access that a rule has now by its runtime entry or lists, even if it will end. */
static enum sl_access entry_now(const struct rule *rule, const struct sl_list_info *lists)
{
	return rule->access || !lists ? rule->access : lists_access(lists, rule->lists);
}

/* Returns whether a rule denies every packet of its prefix. */
static bool denies_all(const struct ruleset *set, unsigned int index)
{
	const struct rule *rule = &set->rules[index], *first = &set->rules[0];

	if (entry_now(rule, set->lists) != SL_ACCESS_DENY)
		return false;
	/* a runtime entry that allows `default` has precedence over lists that deny */
	if (!rule->access && !first->prefix.bits && first->access == SL_ACCESS_ALLOW)
		return false;
	for (unsigned int i = index + 1; i < set->count; i++) {
		enum sl_access entry = entry_now(&set->rules[i], set->lists);

		if (!prefix_covers(&rule->prefix, &set->rules[i].prefix))
			break;
		if (entry == SL_ACCESS_ALLOW || (set->rules[i].limits && !entry))
			return false;
	}
	return true;
}

/*
 * Returns whether the prefix of rule `index` contains a longer prefix whose rule may drop packets.
 * If a runtime entry allows the prefix of rule `index`, a list on which the longer prefix is denied
 * has no effect.
 */
static bool has_exception(const struct ruleset *set, unsigned int index)
{
	const struct rule *rule = &set->rules[index];

	for (unsigned int i = index + 1; i < set->count; i++) {
		const struct rule *longer = &set->rules[i];

		if (!prefix_covers(&rule->prefix, &longer->prefix))
			break;
		if (longer->limits || (rule_entry(longer, set->lists) == SL_ACCESS_DENY &&
				       (longer->access || !rule->access)))
			return true;
	}
	return false;
}

/*
 * Finds rules that deny IPv4, or that allow both families. Ignores rules that deny only IPv6 or
 * allow only one family, because users probably intend them.
 */
static void families_judge(const struct ruleset *set, struct rule_facts *facts)
{
	bool ipv4 = false, ipv6 = false;

	for (unsigned int i = 0; i < set->count; i++) {
		const struct sl_prefix *prefix = &set->rules[i].prefix;

		if (prefix->bits > SL_FAMILY_BITS)
			continue;
		if (!prefix_is_ipv6(prefix) && denies_all(set, i))
			group_add(&facts->denied_all, &set->rules[i]);
		if (rule_entry(&set->rules[i], set->lists) != SL_ACCESS_ALLOW ||
		    has_exception(set, i))
			continue;
		group_add(&facts->allowed_all, &set->rules[i]);
		ipv4 |= !prefix_is_ipv6(prefix);
		ipv6 |= !prefix_is_ipv4(prefix);
	}
	if (!ipv4 || !ipv6 || facts->denied_all.count)
		facts->allowed_all = (struct rule_group){0};
}

/* --- All facts ------------------------------------------------------------------------------ */

struct rule_facts rule_facts_find(const struct ruleset *set)
{
	struct rule_facts facts = {0};

	families_judge(set, &facts);
	for (unsigned int i = 0; !facts.denied_all.count && i < set->count; i++) {
		const struct rule *rule = &set->rules[i];

		if (rule->limits && rule_entry(rule, set->lists))
			group_add(&facts.entries, rule);
		if (rule->limits && coverage_of(set, i) == COVER_ALL)
			group_add(&facts.covered, rule);
		for (unsigned int j = 0; j < rule->limits; j++) {
			unsigned int vlan = rule->limit[j].match.vlan;

			if (vlan && vlan < VLAN_IDS)
				facts.vlans[vlan / 64] |= 1ULL << vlan % 64;
		}
	}
	return facts;
}
