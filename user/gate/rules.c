// SPDX-License-Identifier: GPL-2.0
#include "gate/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate/change.h"
#include "gate/policy.h"
#include "gate/records.h"
#include "gate/rulemap.h"
#include "list_ends.h"
#include "rules/lists.h"
#include "rules/prefix.h"

/* --- Reading rules -------------------------------------------------------------------------- */

/* known: the places that have a list. A damaged rule may name others, which are left out. */
static int rule_from(const struct gate *gate, const struct sl_prefix *prefix,
		     const struct sl_rule_content *content, uint64_t known, struct rule *ret)
{
	struct rule rule = {.prefix = *prefix};
	int status = OK;

	rule.access = content_access(content);
	if (rule.access)
		rule.until = content->until;
	rule.lists = content_lists(gate, content) & known;
	if (rule.lists >> content->timed & 1) {
		rule.list_until = content->list_until;
		rule.timed = content->timed;
	}
	if (content->version)
		status = policy_limits(record_read(gate, content->version), &rule);
	if (status)
		rule_free(&rule);
	else
		*ret = rule;
	return status;
}

static int rules_fail(const struct gate *gate, int err)
{
	return failure("cannot read the rules of gate '%s': %s", gate->name, why(err));
}

int rules_get(const struct gate *gate, const struct sl_prefix *prefix, struct rule *ret)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	struct sl_rule rule;
	int found = rulemap_get(gate, prefix, &rule);

	if (found < 0)
		return rules_fail(gate, found);
	if (!found) {
		*ret = (struct rule){.prefix = *prefix};
		return OK;
	}
	lists_copy(gate, lists);
	return rule_from(gate, prefix, rulemap_content(&rule, rulemap_generation(gate)),
			 lists_bits(lists), ret);
}

static int ruleset_from(const struct gate *gate, uint32_t generation,
			const struct rulemap_entry *entries, unsigned int count,
			struct ruleset *set)
{
	uint64_t known = lists_bits(set->lists);
	int status = OK;

	for (unsigned int i = 0; !status && i < count; i++) {
		const struct sl_rule_content *content =
			rulemap_content(&entries[i].rule, generation);
		struct rule rule;

		if (!content_access(content) && !content_lists(gate, content) && !content->version)
			continue;
		status = rule_from(gate, &entries[i].prefix, content, known, &rule);
		if (!status)
			status = ruleset_add(set, &rule);
	}
	return status;
}

/* Reads the rules of one generation. `ret_whole` is false if the generation changed meanwhile. */
static int rules_read_once(const struct gate *gate, struct ruleset *set, bool *ret_whole)
{
	uint32_t generation = rulemap_generation(gate);
	struct rulemap_entry *entries = NULL;
	int status;
	unsigned int count;
	int err = rulemap_read(gate, &entries, &count);

	if (err)
		return rules_fail(gate, err);
	status = ruleset_make_lists(set);
	if (!status) {
		lists_copy(gate, set->lists);
		status = ruleset_from(gate, generation, entries, count, set);
	}
	free(entries);
	*ret_whole = generation == rulemap_generation(gate);
	return status;
}

/* The number of times that a reader starts again because another command changes the rules. */
#define READ_TRIES 100

int rules_read(const struct gate *gate, struct ruleset *ret)
{
	struct ruleset set = {0};
	int status = OK;
	bool whole = false;

	for (int i = 0; !status && !whole && i < READ_TRIES; i++) {
		ruleset_free(&set);
		status = rules_read_once(gate, &set, &whole);
	}
	if (!status && !whole)
		status = failure("the rules of gate '%s' change all the time: try again",
				 gate->name);
	if (status) {
		ruleset_free(&set);
		return status;
	}
	ruleset_unique(&set); /* a walk under change may meet a rule twice */
	*ret = set;
	return OK;
}

int rules_count(const struct gate *gate, unsigned int *ret)
{
	struct ruleset set = {0};
	int status;

	if (!gate->state->changing) {
		*ret = gate->state->hosts + gate->state->prefixes;
		return OK;
	}
	status = rules_read(gate, &set);
	if (!status)
		*ret = set.count;
	ruleset_free(&set);
	return status;
}

