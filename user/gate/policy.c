// SPDX-License-Identifier: GPL-2.0
#include "gate/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "credit.h"
#include "gate/counters.h"
#include "gate/rulemap.h"
#include "match.h"
#include "rules/prefix.h"

/* --- From records --------------------------------------------------------------------------- */

static bool slot_is_free(const struct sl_policy *policy, unsigned int slot)
{
	return !policy->spec[slot].name[0];
}

static bool policy_has_budget(const struct sl_policy *policy)
{
	return policy->newcomers.burst;
}

enum status policy_limits(const struct sl_policy *policy, struct rule *ret)
{
	const struct limit newcomers = {policy->newcomers_spec, {.fact = SL_FACT_ANY}};
	enum status status = OK;

	ret->inherit = policy->inherits ? INHERIT_YES : INHERIT_NO;
	for (unsigned int slot = 0; !status && slot < SL_LIMITS_MAX; slot++)
		if (!slot_is_free(policy, slot) && !policy->home[slot])
			status = rule_add_limit(
				ret, &(struct limit){policy->spec[slot], policy->match[slot]});
	if (!status && policy_has_budget(policy) && !policy->newcomers_home)
		status = rule_set_newcomers(ret, &newcomers);
	return status;
}

bool policy_lacks_budget(const struct sl_policy *policy)
{
	bool drops = false, empty = false;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		const struct sl_limit_spec *spec = &policy->spec[slot];
		const struct sl_match *match = &policy->match[slot];

		if (slot_is_free(policy, slot) || spec->action == SL_ACTION_OBSERVE)
			continue;
		drops = true;
		empty |= spec->start_empty && match->fact == SL_FACT_ANY && !match->vlan &&
			 !spec->key_dst;
	}
	return drops && !empty && !policy_has_budget(policy);
}

/* --- Inheriting ----------------------------------------------------------------------------- */

uint32_t policy_parent(const struct gate *gate, const struct sl_prefix *prefix)
{
	uint32_t bits = prefix->bits;
	struct sl_rule rule;

	while (bits && rulemap_cover(gate, prefix, bits - 1, &rule)) {
		if (rule.now.record)
			return rule.now.record;
		bits = rule.bits;
	}
	return 0;
}

/* A limit that is to have a slot in a record. */
struct wish {
	struct limit limit;
	uint32_t home; /* as in struct sl_policy; 0: the policy's own */
};

struct wishes {
	struct wish list[2 * SL_LIMITS_MAX];
	unsigned int count;
};

/* Its own limits, then the parent's, all that this one has, but for those whose name an own one has. */
static void wishes_make(const struct gate *gate, const struct rule *rule, uint32_t parent,
			struct wishes *ret)
{
	const struct sl_policy *policy = &gate->policies[parent];
	struct wishes wishes = {0};

	for (unsigned int i = 0; i < rule->limits; i++)
		wishes.list[wishes.count++].limit = rule->limit[i];
	for (unsigned int slot = 0; parent && slot < SL_LIMITS_MAX; slot++) {
		if (slot_is_free(policy, slot) || rule_find_limit(rule, policy->spec[slot].name))
			continue;
		wishes.list[wishes.count++] = (struct wish){
			.limit = {policy->spec[slot], policy->match[slot]},
			.home = policy->home[slot] ?: SL_HOME(SL_POLICY(parent), slot),
		};
	}
	*ret = wishes;
}

/* Says which limits an heir would have. */
static int refuse_fifth(const struct gate *gate, const struct rule *rule,
			const struct wishes *wishes)
{
	char names[2 * SL_LIMITS_MAX * (SL_NAME + PREFIX_TEXT + 8)], text[PREFIX_TEXT];
	const char *prefix;
	size_t length = 0;

	for (unsigned int i = 0; i < wishes->count; i++) {
		const struct wish *wish = &wishes->list[i];

		length += snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "",
				   wish->limit.spec.name);
		if (wish->home)
			length += snprintf(names + length, sizeof(names) - length, " of %s",
					   prefix_format(inherit_home(gate, wish->home), text));
	}
	prefix = prefix_format(&rule->prefix, text);
	failure("%s inherits, and would have %u limits, of which %d is the most: %s; without those "
		"of "
		"others it is 'sluice %sset %s inherit no'",
		prefix, wishes->count, SL_LIMITS_MAX, names, gate_option(gate->name), prefix);
	return POLICY_REFUSED;
}

/* --- Slots ---------------------------------------------------------------------------------- */

static int slot_find_free(const struct sl_policy *policy)
{
	int slot = 0;

	while (!slot_is_free(policy, slot))
		slot++;
	return slot;
}

/* The slot that the same limit has in a record; -1: none. */
static int slot_of(const struct sl_policy *policy, const struct wish *wish)
{
	for (int slot = 0; policy && slot < SL_LIMITS_MAX; slot++)
		if (policy->home[slot] == wish->home &&
		    !strncmp(policy->spec[slot].name, wish->limit.spec.name, SL_NAME))
			return slot;
	return -1;
}

