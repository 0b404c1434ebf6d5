// SPDX-License-Identifier: GPL-2.0
#include "gate/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "gate/rulemap.h"
#include "kinds.h"
#include "match.h"
#include "rules/ruleset.h"
#include "rules/matches.h"

static bool slot_is_free(const struct sl_policy *policy, unsigned int slot)
{
	return !policy->spec[slot].name[0];
}

/* --- Compiling ------------------------------------------------------------------------------ */

/*
 * Returns the rank of a limit. A packet is charged to limits in the order of their ranks: limits
 * that drop, that block, that shape, and that observe. So a dropped packet causes no block and no
 * delay. Limits that observe count only packets that all other limits pass.
 */
static int charging_rank(const struct sl_limit_spec *spec)
{
	if (spec->kind == SL_SHAPE)
		return 2;
	return spec->action == SL_ACTION_DROP ? 0 : spec->action == SL_ACTION_BLOCK ? 1 : 3;
}

/* Compiles all limits for one family, in the order in which packets charge them. */
static void family_compile(struct sl_policy *policy, enum sl_family family,
			   const struct machine *machine)
{
	static const uint8_t source_bits[] = {[SL_IPV4] = 32, [SL_IPV6] = 64};
	struct sl_limit *list = policy->limit[family];
	unsigned int count = 0;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		const struct limit limit = {policy->spec[slot], policy->match[slot], {0}};
		const struct sl_limit_spec *spec = &limit.spec;
		unsigned int at;

		if (slot_is_free(policy, slot))
			continue;
		for (at = count++; at; at--) {
			const struct sl_limit_spec *other = &policy->spec[list[at - 1].slot];
			int order = charging_rank(spec) - charging_rank(other);

			/* if ranks are equal, the limit with the narrower key is charged first */
			if (order > 0 || (!order && spec->per[family] <= other->per[family]))
				break;
			list[at] = list[at - 1];
		}
		list[at] = limit_compile(&limit, family, machine);
		list[at].slot = slot;
		list[at].mark = policy->origin[slot] ? SL_MARK_INHERITED(slot) : SL_MARK_OWN(slot);
		/*
		 * without a budget, the first charge of a new source includes its earlier packets
		 */
		list[at].charge_hits = !policy_has_budget(policy) &&
				       spec->start != SL_START_EMPTY && spec->kind != SL_SHAPE;
		list[at].budgeted = policy_has_budget(policy);
		/*
		 * set the limit's bit if it drops or blocks, and if its key is a source or part of
		 * a source
		 */
		policy->by_source[family] |= (spec->action != SL_ACTION_OBSERVE && !spec->key_dst &&
					      spec->per[family] >= source_bits[family])
					     << slot;
	}
	policy->limits[family] = count;
}

/*
 * Computes the fields of a policy that packets read. Uses the prefix, the limits and the budget
 * that users specified.
 */
static void policy_compile(struct sl_policy *policy, const struct machine *machine)
{
	const struct limit newcomers = {policy->newcomers_spec, {.fact = SL_FACT_ANY}, {0}};

	memset(policy->limit, 0, sizeof(policy->limit));
	memset(policy->limits, 0, sizeof(policy->limits));
	memset(policy->by_source, 0, sizeof(policy->by_source));
	policy->newcomers = (struct sl_limit){0};
	if (newcomers.spec.rate)
		policy->newcomers = limit_compile(&newcomers, SL_IPV4, machine);
	if (!prefix_is_ipv6(&policy->prefix))
		family_compile(policy, SL_IPV4, machine);
	if (!prefix_is_ipv4(&policy->prefix))
		family_compile(policy, SL_IPV6, machine);
	policy->deep = 0;
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		if (slot_is_free(policy, slot))
			continue;
		if (match_is_deep(&policy->match[slot]) || policy->spec[slot].key_dst)
			policy->deep |= SL_DEEP_HEADERS;
		if (policy->match[slot].fact & SL_FACT_PAYLOAD)
			policy->deep |= SL_DEEP_PAYLOAD;
	}
}

/* --- Checked copies ------------------------------------------------------------------------- */

_Static_assert(offsetof(struct sl_policy, since) == 0 && offsetof(struct sl_list_info, since) == 0,
	       "value_copy() reads `since` first");