/* --- The rule that decides ------------------------------------------------------------------ */

/* The end of the prefix on several lists together: the last of the ends; 0: none. */
static uint32_t lists_end(const struct gate *gate, const struct sl_rule_content *content,
			  uint64_t lists)
{
	uint32_t last = 0;

	for (; lists; lists &= lists - 1) {
		uint64_t bit = lists & -lists;
		uint32_t end = bit == 1ULL << content->timed ? content->list_until : 0;

		if (bit & gate->state->lists_ending)
			end = end_first(end, gate->state->list_ends[list_end_index(bit)]);
		if (!end)
			return 0;
		last = end > last ? end : last;
	}
	return last;
}

/* The entry or record of one rule. denies: with lists that deny. */
static struct judgement content_judge(const struct gate *gate, const struct sl_prefix *prefix,
				      const struct sl_rule_content *content, bool denies)
{
	uint64_t lists = content_lists(gate, content);
	uint64_t allow = lists & gate->state->lists_allow;
	struct judgement said = {.prefix = *prefix, .access = content_access(content)};

	if (said.access) {
		said.until = content->until;
	} else if (allow || (lists && denies)) {
		said.access = allow ? SL_ACCESS_ALLOW : SL_ACCESS_DENY;
		said.lists = allow ?: lists;
		said.until = lists_end(gate, content, said.lists);
	} else {
		said.record = content->version;
	}
	said.found = said.access || said.record;
	return said;
}

/*
 * Adds one rule to a judgement, as lookup_add() in bpf/rules.h does. Returns whether the
 * judgement is complete: a list's deny is not, as a shorter rule may allow the source by hand.
 * without: the judgement without the lists that deny.
 */
static bool rule_judge(const struct gate *gate, const struct sl_prefix *prefix,
		       const struct sl_rule_content *content, struct judgement *judgement,
		       struct judgement *without)
{
	struct judgement said = content_judge(gate, prefix, content, true);
	struct judgement rest = content_judge(gate, prefix, content, false);
	bool by_hand = said.access && !said.lists, listed_deny;

	if (!without->found)
		*without = rest;
	if (!judgement->found)
		*judgement = said;
	else if (by_hand && said.access == SL_ACCESS_ALLOW)
		*judgement = *without;
	listed_deny = judgement->lists && judgement->access == SL_ACCESS_DENY;
	return by_hand || (judgement->found && !listed_deny);
}

int rules_judge(const struct gate *gate, const struct sl_prefix *address, struct judgement *ret)
{
	uint32_t generation = rulemap_generation(gate), bits = address->bits;
	struct judgement found = {0}, without = {0};
	bool complete = false;
	struct sl_rule rule;

	while (!complete) {
		int covered = rulemap_cover(gate, address, bits, &rule);

		if (covered < 0)
			return rules_fail(gate, covered);
		if (!covered)
			break;
		struct sl_prefix prefix = prefix_shorten(address, rule.bits);

		complete = rule_judge(gate, &prefix, rulemap_content(&rule, generation), &found,
				      &without);
		if (!rule.bits)
			break;
		bits = rule.bits - 1;
	}
	*ret = found.found ? found : (struct judgement){0};
	return OK;
}

/* --- Reading policies ----------------------------------------------------------------------- */

static int policy_compare(const void *a, const void *b)
{
	const struct sl_policy *const *left = a, *const *right = b;

	return prefix_compare(&(*left)->prefix, &(*right)->prefix);
}

int rules_policies(const struct gate *gate, const struct sl_policy ***ret, unsigned int *ret_count)
{
	const struct sl_policy **list = calloc(gate->policies_max, sizeof(*list));
	unsigned int count = 0, seen = gate_policies_seen(gate);

	if (!list)
		return failure("cannot read the policies of gate '%s': %s", gate->name,
			       why(ENOMEM));
	for (unsigned int number = SL_POLICY_FIRST; number < seen; number++) {
		const struct sl_policy *policy = policy_in_force(gate, number);

		if (policy)
			list[count++] = policy;
	}
	if (count)
		qsort(list, count, sizeof(*list), policy_compare);
	*ret = list;
	*ret_count = count;
	return OK;
}
