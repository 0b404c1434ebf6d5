// SPDX-License-Identifier: GPL-2.0
#include "keep/reconcile.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

static const struct sl_list_info no_lists[SL_LIST_PLACES];

static const struct sl_list_info *lists_of(const struct ruleset *set)
{
	return set->lists ?: no_lists;
}

/* Returns whether the runtime entries of two rules have the same access and the same end. */
static bool entry_equal(const struct rule *a, const struct rule *b)
{
	return a->access == b->access && until_equal(a->until, b->until);
}

/* --- Sets ----------------------------------------------------------------------------------- */

enum parts {
	PARTS_LISTS,
	PARTS_ENTRIES, /* copy lists and runtime entries, but no policies */
	PARTS_ALL,     /* copy lists, runtime entries and policies */
};

/* Copies `parts` of each rule of `set`. Copies only lists whose bits are set in `lists`. */
static int reconcile_copy_rules(const struct ruleset *set, uint64_t lists, enum parts parts,
				struct ruleset *ret)
{
	_cleanup_(ruleset_free) struct ruleset copy = {0};
	int err = ruleset_make_lists(&copy);

	for (int place = 0; !err && place < SL_LIST_PLACES; place++)
		if (lists & 1ULL << place)
			copy.lists[place] = lists_of(set)[place];
	for (unsigned int i = 0; !err && i < set->count; i++) {
		struct rule from = set->rules[i], rule;

		if (parts < PARTS_ENTRIES)
			from.access = from.until = 0;
		if (parts < PARTS_ALL) {
			from.limits = from.inherit = 0;
			from.newcomers = NULL;
		}
		rule_remove_lists(&from, ~lists);
		if (!rule_is_empty(&from) || from.newcomers)
			err = rule_copy(&from, &rule) ?: ruleset_add(&copy, &rule);
	}
	if (err)
		return err;
	*ret = copy;
	copy = (struct ruleset){0};
	return 0;
}

/*
 * Adds the limits, lists and entries of `from` that `rule` lacks. Both rules have the same prefix.
 * `places` maps the index of a list in from's set to its index in rule's set. An index of -1 skips
 * the list.
 */
static int rule_join(const struct rule *from, const int *places, struct rule *rule)
{
	struct rule copy;
	char text[PREFIX_TEXT];
	int err = rule->limits ? 0 : rule_copy(from, &copy);

	if (err)
		return err;
	if (!rule->limits)
		rule_take_policy(rule, &copy);
	for (uint64_t bits = from->lists; bits; bits &= bits - 1) {
		int at = __builtin_ctzll(bits), place = places[at];

		if (place >= 0 && !rule_add_list(rule, place, rule_list_end(from, at)))
			error_notice("third-end", prefix_format(&from->prefix, text),
				     "removed from a list, because its entries on two other lists "
				     "end too, and only two ends are stored");
	}
	if (!rule->access) {
		rule->access = from->access;
		rule->until = from->until;
	}
	return 0;
}

int rules_join(struct ruleset *set, const struct ruleset *other)
{
	unsigned int count = set->count; /* rules from this index on are from `other`, not sorted */
	int places[SL_LIST_PLACES];
	int err = ruleset_make_lists(set);

	for (int at = 0; !err && at < SL_LIST_PLACES; at++) {
		struct sl_list_info list = lists_of(other)[at];
		int place = lists_find(set->lists, "");

		list.since = list.gone = 0;
		places[at] = -1;
		/* if the set has no room, lists_put() adds an error, and this list is skipped */
		if (*list.name && lists_find(set->lists, list.name) < 0 &&
		    !lists_put(set->lists, &list, place))
			places[at] = place;
	}
	for (unsigned int i = 0; !err && i < other->count; i++) {
		const struct rule *adds = &other->rules[i];
		const struct rule *has = ruleset_find(
			&(struct ruleset){.rules = set->rules, .count = count}, &adds->prefix);
		struct rule rule = {.prefix = adds->prefix};

		err = rule_join(adds, places, has ? &set->rules[has - set->rules] : &rule);
		if (!err && !has && (!rule_is_empty(&rule) || rule.newcomers))
			err = ruleset_add(set, &rule);
	}
	if (!err)
		ruleset_sort(set);
	return err;
}

