// SPDX-License-Identifier: GPL-2.0
#include "keep/reconcile.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "rules/lists.h"
#include "rules/prefix.h"

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

static const struct sl_list_info no_lists[SL_LIST_PLACES];

static const struct sl_list_info *lists_of(const struct ruleset *set)
{
	return set->lists ?: no_lists;
}

/* Makes an empty set with copies of the lists of another set. */
static int set_begin(const struct ruleset *lists, struct ruleset *set)
{
	int err = ruleset_make_lists(set);

	if (!err)
		memcpy(set->lists, lists_of(lists), sizeof(no_lists));
	return err;
}

static void set_return(struct ruleset *set, struct ruleset *ret)
{
	*ret = *set;
	*set = (struct ruleset){0};
}

/* Adds a rule that is not empty, and frees an empty one. */
static int rule_add(struct ruleset *set, struct rule *rule)
{
	if (rule->access || rule->lists || rule->limits || rule->newcomers)
		return ruleset_add(set, rule);
	rule_free(rule);
	return 0;
}

/* For each place of a set, the place of its list in another set; -1: the list is not moved. */
struct moved {
	int place[SL_LIST_PLACES];
};

/*
 * Adds to a rule the entries of another rule on the lists that are moved. Returns false if an entry
 * is left out because the rule has a time on another list.
 */
static bool rule_move_lists(const struct moved *moved, const struct rule *from, struct rule *to)
{
	bool all = true;

	for (uint64_t bits = from->lists; bits; bits &= bits - 1) {
		int at = __builtin_ctzll(bits), place = moved->place[at];

		if (place >= 0)
			all &= rule_add_list(to, place, rule_list_end(from, at));
	}
	return all;
}

/*
 * Adds the lists whose names neither the set nor `others` has (NULL: no lists). If there is no place
 * for a list, it is reported and left out.
 */
static int lists_add(struct ruleset *set, const struct sl_list_info *lists,
		     const struct sl_list_info *others, struct moved *ret)
{
	int err = ruleset_make_lists(set);

	for (int place = 0; !err && place < SL_LIST_PLACES; place++) {
		struct sl_list_info list = lists[place];
		int to = lists_find(set->lists, "");

		ret->place[place] = -1;
		if (!*list.name || lists_find(set->lists, list.name) >= 0 ||
		    (others && lists_find(others, list.name) >= 0))
			continue;
		list.since = list.gone = 0;
		if (!lists_put(set->lists, &list, to))
			ret->place[place] = to;
	}
	return err;
}

/* --- Reconciling ---------------------------------------------------------------------------- */

struct reconciling {
	const struct ruleset *in_force, *file, *was;
	enum renew renew;
	bool policies_known;
	struct moved moved; /* the lists of commands */
	struct ruleset wanted;
	struct undone *undone;
};

static int lists_reconcile(struct reconciling *r)
{
	const struct sl_list_info *in_force = lists_of(r->in_force), *was = lists_of(r->was);
	int err = set_begin(r->file, &r->wanted);

	if (err)
		return err;
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *has = &in_force[place];
		int to = *has->name ? lists_find(r->wanted.lists, has->name) : -1;

		if (to < 0 || list_same(has, &r->wanted.lists[to]))
			continue;
		/* `for` of a file begins when the file is applied, not when a list is read again */
		if (r->renew == RENEW_LISTS && has->access == r->wanted.lists[to].access)
			r->wanted.lists[to].until = has->until;
		else if (lists_find(was, has->name) < 0)
			undone_add(r->undone, has->name);
	}
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*was[place].name && !list_ended(&was[place]) &&
		    lists_find(in_force, was[place].name) < 0 &&
		    lists_find(r->wanted.lists, was[place].name) >= 0)
			undone_add(r->undone, was[place].name);
	return lists_add(&r->wanted, in_force, was, &r->moved);
}

/*
 * Returns whether a reload leaves an entry by hand of a command. of_file: the file's rule of the
 * prefix, or NULL. An allow is an exception to the lists that deny its prefix, and stays.
 */
static bool entry_stays(const struct ruleset *file, const struct rule *entry,
			const struct rule *of_file)
{
	enum sl_access access = SL_ACCESS_NONE;

	if (of_file)
		access = of_file->access ?: lists_access(lists_of(file), of_file->lists);
	if (!access)
		return true;
	return !of_file->access && (entry->access == SL_ACCESS_ALLOW || entry->access == access);
}

static bool entry_same(const struct rule *a, const struct rule *b)
{
	return a && b && a->access == b->access && until_equal(a->until, b->until);
}

/*
 * Decides the entry by hand of a rule at a reload. Returns whether the file undoes a change by a
 * command.
 */
static bool entry_reconcile(const struct reconciling *r, const struct rule *in_force,
			    const struct rule *file, const struct rule *was, struct rule *wanted)
{
	if (!in_force || !in_force->access)
		return file && file->access && entry_same(was, file);
	if (entry_same(was, in_force) || entry_same(file, in_force))
		return false;
	if (!entry_stays(r->file, in_force, file))
		return true;
	wanted->access = in_force->access;
	wanted->until = in_force->until;
	return false;
}

