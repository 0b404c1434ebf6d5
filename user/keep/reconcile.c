// SPDX-License-Identifier: GPL-2.0
#include "keep/reconcile.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "rules/ruleset.h"
#include "rules/prefix.h"

static const struct sl_list_info no_lists[SL_LIST_PLACES];

static const struct sl_list_info *lists_of(const struct ruleset *set)
{
	return set->lists ?: no_lists;
}

/* --- Sets ----------------------------------------------------------------------------------- */

/* Adds a rule that is not empty, and frees an empty one. */
static int rule_add(struct ruleset *set, struct rule *rule)
{
	if (rule->access || rule->lists || rule->limits || rule->newcomers)
		return ruleset_add(set, rule);
	rule_free(rule);
	return 0;
}

int rules_copy(const struct ruleset *set, uint64_t lists, bool bare, struct ruleset *ret)
{
	_cleanup_(ruleset_free) struct ruleset copy = {0};
	int err = ruleset_make_lists(&copy);

	for (int place = 0; !err && place < SL_LIST_PLACES; place++)
		if (lists & 1ULL << place)
			copy.lists[place] = lists_of(set)[place];
	for (unsigned int i = 0; !err && i < set->count; i++) {
		const struct rule *from = &set->rules[i];
		struct rule rule = {.prefix = from->prefix,
				    .lists = from->lists,
				    .list_until = from->list_until,
				    .timed = from->timed};

		if (!bare)
			err = rule_copy(from, &rule);
		rule_remove_lists(&rule, ~lists);
		err = err ?: rule_add(&copy, &rule);
	}
	if (err)
		return err;
	*ret = copy;
	copy = (struct ruleset){0};
	return 0;
}

/*
 * Adds to a rule what it lacks and another rule of its prefix has. places: of the lists there; -1:
 * skipped.
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
			error_notice("two-ends", prefix_format(&from->prefix, text),
				     "it leaves a list: it has a time on another list");
	}
	if (!rule->access) {
		rule->access = from->access;
		rule->until = from->until;
	}
	return 0;
}

int rules_join(struct ruleset *set, const struct ruleset *other)
{
	_cleanup_(ruleset_free) struct ruleset all = {0};
	struct rule_pairs pairs = {.from = set, .to = other};
	const struct rule *has, *adds;
	int places[SL_LIST_PLACES];
	int err = rules_copy(&(struct ruleset){.lists = set->lists}, UINT64_MAX, true, &all);

	for (int at = 0; !err && at < SL_LIST_PLACES; at++) {
		struct sl_list_info list = lists_of(other)[at];
		int place = lists_find(all.lists, "");

		list.since = list.gone = 0;
		places[at] = -1;
		/* a list without a place is reported and left out */
		if (*list.name && lists_find(lists_of(set), list.name) < 0 &&
		    !lists_put(all.lists, &list, place))
			places[at] = place;
	}
	while (!err && rule_pairs_next(&pairs, &has, &adds)) {
		struct rule rule = {.prefix = (has ?: adds)->prefix};

		if (has)
			err = rule_copy(has, &rule);
		if (!err && adds)
			err = rule_join(adds, places, &rule);
		err = err ?: rule_add(&all, &rule);
	}
	if (err)
		return err;
	ruleset_free(set);
	*set = all;
	all = (struct ruleset){0};
	return 0;
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
	err = rules_copy(known, bits, true, &copies);
	if (err)
		return err;
	memcpy(copies.lists, lists, sizeof(lists));
	return rules_join(file, &copies);
}

/* --- Reconciling ---------------------------------------------------------------------------- */

/* The places of the lists of a set that others also have, as bits. */
static uint64_t lists_shared(const struct ruleset *set, const struct ruleset *others)
{
	uint64_t bits = 0;

	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*lists_of(set)[place].name &&
		    lists_find(lists_of(others), lists_of(set)[place].name) >= 0)
			bits |= 1ULL << place;
	return bits;
}

/*
 * Returns whether the file says something else of the prefix of an entry by hand. An allow is an
 * exception to the lists that deny its prefix.
 */
static bool is_contradicted(const struct ruleset *file, const struct rule *entry)
{
	const struct rule *rule = ruleset_find(file, &entry->prefix);
	enum sl_access by_lists = rule ? lists_access(lists_of(file), rule->lists) : SL_ACCESS_NONE;

	if (rule && rule->access)
		return true;
	return by_lists && entry->access != SL_ACCESS_ALLOW && entry->access != by_lists;
}

