// SPDX-License-Identifier: GPL-2.0
#include "rules/ruleset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "rules/lists.h"
#include "rules/matches.h"
#include "rules/prefix.h"
#include "rules/value.h"

static int no_memory(const char *what)
{
	return error_add(ENOMEM, "no-memory", NULL, "out of memory for %s", what);
}

/* --- Rules: limits and budget, copy, compare ------------------------------------------------ */

int rule_add_limit(struct rule *rule, const struct limit *limit)
{
	struct limit *limits = reallocarray(rule->limit, rule->limits + 1, sizeof(*limits));

	if (!limits)
		return no_memory("a limit");
	rule->limit = limits;
	rule->limit[rule->limits++] = *limit;
	return 0;
}

struct limit *rule_find_limit(const struct rule *rule, const char *name)
{
	for (unsigned int i = 0; i < rule->limits; i++)
		if (!strcmp(rule->limit[i].spec.name, name))
			return &rule->limit[i];
	return NULL;
}

int rule_set_newcomers(struct rule *rule, const struct limit *newcomers)
{
	struct limit *copy = newcomers ? malloc(sizeof(*copy)) : NULL;

	if (newcomers && !copy)
		return no_memory("a budget");
	if (newcomers)
		*copy = *newcomers;
	free(rule->newcomers);
	rule->newcomers = copy;
	return 0;
}

int rule_copy(const struct rule *rule, struct rule *ret)
{
	struct rule copy = *rule;
	int err;

	copy.limit = NULL;
	copy.limits = 0;
	copy.newcomers = NULL;
	err = rule_set_newcomers(&copy, rule->newcomers);
	for (unsigned int i = 0; !err && i < rule->limits; i++)
		err = rule_add_limit(&copy, &rule->limit[i]);
	if (err)
		rule_free(&copy);
	else
		*ret = copy;
	return err;
}

void rule_take_policy(struct rule *rule, struct rule *from)
{
	rule->limits = from->limits;
	rule->limit = from->limit;
	rule->inherit = from->inherit;
	rule->newcomers = from->newcomers;
	from->limit = from->newcomers = NULL;
	rule_free(from);
}

void rule_free(struct rule *rule)
{
	free(rule->limit);
	free(rule->newcomers);
	rule->limit = rule->newcomers = NULL;
	rule->limits = 0;
	rule->inherit = INHERIT_UNSPECIFIED;
}

uint32_t rule_list_end(const struct rule *rule, int place)
{
	return rule->timed == place && rule->lists >> place & 1 ? rule->list_until : 0;
}

bool rule_add_list(struct rule *rule, int place, uint32_t until)
{
	if (until && rule->list_until && rule->timed != place)
		return false;
	rule->lists |= 1ULL << place;
	if (until || rule->timed == place) {
		rule->list_until = until;
		rule->timed = until ? place : 0;
	}
	return true;
}

void rule_remove_lists(struct rule *rule, uint64_t bits)
{
	rule->lists &= ~bits;
	if (bits >> rule->timed & 1)
		rule->list_until = rule->timed = 0;
}

bool rule_is_empty(const struct rule *rule)
{
	return !rule->access && !rule->lists && !rule->limits;
}

bool rule_inherits(const struct rule *rule)
{
	return rule->limits && rule->inherit == INHERIT_YES;
}

bool rule_budget_is_idle(const struct rule *rule)
{
	bool idle = rule->newcomers && rule->limits;

	for (unsigned int i = 0; i < rule->limits; i++)
		idle &= rule->limit[i].spec.action == SL_ACTION_OBSERVE;
	return idle;
}

bool rule_sees_destinations(const struct rule *rule)
{
	bool meets = rule->limits;

	for (unsigned int i = 0; i < rule->limits; i++)
		meets &= rule->limit[i].spec.key_dst ||
			 rule->limit[i].spec.action == SL_ACTION_OBSERVE;
	return meets;
}

static bool block_equal(const struct sl_limit_spec *a, const struct sl_limit_spec *b)
{
	return a->block_ns == b->block_ns && a->escalate == b->escalate &&
	       (!a->escalate || a->block_max_ns == b->block_max_ns);
}

unsigned int rule_slots(const struct rule *rule)
{
	unsigned int slots = rule->limits;

	for (unsigned int i = 0; i < rule->limits; i++)
		slots += !!rule->limit[i].second.rate;
	return slots;
}

