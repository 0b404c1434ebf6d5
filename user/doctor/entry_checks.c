// SPDX-License-Identifier: GPL-2.0
#include "doctor/entry_checks.h"

#include "base/text.h"
#include "doctor/cases.h"
#include "doctor/cover.h"
#include "rules/lists.h"
#include "rules/prefix.h"

/* --- Entries -------------------------------------------------------------------------------- */

enum sl_list entry_of(const struct rule *rule, const struct sl_list_info *lists)
{
	uint64_t bits = rule->lists;

	if (rule->access)
		return rule->until ? SL_LIST_NONE : rule->access;
	for (int place = 0; lists && place < SL_LIST_PLACES; place++)
		if (lists[place].until || rule_list_end(rule, place))
			bits &= ~(1ULL << place);
	return lists ? lists_access(lists, bits) : SL_LIST_NONE;
}

/*
 * Returns the first list with this access that has the rule, preferably a list without an end.
 * Doctor reports the next list after that entry is taken back.
 */
static const char *list_saying(const struct rule *rule, const struct sl_list_info *lists,
			       enum sl_list access)
{
	const char *ending = "";

	for (int place = SL_LIST_PLACES - 1; place >= 0; place--)
		if (rule->lists >> place & 1 && lists[place].list == access && lists[place].until)
			ending = lists[place].name;
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (rule->lists >> place & 1 && lists[place].list == access && !lists[place].until)
			return lists[place].name;
	return ending;
}

/* Advises the command that takes the rule's entry with this access back. */
static void advise_taking_back(const struct rule *rule, enum sl_list access,
			       const struct ruleset *set, const char *gate,
			       struct findings *findings)
{
	const char *option = gate_option(gate);
	const char *verb = access == SL_LIST_ALLOW ? "unallow" : "undeny";
	char prefix[PREFIX_TEXT];

	if (rule->access)
		finding_advise(findings, "sluice %s%s %s", option, verb,
			       prefix_format(&rule->prefix, prefix));
	else
		finding_advise(findings, "sluice %s%s -f %s", option, verb,
			       word_typed(list_saying(rule, set->lists, access)));
}

/* Whether a rule may drop packets of an everything that is allowed: by hand, or by lists. */
static bool is_exception(const struct rule *rule, const struct ruleset *set, bool by_hand)
{
	if (rule->limits)
		return true;
	return entry_of(rule, set->lists) == SL_LIST_DENY && (rule->access || !by_hand);
}

/* Whether nothing longer is an exception from a rule that allows everything. */
static bool has_no_exception(const struct ruleset *set, unsigned int index)
{
	const struct rule *rule = &set->rules[index];

	for (unsigned int i = index + 1; i < set->count; i++) {
		if (!prefix_covers(&rule->prefix, &set->rules[i].prefix))
			break;
		if (is_exception(&set->rules[i], set, rule->access))
			return false;
	}
	return true;
}

/* To allow one family alone is a decision; to allow both leaves nothing to do. */
static void allowed_all_check(const struct ruleset *set, const char *gate,
			      struct findings *findings)
{
	struct cases cases = {0};
	bool ipv4 = false, ipv6 = false;

	for (unsigned int i = 0; i < set->count; i++) {
		const struct sl_prefix *prefix = &set->rules[i].prefix;

		if (prefix->bits > SL_FAMILY_BITS ||
		    entry_of(&set->rules[i], set->lists) != SL_LIST_ALLOW ||
		    !has_no_exception(set, i))
			continue;
		if (!cases.count)
			case_add(&cases, &set->rules[i], NULL);
		ipv4 |= !prefix_is_ipv6(prefix);
		ipv6 |= !prefix_is_ipv4(prefix);
	}
	if (ipv4 && ipv6 &&
	    cases_tell(&cases, FIND_ALLOWED_ALL, findings,
		       "all sources are allowed, and no longer prefix is denied or limited: "
		       "nothing can be dropped"))
		advise_taking_back(cases.rule, SL_LIST_ALLOW, set, gate, findings);
}

/* --- Everything denied ---------------------------------------------------------------------- */

static enum sl_list entry_now(const struct rule *rule, const struct sl_list_info *lists)
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
			return set->rules[index].access == SL_LIST_ALLOW;
	return false;
}

/* Whether each packet from the prefix of the rule is denied. */
static bool denies_all(const struct ruleset *set, unsigned int index)
{
	const struct rule *rule = &set->rules[index];

	if (entry_now(rule, set->lists) != SL_LIST_DENY ||
	    (!rule->access && hand_allows(set, index)))
		return false;
	for (unsigned int i = index + 1; i < set->count; i++) {
		enum sl_list entry = entry_now(&set->rules[i], set->lists);

		if (!prefix_covers(&rule->prefix, &set->rules[i].prefix))
			break;
		if (entry == SL_LIST_ALLOW || (set->rules[i].limits && !entry))
			return false;
	}
	return true;
}

