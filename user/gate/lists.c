// SPDX-License-Identifier: GPL-2.0
#include "gate/lists.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "gate/rules.h"
#include "gate/transaction.h"
#include "list_ends.h"
#include "rules/ruleset.h"
#include "rules/prefix.h"
#include "rules/value.h"

enum list_mode {
	LIST_PUT,     /* add the specified prefixes */
	LIST_REPLACE, /* replace all prefixes by the specified prefixes */
	LIST_TAKE,    /* remove the specified prefixes */
	LIST_DROP,    /* remove all prefixes */
};

struct list_change {
	struct gate *gate;
	enum list_mode mode;
	bool strict;	       /* a specified prefix that is not on the list is an error */
	uint64_t from;	       /* old bit of the list in rules; 0 if the list is new */
	uint64_t to;	       /* new bit of the list in rules; 0 if the change removes the list */
	struct ruleset wanted; /* rules to write, and all lists as they are after the change */
	struct list_counts counts;
};

static void list_change_free(struct list_change *change)
{
	ruleset_free(&change->wanted);
}

static uint64_t place_bit(int place)
{
	return place < 0 ? 0 : 1ULL << place;
}

static int no_such_list(const struct gate *gate, const char *name)
{
	return gate_error(gate, ENOENT, "no-list", "has no list '%s'; see 'sluice %slists'", name,
			  gate_option(gate->name));
}

/* --- Rules that change ---------------------------------------------------------------------- */

/*
 * Plans the change of `rule`, and takes ownership of the rule. entry: the specified prefix, or
 * NULL.
 */
static int rule_plan(struct list_change *change, struct rule *rule, const struct rule *entry)
{
	bool was = rule->lists & change->from;
	bool is = change->mode == LIST_PUT	 ? was || entry
		  : change->mode == LIST_REPLACE ? entry != NULL
		  : change->mode == LIST_TAKE	 ? was && !entry
						 : false;
	int from = change->from ? __builtin_ctzll(change->from) : SL_LIST_PLACES;
	uint32_t ended = was ? rule_list_end(rule, from) : 0;
	uint32_t ends = entry ? entry->list_until : ended;
	const struct sl_list_info *other;
	char buffer[PREFIX_TEXT];
	const char *text = prefix_format(&rule->prefix, buffer);
	int err;

	if (change->strict && entry && !was) {
		rule_free(rule);
		return error_add(ENOENT, "not-on-list", NULL,
				 "%s is not on list '%s'; see 'sluice %sshow'", text,
				 change->wanted.lists[from].name, gate_option(change->gate->name));
	}
	change->counts.fresh += is && !was;
	change->counts.same += entry && was;
	change->counts.gone += was && !is;
	change->counts.cut += was && is && until_is_cut(ended, ends);
	if (was == is && (!is || (change->from == change->to && ended == ends))) {
		rule_free(rule);
		return 0;
	}
	rule_remove_lists(rule, change->from);
	if (!is || rule_add_list(rule, __builtin_ctzll(change->to), ends))
		return ruleset_add(&change->wanted, rule);
	other = &change->wanted.lists[list_end_get(rule->list_until, rule->timed, 1).list];
	err = error_add(EEXIST, "third-end", text,
			"already has a time on two lists, and can have no third; omit the time, or "
			"first remove the entry on list '%s': 'sluice %sun%s %s as %s'",
			other->name, gate_option(change->gate->name), access_words[other->access],
			text, operand_typed(other->name));
	rule_free(rule);
	return err;
}

/*
 * Calls rule_plan() for each prefix in two sorted sets. `all` has the gate's rules, and `entries`
 * has the specified prefixes. rule_plan() takes ownership of the rules of `all`.
 */
static int rules_merge(struct list_change *change, struct ruleset *all,
		       const struct ruleset *entries)
{
	unsigned int i = 0, j = 0;
	int err = 0;

	while (!err && (i < all->count || j < entries->count)) {
		const struct rule *entry = j < entries->count ? &entries->rules[j] : NULL;
		struct rule *old = i < all->count ? &all->rules[i] : NULL, rule;
		int order = !old ? 1 : !entry ? -1 : prefix_compare(&old->prefix, &entry->prefix);

		rule = order <= 0 ? *old : (struct rule){.prefix = entry->prefix};
		if (order <= 0)
			*old = (struct rule){0};
		err = rule_plan(change, &rule, order >= 0 ? entry : NULL);
		i += order <= 0;
		j += order >= 0;
	}
	return err;
}

/* If a change has at most this many prefixes, look up each rule. Otherwise, read all rules. */
#define LOOKUPS_MAX 512

/* Plans the change: adds each rule that the list's change affects to change->wanted. */
static int rules_plan(struct list_change *change, struct ruleset *entries)
{
	bool others = change->from && (change->from != change->to || change->mode == LIST_REPLACE);
	_cleanup_(ruleset_free) struct ruleset all = {0};
	int err = 0;

	ruleset_unique(entries);
	if (others || entries->count > LOOKUPS_MAX)
		return rules_read(change->gate, &all) ?: rules_merge(change, &all, entries);
	for (unsigned int i = 0; !err && i < entries->count; i++) {
		struct rule rule;

		err = rules_get(change->gate, &entries->rules[i].prefix, &rule)
			      ?: rule_plan(change, &rule, &entries->rules[i]);
	}
	return err;
}

/* Makes the planned change. If no rule changes, updates only the field `replaced` of lists. */
static int change_commit(struct list_change *change, struct list_counts *ret)
{
	int err = 0;

	if (!change->wanted.count && change->from == change->to)
		lists_set_dates(change->gate, change->wanted.lists);
	else
		err = rules_change(change->gate, &change->wanted, NULL);
	if (!err)
		*ret = change->counts;
	return err;
}

