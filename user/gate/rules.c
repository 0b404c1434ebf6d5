// SPDX-License-Identifier: GPL-2.0
#include "gate/rules.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "gate/policy.h"
#include "gate/rulemap.h"
#include "rules/ruleset.h"

/* The clock that include/lookup.h requires. */
static uint32_t clock_until(void)
{
	return uptime_ns() >> SL_UNTIL_SHIFT;
}

#include "lookup.h"

/* --- Named lists ---------------------------------------------------------------------------- */

bool list_is_seen(const struct sl_list_info *list, uint32_t generation)
{
	uint32_t since = __atomic_load_n(&list->since, __ATOMIC_ACQUIRE);

	return since && (int32_t)(since - generation) <= 0 &&
	       !(list->gone && (int32_t)(list->gone - generation) <= 0);
}

void lists_copy(const struct gate *gate, struct sl_list_info ret[SL_LIST_PLACES])
{
	uint32_t generation = gate_generation(gate);

	for (int index = 0; index < SL_LIST_PLACES; index++) {
		list_info_read(gate, index, &ret[index]);
		if (!list_is_seen(&ret[index], generation))
			ret[index] = (struct sl_list_info){0};
	}
}

/* --- Reading rules -------------------------------------------------------------------------- */

int rules_unread(const struct gate *gate, int err)
{
	return gate_error(gate, err, "rules-unread", "cannot read its rules: %s", why(err));
}

/*
 * Makes a rule from the content that packets see. known: bits of the existing lists. Ignores other
 * bits, which only a damaged rule has.
 */
static int rule_from(const struct gate *gate, const struct sl_prefix *prefix,
		     const struct sl_rule_content *content, uint64_t known, struct rule *ret)
{
	struct rule rule = {.prefix = *prefix, .access = content_access(content)};
	int err = 0;

	if (rule.access)
		rule.until = content->until;
	rule.lists = content_lists(gate, content) & known;
	rule.list_until = content->list_until;
	rule.timed = content->timed;
	list_ends_keep(rule.lists, &rule.list_until, &rule.timed);
	if (content->version)
		err = policy_limits(policy_version(gate, content->version), &rule);
	if (err)
		rule_free(&rule);
	else
		*ret = rule;
	return err;
}

int rules_get(const struct gate *gate, const struct sl_prefix *prefix, struct rule *ret)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	struct sl_rule rule;
	int found = rulemap_get(gate, prefix, &rule);

	*ret = (struct rule){.prefix = *prefix};
	if (found <= 0)
		return found ? rules_unread(gate, found) : 0;
	lists_copy(gate, lists);
	return rule_from(gate, prefix, rule_content(&rule, gate_generation(gate)),
			 lists_bits(lists), ret);
}

/*
 * Reads the rules of a generation. If the generation changes meanwhile, the result is invalid, so
 * the caller must check it.
 */
static int rules_read_once(const struct gate *gate, uint32_t generation, struct ruleset *set)
{
	_cleanup_free_ struct rulemap_entry *entries = NULL;
	unsigned int count = 0;
	uint64_t known;
	int err = rulemap_read(gate, UINT_MAX, &entries, &count);

	if (err)
		return rules_unread(gate, err);
	err = ruleset_make_lists(set);
	if (err)
		return err;
	lists_copy(gate, set->lists);
	known = lists_bits(set->lists);
	for (unsigned int i = 0; !err && i < count; i++) {
		const struct sl_rule_content *content = rule_content(&entries[i].rule, generation);
		struct rule rule;

		if (!content_has_ended(gate, content))
			err = rule_from(gate, &entries[i].prefix, content, known, &rule)
				      ?: ruleset_add(set, &rule);
	}
	return err;
}

/* Give up after 100 failed reads. A read fails if a command changes the rules meanwhile. */
#define READ_TRIES 100

int rules_read(const struct gate *gate, struct ruleset *ret)
{
	for (int i = 0; i < READ_TRIES; i++) {
		uint32_t generation = gate_generation(gate);
		struct ruleset set = {0};
		int err = rules_read_once(gate, generation, &set);

		if (!err && generation == gate_generation(gate)) {
			ruleset_unique(&set); /* a walk during a change may find a rule twice */
			*ret = set;
			return 0;
		}
		ruleset_free(&set);
		if (err)
			return err;
	}
	return gate_error(gate, EAGAIN, "rules-busy", "its rules change all the time; try again");
}