bool denied_all_check(const struct ruleset *set, const char *gate, struct findings *findings)
{
	const struct rule *first = NULL, *last = NULL;
	cover denied = 0; /* of IPv4 */
	char text[PREFIX_TEXT];

	for (unsigned int i = 0; i < set->count; i++) {
		const struct sl_prefix *prefix = &set->rules[i].prefix;

		if (prefix_is_ipv6(prefix) || !entry_is_wide(prefix) ||
		    (last && prefix_covers(&last->prefix, prefix)) || !denies_all(set, i))
			continue;
		last = &set->rules[i];
		first = first ?: last;
		denied += prefix->bits ? COVER_ALL >> (prefix->bits - SL_FAMILY_BITS) : COVER_ALL;
	}
	if (denied != COVER_ALL)
		return false;
	finding_add(findings, FIND_DENIED_ALL, prefix_format(&first->prefix, text),
		    "all %ssources are denied and no longer prefix is allowed or limited, so all "
		    "their packets are dropped",
		    first->prefix.bits ? "IPv4 " : "");
	advise_taking_back(first, SL_LIST_DENY, set, gate, findings);
	return true;
}

/* --- Limits without effect ------------------------------------------------------------------ */

static void entry_over_limits_check(const struct ruleset *set, const char *gate,
				    struct findings *findings)
{
	struct cases cases = {0};

	for (unsigned int i = 0; i < set->count; i++)
		if (set->rules[i].limits && entry_of(&set->rules[i], set->lists))
			case_add(&cases, &set->rules[i], NULL);
	if (cases_tell(&cases, FIND_ENTRY_OVER_LIMITS, findings,
		       "it is %s as a whole, so its limits are never asked",
		       cases.count ? access_done[entry_of(cases.rule, set->lists)] : ""))
		advise_taking_back(cases.rule, entry_of(cases.rule, set->lists), set, gate,
				   findings);
}

/* --- Allow over deny ------------------------------------------------------------------------ */

/* Of a list that denies: how many of its entries there are, and how many are allowed by hand. */
struct overruled {
	unsigned int denied, allowed;
	const struct rule *first; /* of those, and the entry that allows it */
	const struct rule *by;
};

/* A family and 128 bits may each have an entry. */
#define ENTRIES_DEEP 130

static void overruled_count(const struct ruleset *set, const struct rule *rule,
			    const struct rule *by, struct overruled lists[SL_LIST_PLACES])
{
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		struct overruled *list = &lists[place];

		if (!(rule->lists >> place & 1) || set->lists[place].list != SL_LIST_DENY ||
		    set->lists[place].until || rule_list_end(rule, place))
			continue;
		list->denied++;
		if (!by)
			continue;
		if (!list->allowed++) {
			list->first = rule;
			list->by = by;
		}
	}
}

/*
 * An entry by hand decides about the lists of all longer prefixes down to the next entry by hand:
 * lookup_face() in bpf/lookup.h. `over` is the way of such entries down to the present rule.
 */
static void overruled_find(const struct ruleset *set, struct overruled lists[SL_LIST_PLACES])
{
	const struct rule *over[ENTRIES_DEEP + 1];
	unsigned int depth = 0;

	for (unsigned int i = 0; i < set->count; i++) {
		const struct rule *rule = &set->rules[i], *by;

		while (depth && !prefix_covers(&over[depth - 1]->prefix, &rule->prefix))
			depth--;
		if (rule->access && !rule->until)
			over[depth++] = rule;
		by = depth && over[depth - 1]->access == SL_LIST_ALLOW ? over[depth - 1] : NULL;
		if (rule->lists)
			overruled_count(set, rule, by, lists);
	}
}

/*
 * To allow by hand what a list denies is how an exception is made. It is told where it is no longer
 * one: when most of the list has no effect.
 */
static void lists_overruled_check(const struct ruleset *set, const char *gate,
				  struct findings *findings)
{
	struct overruled lists[SL_LIST_PLACES] = {0};
	char first[PREFIX_TEXT], text[PREFIX_TEXT];

	if (set->lists)
		overruled_find(set, lists);
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		const struct overruled *list = &lists[place];
		const char *by;

		if (list->allowed * 2ULL <= list->denied)
			continue;
		by = prefix_format(&list->by->prefix, text);
		finding_add(findings, FIND_ALLOW_OVER_DENY, by,
			    "it is allowed by hand, and entries by hand come before lists: %u of "
			    "%u entries of list '%s', which denies, have no effect, first %s",
			    list->allowed, list->denied, set->lists[place].name,
			    prefix_format(&list->first->prefix, first));
		finding_advise(findings, "sluice %sunallow %s", gate_option(gate), by);
	}
}

static bool allows_by_hand(const struct rule *rule, const struct sl_list_info *lists)
{
	(void)lists;
	return rule->access == SL_LIST_ALLOW && !rule->until;
}

/* The same of entries by hand: longer ones that allow, and leave the lesser part denied. */
static void denies_overruled_check(const struct ruleset *set, const char *gate,
				   struct findings *findings)
{
	struct cases cases = {0};

	for (unsigned int i = 0; i < set->count; i++)
		if (set->rules[i].access == SL_LIST_DENY && !set->rules[i].until &&
		    cover_of(set, i, allows_by_hand) > COVER_ALL / 2)
			case_add(&cases, &set->rules[i], NULL);
	if (cases_tell(&cases, FIND_ALLOW_OVER_DENY, findings,
		       "it is denied, and longer prefixes that are allowed take more than half "
		       "of it away"))
		finding_advise(findings, "sluice %sshow", gate_option(gate));
}

void entries_check(const struct ruleset *set, const char *gate, struct findings *findings)
{
	allowed_all_check(set, gate, findings);
	entry_over_limits_check(set, gate, findings);
	lists_overruled_check(set, gate, findings);
	denies_overruled_check(set, gate, findings);
}