int rules_runtime(const struct ruleset *in_force, const struct ruleset *was,
		  const struct ruleset *file, struct ruleset *ret)
{
	uint64_t lists = lists_bits(lists_of(in_force)) & ~lists_shared(in_force, was);
	int err = rules_copy(in_force, lists, false, ret);
	unsigned int kept = 0;

	for (unsigned int i = 0; !err && i < ret->count; i++) {
		struct rule *rule = &ret->rules[i];
		const struct rule *before = ruleset_find(was, &rule->prefix);

		rule_free(rule);
		if (is_contradicted(file, rule) || (before && rule->access == before->access &&
						    until_equal(rule->until, before->until))) {
			rule->access = SL_ACCESS_NONE;
			rule->until = 0;
		}
		if (!rule_is_empty(rule))
			ret->rules[kept++] = *rule;
	}
	ret->count = err ? ret->count : kept;
	return err;
}

static void undone_add(struct undone *undone, const char *name)
{
	size_t length = strlen(undone->names);

	if (undone->count < UNDONE_NAMES)
		snprintf(undone->names + length, UNDONE_TEXT - length, "%s%s", length ? ", " : "",
			 name);
	else if (undone->count == UNDONE_NAMES)
		snprintf(undone->names + length, UNDONE_TEXT - length, " ...");
	undone->count++;
}

/* Compares the policies, or else the entries by hand, of two rules. */
static bool part_equal(const struct rule *a, const struct rule *b, bool policy)
{
	struct rule x = *a, y = *b;

	x.lists = y.lists = 0;
	if (policy)
		x.access = y.access = SL_ACCESS_NONE;
	else
		x.limits = y.limits = 0;
	return rule_equal(&x, &y);
}

/* Finds what a command changed, so that it is not as it was, and what is not as it is in force. */
static void undone_find(const struct ruleset *in_force, const struct ruleset *was,
			const struct ruleset *wanted, struct undone *undone)
{
	struct rule_pairs pairs = {.from = in_force, .to = wanted};
	const struct sl_list_info *lists = lists_of(wanted);
	const struct rule *has, *gets;
	char text[PREFIX_TEXT];

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *list = &lists[place];
		int is = lists_find(lists_of(in_force), list->name);
		int before = lists_find(lists_of(was), list->name);

		if (!*list->name)
			continue;
		if (before >= 0 && list_ended(&was->lists[before]))
			before = -1;
		if (is < 0 ? before >= 0 : before < 0 && !list_same(&in_force->lists[is], list))
			undone_add(undone, list->name);
	}
	while (rule_pairs_next(&pairs, &has, &gets)) {
		const struct rule none = {.prefix = (has ?: gets)->prefix};
		const struct rule *before = ruleset_find(was, &none.prefix) ?: &none;
		bool changed = false;

		for (int policy = false; policy <= true; policy++)
			changed |= !part_equal(has ?: &none, before, policy) &&
				   !part_equal(has ?: &none, gets ?: &none, policy);
		if (changed)
			undone_add(undone, prefix_format(&none.prefix, text));
	}
}

/* Joins the lists of the file with the rules in force that are not on lists of the file before. */
static int reconcile_lists(const struct ruleset *in_force, const struct ruleset *file,
			   const struct ruleset *was, struct ruleset *wanted)
{
	_cleanup_(ruleset_free) struct ruleset others = {0};
	int err = rules_copy(file, UINT64_MAX, true, wanted)
			  ?: rules_copy(in_force, ~lists_shared(in_force, was), false, &others);

	for (int place = 0; !err && place < SL_LIST_PLACES; place++) {
		struct sl_list_info *list = &wanted->lists[place];
		int at = *list->name ? lists_find(lists_of(in_force), list->name) : -1;

		/* `for` of a file begins when the file is applied, not when a list is read again */
		if (at >= 0 && in_force->lists[at].access == list->access)
			list->until = in_force->lists[at].until;
	}
	return err ?: rules_join(wanted, &others);
}

int reconcile(const struct ruleset *in_force, const struct ruleset *file, const struct ruleset *was,
	      enum renew renew, struct ruleset *ret, struct undone *ret_undone)
{
	_cleanup_(ruleset_free) struct ruleset runtime = {0};
	int err;

	*ret_undone = (struct undone){0};
	if (renew == RENEW_LISTS)
		return reconcile_lists(in_force, file, was, ret);
	err = rules_copy(file, UINT64_MAX, false, ret)
		      ?: rules_runtime(in_force, was, file, &runtime)
		      ?: rules_join(ret, &runtime);
	if (!err)
		undone_find(in_force, was, ret, ret_undone);
	return err;
}