int rules_count(const struct gate *gate, unsigned int *ret)
{
	_cleanup_(ruleset_free) struct ruleset set = {0};
	bool changing = gate->state->changing; /* read once, because a command may change it */
	int err = changing ? rules_read(gate, &set) : 0;

	*ret = changing ? set.count : gate->state->hosts + gate->state->prefixes;
	return err;
}

static int by_prefix(const void *a, const void *b)
{
	const struct sl_policy *const *left = a, *const *right = b;

	return prefix_compare(&(*left)->prefix, &(*right)->prefix);
}

int rules_policies(const struct gate *gate, const struct sl_policy ***ret, unsigned int *ret_count)
{
	const struct sl_policy **list = calloc(gate->policies_max, sizeof(*list));
	unsigned int count = 0, seen = gate_policies_seen(gate);

	if (!list)
		return rules_unread(gate, ENOMEM);
	for (unsigned int number = SL_POLICY_FIRST; number < seen; number++) {
		list[count] = policy_in_force(gate, number);
		count += list[count] != NULL;
	}
	if (count)
		qsort(list, count, sizeof(*list), by_prefix);
	*ret = list;
	*ret_count = count;
	return 0;
}

/* --- The rule that decides ------------------------------------------------------------------ */

/* Returns the latest end of the prefix on these lists, or 0 if it never ends on one of them. */
static uint32_t lists_end(const struct gate *gate, const struct sl_rule_content *content,
			  uint64_t lists)
{
	const struct rule rule = {
		.lists = lists, .list_until = content->list_until, .timed = content->timed};
	uint32_t last = 0;

	for (; lists; lists &= lists - 1) {
		uint64_t bit = lists & -lists;
		uint32_t end = rule_list_end(&rule, __builtin_ctzll(bit));

		if (bit & gate->state->lists_ending)
			end = end_first(end, gate->state->list_ends[list_end_index(bit)]);
		if (!end)
			return 0;
		last = end > last ? end : last;
	}
	return last;
}

/*
 * Returns the decision of a rule about an address, by its runtime entry, lists or policy. version:
 * from lookup_add().
 */
static struct judgement content_judge(const struct gate *gate, const struct sl_prefix *prefix,
				      const struct sl_rule_content *content, uint32_t version)
{
	struct judgement by = {.prefix = *prefix, .found = version != 0};
	uint64_t lists = content_lists(gate, content), allow = gate->state->lists_allow;

	if (SL_POLICY(version) >= SL_POLICY_FIRST) {
		by.version = version;
	} else if (content_access(content)) {
		by.access = content_access(content);
		by.until = content->until;
	} else if (version) {
		by.access = lists & allow ? SL_ACCESS_ALLOW : SL_ACCESS_DENY;
		by.lists = lists & allow ?: lists;
		by.until = lists_end(gate, content, by.lists);
	}
	return by;
}

int rules_judge(const struct gate *gate, const struct sl_prefix *address, struct judgement *ret)
{
	uint32_t generation = gate_generation(gate), bits = address->bits;
	struct judgement found = {0}, without = {0}; /* of lookup.version and lookup.without */
	struct lookup lookup = {0};
	bool is_complete = false;
	struct sl_rule rule;

	while (!is_complete) {
		struct lookup before = lookup;
		const struct sl_rule_content *content;
		struct sl_prefix prefix;
		int covered = rulemap_cover(gate, address, bits, &rule);

		if (covered < 0)
			return rules_unread(gate, covered);
		if (!covered)
			break;
		prefix = prefix_shorten(address, rule.bits);
		content = rule_content(&rule, generation);
		is_complete = lookup_add(content, gate->state, &lookup);
		if (!before.without)
			without = content_judge(gate, &prefix, content, lookup.without);
		if (!before.version)
			found = content_judge(gate, &prefix, content, lookup.version);
		else if (lookup.version != before.version)
			found = without;
		if (!rule.bits)
			break;
		bits = rule.bits - 1;
	}
	*ret = found.found ? found : (struct judgement){0};
	return 0;
}