/*
 * Copies a value whose first word is the generation since which it is in force. Returns whether the
 * value is in force and the copy is complete. A change clears the first word before it writes the
 * rest. So the copy is complete if the first word is the same after copying. The fence orders the
 * copying before the second read of this word. It also keeps the compiler from reading the map
 * again instead of the copy.
 */
static bool value_copy(void *to, const void *from, size_t size)
{
	uint32_t since = __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE);

	memcpy(to, from, size);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy(to, &since, sizeof(since));
	return since && __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE) == since;
}

/*
 * Returns whether a command could have written these values. Checks all fields that commands read.
 */
static bool version_is_sound(const struct gate *gate, const struct sl_policy *policy)
{
	const struct sl_limit_spec *budget = &policy->newcomers_spec;

	if (!prefix_is_sound(&policy->prefix) ||
	    policy->parent >= SL_POLICY_VERSION(gate->policies_max) ||
	    policy->newcomers_origin >= gate->policies_max ||
	    (budget->rate && (budget->kind != SL_TOKEN_BUCKET || !limit_is_sound(budget))))
		return false;
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		if (SL_ORIGIN_POLICY(policy->origin[slot]) >= gate->policies_max)
			return false;
		if (!slot_is_free(policy, slot) &&
		    (!limit_name_is_valid(policy->spec[slot].name) ||
		     !limit_is_sound(&policy->spec[slot]) || !match_is_sound(&policy->match[slot])))
			return false;
	}
	return true;
}

/*
 * Copies a policy version. If the version is free or damaged, the copy has `since` 0 and no limits.
 * It always has the base of the counters. Returns 0, or -EUCLEAN if the version is damaged.
 */
static int version_copy(const struct gate *gate, uint32_t version, struct sl_policy *ret)
{
	bool in_force = value_copy(ret, &gate->policies[version], sizeof(*ret));

	if (in_force && version_is_sound(gate, ret))
		return 0;
	*ret = (struct sl_policy){.base = ret->base};
	return in_force ? -EUCLEAN : 0;
}

/* Uses an existing copy of the version, because a version does not change while it is in force. */
const struct sl_policy *policy_version(const struct gate *gate, uint32_t version)
{
	uint32_t since = __atomic_load_n(&gate->policies[version].since, __ATOMIC_ACQUIRE);
	struct sl_policy copy;

	/* `since` of a reserved policy is always 0, so it does not show whether a copy exists */
	if (version >= SL_POLICY_VERSION(SL_POLICY_FIRST) && gate->checked[version].since == since)
		return &gate->checked[version];
	version_copy(gate, version, &copy);
	if (copy.since)
		policy_compile(&copy, &gate->machine);
	gate->checked[version] = copy;
	return &gate->checked[version];
}

bool policy_version_inherits(const struct gate *gate, uint32_t version, struct sl_prefix *ret)
{
	struct sl_policy copy;

	version_copy(gate, version, &copy);
	*ret = copy.prefix;
	return copy.since && copy.inherits;
}

/*
 * A policy has two versions. The version with the later `since` is in force. A version is ignored
 * if the rule of its prefix does not refer to it, because an interrupted change may leave a version
 * of a deleted policy.
 */
const struct sl_policy *policy_in_force(const struct gate *gate, unsigned int number)
{
	uint32_t generation = gate_generation(gate);
	const struct sl_policy *best = NULL;

	for (uint32_t version = SL_POLICY_VERSION(number); version <= SL_POLICY_VERSION(number) + 1;
	     version++) {
		const struct sl_policy *policy = policy_version(gate, version);
		struct sl_rule rule;

		if (!policy->since || policy->since > generation ||
		    (best && policy->since <= best->since))
			continue;
		if (gate->state->changing &&
		    (rulemap_get(gate, &policy->prefix, &rule) <= 0 ||
		     rule_content(&rule, gate_generation(gate))->version != version))
			continue;
		best = policy;
	}
	return best;
}

int list_info_read(const struct gate *gate, unsigned int index, struct sl_list_info *ret)
{
	bool in_force = value_copy(ret, &gate->lists[index], sizeof(*ret));

	if (in_force && list_is_sound(ret))
		return 0;
	*ret = (struct sl_list_info){0};
	return in_force ? -EUCLEAN : 0;
}