bool limit_equal(const struct limit *a, const struct limit *b)
{
	const struct sl_limit_spec *x = &a->spec, *y = &b->spec;

	return !strcmp(x->name, y->name) && x->rate == y->rate && x->rate_unit == y->rate_unit &&
	       x->burst == y->burst && x->burst_unit == y->burst_unit && x->kind == y->kind &&
	       (x->kind == SL_TOKEN_BUCKET || x->span_ns == y->span_ns) &&
	       (x->kind != SL_WINDOW || x->groups == y->groups) && x->action == y->action &&
	       (x->action != SL_ACTION_BLOCK || block_equal(x, y)) &&
	       a->second.rate == b->second.rate && a->second.burst == b->second.burst &&
	       a->second.burst_unit == b->second.burst_unit &&
	       !memcmp(x->per, y->per, sizeof(x->per)) && x->key_dst == y->key_dst &&
	       x->start == y->start && x->shared == y->shared && match_equal(&a->match, &b->match);
}

/* Whether the rule has an equal limit. The order of limits is ignored. */
static bool rule_has_limit(const struct rule *rule, const struct limit *limit)
{
	const struct limit *same = rule_find_limit(rule, limit->spec.name);

	return same && limit_equal(same, limit);
}

static bool newcomers_equal(const struct rule *a, const struct rule *b)
{
	const struct limit *x = a->limits ? a->newcomers : NULL;
	const struct limit *y = b->limits ? b->newcomers : NULL;

	return x && y ? limit_equal(x, y) : x == y;
}

/* The lists that both rules have, as bits, on which the entries end at different times. */
static uint64_t lists_of_other_end(const struct rule *a, const struct rule *b)
{
	const uint64_t bits = (1ULL << a->timed | 1ULL << b->timed) & a->lists & b->lists;
	uint64_t differ = 0;

	for (uint64_t left = bits; left; left &= left - 1) {
		int place = __builtin_ctzll(left);

		if (!until_equal(rule_list_end(a, place), rule_list_end(b, place)))
			differ |= 1ULL << place;
	}
	return differ;
}

static bool entry_equal(const struct rule *a, const struct rule *b)
{
	return a->access == b->access && (!a->access || until_equal(a->until, b->until)) &&
	       a->lists == b->lists && !lists_of_other_end(a, b);
}

bool rule_equal(const struct rule *a, const struct rule *b)
{
	if (!prefix_equal(&a->prefix, &b->prefix) || !entry_equal(a, b) || a->limits != b->limits ||
	    !newcomers_equal(a, b) || rule_inherits(a) != rule_inherits(b))
		return false;
	for (unsigned int i = 0; i < a->limits; i++)
		if (!rule_has_limit(b, &a->limit[i]))
			return false;
	return true;
}

int rule_difference(const struct rule *rule, const struct rule *other, struct rule *ret)
{
	struct rule difference = *rule;
	int err = 0;

	difference.limit = difference.newcomers = NULL;
	difference.limits = 0;
	if (entry_equal(rule, other))
		difference.access = difference.until = 0;
	rule_remove_lists(&difference, other->lists & ~lists_of_other_end(rule, other));
	if (other->limits && rule_inherits(rule) == rule_inherits(other))
		difference.inherit = INHERIT_UNSPECIFIED;
	for (unsigned int i = 0; !err && i < rule->limits; i++)
		if (!rule_has_limit(other, &rule->limit[i]))
			err = rule_add_limit(&difference, &rule->limit[i]);
	if (!err && !newcomers_equal(rule, other))
		err = rule_set_newcomers(&difference, rule->newcomers);
	if (err)
		rule_free(&difference);
	else
		*ret = difference;
	return err;
}

/* --- Rulesets ------------------------------------------------------------------------------- */

int ruleset_add(struct ruleset *set, const struct rule *rule)
{
	struct rule lost = *rule;

	if (!array_grow(set->rules, set->count, set->room)) {
		rule_free(&lost);
		return no_memory("a rule");
	}
	set->rules[set->count++] = *rule;
	return 0;
}

/* Adds the prefixes of a range. dash: between its ends, where blanks are allowed. */
static int range_add(struct ruleset *set, const struct rule *entry, const char *text,
		     const char *dash)
{
	const char *last = dash + 1 + strspn(dash + 1, " \t");
	struct sl_prefix from, to;
	struct rule rule = *entry;
	char first[PREFIX_TEXT];
	int err;

	while (dash > text && strchr(" \t", dash[-1]))
		dash--;
	snprintf(first, sizeof(first), "%.*s", (int)(dash - text), text);
	err = address_parse(first, &from) ?: address_parse(last, &to);
	if (err)
		return err;
	if (from.family != to.family || memcmp(from.addr, to.addr, sizeof(to.addr)) > 0)
		return error_misuse("bad-range", object_of(NULL, text),
				    "not a range; write FIRST-LAST, of one family");
	while (!err && prefix_of_range(&from, &to, &rule.prefix))
		err = ruleset_add(set, &rule);
	return err;
}

