// SPDX-License-Identifier: GPL-2.0
#include "gate/compile.h"

#include <string.h>

#include "kinds.h"
#include "match.h"
#include "rules/prefix.h"

bool slot_is_free(const struct sl_policy *policy, unsigned int slot)
{
	return !policy->spec[slot].name[0];
}

bool policy_has_budget(const struct sl_policy *policy)
{
	return policy->newcomers.burst;
}

/*
 * The order in which limits are charged. Limits that drop come before those that block, so that a
 * packet which is dropped anyway does not begin a block. Limits that shape come behind both: a
 * packet that is dropped takes no departure from one that is sent. Limits that observe come last:
 * they count only what passes the others.
 */
static int charging_order(const struct sl_limit_spec *spec)
{
	static const int action_order[] = {
		[SL_ACTION_DROP] = 0,
		[SL_ACTION_BLOCK] = 1,
		[SL_ACTION_OBSERVE] = 3,
	};

	return spec->kind == SL_SHAPE ? 2 : action_order[spec->action];
}

static bool charged_before(const struct sl_limit_spec *a, const struct sl_limit_spec *b,
			   enum sl_family family)
{
	int order = charging_order(a) - charging_order(b);

	if (order)
		return order < 0;
	return a->per[family] > b->per[family]; /* narrow keys first */
}

/*
 * Whether a newcomer's earlier packets are charged to its state when it gets one. They are not if
 * a budget has paid for them.
 */
static bool limit_owes(const struct sl_policy *policy, const struct limit *limit)
{
	return !policy_has_budget(policy) && limit->spec.start != SL_START_EMPTY &&
	       limit->spec.kind != SL_SHAPE;
}

/* Returns whether a limit that drops counts by source, and by nothing wider than a source. */
static bool limit_is_by_source(const struct sl_limit_spec *spec, enum sl_family family)
{
	static const uint8_t source_bits[] = {[SL_IPV4] = 32, [SL_IPV6] = 64};

	return spec->action != SL_ACTION_OBSERVE && !spec->key_dst &&
	       spec->per[family] >= source_bits[family];
}

static void family_compile(struct sl_policy *policy, enum sl_family family,
			   const struct machine *machine)
{
	struct sl_limit *list = policy->limit[family];
	unsigned int count = 0;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		struct limit limit = {policy->spec[slot], policy->match[slot], {0}};
		unsigned int at = count;

		if (slot_is_free(policy, slot))
			continue;
		while (at &&
		       charged_before(&limit.spec, &policy->spec[list[at - 1].slot], family)) {
			list[at] = list[at - 1];
			at--;
		}
		list[at] = limit_compile(&limit, family, machine);
		list[at].slot = slot;
		list[at].mark = policy->origin[slot] ? SL_MARK_INHERITED(slot) : SL_MARK_OWN(slot);
		list[at].owes = limit_owes(policy, &limit);
		list[at].budgeted = policy_has_budget(policy);
		policy->by_source[family] |= limit_is_by_source(&limit.spec, family) << slot;
		count++;
	}
	policy->limits[family] = count;
}

void policy_compile(struct sl_policy *policy, const struct machine *machine)
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
	policy->deep = false;
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		policy->deep |= !slot_is_free(policy, slot) &&
				(match_is_deep(&policy->match[slot]) || policy->spec[slot].key_dst);
}