/* --- Changes -------------------------------------------------------------------------------- */

/*
 * Begins a change of list `name`. Returns an error if the list does not exist. If `name` is NULL,
 * the caller chooses the list later.
 */
static int list_change_begin(struct list_change *change, const char *name)
{
	int err = ruleset_make_lists(&change->wanted), place;

	if (err)
		return err;
	rules_expire_some(change->gate);
	lists_copy(change->gate, change->wanted.lists);
	if (!name)
		return 0;
	place = lists_find(change->wanted.lists, name);
	change->from = place_bit(place);
	return place < 0 ? no_such_list(change->gate, name) : 0;
}

/*
 * Checks whether a change can add entries to an existing list. Copies the list's end to `list`.
 * Returns an error if `list` has another access or end, because this would change all existing
 * entries.
 */
static int list_join(const struct list_change *change, struct sl_list_info *list)
{
	char end[UNITS_TEXT + sizeof("ends in ")] = "has no end", left[UNITS_TEXT];
	int place = lists_find(change->wanted.lists, list->name);
	const struct sl_list_info *has = &change->wanted.lists[place < 0 ? 0 : place];

	if (place < 0 || change->mode == LIST_REPLACE)
		return 0;
	if (has->access != list->access)
		return error_add(EEXIST, "other-access", NULL,
				 "list '%s' %s; to make it %s only these entries, add 'replace'; "
				 "for a separate list, add 'as LIST'",
				 has->name, access_verbs[has->access], access_words[list->access]);
	if (!list->until || until_equal(has->until, list->until)) {
		list->until = has->until;
		return 0;
	}
	if (has->until)
		snprintf(end, sizeof(end), "ends in %s",
			 left_format(until_left_ns(has->until), left));
	return error_add(
		EEXIST, "other-end", NULL,
		"list '%s' %s, and 'for' would change that for all its entries; to add entries, "
		"omit 'for', or write a time in each line of the file; to replace all entries, add "
		"'replace'; for a separate list, add 'as LIST'",
		has->name, end);
}

/*
 * Stores a list at its index after the change. A new list gets a free index. A list whose access or
 * end changes also gets a free index.
 */
static int list_place(struct list_change *change, const struct sl_list_info *list)
{
	struct sl_list_info *lists = change->wanted.lists;
	int from = lists_find(lists, list->name), to = from, err = 0;

	if (from >= 0 && list_same(&lists[from], list)) {
		lists[from].replaced = list->replaced;
	} else {
		to = lists_find(lists, "");
		if (from >= 0)
			lists[from].name[0] = '\0';
		err = lists_put(lists, list, to);
	}
	change->from = place_bit(from);
	change->to = place_bit(to);
	return err;
}

int list_put(struct gate *gate, struct sl_list_info *list, bool replace, struct ruleset *entries,
	     struct list_counts *ret)
{
	_cleanup_(list_change_free) struct list_change change = {
		.gate = gate,
		.mode = replace ? LIST_REPLACE : LIST_PUT,
	};
	unsigned int kept = 0;
	int err = list_change_begin(&change, NULL);

	for (unsigned int i = 0; i < entries->count; i++) /* drop prefixes that have ended */
		if (!entries->rules[i].list_until || until_left_ns(entries->rules[i].list_until))
			entries->rules[kept++] = entries->rules[i];
	change.counts.ended = entries->count - kept;
	entries->count = kept;
	err = err ?: list_join(&change, list) ?: list_place(&change, list);
	return err ?: rules_plan(&change, entries) ?: change_commit(&change, ret);
}

int list_take(struct gate *gate, const char *name, struct ruleset *entries, bool force,
	      struct list_counts *ret)
{
	_cleanup_(list_change_free) struct list_change change = {
		.gate = gate, .mode = LIST_TAKE, .strict = !force};
	int err = list_change_begin(&change, name);

	change.to = change.from;
	return err ?: rules_plan(&change, entries) ?: change_commit(&change, ret);
}

int list_drop(struct gate *gate, const char *name, struct list_counts *ret)
{
	_cleanup_(list_change_free) struct list_change change = {.gate = gate, .mode = LIST_DROP};
	struct ruleset none = {0};
	int err = list_change_begin(&change, name);

	if (err)
		return err;
	change.wanted.lists[lists_find(change.wanted.lists, name)].name[0] = '\0';
	return rules_plan(&change, &none) ?: change_commit(&change, ret);
}

/* --- Finding a list ------------------------------------------------------------------------- */

int list_named(const struct gate *gate, const char *name, struct sl_list_info *ret)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	int place;

	lists_copy(gate, lists);
	place = *name ? lists_find(lists, name) : -1;
	if (place < 0)
		return no_such_list(gate, name);
	*ret = lists[place];
	return 0;
}

int list_of_file(const struct gate *gate, const char *text, struct sl_list_info *ret)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	char path[PATH_MAX];
	int named, of_file;

	lists_copy(gate, lists);
	named = *text ? lists_find(lists, text) : -1;
	of_file = lists_find_file(lists, text, path);
	if (named < 0 && of_file < 0)
		return no_such_list(gate, path);
	if (named >= 0 && of_file >= 0 && named != of_file)
		return error_add(EEXIST, "two-lists", NULL,
				 "'%s' is the name of a list, and the file of list '%s'; for list "
				 "'%s', write '-f %s'; for the other list, write '-f %s' in a "
				 "directory without this file",
				 lists[named].name, lists[of_file].name, lists[of_file].name,
				 word_typed(lists[of_file].name), word_typed(text));
	*ret = lists[named < 0 ? of_file : named];
	return 0;
}
