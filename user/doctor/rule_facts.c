// SPDX-License-Identifier: GPL-2.0
#include "doctor/rule_facts.h"

#include "rules/ruleset.h"
#include "rules/prefix.h"

static void group_add(struct rule_group *group, const struct rule *rule, const struct limit *limit)
{
	if (!group->count++)
		*group = (struct rule_group){rule, limit, 1};
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

const char *rule_entry_list(const struct rule *rule, const struct sl_list_info *lists,
			    enum sl_access access)
{
	const char *expiring = NULL;

	for (int place = 0; !rule->access && lists && place < SL_LIST_PLACES; place++) {
		if (!(rule->lists >> place & 1) || lists[place].access != access)
			continue;
		if (!lists[place].until)
			return lists[place].name;
		expiring = expiring ?: lists[place].name;
	}
	return expiring;
}

/* --- How much of a prefix rules cover ------------------------------------------------------- */

/* A part of a prefix: all of it is COVER_ALL. */
typedef unsigned __int128 coverage;

#define COVER_ALL ((coverage)1 << 127)

/*
 * Returns the part of the prefix of a rule that longer rules take from its limits: by an entry, or
 * by limits that do not inherit.
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
		/* `default` is two families */
		halvings = counted->bits - (prefix->bits ?: SL_FAMILY_BITS - 1);
		sum += halvings < 128 ? COVER_ALL >> halvings : 0;
	}
	return sum;
}

/* --- Everything denied ---------------------------------------------------------------------- */

/* Returns the entry of a rule, also if it expires. */
static enum sl_access entry_now(const struct rule *rule, const struct sl_list_info *lists)
{
	if (rule->access || !lists)
		return rule->access;
	return lists_access(lists, rule->lists);
}

/* Whether the next shorter entry by hand is an allow. Then no list denies this prefix. */
static bool hand_allows(const struct ruleset *set, unsigned int index)
{
	const struct sl_prefix *prefix = &set->rules[index].prefix;

	while (index--)
		if (set->rules[index].access && prefix_covers(&set->rules[index].prefix, prefix))
			return set->rules[index].access == SL_ACCESS_ALLOW;
	return false;
}

/* Whether each packet from the prefix of the rule is denied. */
static bool denies_all(const struct ruleset *set, unsigned int index)
{
	const struct rule *rule = &set->rules[index];

	if (entry_now(rule, set->lists) != SL_ACCESS_DENY ||
	    (!rule->access && hand_allows(set, index)))
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

static struct rule_group denied_all_find(const struct ruleset *set)
{
	const struct rule *last = NULL;
	struct rule_group group = {0};
	coverage denied = 0; /* of IPv4 */

	for (unsigned int i = 0; i < set->count; i++) {
		const struct sl_prefix *prefix = &set->rules[i].prefix;

		if (prefix_is_ipv6(prefix) || !entry_is_wide(prefix) ||
		    (last && prefix_covers(&last->prefix, prefix)) || !denies_all(set, i))
			continue;
		last = &set->rules[i];
		group_add(&group, last, NULL);
		denied += prefix->bits ? COVER_ALL >> (prefix->bits - SL_FAMILY_BITS) : COVER_ALL;
	}
	return denied == COVER_ALL ? group : (struct rule_group){0};
}

/* --- Everything allowed --------------------------------------------------------------------- */

/* Whether a longer rule may drop packets: a list that denies does not, below an allow by hand. */
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

/* To allow one family alone is a decision; to allow both leaves nothing to do. */
static struct rule_group allowed_all_find(const struct ruleset *set)
{
	struct rule_group group = {0};
	bool ipv4 = false, ipv6 = false;

	for (unsigned int i = 0; i < set->count; i++) {
		const struct sl_prefix *prefix = &set->rules[i].prefix;

		if (prefix->bits > SL_FAMILY_BITS ||
		    rule_entry(&set->rules[i], set->lists) != SL_ACCESS_ALLOW ||
		    has_exception(set, i))
			continue;
		group_add(&group, &set->rules[i], NULL);
		ipv4 |= !prefix_is_ipv6(prefix);
		ipv6 |= !prefix_is_ipv4(prefix);
	}
	return ipv4 && ipv6 ? group : (struct rule_group){0};
}

/* --- All of them ---------------------------------------------------------------------------- */

struct rule_facts rule_facts_find(const struct ruleset *set)
{
	struct rule_facts facts = {.denied_all = denied_all_find(set)};

	if (facts.denied_all.count)
		return facts;
	facts.allowed_all = allowed_all_find(set);
	for (unsigned int i = 0; i < set->count; i++) {
		const struct rule *rule = &set->rules[i];

		if (rule->limits && rule_entry(rule, set->lists))
			group_add(&facts.entries, rule, NULL);
		if (rule->limits && coverage_of(set, i) == COVER_ALL)
			group_add(&facts.covered, rule, NULL);
		for (unsigned int j = 0; j < rule->limits; j++) {
			const struct limit *limit = &rule->limit[j];
			unsigned int vlan = limit->match.vlan;

			if (limit->spec.kind == SL_SHAPE || limit->spec.key_dst)
				group_add(&facts.egress, rule, limit);
			if (vlan && vlan < VLAN_IDS)
				facts.vlans[vlan / 64] |= 1ULL << vlan % 64;
		}
	}
	return facts;
}