int rules_complete(struct ruleset *file, const struct list_paths *paths,
		   const struct ruleset *known)
{
	struct sl_list_info lists[SL_LIST_PLACES] = {0};
	_cleanup_(ruleset_free) struct ruleset copies = {0};
	uint64_t bits = 0;
	int err;

	for (unsigned int i = 0; i < paths->count; i++) {
		const struct sl_list_info *list = &paths->list[i].list;
		int place = lists_find(lists_of(known), list->name);

		if (!paths->list[i].is_left_out || place < 0)
			continue;
		lists[place] = *list;
		lists[place].replaced = known->lists[place].replaced;
		bits |= 1ULL << place;
	}
	if (!bits)
		return 0;
	err = reconcile_copy_rules(known, bits, PARTS_LISTS, &copies);
	if (err)
		return err;
	memcpy(copies.lists, lists, sizeof(lists));
	return rules_join(file, &copies);
}

/* --- Reconciling ---------------------------------------------------------------------------- */

/*
 * Returns the lists of `set` that are not in `others`. Bit N stands for the list at index N of
 * `set`.
 */
static uint64_t lists_own(const struct ruleset *set, const struct ruleset *others)
{
	uint64_t bits = 0;

	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*lists_of(set)[place].name &&
		    lists_find(lists_of(others), lists_of(set)[place].name) < 0)
			bits |= 1ULL << place;
	return bits;
}

int rules_runtime(const struct ruleset *in_force, const struct ruleset *was,
		  const struct ruleset *file, struct ruleset *ret)
{
	int err = reconcile_copy_rules(in_force, lists_own(in_force, was), PARTS_ENTRIES, ret);
	unsigned int kept = 0;

	if (err)
		return err;
	for (unsigned int i = 0; i < ret->count; i++) {
		struct rule *rule = &ret->rules[i];
		const struct rule *before = ruleset_find(was, &rule->prefix);
		const struct rule *now = ruleset_find(file, &rule->prefix);
		enum sl_access by_lists =
			now ? lists_access(lists_of(file), now->lists) : SL_ACCESS_NONE;

		/*
		 * an `allow` entry does not contradict a list that denies, because it is an
		 * exception
		 */
		if ((before && entry_equal(rule, before)) || (now && now->access) ||
		    (by_lists && rule->access != SL_ACCESS_ALLOW && rule->access != by_lists))
			rule->access = rule->until = 0;
		if (!rule_is_empty(rule))
			ret->rules[kept++] = *rule;
	}
	ret->count = kept;
	return 0;
}

static bool policy_equal(const struct rule *a, const struct rule *b)
{
	struct rule x = *a, y = *b;

	x.access = y.access = 0;
	x.lists = y.lists = 0;
	return rule_equal(&x, &y);
}

/*
 * Counts prefixes that commands changed, and whose rules in force differ from those in `wanted`.
 * Stores the first of these prefixes.
 */
static void undone_find(const struct ruleset *in_force, const struct ruleset *was,
			const struct ruleset *wanted, struct undone *undone)
{
	struct rule_pairs pairs = {.from = in_force, .to = wanted};
	const struct rule *has, *gets;
	char text[PREFIX_TEXT];

	while (rule_pairs_next(&pairs, &has, &gets)) {
		const struct rule none = {.prefix = (has ?: gets)->prefix};
		const struct rule *before = ruleset_find(was, &none.prefix) ?: &none;

		has = has ?: &none;
		gets = gets ?: &none;
		if ((policy_equal(has, before) || policy_equal(has, gets)) &&
		    (entry_equal(has, before) || entry_equal(has, gets)))
			continue;
		if (!undone->count++)
			strcpy(undone->first, prefix_format(&none.prefix, text));
	}
}

int reconcile(const struct ruleset *in_force, const struct ruleset *file, const struct ruleset *was,
	      enum renew renew, struct ruleset *ret, struct undone *ret_undone)
{
	enum parts parts = renew == RENEW_ALL ? PARTS_ALL : PARTS_LISTS;
	_cleanup_(ruleset_free) struct ruleset others = {0};
	int err = reconcile_copy_rules(file, UINT64_MAX, parts, ret);

	*ret_undone = (struct undone){0};
	if (err)
		return err;
	if (renew == RENEW_ALL) {
		err = rules_runtime(in_force, was, file, &others) ?: rules_join(ret, &others);
		if (!err)
			undone_find(in_force, was, ret, ret_undone);
		return err;
	}
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		struct sl_list_info *list = &ret->lists[place];
		int at = *list->name ? lists_find(lists_of(in_force), list->name) : -1;

		/*
		 * a list in force keeps its end, because `for` counts from the time when the file
		 * was applied
		 */
		if (at >= 0 && in_force->lists[at].access == list->access)
			list->until = in_force->lists[at].until;
	}
	return reconcile_copy_rules(in_force, lists_own(in_force, was), PARTS_ALL, &others)
		       ?: rules_join(ret, &others);
}