/* Returns whether the policies of two rules of a prefix are equal. NULL: no rule. */
static bool policy_same(const struct rule *a, const struct rule *b)
{
	struct rule none = {.prefix = (a ?: b)->prefix}, x = a ? *a : none, y = b ? *b : none;

	x.access = y.access = SL_ACCESS_NONE;
	x.lists = y.lists = 0;
	return rule_equal(&x, &y);
}

static int rule_reconcile(struct reconciling *r, const struct rule *in_force,
			  const struct rule *file)
{
	const struct rule none = {.prefix = (in_force ?: file)->prefix};
	const struct rule *was = ruleset_find(r->was, &none.prefix);
	char text[PREFIX_TEXT];
	bool undone = false;
	struct rule wanted;
	int err = rule_copy((r->renew == RENEW_ALL ? file : in_force) ?: &none, &wanted);

	if (err)
		return err;
	wanted.lists = file ? file->lists : 0;
	wanted.list_until = file ? file->list_until : 0;
	wanted.timed = file ? file->timed : 0;
	if (in_force)
		undone = !rule_move_lists(&r->moved, in_force, &wanted);
	if (r->renew == RENEW_ALL) {
		undone |= entry_reconcile(r, in_force, file, was, &wanted);
		undone |= !policy_same(in_force, file) &&
			  !policy_same(in_force ?: &none, r->policies_known ? was : NULL);
	}
	if (undone)
		undone_add(r->undone, prefix_format(&none.prefix, text));
	return rule_add(&r->wanted, &wanted);
}

int reconcile(const struct ruleset *in_force, const struct ruleset *file, const struct ruleset *was,
	      bool policies_known, enum renew renew, struct ruleset *ret, struct undone *ret_undone)
{
	struct reconciling r = {.in_force = in_force,
				.file = file,
				.was = was,
				.renew = renew,
				.policies_known = policies_known,
				.undone = ret_undone};
	struct rule_pairs pairs = {.from = in_force, .to = file};
	const struct rule *from, *to;
	int err;

	*ret_undone = (struct undone){0};
	err = lists_reconcile(&r);
	while (!err && rule_pairs_next(&pairs, &from, &to))
		err = rule_reconcile(&r, from, to);
	if (err)
		ruleset_free(&r.wanted);
	else
		*ret = r.wanted;
	return err;
}

/* --- Runtime entries ------------------------------------------------------------------------ */

int rules_restore(struct ruleset *rules, const struct ruleset *runtime)
{
	_cleanup_(ruleset_free) struct ruleset all = {0};
	struct rule_pairs pairs = {.from = rules, .to = runtime};
	const struct rule *has, *adds;
	struct moved moved;
	int err = set_begin(rules, &all) ?: lists_add(&all, lists_of(runtime), NULL, &moved);

	while (!err && rule_pairs_next(&pairs, &has, &adds)) {
		const struct rule none = {.prefix = (has ?: adds)->prefix};
		struct rule rule;

		err = rule_copy(has ?: &none, &rule);
		if (err)
			return err;
		if (adds)
			rule_move_lists(&moved, adds, &rule);
		if (adds && !rule.access) {
			rule.access = adds->access;
			rule.until = adds->until;
		}
		err = rule_add(&all, &rule);
	}
	if (err)
		return err;
	ruleset_free(rules);
	set_return(&all, rules);
	return 0;
}

int rules_runtime(const struct ruleset *in_force, const struct ruleset *file, struct ruleset *ret)
{
	_cleanup_(ruleset_free) struct ruleset runtime = {0};
	struct moved moved;
	int err = lists_add(&runtime, lists_of(in_force), lists_of(file), &moved);

	for (unsigned int i = 0; !err && i < in_force->count; i++) {
		const struct rule *from = &in_force->rules[i];
		struct rule rule = {.prefix = from->prefix};

		rule_move_lists(&moved, from, &rule);
		if (from->access && entry_stays(file, from, ruleset_find(file, &from->prefix))) {
			rule.access = from->access;
			rule.until = from->until;
		}
		err = rule_add(&runtime, &rule);
	}
	if (!err)
		set_return(&runtime, ret);
	return err;
}

int rules_copy_entries(const struct ruleset *rules, bool by_hand, uint64_t lists,
		       struct ruleset *ret)
{
	_cleanup_(ruleset_free) struct ruleset copy = {0};
	int err = set_begin(rules, &copy);

	for (int place = 0; !err && place < SL_LIST_PLACES; place++)
		copy.lists[place].until = 0;
	for (unsigned int i = 0; !err && i < rules->count; i++) {
		const struct rule *from = &rules->rules[i];
		struct rule rule = {.prefix = from->prefix,
				    .access = by_hand ? from->access : SL_ACCESS_NONE,
				    .until = by_hand ? from->until : 0,
				    .lists = from->lists,
				    .list_until = from->list_until,
				    .timed = from->timed};

		rule_remove_lists(&rule, ~lists);
		err = rule_add(&copy, &rule);
	}
	if (!err)
		set_return(&copy, ret);
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

		if (!paths->list[i].is_left_out || place < 0 ||
		    lists_find(lists_of(file), list->name) >= 0)
			continue;
		lists[place] = *list;
		lists[place].replaced = known->lists[place].replaced;
		bits |= 1ULL << place;
	}
	if (!bits)
		return 0;
	err = rules_copy_entries(known, false, bits, &copies);
	if (err)
		return err;
	memcpy(copies.lists, lists, sizeof(lists));
	return rules_restore(file, &copies);
}