int ruleset_add_words(struct ruleset *set, const struct rule *entry, const char *text)
{
	const char *dash = strchr(text, '-');
	struct rule rule = *entry;

	if (dash && strcspn(text, ".:") < (size_t)(dash - text))
		return range_add(set, entry, text, dash);
	return prefix_parse(text, &rule.prefix) ?: ruleset_add(set, &rule);
}

int ruleset_make_lists(struct ruleset *set)
{
	if (!set->lists)
		set->lists = calloc(SL_LIST_PLACES, sizeof(*set->lists));
	return set->lists ? 0 : no_memory("lists");
}

static int rule_compare(const void *a, const void *b)
{
	const struct rule *left = a, *right = b;

	return prefix_compare(&left->prefix, &right->prefix);
}

/* By prefix, then by the end on a list: no end first, then the last. */
static int rule_order(const void *a, const void *b)
{
	const struct rule *left = a, *right = b;
	uint32_t x = left->list_until - 1, y = right->list_until - 1;

	return rule_compare(a, b) ?: (x < y) - (x > y);
}

void ruleset_sort(struct ruleset *set)
{
	unsigned int i = 1;

	while (i < set->count && rule_order(&set->rules[i - 1], &set->rules[i]) <= 0)
		i++;
	if (i < set->count) /* else it is sorted, as most long files are */
		qsort(set->rules, set->count, sizeof(*set->rules), rule_order);
}

const struct rule *ruleset_find(const struct ruleset *set, const struct sl_prefix *prefix)
{
	const struct rule key = {.prefix = *prefix};

	return set->count ? bsearch(&key, set->rules, set->count, sizeof(key), rule_compare) : NULL;
}

int ruleset_match_lists(struct ruleset *set, const struct sl_list_info *others)
{
	_cleanup_free_ struct sl_list_info *lists = set->lists;
	int places[SL_LIST_PLACES], err;

	if (!others) {
		lists = NULL;
		return 0;
	}
	set->lists = NULL;
	err = ruleset_make_lists(set);
	if (err || !lists)
		return err;
	lists_match(lists, others, places);
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*lists[place].name)
			set->lists[places[place]] = lists[place];
	for (unsigned int i = 0; i < set->count; i++) {
		struct rule *rule = &set->rules[i];
		uint64_t bits = rule->lists;

		if (rule->list_until)
			rule->timed = places[rule->timed];
		for (rule->lists = 0; bits; bits &= bits - 1)
			rule->lists |= 1ULL << places[__builtin_ctzll(bits)];
	}
	return 0;
}

void ruleset_unique(struct ruleset *set)
{
	unsigned int kept = 0;

	ruleset_sort(set);
	for (unsigned int i = 0; i < set->count; i++) {
		if (kept && prefix_equal(&set->rules[kept - 1].prefix, &set->rules[i].prefix))
			rule_free(&set->rules[i]);
		else
			set->rules[kept++] = set->rules[i];
	}
	set->count = kept;
}

void ruleset_free(struct ruleset *set)
{
	for (unsigned int i = 0; i < set->count; i++)
		rule_free(&set->rules[i]);
	free(set->rules);
	free(set->lists);
	*set = (struct ruleset){0};
}

bool rule_pairs_next(struct rule_pairs *pairs, const struct rule **ret_from,
		     const struct rule **ret_to)
{
	const struct ruleset *from = pairs->from, *to = pairs->to;
	const struct rule *old = pairs->i < from->count ? &from->rules[pairs->i] : NULL;
	const struct rule *new = pairs->j < to->count ? &to->rules[pairs->j] : NULL;
	int order = !old ? 1 : !new ? -1 : prefix_compare(&old->prefix, &new->prefix);

	if (!old && !new)
		return false;
	pairs->i += order <= 0;
	pairs->j += order >= 0;
	*ret_from = order <= 0 ? old : NULL;
	*ret_to = order >= 0 ? new : NULL;
	return true;
}

int ruleset_diff(const struct ruleset *from, const struct ruleset *to,
		 int (*call)(void *data, const struct rule *from, const struct rule *to),
		 void *data)
{
	struct rule_pairs pairs = {.from = from, .to = to};
	const struct rule *old, *new;
	int err = 0;

	while (!err && rule_pairs_next(&pairs, &old, &new))
		if (!old || !new || !rule_equal(old, new))
			err = call(data, old, new);
	return err;
}