static int refuse_damaged(const struct gate *gate, enum gate_map map, uint32_t entry)
{
	return gate_error(
		gate, EUCLEAN, "damaged",
		"entry %u of its map '%s' is damaged; remove it with 'sluice -g %s detach "
		"all' and attach again",
		entry, gate_map_names[map], gate->name);
}

int policies_check(const struct gate *gate)
{
	uint32_t end = SL_POLICY_VERSION(gate_policies_seen(gate));
	struct sl_policy policy;
	struct sl_list_info list;

	for (uint32_t version = SL_POLICY_VERSION(SL_POLICY_FIRST); version < end; version++)
		if (version_copy(gate, version, &policy))
			return refuse_damaged(gate, MAP_POLICIES, version);
	for (unsigned int index = 0; index < SL_LIST_PLACES; index++)
		if (list_info_read(gate, index, &list))
			return refuse_damaged(gate, MAP_LISTS, index);
	return 0;
}

/* --- Limits and budget of a version --------------------------------------------------------- */

int policy_limits(const struct sl_policy *policy, struct rule *ret)
{
	const struct limit newcomers = {policy->newcomers_spec, {.fact = SL_FACT_ANY}, {0}};
	int err = 0;

	ret->inherit = policy->inherits ? INHERIT_YES : INHERIT_NO;
	for (unsigned int slot = 0; !err && slot < SL_LIMITS_MAX; slot++) {
		struct limit limit = {policy->spec[slot], policy->match[slot], {0}};

		if (slot_is_free(policy, slot) || policy->origin[slot] || limit.spec.second)
			continue;
		for (unsigned int other = 0; other < SL_LIMITS_MAX; other++) {
			const struct sl_limit_spec *second = &policy->spec[other];

			if (!second->second || policy->origin[other] ||
			    strcmp(second->name, limit.spec.name))
				continue;
			limit.second.rate = second->rate;
			limit.second.burst = second->burst;
			limit.second.burst_unit = second->burst_unit;
		}
		err = rule_add_limit(ret, &limit);
	}
	if (!err && policy_has_budget(policy) && !policy->newcomers_origin)
		err = rule_set_newcomers(ret, &newcomers);
	return err;
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
		empty |= spec->start == SL_START_EMPTY && !match_is_deep(match) && !spec->key_dst;
	}
	return drops && !empty && !policy_has_budget(policy) && !prefix_is_host(&policy->prefix);
}

/* --- Inheritance ---------------------------------------------------------------------------- */

int policy_parent(const struct gate *gate, const struct sl_prefix *prefix, uint32_t generation,
		  uint32_t *ret)
{
	uint32_t bits = prefix->bits;
	struct sl_rule rule;

	*ret = 0;
	while (bits && !*ret) {
		int found = rulemap_cover(gate, prefix, bits - 1, &rule);

		if (found <= 0)
			return found;
		*ret = rule_content(&rule, generation)->version;
		bits = rule.bits;
	}
	return 0;
}

/* Reads the prefix from either version of the policy, because both have the same prefix. */
const struct sl_prefix *limit_origin(const struct gate *gate, uint32_t home)
{
	uint32_t version = SL_POLICY_VERSION(SL_ORIGIN_POLICY(home));
	const struct sl_policy *first = policy_version(gate, version);

	return first->since ? &first->prefix : &policy_version(gate, version + 1)->prefix;
}

/*
 * Appends "NAME of PREFIX" to a text. If `name` is NULL, appends "the newcomers' budget of PREFIX".
 * Truncates the text if it is too long.
 */
static void inherited_add(const struct gate *gate, const char *name, uint32_t home,
			  char text[INHERITED_TEXT])
{
	size_t length = strlen(text);
	char prefix[PREFIX_TEXT];

	snprintf(text + length, INHERITED_TEXT - length, "%s%s of %s", length ? ", " : "",
		 name ?: "the newcomers' budget", prefix_format(limit_origin(gate, home), prefix));
}

const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT])
{
	*text = '\0';
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (policy->origin[slot] && !policy->spec[slot].second)
			inherited_add(gate, policy->spec[slot].name, policy->origin[slot], text);
	if (policy->newcomers_origin)
		inherited_add(gate, NULL, SL_ORIGIN(policy->newcomers_origin, 0), text);
	return *text ? text : NULL;
}

