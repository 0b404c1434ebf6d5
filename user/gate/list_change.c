// SPDX-License-Identifier: GPL-2.0
#include "gate/list_change.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "gate/change.h"
#include "gate/rules.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "rules/value.h"

/* Up to this number of prefixes are looked up one by one; for more, all rules are read at once. */
#define LOOKUPS_MAX 512

enum mode {
	PUT,	 /* given prefixes are added */
	REPLACE, /* given prefixes are added, all others removed */
	TAKE,	 /* given prefixes are removed */
	DROP,	 /* all prefixes are removed */
};

struct change {
	struct gate *gate;
	enum mode mode;
	uint64_t from; /* the list's bit before; 0: the list is new */
	uint64_t to;   /* the list's bit afterwards; 0: the list is removed */
	struct ruleset wanted;
	struct list_counts counts;
};

static uint64_t place_bit(int place)
{
	return place < 0 ? 0 : 1ULL << place;
}

static int no_such_list(const struct gate *gate, const char *name)
{
	return failure("gate '%s' has no list '%s': see 'sluice %slists'", gate->name, name,
		       gate_option(gate->name));
}

/* --- Rules that change ---------------------------------------------------------------------- */

static bool rule_stays(enum mode mode, bool was, bool named)
{
	switch (mode) {
	case PUT:
		return was || named;
	case REPLACE:
		return named;
	case TAKE:
		return was && !named;
	default:
		return false;
	}
}

static int refuse_second_end(const struct change *change, const struct rule *rule)
{
	const struct sl_list_info *list = &change->wanted.lists[rule->timed];
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text);

	return failure("%s: has a time on list '%s' already, and can have a time on one list only; "
		       "leave the time out, or first remove that entry: 'sluice %sun%s %s as %s'",
		       prefix, list->name, gate_option(change->gate->name),
		       access_words[list->access], prefix, operand_typed(list->name));
}

/* Plans one rule, and owns it. entry: the given entry of its prefix; NULL: none. */
static int rule_decide(struct change *change, struct rule *rule, const struct rule *entry)
{
	bool was = rule->lists & change->from, is = rule_stays(change->mode, was, entry);
	int from = change->from ? __builtin_ctzll(change->from) : SL_LIST_PLACES;
	uint32_t ended = was ? rule_list_end(rule, from) : 0;
	uint32_t ends = entry ? entry->list_until : ended;

	change->counts.fresh += is && !was;
	change->counts.same += entry && was;
	change->counts.gone += was && !is;
	change->counts.cut += was && is && until_is_cut(ended, ends);
	if (was == is && (!is || (change->from == change->to && ended == ends))) {
		rule_free(rule);
		return OK;
	}
	rule_remove_lists(rule, change->from);
	if (is && !rule_add_list(rule, __builtin_ctzll(change->to), ends)) {
		int status = refuse_second_end(change, rule);

		rule_free(rule);
		return status;
	}
	return ruleset_add(&change->wanted, rule);
}

static int rules_look_up(struct change *change, const struct ruleset *entries)
{
	int status = OK;

	for (unsigned int i = 0; !status && i < entries->count; i++) {
		struct rule rule;

		status = rules_get(change->gate, &entries->rules[i].prefix, &rule);
		if (!status)
			status = rule_decide(change, &rule, &entries->rules[i]);
	}
	return status;
}

/*
 * Plans all rules that the list or the entries have. Both sets are sorted. Moves rules out of
 * `all`.
 */
static int rules_merge(struct change *change, struct ruleset *all, const struct ruleset *entries)
{
	unsigned int i = 0, j = 0;
	int status = OK;

	while (!status && (i < all->count || j < entries->count)) {
		const struct rule *entry = j < entries->count ? &entries->rules[j] : NULL;
		struct rule *old = i < all->count ? &all->rules[i] : NULL, rule;
		int order = !old ? 1 : !entry ? -1 : prefix_compare(&old->prefix, &entry->prefix);

		if (order <= 0)
			rule = *old;
		else
			rule = (struct rule){.prefix = entry->prefix};
		if (order <= 0)
			*old = (struct rule){0};
		status = rule_decide(change, &rule, order >= 0 ? entry : NULL);
		i += order <= 0;
		j += order >= 0;
	}
	return status;
}

/* Plans the rules that change. */
static int rules_plan(struct change *change, struct ruleset *entries)
{
	bool others = change->from && (change->from != change->to || change->mode == REPLACE);
	struct ruleset all = {0};
	int status;

	ruleset_unique(entries);
	if (!others && entries->count <= LOOKUPS_MAX)
		return rules_look_up(change, entries);
	status = rules_read(change->gate, &all);
	if (!status)
		status = rules_merge(change, &all, entries);
	ruleset_free(&all);
	return status;
}

/* --- The list before and after a change ----------------------------------------------------- */

static int lists_begin(struct change *change)
{
	int status = ruleset_make_lists(&change->wanted);

	if (status)
		return status;
	change_sweep_lists(change->gate);
	lists_copy(change->gate, change->wanted.lists);
	return OK;
}

/*
 * Sets `from` and `to`, the bits of the list before and after the change. A list that gets another
 * access or end moves to a new place.
 */
static int list_place(struct change *change, const struct sl_list_info *list)
{
	struct sl_list_info *lists = change->wanted.lists;
	int from = lists_find(lists, list->name), to = from;
	int status = OK;

	if (from >= 0 && list_same(&lists[from], list)) {
		lists[from].replaced = list->replaced;
	} else {
		to = lists_find(lists, "");
		if (from >= 0)
			lists[from].name[0] = '\0';
		status = lists_put(lists, list, to);
	}
	change->from = place_bit(from);
	change->to = place_bit(to);
	return status;
}

