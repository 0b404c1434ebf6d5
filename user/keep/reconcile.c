// SPDX-License-Identifier: GPL-2.0
#include "keep/reconcile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rules/lists.h"
#include "rules/prefix.h"

/* --- Names in messages ---------------------------------------------------------------------- */

static void named_add(struct named *named, const char *name)
{
	size_t length = strlen(named->text);

	if (named->count < NAMED_SHOWN)
		snprintf(named->text + length, NAMED_TEXT - length, "%s%s", length ? ", " : "",
			 name);
	else if (named->count == NAMED_SHOWN)
		snprintf(named->text + length, NAMED_TEXT - length, " ...");
	named->count++;
}

static void named_add_prefix(struct named *named, const struct sl_prefix *prefix)
{
	char text[PREFIX_TEXT];

	named_add(named, prefix_format(prefix, text));
}

/* --- Rules and lists ------------------------------------------------------------------------ */

static const struct sl_list_info no_lists[SL_LIST_PLACES];

static const struct sl_list_info *lists_of(const struct ruleset *set)
{
	return set->lists ? set->lists : no_lists;
}

/* Adds a rule that says something, and else frees it. */
static int rule_add(struct ruleset *set, struct rule *rule)
{
	if (rule->access || rule->lists || rule->limits || rule->newcomers)
		return ruleset_add(set, rule);
	rule_free(rule);
	return OK;
}

/* The places of lists of one set in another. -1: the list is not among those that are moved. */
struct moved {
	int place[SL_LIST_PLACES];
};

/*
 * Adds the entries that a rule has on the lists that are moved. Returns false if one of them is
 * left out, because `to` has a time on another list.
 */
static bool lists_move(const struct moved *moved, const struct rule *from, struct rule *to)
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
 * Adds the lists to a set that neither it nor `others` (or NULL) have by name. A list for which
 * there is no room is left out, which is reported.
 */
static int lists_add(struct ruleset *set, const struct sl_list_info *lists,
		     const struct sl_list_info *others, struct moved *ret)
{
	int status = ruleset_make_lists(set);

	for (int place = 0; !status && place < SL_LIST_PLACES; place++) {
		struct sl_list_info list = lists[place];
		int to = -1;

		ret->place[place] = -1;
		if (!*list.name || lists_find(set->lists, list.name) >= 0 ||
		    (others && lists_find(others, list.name) >= 0))
			continue;
		list.since = list.gone = 0;
		to = lists_find(set->lists, "");
		if (!lists_put(set->lists, &list, to))
			ret->place[place] = to;
	}
	return status;
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

/* The lists of the file, and those of commands. */
static int lists_reconcile(struct reconciling *r)
{
	const struct sl_list_info *in_force = lists_of(r->in_force), *was = lists_of(r->was);
	int status = ruleset_make_lists(&r->wanted);

	if (status)
		return status;
	memcpy(r->wanted.lists, lists_of(r->file), sizeof(no_lists));
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		int to = *in_force[place].name ? lists_find(r->wanted.lists, in_force[place].name)
					       : -1;

		if (to < 0 || list_same(&in_force[place], &r->wanted.lists[to]))
			continue;
		/* `for` of a file begins when the file is applied, and not with each reading */
		if (r->renew == RENEW_LISTS && in_force[place].access == r->wanted.lists[to].access)
			r->wanted.lists[to].until = in_force[place].until;
		else if (lists_find(was, in_force[place].name) < 0)
			named_add(&r->undone->entries, in_force[place].name);
	}
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*was[place].name && !list_ended(&was[place]) &&
		    lists_find(in_force, was[place].name) < 0 &&
		    lists_find(r->wanted.lists, was[place].name) >= 0)
			named_add(&r->undone->returned, was[place].name);
	return lists_add(&r->wanted, in_force, was, &r->moved);
}

/*
 * Whether a reload leaves an entry by command: the file says nothing else of its prefix. An allow
 * is an exception to the lists that deny its prefix, and stays beside them.
 */
static bool entry_stays(const struct ruleset *file, const struct rule *entry,
			const struct rule *of_file)
{
	enum sl_access word = SL_ACCESS_NONE;

	if (of_file)
		word = of_file->access ?: lists_access(lists_of(file), of_file->lists);
	if (!word)
		return true;
	return !of_file->access && (entry->access == SL_ACCESS_ALLOW || entry->access == word);
}

static bool entry_same(const struct rule *a, const struct rule *b)
{
	return a && b && a->access == b->access && until_equal(a->until, b->until);
}

/* The entry by hand of a rule at a reload. */
static void entry_reconcile(struct reconciling *r, const struct rule *in_force,
			    const struct rule *file, const struct rule *was, struct rule *wanted)
{
	if (!in_force || !in_force->access) {
		if (file && file->access && entry_same(was, file))
			named_add_prefix(&r->undone->returned, &wanted->prefix);
		return;
	}
	if (entry_same(was, in_force) || entry_same(file, in_force))
		return;
	if (entry_stays(r->file, in_force, file)) {
		wanted->access = in_force->access;
		wanted->until = in_force->until;
	} else {
		named_add_prefix(&r->undone->entries, &wanted->prefix);
	}
}

