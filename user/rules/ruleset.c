// SPDX-License-Identifier: GPL-2.0
#include "rules/ruleset.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "list_ends.h"
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

	copy.limit = copy.newcomers = NULL;
	copy.limits = 0;
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
	for (int i = 0; rule->lists >> place & 1 && i < LIST_ENDS; i++) {
		struct list_end end = list_end_get(rule->list_until, rule->timed, i);

		if (end.until && end.list == (uint32_t)place)
			return end.until;
	}
	return 0;
}

bool rule_add_list(struct rule *rule, int place, uint32_t until)
{
	struct list_end end = {until, place};
	struct rule without = *rule;

	rule_remove_lists(&without, 1ULL << place);
	if (until && list_end_get(without.list_until, without.timed, 1).until)
		return false;
	rule->lists |= 1ULL << place;
	list_ends_set(list_end_get(without.list_until, without.timed, 0),
		      until ? end : list_end_get(without.list_until, without.timed, 1),
		      &rule->list_until, &rule->timed);
	return true;
}

void rule_remove_lists(struct rule *rule, uint64_t bits)
{
	rule->lists &= ~bits;
	list_ends_keep(~bits, &rule->list_until, &rule->timed);
}

bool rule_budget_is_idle(const struct rule *rule)
{
	for (unsigned int i = 0; i < rule->limits; i++)
		if (rule->limit[i].spec.action != SL_ACTION_OBSERVE)
			return false;
	return rule->newcomers && rule->limits;
}

bool rule_sees_destinations(const struct rule *rule)
{
	for (unsigned int i = 0; i < rule->limits; i++)
		if (!rule->limit[i].spec.key_dst && rule->limit[i].spec.action != SL_ACTION_OBSERVE)
			return false;
	return rule->limits;
}

/* Bounds of the budget that rule_advise_budget() recommends. All new sources of a rule share it. */
#define BUDGET_LEAST_PPS  1000
#define BUDGET_LEAST_BITS 10000000
#define BUDGET_MOST_PPS	  200000000
#define BUDGET_MOST_BITS  400000000000

struct sl_limit_spec rule_advise_budget(const struct rule *rule)
{
	bool bits = rule && rule->limits && rule->limit[0].spec.rate_unit == SL_RATE_BITS;
	double rate = bits ? BUDGET_LEAST_BITS : BUDGET_LEAST_PPS;
	double most = bits ? BUDGET_MOST_BITS : BUDGET_MOST_PPS;

	for (unsigned int i = 0; rule && i < rule->limits; i++) {
		const struct sl_limit_spec *spec = &rule->limit[i].spec;
		double twice = 2 * rate_per_second(spec);

		if ((spec->rate_unit == SL_RATE_BITS) == bits && twice > rate)
			rate = twice;
	}
	return (struct sl_limit_spec){
		.rate = rate < most ? rate : most,
		.rate_unit = bits ? SL_RATE_BITS : SL_RATE_PPS,
	};
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
	bool blocks = x->action == SL_ACTION_BLOCK;

	return !strcmp(x->name, y->name) && x->rate == y->rate && x->rate_unit == y->rate_unit &&
	       x->burst == y->burst && x->burst_unit == y->burst_unit && x->kind == y->kind &&
	       (x->kind == SL_TOKEN_BUCKET || x->span_ns == y->span_ns) &&
	       (x->kind != SL_WINDOW || x->groups == y->groups) && x->action == y->action &&
	       (!blocks || (x->block_ns == y->block_ns && x->escalate == y->escalate)) &&
	       (!blocks || !x->escalate || x->block_max_ns == y->block_max_ns) &&
	       a->second.rate == b->second.rate && a->second.burst == b->second.burst &&
	       a->second.burst_unit == b->second.burst_unit &&
	       !memcmp(x->per, y->per, sizeof(x->per)) && x->key_dst == y->key_dst &&
	       x->start == y->start && x->shared == y->shared && match_equal(&a->match, &b->match);
}

/* Returns whether a rule has this limit, at any index. */
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