static bool same_key(const struct sl_limit_spec *a, const struct sl_limit_spec *b)
{
	return !memcmp(a->per, b->per, sizeof(a->per)) && a->key_dst == b->key_dst;
}

/* Whether what both refuse is counted as the same: as drops, or as would-drops. */
static bool same_verdict(const struct sl_limit_spec *a, const struct sl_limit_spec *b)
{
	return (a->action == SL_ACTION_OBSERVE) == (b->action == SL_ACTION_OBSERVE);
}

/* The id stays while the key is the same: the ledgers are the same, then. An inherited limit has that of its home. */
static uint32_t limit_id(struct gate *gate, const struct wish *wish,
			 const struct sl_limit_spec *old)
{
	if (wish->home)
		return wish->limit.spec.id;
	return old && same_key(old, &wish->limit.spec) ? old->id : gate->state->next_limit++;
}

/*
 * before: the record in which this limit has this slot already. In any other record the refusals of
 * the slot are of another limit.
 */
static void slot_write(struct gate *gate, struct sl_policy *policy, unsigned int slot,
		       const struct wish *wish, const struct sl_policy *before)
{
	const struct sl_limit_spec *old = before ? &before->spec[slot] : NULL;
	uint32_t id = limit_id(gate, wish, old);

	policy->spec[slot] = wish->limit.spec;
	policy->spec[slot].id = id;
	policy->match[slot] = wish->limit.match;
	policy->home[slot] = wish->home;
	policy->changed[slot] =
		old && old->id == id ? before->changed[slot] : rulemap_generation(gate) + 1;
	if (old && same_verdict(old, &wish->limit.spec))
		policy->base.refused[slot] = before->base.refused[slot];
}

/* Limits that keep their slots come first, so that a slot which is free afterwards belongs to no limit. */
static void slots_write(struct gate *gate, struct sl_policy *policy, const struct wishes *wishes,
			const struct sl_policy *before)
{
	for (unsigned int i = 0; i < wishes->count; i++) {
		int slot = slot_of(before, &wishes->list[i]);

		if (slot >= 0)
			slot_write(gate, policy, slot, &wishes->list[i], before);
	}
	for (unsigned int i = 0; i < wishes->count; i++)
		if (slot_of(policy, &wishes->list[i]) < 0)
			slot_write(gate, policy, slot_find_free(policy), &wishes->list[i], NULL);
}

/* --- The order of asking -------------------------------------------------------------------- */

/*
 * Those that drop before those that block, so that a packet that is dropped anyway begins no block; those
 * that observe last: they see what the others let pass.
 */
static const int action_order[] = {
	[SL_ACTION_DROP] = 0,
	[SL_ACTION_BLOCK] = 1,
	[SL_ACTION_OBSERVE] = 2,
};

static bool asked_before(const struct sl_limit_spec *a, const struct sl_limit_spec *b,
			 enum sl_family family)
{
	if (a->action != b->action)
		return action_order[a->action] < action_order[b->action];
	return a->per[family] > b->per[family]; /* narrow keys first */
}

/*
 * Whether the packets of a newcomer are charged to its ledger when it gets one. Not if a budget has paid for them.
 * All of them must be for this limit: a limit that admits by its own key counts only such packets.
 */
static bool limit_owes(const struct sl_policy *policy, const struct limit *limit,
		       const struct sl_limit *compiled)
{
	bool is_met_by_key = compiled->apart || compiled->shared;

	return !policy_has_budget(policy) && !limit->spec.start_empty &&
	       (is_met_by_key || limit->match.fact == SL_FACT_ANY);
}

static void family_compile(struct sl_policy *policy, enum sl_family family,
			   const struct machine *machine)
{
	struct sl_limit *list = policy->limit[family];
	unsigned int count = 0;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		struct limit limit = {policy->spec[slot], policy->match[slot]};
		unsigned int at = count;

		if (slot_is_free(policy, slot))
			continue;
		while (at && asked_before(&limit.spec, &policy->spec[list[at - 1].slot], family)) {
			list[at] = list[at - 1];
			at--;
		}
		list[at] = limit_compile(&limit, family, machine);
		list[at].slot = slot;
		list[at].mark = policy->home[slot] ? SL_MARK_INHERITED(slot) : SL_MARK_OWN(slot);
		list[at].owes = limit_owes(policy, &limit, &list[at]);
		count++;
	}
	policy->limits[family] = count;
}

static bool policy_is_deep(const struct sl_policy *policy)
{
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (!slot_is_free(policy, slot) &&
		    (match_is_deep(&policy->match[slot]) || policy->spec[slot].key_dst))
			return true;
	return false;
}