/* --- Shadowed limits ------------------------------------------------------------------------ */

/*
 * Returns the reason why a policy does not inherit its parent's budget, or SHADOW_REASONS if it has
 * no such reason.
 */
static enum shadow_reason budget_shadow(const struct sl_policy *policy,
					const struct sl_policy *parent)
{
	if (!policy_has_budget(parent) || policy->newcomers_origin)
		return SHADOW_REASONS;
	if (!policy_has_budget(policy))
		return SHADOW_LIFTED;
	/* a policy that does not inherit never uses its parent's budget */
	return policy->inherits ? SHADOW_BUDGET : SHADOW_REASONS;
}

/*
 * Returns the reason why a policy does not inherit its parent's limit `slot`, or SHADOW_REASONS if
 * it has no such reason.
 */
static enum shadow_reason limit_shadow(const struct sl_policy *policy,
				       const struct sl_policy *parent, unsigned int slot)
{
	const struct sl_limit_spec *wanted = &parent->spec[slot];

	if (slot_is_free(parent, slot) || wanted->second)
		return SHADOW_REASONS;
	for (unsigned int own = 0; own < SL_LIMITS_MAX; own++) {
		const struct sl_limit_spec *spec = &policy->spec[own];
		const struct sl_match *match = &policy->match[own];

		if (spec->second || strncmp(spec->name, wanted->name, SL_NAME))
			continue;
		/*
		 * a limit that matches at least the same packets fully replaces the parent's limit
		 */
		if (match_is_deep(match) && memcmp(match, &parent->match[slot], sizeof(*match)))
			return SHADOW_REPLACED;
		if (spec->action == SL_ACTION_OBSERVE && wanted->action != SL_ACTION_OBSERVE)
			return SHADOW_OBSERVED;
		return spec->key_dst && !wanted->key_dst ? SHADOW_KEYED : SHADOW_REASONS;
	}
	return SHADOW_LIFTED;
}

/*
 * Adds to `ret` the reason why a policy does not inherit a limit. name: name of the limit, or NULL
 * for the budget.
 */
static void shadow_add(const struct gate *gate, const struct sl_prefix *prefix,
		       enum shadow_reason reason, const char *name, uint32_t home,
		       struct shadowed *ret)
{
	struct shadow *shadow = ret->list, *end = shadow + SHADOWS_MAX;

	while (shadow < end && shadow->items_count &&
	       !(prefix_equal(&shadow->prefix, prefix) && shadow->reason == reason))
		shadow++;
	if (shadow == end) {
		ret->more++;
		return;
	}
	shadow->prefix = *prefix;
	shadow->reason = reason;
	shadow->items_count++;
	inherited_add(gate, name, home, shadow->items);
}

void policy_add_shadows(const struct gate *gate, const struct sl_prefix *prefix, uint32_t before,
			uint32_t version, struct shadowed *ret)
{
	const struct sl_policy *policy = policy_version(gate, version), *parent;
	const struct sl_policy *old = before ? policy_version(gate, before) : NULL;
	enum shadow_reason reason;
	uint32_t shorter;

	if (!version || version == before ||
	    policy_parent(gate, prefix, gate_generation(gate), &shorter))
		return;
	parent = policy_version(gate, shorter);
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		reason = limit_shadow(policy, parent, slot);
		if (reason != SHADOW_REASONS &&
		    (!old || limit_shadow(old, parent, slot) == SHADOW_REASONS))
			shadow_add(gate, prefix, reason, parent->spec[slot].name,
				   parent->origin[slot] ?: SL_ORIGIN(SL_POLICY(shorter), slot),
				   ret);
	}
	reason = budget_shadow(policy, parent);
	if (reason != SHADOW_REASONS && (!old || budget_shadow(old, parent) == SHADOW_REASONS))
		shadow_add(gate, prefix, reason, NULL,
			   SL_ORIGIN(parent->newcomers_origin ?: SL_POLICY(shorter), 0), ret);
}

/* --- Writing a version ---------------------------------------------------------------------- */

/* A limit to write into a policy version. */
struct version_limit {
	struct limit limit;
	uint32_t home; /* SL_ORIGIN() if the limit is inherited, otherwise 0 */
};