static int refuse_end(const struct sl_list_info *has)
{
	char end[UNITS_TEXT + sizeof("ends in ")] = "has no end", left[UNITS_TEXT];

	if (has->until)
		snprintf(end, sizeof(end), "ends in %s",
			 left_format(until_left_ns(has->until), left));
	return failure(
		"list '%s' %s, and 'for' would change that for all its entries: leave 'for' "
		"out to add to it, say 'replace' to make it what is said now, or 'as LIST' for "
		"a list of its own; lines of the file may have a time each",
		has->name, end);
}

/*
 * Checks that entries can join a list: they get its end. Another access or end would change those
 * of all its entries, and is refused.
 */
static int list_join(const struct change *change, struct sl_list_info *list)
{
	int place = lists_find(change->wanted.lists, list->name);
	const struct sl_list_info *has = &change->wanted.lists[place < 0 ? 0 : place];

	if (place < 0 || change->mode == REPLACE)
		return OK;
	if (has->access != list->access)
		return failure("list '%s' %s: 'replace' makes it %s what is said now, and nothing "
			       "else; or say 'as LIST' for a list of its own",
			       has->name, access_verb(has->access), access_words[list->access]);
	if (list->until && !until_equal(has->until, list->until))
		return refuse_end(has);
	list->until = has->until;
	return OK;
}

/* --- Changes -------------------------------------------------------------------------------- */

/* Makes the planned change in one generation, unless `status` is an error. Frees the plan. */
static int change_finish(struct change *change, int status, struct list_counts *ret)
{
	if (!status && !change->wanted.count && change->from == change->to)
		lists_clear(change->gate, change->wanted.lists); /* only the date changes */
	else if (!status)
		status = ruleset_change(change->gate, &change->wanted);
	if (!status)
		*ret = change->counts;
	ruleset_free(&change->wanted);
	return status;
}

/* Removes the entries that have ended. */
static void ended_remove(struct change *change, struct ruleset *entries)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < entries->count; i++)
		if (!entries->rules[i].list_until || until_left_ns(entries->rules[i].list_until))
			entries->rules[kept++] = entries->rules[i];
	change->counts.ended = entries->count - kept;
	entries->count = kept;
}

int list_put(struct gate *gate, struct sl_list_info *list, bool replace, struct ruleset *entries,
	     struct list_counts *ret)
{
	struct change change = {.gate = gate, .mode = replace ? REPLACE : PUT};
	int status = lists_begin(&change);

	ended_remove(&change, entries);
	if (!status)
		status = list_join(&change, list);
	if (!status)
		status = list_place(&change, list);
	if (!status)
		status = rules_plan(&change, entries);
	return change_finish(&change, status, ret);
}

/* Begins a change of an existing list. */
static int list_begin(struct change *change, const char *name)
{
	int status = lists_begin(change);
	int place = -1;

	if (!status)
		place = lists_find(change->wanted.lists, name);
	if (!status && place < 0)
		status = no_such_list(change->gate, name);
	change->from = place_bit(place);
	return status;
}

static int check_on_list(const struct change *change, const char *name,
			 const struct ruleset *entries)
{
	int status = OK;

	for (unsigned int i = 0; !status && i < entries->count; i++) {
		char text[PREFIX_TEXT];
		struct rule rule;

		status = rules_get(change->gate, &entries->rules[i].prefix, &rule);
		if (status)
			return status;
		if (!(rule.lists & change->from))
			status = failure("%s is not on list '%s': see 'sluice %sshow'",
					 prefix_format(&rule.prefix, text), name,
					 gate_option(change->gate->name));
		rule_free(&rule);
	}
	return status;
}

int list_take(struct gate *gate, const char *name, struct ruleset *entries, bool force,
	      struct list_counts *ret)
{
	struct change change = {.gate = gate, .mode = TAKE};
	int status = list_begin(&change, name);

	change.to = change.from;
	if (!status && !force)
		status = check_on_list(&change, name, entries);
	if (!status)
		status = rules_plan(&change, entries);
	return change_finish(&change, status, ret);
}

int list_drop(struct gate *gate, const char *name, struct list_counts *ret)
{
	struct change change = {.gate = gate, .mode = DROP};
	int status = list_begin(&change, name);
	struct ruleset none = {0};

	if (!status) {
		change.wanted.lists[lists_find(change.wanted.lists, name)].name[0] = '\0';
		status = rules_plan(&change, &none);
	}
	return change_finish(&change, status, ret);
}

/* --- Finding a list ------------------------------------------------------------------------- */

int list_named(const struct gate *gate, const char *name, struct sl_list_info *ret)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	int place = -1;

	lists_copy(gate, lists);
	if (*name)
		place = lists_find(lists, name);
	if (place < 0)
		return no_such_list(gate, name);
	*ret = lists[place];
	return OK;
}

int list_of_file(const struct gate *gate, const char *text, struct sl_list_info *ret)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	int named = -1, of_file;

	lists_copy(gate, lists);
	if (*text)
		named = lists_find(lists, text);
	of_file = lists_find_file(lists, text);
	if (named < 0 && of_file < 0)
		return no_such_list(gate, text);
	if (named >= 0 && of_file >= 0 && named != of_file)
		return failure(
			"there is a list '%s', and a list '%s' of the file: '-f %s' means the "
			"latter, and '-f %s' in another directory the former",
			lists[named].name, lists[of_file].name, word_typed(lists[of_file].name),
			word_typed(text));
	*ret = lists[named < 0 ? of_file : named];
	return OK;
}