/* Whether the limits of two rules of a prefix are the same. NULL: no rule. */
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
	const struct sl_prefix *prefix = &(in_force ?: file)->prefix;
	const struct rule *was = ruleset_find(r->was, prefix);
	const struct rule none = {.prefix = *prefix};
	struct rule wanted;
	int status = rule_copy((r->renew == RENEW_ALL ? file : in_force) ?: &none, &wanted);

	if (status)
		return status;
	wanted.lists = file ? file->lists : 0;
	wanted.list_until = file ? file->list_until : 0;
	wanted.timed = file ? file->timed : 0;
	if (in_force && !lists_move(&r->moved, in_force, &wanted))
		named_add_prefix(&r->undone->entries, prefix);
	if (r->renew == RENEW_ALL) {
		entry_reconcile(r, in_force, file, was, &wanted);
		if (!policy_same(in_force, file) &&
		    !policy_same(in_force ?: &none, r->policies_known ? was : NULL))
			named_add_prefix(r->policies_known ? &r->undone->policies
							   : &r->undone->differed,
					 prefix);
	}
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
	int status;

	*ret_undone = (struct undone){0};
	status = lists_reconcile(&r);
	while (!status && rule_pairs_next(&pairs, &from, &to))
		status = rule_reconcile(&r, from, to);
	if (status)
		ruleset_free(&r.wanted);
	else
		*ret = r.wanted;
	return status;
}

/* --- What commands gave --------------------------------------------------------------------- */

int rules_restore(struct ruleset *rules, const struct ruleset *given)
{
	struct rule_pairs pairs = {.from = rules, .to = given};
	const struct rule *has, *gives;
	struct ruleset all = {0};
	struct moved moved;
	int status = ruleset_make_lists(&all);

	if (!status) {
		memcpy(all.lists, lists_of(rules), sizeof(no_lists));
		status = lists_add(&all, lists_of(given), NULL, &moved);
	}
	while (!status && rule_pairs_next(&pairs, &has, &gives)) {
		const struct rule none = {.prefix = (has ?: gives)->prefix};
		struct rule rule;

		status = rule_copy(has ?: &none, &rule);
		if (status)
			break;
		if (gives)
			lists_move(&moved, gives, &rule);
		if (gives && !rule.access) {
			rule.access = gives->access;
			rule.until = gives->until;
		}
		status = rule_add(&all, &rule);
	}
	if (status) {
		ruleset_free(&all);
		return status;
	}
	ruleset_free(rules);
	*rules = all;
	return OK;
}

int rules_given(const struct ruleset *in_force, const struct ruleset *file, struct ruleset *ret)
{
	struct rule_pairs pairs = {.from = in_force, .to = file};
	const struct rule *from, *to;
	struct ruleset given = {0};
	struct moved moved;
	int status = lists_add(&given, lists_of(in_force), lists_of(file), &moved);

	while (!status && rule_pairs_next(&pairs, &from, &to)) {
		struct rule rule = {.prefix = (from ?: to)->prefix};

		if (!from)
			continue;
		lists_move(&moved, from, &rule);
		if (from->access && entry_stays(file, from, to)) {
			rule.access = from->access;
			rule.until = from->until;
		}
		status = rule_add(&given, &rule);
	}
	if (status)
		ruleset_free(&given);
	else
		*ret = given;
	return status;
}

int rules_entries(const struct ruleset *rules, struct ruleset *ret)
{
	struct ruleset entries = {0};
	int status = ruleset_make_lists(&entries);

	if (!status)
		memcpy(entries.lists, lists_of(rules), sizeof(no_lists));
	for (unsigned int i = 0; !status && i < rules->count; i++) {
		struct rule rule = {.prefix = rules->rules[i].prefix,
				    .access = rules->rules[i].access,
				    .until = rules->rules[i].until};

		status = rule_add(&entries, &rule);
	}
	if (status)
		ruleset_free(&entries);
	else
		*ret = entries;
	return status;
}

/* --- Copies of lists ------------------------------------------------------------------------ */

/* Adds the entries of the lists of these bits to a set. */
static int list_entries_add(struct ruleset *set, const struct ruleset *from, uint64_t bits)
{
	int status = OK;

	for (unsigned int i = 0; !status && i < from->count; i++) {
		const struct rule *has = &from->rules[i];
		struct rule rule = {.prefix = has->prefix,
				    .lists = has->lists,
				    .list_until = has->list_until,
				    .timed = has->timed};

		rule_remove_lists(&rule, ~bits);
		status = rule_add(set, &rule);
	}
	return status;
}

int rules_complete(struct ruleset *file, const struct list_paths *paths,
		   const struct ruleset *known)
{
	struct ruleset copies = {0};
	uint64_t bits = 0;
	int status = ruleset_make_lists(&copies);

	for (unsigned int i = 0; !status && i < paths->count; i++) {
		const struct sl_list_info *list = &paths->list[i].list;
		int place = lists_find(lists_of(known), list->name);

		if (!paths->list[i].is_left_out || place < 0 ||
		    lists_find(lists_of(file), list->name) >= 0)
			continue;
		copies.lists[place] = *list;
		copies.lists[place].replaced = known->lists[place].replaced;
		bits |= 1ULL << place;
	}
	if (!status && bits)
		status = list_entries_add(&copies, known, bits) ?: rules_restore(file, &copies);
	ruleset_free(&copies);
	return status;
}

int rules_lists(const struct ruleset *rules, struct ruleset *ret)
{
	struct ruleset lists = {0};
	int status = ruleset_make_lists(&lists);

	for (int place = 0; !status && place < SL_LIST_PLACES; place++) {
		lists.lists[place] = lists_of(rules)[place];
		lists.lists[place].until = 0;
	}
	if (!status)
		status = list_entries_add(&lists, rules, UINT64_MAX);
	if (status)
		ruleset_free(&lists);
	else
		*ret = lists;
	return status;
}