struct version_limits {
	/*
	 * room for SL_LIMITS_MAX inherited limits, and for SL_LIMITS_MAX own limits of two rates
	 * each
	 */
	struct version_limit list[3 * SL_LIMITS_MAX];
	unsigned int count;
};

/* Collects the limits of a rule, and each limit of its parent whose name the rule does not use. */
static void candidates_make(const struct gate *gate, const struct rule *rule, uint32_t parent,
			    struct version_limits *ret)
{
	const struct sl_policy *policy = policy_version(gate, parent);

	*ret = (struct version_limits){.count = 0};
	for (unsigned int i = 0; i < rule->limits; i++) {
		ret->list[ret->count++].limit = rule->limit[i];
		if (rule->limit[i].second.rate)
			ret->list[ret->count++].limit = limit_second(&rule->limit[i]);
	}
	for (unsigned int slot = 0; parent && slot < SL_LIMITS_MAX; slot++) {
		if (slot_is_free(policy, slot) || rule_find_limit(rule, policy->spec[slot].name))
			continue;
		ret->list[ret->count++] = (struct version_limit){
			.limit = {policy->spec[slot], policy->match[slot], {0}},
			.home = policy->origin[slot] ?: SL_ORIGIN(SL_POLICY(parent), slot),
		};
	}
}

/* Adds the error that a policy would have more than SL_LIMITS_MAX limits. Returns -ECANCELED. */
static int refuse_inherited(const struct gate *gate, const struct rule *rule,
			    const struct version_limits *candidates)
{
	char names[3 * SL_LIMITS_MAX * (SL_NAME + PREFIX_TEXT + 8)], text[PREFIX_TEXT];
	char label[LIMIT_LABEL];
	size_t length = 0;

	for (unsigned int i = 0; i < candidates->count; i++) {
		const struct version_limit *candidate = &candidates->list[i];

		length += snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "",
				   limit_label(&candidate->limit.spec, label));
		if (candidate->home)
			length +=
				snprintf(names + length, sizeof(names) - length, " of %s",
					 prefix_format(limit_origin(gate, candidate->home), text));
	}
	error_add(ENOSPC, "too-many-limits", prefix_format(&rule->prefix, text),
		  "with inherited limits it would have %u limits, and %d are the most: %s; to "
		  "omit inherited limits, write 'inherit no' in the same command",
		  candidates->count, SL_LIMITS_MAX, names);
	return -ECANCELED;
}

/* Returns the slot of this limit in a version, or -1 if the version does not have the limit. */
static int slot_of(const struct sl_policy *policy, const struct version_limit *candidate)
{
	for (int slot = 0; policy && slot < SL_LIMITS_MAX; slot++)
		if (policy->origin[slot] == candidate->home &&
		    policy->spec[slot].second == candidate->limit.spec.second &&
		    !strncmp(policy->spec[slot].name, candidate->limit.spec.name, SL_NAME))
			return slot;
	return -1;
}

/*
 * Writes a limit into a slot. before: the version in force if it has this limit in the same slot,
 * otherwise NULL. An inherited limit has the id of its origin. Any other limit keeps its id and its
 * states if limit_keeps_states() returns true. Its counter of refusals begins at 0 if its action
 * changes from or to `observe`, because the refusals of a limit that observes are not drops.
 */
static void slot_write(struct gate *gate, struct sl_policy *policy, unsigned int slot,
		       const struct version_limit *candidate, const struct sl_policy *before)
{
	const struct sl_limit_spec *old = before ? &before->spec[slot] : NULL;
	const struct sl_limit_spec *new = &candidate->limit.spec;
	uint32_t id;

	if (candidate->home)
		id = new->id;
	else if (old && limit_keeps_states(old, new))
		id = old->id;
	else
		id = gate->state->next_limit++;
	policy->spec[slot] = *new;
	policy->spec[slot].id = id;
	policy->match[slot] = candidate->limit.match;
	policy->origin[slot] = candidate->home;
	policy->changed[slot] =
		old && old->id == id ? before->changed[slot] : gate_generation(gate) + 1;
	if (old && (old->action == SL_ACTION_OBSERVE) == (new->action == SL_ACTION_OBSERVE))
		policy->base.refused[slot] = before->base.refused[slot];
}

/*
 * Writes all limits. First writes limits that keep their slots, and then other limits into free
 * slots.
 */