/* Returns the bits of the lists on which the two rules have different ends. */
static uint64_t lists_of_other_end(const struct rule *a, const struct rule *b)
{
	uint64_t differ = 0;

	if (!a->list_until && !b->list_until)
		return 0;
	for (uint64_t left = a->lists & b->lists; left; left &= left - 1) {
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

/* --- Named lists ---------------------------------------------------------------------------- */

int lists_find(const struct sl_list_info *lists, const char *name)
{
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (!strcmp(lists[place].name, name))
			return place;
	return -1;
}

uint64_t lists_bits(const struct sl_list_info *lists)
{
	uint64_t bits = 0;

	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*lists[place].name)
			bits |= 1ULL << place;
	return bits;
}

const char *const access_words[] = {[SL_ACCESS_ALLOW] = "allow", [SL_ACCESS_DENY] = "deny"};
const char *const access_verbs[] = {[SL_ACCESS_ALLOW] = "allows", [SL_ACCESS_DENY] = "denies"};
const char *const access_done[] = {[SL_ACCESS_ALLOW] = "allowed", [SL_ACCESS_DENY] = "denied"};

bool entry_is_wide(const struct sl_prefix *prefix)
{
	return prefix->bits < SL_FAMILY_BITS + (prefix_is_ipv6(prefix) ? 16 : 8);
}

int entry_check_width(const struct sl_prefix *prefix, const char *force)
{
	char text[PREFIX_TEXT];

	if (!force || !entry_is_wide(prefix))
		return 0;
	return error_misuse("wide-prefix", prefix_format(prefix, text),
			    "shorter than /%d; if it is meant, %s", prefix_is_ipv6(prefix) ? 16 : 8,
			    force);
}

enum sl_access lists_access(const struct sl_list_info *lists, uint64_t bits)
{
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (bits & 1ULL << place && lists[place].access == SL_ACCESS_ALLOW)
			return SL_ACCESS_ALLOW;
	return bits ? SL_ACCESS_DENY : SL_ACCESS_NONE;
}

int lists_put(struct sl_list_info *lists, const struct sl_list_info *list, int place)
{
	if (lists_count(lists) >= SL_LISTS_MAX || place < 0)
		return error_add(
			ENOSPC, "too-many-lists", object_of("list", list->name),
			"a gate has at most %d lists; remove a list of 'sluice lists': 'sluice del "
			"-f NAME'",
			SL_LISTS_MAX);
	lists[place] = *list;
	return 0;
}

bool list_same(const struct sl_list_info *a, const struct sl_list_info *b)
{
	return !strcmp(a->name, b->name) && a->access == b->access &&
	       until_equal(a->until, b->until);
}

bool list_ended(const struct sl_list_info *list)
{
	return list->until && !until_left_ns(list->until);
}

/* --- Names ---------------------------------------------------------------------------------- */

static bool name_is_valid(const char name[SL_LIST_NAME])
{
	size_t length = strnlen(name, SL_LIST_NAME);

	for (size_t i = 0; i < length; i++)
		if (name[i] <= ' ' || name[i] >= 0x7f || strchr("'\"`\\$", name[i]))
			return false;
	return length && length < SL_LIST_NAME;
}

int list_name_check(const char *name)
{
	if (name_is_valid(name))
		return 0;
	return error_misuse("bad-list-name", object_of("list", name),
			    "not a list name; write 'as LIST' with 1 to %d characters, without "
			    "blanks, quotes, $ and backslashes",
			    SL_LIST_NAME - 1);
}

/* Last second of the year 9999, as a Unix time. A formatted time has a year of four digits. */
#define MOMENT_LAST 253402300799ULL

bool list_is_sound(const struct sl_list_info *list)
{
	return name_is_valid(list->name) &&
	       (list->access == SL_ACCESS_ALLOW || list->access == SL_ACCESS_DENY) &&
	       list->replaced <= MOMENT_LAST;
}

/*
 * Stores the absolute path of a file, or "-" for standard input. Does not resolve symbolic links,
 * so that a list keeps its name if a link changes. Returns 0 or a negative errno.
 */
static int path_of(const char *file, char path[PATH_MAX])
{
	char whole[2 * PATH_MAX] = "", *rest;
	size_t end = 0;

	if (!strcmp(file, "-")) {
		strcpy(path, file);
		return 0;
	}
	if (*file != '/' && !getcwd(whole, PATH_MAX))
		return -errno;
	if (strlen(file) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcat(strcat(whole, "/"), file);
	strcpy(path, "/");
	for (char *part = strtok_r(whole, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
		size_t length = strlen(part);

		if (!strcmp(part, "..")) {
			while (end && path[--end] != '/')
				;
		} else if (strcmp(part, ".")) {
			if (end + 1 + length >= PATH_MAX)
				return -ENAMETOOLONG;
			path[end++] = '/';
			memcpy(path + end, part, length);
			end += length;
		}
	}
	path[end ?: 1] = '\0';
	return 0;
}

int lists_find_file(const struct sl_list_info *lists, const char *file, char path[PATH_MAX])
{
	if (!path_of(file, path))
		return lists_find(lists, path);
	snprintf(path, PATH_MAX, "%s", file);
	return -1;
}

int list_name_of(const char *file, char name[SL_LIST_NAME])
{
	char path[PATH_MAX];
	int err = path_of(file, path);

	if (err == -ENAMETOOLONG)
		return error_misuse("bad-list-name", object_of("file", file),
				    "its path is too long for a list name; write 'as LIST'");
	if (err)
		return error_add(err, "no-directory", NULL,
				 "cannot find the current directory: %s; write 'as LIST'",
				 why(err));
	err = list_name_check(path);
	if (!err)
		strcpy(name, path);
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

int ruleset_add_words(struct ruleset *set, const struct rule *entry, const char *text)
{
	const char *dash = strchr(text, '-'), *end = dash;
	struct rule rule = *entry;
	struct sl_prefix from, to;
	char first[PREFIX_TEXT];
	int err;

	if (!dash || strcspn(text, ".:") >= (size_t)(dash - text))
		return prefix_parse(text, &rule.prefix) ?: ruleset_add(set, &rule);
	while (end > text && strchr(" \t", end[-1]))
		end--;
	snprintf(first, sizeof(first), "%.*s", (int)(end - text), text);
	err = address_parse(first, &from) ?: address_parse(dash + 1 + strspn(dash + 1, " \t"), &to);
	if (err)
		return err;
	if (from.family != to.family || memcmp(from.addr, to.addr, sizeof(to.addr)) > 0)
		return error_misuse("bad-range", object_of(NULL, text),
				    "not a range; write FIRST-LAST, of one family");
	while (!err && prefix_of_range(&from, &to, &rule.prefix))
		err = ruleset_add(set, &rule);
	return err;
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

/*
 * Orders rules by prefix, and then by their end on a list. Rules without an end come first, and
 * then the latest end.
 */
static int rule_order(const void *a, const void *b)
{
	const struct rule *left = a, *right = b;
	uint32_t x = left->list_until - 1, y = right->list_until - 1;

	return rule_compare(a, b) ?: (x < y) - (x > y);
}

void ruleset_sort(struct ruleset *set)
{
	/* skip qsort() if the rules are sorted, because it is slow even for sorted rules */
	for (unsigned int i = 1; i < set->count; i++)
		if (rule_order(&set->rules[i - 1], &set->rules[i]) > 0) {
			qsort(set->rules, set->count, sizeof(*set->rules), rule_order);
			return;
		}
}

const struct rule *ruleset_find(const struct ruleset *set, const struct sl_prefix *prefix)
{
	const struct rule key = {.prefix = *prefix};

	return set->count ? bsearch(&key, set->rules, set->count, sizeof(key), rule_compare) : NULL;
}

/* Changes the lists on which a rule has ends, from index I to places[I]. */
static void list_ends_move(struct rule *rule, const int places[SL_LIST_PLACES])
{
	struct list_end ends[LIST_ENDS];

	for (int i = 0; i < LIST_ENDS; i++) {
		ends[i] = list_end_get(rule->list_until, rule->timed, i);
		ends[i].list = places[ends[i].list];
	}
	list_ends_set(ends[0], ends[1], &rule->list_until, &rule->timed);
}

int ruleset_match_lists(struct ruleset *set, const struct sl_list_info *others)
{
	_cleanup_free_ struct sl_list_info *lists = others ? set->lists : NULL;
	int places[SL_LIST_PLACES] = {0}, err, unused = 0;

	if (!others)
		return 0;
	set->lists = NULL;
	err = ruleset_make_lists(set);
	if (err || !lists)
		return err;
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		int same = *lists[place].name ? lists_find(others, lists[place].name) : -1;

		if (!*lists[place].name)
			continue;
		if (same < 0 || !list_same(&lists[place], &others[same])) {
			while (unused < SL_LIST_PLACES - 1 && *others[unused].name)
				unused++;
			same = unused++;
		}
		places[place] = same;
		set->lists[same] = lists[place];
	}
	for (unsigned int i = 0; i < set->count; i++) {
		struct rule *rule = &set->rules[i];
		uint64_t bits = rule->lists;

		if (rule->list_until)
			list_ends_move(rule, places);
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

/* --- Sizes ---------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct gate_sizes) == SIZES * sizeof(uint32_t), "size_of()");

const char *const size_names[SIZES] = {
	[SIZE_SOURCES] = "sources", [SIZE_BUCKETS] = "buckets",	  [SIZE_POLICIES] = "policies",
	[SIZE_HOSTS] = "hosts",	    [SIZE_PREFIXES] = "prefixes",
};

/*
 * Number of entries of each map that the gate reserves. A size that a user specifies excludes them.
 */
static const uint32_t size_own[SIZES] = {[SIZE_POLICIES] = SL_POLICY_FIRST};

uint32_t size_specified(const struct gate_sizes *sizes, enum size size)
{
	uint32_t has = *size_of((struct gate_sizes *)sizes, size), own = size_own[size];

	return has > own ? has - own : 0;
}

void size_set(struct gate_sizes *sizes, enum size which, uint32_t size)
{
	*size_of(sizes, which) = size + size_own[which];
}

void room_add(struct room *room, const struct rule *from, const struct rule *to)
{
	room->policies += to->limits && !(from && from->limits);
	if (from)
		return;
	if (prefix_is_host(&to->prefix))
		room->hosts[prefix_family(&to->prefix)]++;
	else
		room->prefixes++;
}

struct room room_needed(const struct ruleset *rules)
{
	struct room room = {0};

	for (unsigned int i = 0; i < rules->count; i++)
		if (!rule_is_empty(&rules->rules[i]))
			room_add(&room, NULL, &rules->rules[i]);
	return room;
}

struct gate_sizes room_sizes(const struct room *room)
{
	uint32_t ipv4 = room->hosts[SL_IPV4], ipv6 = room->hosts[SL_IPV6];

	return (struct gate_sizes){
		.policies = SL_POLICY_FIRST + room->policies,
		.prefixes = room->prefixes,
		.hosts = ipv4 > ipv6 ? ipv4 : ipv6,
	};
}

bool sizes_hold(const struct gate_sizes *sizes, const struct gate_sizes *needed)
{
	for (enum size i = 0; i < SIZES; i++)
		if (size_specified(sizes, i) < size_specified(needed, i))
			return false;
	return true;
}

struct gate_sizes sizes_grown(const struct gate_sizes *has, const struct gate_sizes *needed,
			      uint32_t fixed)
{
	struct gate_sizes grown = *has;

	for (enum size i = 0; i < SIZES; i++) {
		uint64_t old = size_specified(has, i), least = size_specified(needed, i), size = 1;

		if (fixed & SIZE_BIT(i) || old >= least)
			continue;
		while (size < least || size < 2 * old)
			size *= 2;
		size_set(&grown, i, size < SIZE_MAX_ENTRIES ? size : SIZE_MAX_ENTRIES);
	}
	return grown;
}

uint32_t sizes_bits(const struct gate_sizes *sizes)
{
	uint32_t bits = 0;

	for (enum size i = 0; i < SIZES; i++)
		bits |= *size_of((struct gate_sizes *)sizes, i) ? SIZE_BIT(i) : 0;
	return bits;
}