void policy_compile(struct sl_policy *policy, const struct machine *machine)
{
	const struct limit newcomers = {policy->newcomers_spec, {.fact = SL_FACT_ANY}};

	if (newcomers.spec.rate)
		policy->newcomers = limit_compile(&newcomers, SL_IPV4, machine);
	if (!prefix_is_ipv6(&policy->prefix))
		family_compile(policy, SL_IPV4, machine);
	if (!prefix_is_ipv4(&policy->prefix))
		family_compile(policy, SL_IPV6, machine);
	policy->deep = policy_is_deep(policy);
}

/* A policy without a budget of its own has that of its parent. */
static void budget_choose(const struct gate *gate, const struct rule *rule,
			  struct sl_policy *policy)
{
	const struct sl_policy *parent = &gate->policies[policy->parent];

	if (rule->newcomers) {
		policy->newcomers_spec = rule->newcomers->spec;
		policy->newcomers_since = rulemap_generation(gate) + 1;
	} else if (policy->parent && policy_has_budget(parent)) {
		policy->newcomers_spec = parent->newcomers_spec;
		policy->newcomers_since = parent->newcomers_since;
		policy->newcomers_home = parent->newcomers_home ?: SL_POLICY(policy->parent);
	}
}

/*
 * All newcomers share one ledger, whatever their family. One that begins is full; no packet sees it yet, as nothing
 * in force has a budget there.
 */
static void budget_begin(struct gate *gate, uint32_t number, const struct sl_policy *policy,
			 const struct sl_policy *before)
{
	if (!policy_has_budget(policy) || policy->newcomers_home)
		return;
	if (!before || !policy_has_budget(before) || before->newcomers_home)
		gate->budgets[number] = credit_full(&policy->newcomers, uptime_ticks());
}

int policy_write(struct gate *gate, uint32_t record, uint32_t before, uint32_t parent,
		 const struct rule *rule)
{
	const struct sl_policy *old = before ? &gate->policies[before] : NULL;
	struct sl_policy *to = &gate->policies[record], policy = {
								.prefix = rule->prefix,
								.inherits = rule_inherits(rule),
								.parent = parent,
							};
	struct wishes wishes;
	int err = counters_get(gate, SL_POLICY(record), &policy.base);

	if (err)
		return err;
	wishes_make(gate, rule, parent, &wishes);
	if (wishes.count > SL_LIMITS_MAX)
		return refuse_fifth(gate, rule, &wishes);
	if (old)
		memcpy(policy.base.reason, old->base.reason, sizeof(policy.base.reason));
	slots_write(gate, &policy, &wishes, old);
	budget_choose(gate, rule, &policy);
	policy_compile(&policy, &gate->machine);
	budget_begin(gate, SL_POLICY(record), &policy, old);
	*to = policy;
	__atomic_store_n(&to->since, rulemap_generation(gate) + 1, __ATOMIC_RELEASE);
	return 0;
}

/* --- Allocation ----------------------------------------------------------------------------- */

static bool policy_is_free(const struct gate *gate, uint32_t number)
{
	return !gate->policies[SL_RECORD(number)].since &&
	       !gate->policies[SL_RECORD(number) + 1].since;
}

uint32_t policy_allocate(struct gate *gate, uint32_t before)
{
	if (before)
		return before ^ 1;
	for (uint32_t i = 0; i < gate->policies_max; i++) {
		uint32_t number = (gate->state->next_policy + i) % gate->policies_max;

		if (number < SL_POLICY_FIRST || !policy_is_free(gate, number))
			continue;
		gate->state->next_policy = number + 1;
		if (gate->state->policies_seen <= number)
			gate->state->policies_seen = number + 1;
		return SL_RECORD(number);
	}
	return 0;
}

void policy_free(struct gate *gate, uint32_t record)
{
	if (record)
		__atomic_store_n(&gate->policies[record].since, 0, __ATOMIC_RELEASE);
}

/* --- What a policy inherits, in words ------------------------------------------------------- */

/* A policy that a change is rewriting has two records, of the same prefix. */
const struct sl_prefix *inherit_home(const struct gate *gate, uint32_t home)
{
	const struct sl_policy *record = &gate->policies[SL_RECORD(SL_HOME_POLICY(home))];

	return record[0].since ? &record[0].prefix : &record[1].prefix;
}

size_t inherited_add(const char *name, const struct sl_prefix *home, char text[INHERITED_TEXT],
		     size_t length)
{
	char prefix[PREFIX_TEXT];

	return length + snprintf(text + length, INHERITED_TEXT - length, "%s%s of %s",
				 length ? ", " : "", name ?: "the newcomers' budget",
				 prefix_format(home, prefix));
}

const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT])
{
	size_t length = 0;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (policy->home[slot])
			length =
				inherited_add(policy->spec[slot].name,
					      inherit_home(gate, policy->home[slot]), text, length);
	if (policy->newcomers_home)
		length = inherited_add(NULL, inherit_home(gate, SL_HOME(policy->newcomers_home, 0)),
				       text, length);
	return length ? text : NULL;
}

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

const struct sl_policy *policy_in_force(const struct gate *gate, unsigned int number)
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