static void slots_write(struct gate *gate, struct sl_policy *policy,
			const struct version_limits *candidates, const struct sl_policy *before)
{
	for (unsigned int i = 0; i < candidates->count; i++) {
		int slot = slot_of(before, &candidates->list[i]);

		if (slot >= 0)
			slot_write(gate, policy, slot, &candidates->list[i], before);
	}
	for (unsigned int i = 0, slot = 0; i < candidates->count; i++) {
		if (slot_of(policy, &candidates->list[i]) >= 0)
			continue;
		while (!slot_is_free(policy, slot))
			slot++;
		slot_write(gate, policy, slot, &candidates->list[i], NULL);
	}
}

/*
 * Sets the policy's budget. This is the rule's budget, or the parent's budget if the rule has no
 * budget.
 */
static void budget_choose(const struct gate *gate, const struct rule *rule,
			  struct sl_policy *policy)
{
	const struct sl_policy *parent = policy_version(gate, policy->parent);

	if (rule->newcomers) {
		policy->newcomers_spec = rule->newcomers->spec;
		policy->newcomers_since = gate_generation(gate) + 1;
	} else if (policy->parent && policy_has_budget(parent)) {
		policy->newcomers_spec = parent->newcomers_spec;
		policy->newcomers_since = parent->newcomers_since;
		policy->newcomers_origin = parent->newcomers_origin ?: SL_POLICY(policy->parent);
	}
}

int policy_write(struct gate *gate, uint32_t version, uint32_t before, uint32_t parent,
		 const struct rule *rule)
{
	const struct sl_policy *old = before ? policy_version(gate, before) : NULL;
	struct sl_policy policy = {
		.prefix = rule->prefix,
		.inherits = rule_inherits(rule),
		.parent = parent,
		.made_ns = old ? old->made_ns : uptime_ns(),
	};
	struct version_limits candidates;

	if (counters_read(gate, SL_POLICY(version), &policy.base))
		return -ECANCELED;
	candidates_make(gate, rule, parent, &candidates);
	if (candidates.count > SL_LIMITS_MAX)
		return refuse_inherited(gate, rule, &candidates);
	if (old) {
		memcpy(policy.base.reason, old->base.reason, sizeof(policy.base.reason));
		policy.base.rates = old->base.rates;
	}
	slots_write(gate, &policy, &candidates, old);
	budget_choose(gate, rule, &policy);
	policy_compile(&policy, &gate->machine);
	/* fill the state of a new budget, which no packet uses yet */
	if (policy_has_budget(&policy) && !policy.newcomers_origin &&
	    (!old || !policy_has_budget(old) || old->newcomers_origin))
		gate->budgets[SL_POLICY(version)] = kind_full(&policy.newcomers, uptime_ticks());
	policy_version_write(gate, version, &policy, gate_generation(gate) + 1);
	return 0;
}

void policy_version_write(struct gate *gate, uint32_t version, const struct sl_policy *policy,
			  uint32_t since)
{
	struct sl_policy *to = &gate->policies[version];
	struct sl_policy copy = *policy;

	copy.since = 0;
	*to = copy;
	__atomic_store_n(&to->since, since, __ATOMIC_RELEASE);
	/* discard the checked copy, which may be of an undone version with the same `since` */
	gate->checked[version] = (struct sl_policy){0};
}

uint32_t policy_allocate(struct gate *gate, uint32_t before)
{
	if (before)
		return before ^ 1;
	for (uint32_t i = 0; i < gate->policies_max; i++) {
		uint32_t number = (gate->state->next_policy + i) % gate->policies_max;
		uint32_t version = SL_POLICY_VERSION(number);

		if (number < SL_POLICY_FIRST || policy_version(gate, version)->since ||
		    policy_version(gate, version + 1)->since)
			continue;
		gate->state->next_policy = number + 1;
		if (gate->state->policies_seen <= number)
			gate->state->policies_seen = number + 1;
		return version;
	}
	return 0;
}

void policy_free(struct gate *gate, uint32_t version)
{
	if (!version)
		return;
	__atomic_store_n(&gate->policies[version].since, 0, __ATOMIC_RELEASE);
	if (gate->checked[version].since) /* writing an unused element would allocate its memory */
		gate->checked[version] = (struct sl_policy){0};
}
