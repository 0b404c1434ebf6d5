// SPDX-License-Identifier: GPL-2.0
#include "rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "prefix.h"
#include "rulemap.h"

/* --- Rules ---------------------------------------------------------------------------------- */

static enum status rule_from(const struct gate *gate, const struct sl_prefix *prefix,
			     const struct sl_face *face, struct rule *ret)
{
	struct rule rule = {.prefix = *prefix};
	enum status status = OK;

	if (face_lists(face)) {
		rule.list = face->list;
		rule.until = face->until;
	}
	if (face->record)
		status = policy_limits(&gate->policies[face->record], &rule);
	if (status)
		rule_free(&rule);
	else
		*ret = rule;
	return status;
}

enum status rules_get(const struct gate *gate, const struct sl_prefix *prefix, struct rule *ret)
{
	struct sl_rule rule;

	if (!rulemap_get(gate, prefix, &rule)) {
		*ret = (struct rule){.prefix = *prefix};
		return OK;
	}
	return rule_from(gate, prefix, rulemap_face(&rule, rulemap_generation(gate)), ret);
}

/* A walk under change may meet a rule twice. */
static void ruleset_unique(struct ruleset *set)
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

static enum status ruleset_from(const struct gate *gate, uint32_t generation,
				const struct rulemap_entry *entries, unsigned int count,
				struct ruleset *set)
{
	enum status status = OK;

	for (unsigned int i = 0; !status && i < count; i++) {
		const struct sl_face *face = rulemap_face(&entries[i].rule, generation);
		struct rule rule;

		if (!face_lists(face) && !face->record)
			continue;
		status = rule_from(gate, &entries[i].prefix, face, &rule);
		if (!status)
			status = ruleset_add(set, &rule);
	}
	return status;
}

/* Of one generation, unless it changed meanwhile: then `ret_whole` is false. */
static enum status rules_read_once(const struct gate *gate, struct ruleset *set, bool *ret_whole)
{
	uint32_t generation = rulemap_generation(gate);
	struct rulemap_entry *entries = NULL;
	enum status status;
	unsigned int count;
	int err = rulemap_read(gate, &entries, &count);

	if (err)
		return fail("cannot read the rules of gate '%s': %s", gate->name, why(err));
	status = ruleset_from(gate, generation, entries, count, set);
	free(entries);
	*ret_whole = generation == rulemap_generation(gate);
	return status;
}

/* So often a reader begins anew because of another command that changes the rules. */
#define READ_TRIES 100

enum status rules_read(const struct gate *gate, struct ruleset *ret)
{
	struct ruleset set = {0};
	enum status status = OK;
	bool whole = false;

	for (int i = 0; !status && !whole && i < READ_TRIES; i++) {
		ruleset_free(&set);
		status = rules_read_once(gate, &set, &whole);
	}
	if (!status && !whole)
		status = fail("the rules of gate '%s' change all the time: try again", gate->name);
	if (status) {
		ruleset_free(&set);
		return status;
	}
	ruleset_unique(&set);
	*ret = set;
	return OK;
}

enum status rules_count(const struct gate *gate, unsigned int *ret)
{
	struct ruleset set = {0};
	enum status status;

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

/* --- What decides --------------------------------------------------------------------------- */

/* As the packet path's rule_judge. */
static bool rule_decides(const struct sl_rule *rule, uint32_t generation, struct judgement *ret)
{
	const struct sl_face *face = rulemap_face(rule, generation);

	if (face_lists(face)) {
		ret->list = face->list;
		ret->until = face->until;
	} else {
		ret->record = face->record;
	}
	return ret->list || ret->record;
}

enum status rules_judge(const struct gate *gate, const struct sl_prefix *address,
			struct judgement *ret)
{
	uint32_t generation = rulemap_generation(gate), bits = address->bits;
	struct judgement found = {0};
	struct sl_rule rule;

	while (!found.found && rulemap_cover(gate, address, bits, &rule)) {
		found.found = rule_decides(&rule, generation, &found);
		if (found.found)
			found.prefix = prefix_shorten(address, rule.bits);
		else if (!rule.bits)
			break;
		bits = rule.bits - 1;
	}
	*ret = found;
	return OK;
}

/* --- Policies ------------------------------------------------------------------------------- */

/* A change that died half way may have switched a policy off, and not freed its record. */
static bool policy_is_seen(const struct gate *gate, const struct sl_policy *policy)
{
	struct sl_rule rule;

	if (!gate->state->changing)
		return true;
	return rulemap_get(gate, &policy->prefix, &rule) &&
	       rulemap_face(&rule, rulemap_generation(gate))->record ==
		       (uint32_t)(policy - gate->policies);
}

const struct sl_policy *rules_policy(const struct gate *gate, unsigned int number)
{
	uint32_t generation = rulemap_generation(gate);
	const struct sl_policy *best = NULL;

	for (uint32_t record = SL_RECORD(number); record <= SL_RECORD(number) + 1; record++) {
		const struct sl_policy *policy = &gate->policies[record];
		uint32_t since = __atomic_load_n(&policy->since, __ATOMIC_ACQUIRE);

		if (since && since <= generation && (!best || since > best->since) &&
		    policy_is_seen(gate, policy))
			best = policy;
	}
	return best;
}

static int policy_compare(const void *a, const void *b)
{
	const struct sl_policy *const *left = a, *const *right = b;

	return prefix_compare(&(*left)->prefix, &(*right)->prefix);
}

enum status rules_policies(const struct gate *gate, const struct sl_policy ***ret,
			   unsigned int *ret_count)
{
	const struct sl_policy **list = calloc(gate->policies_max, sizeof(*list));
	unsigned int count = 0;

	if (!list)
		return fail("cannot read the policies of gate '%s': %s", gate->name, why(ENOMEM));
	for (unsigned int number = SL_POLICY_FIRST; number < gate->state->policies_seen; number++) {
		const struct sl_policy *policy = rules_policy(gate, number);

		if (policy)
			list[count++] = policy;
	}
	if (count)
		qsort(list, count, sizeof(*list), policy_compare);
	*ret = list;
	*ret_count = count;
	return OK;
}
