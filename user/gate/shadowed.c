// SPDX-License-Identifier: GPL-2.0
#include "gate/shadowed.h"

#include <string.h>

#include "rules/prefix.h"

/* --- Limits and budget of a version --------------------------------------------------------- */

/* A limit, or the newcomers' budget, which has no name. */
struct item {
	const char *name;
	const struct sl_limit_spec *spec;
	const struct sl_match *match;
	uint32_t origin; /* the number of the policy that has it */
};

struct items {
	struct item list[SL_LIMITS_MAX + 1];
	unsigned int count;
};

static struct items items_of(const struct gate *gate, uint32_t version)
{
	const struct sl_policy *policy = policy_version(gate, version);
	struct items items = {.count = 0};

	for (unsigned int slot = 0; version && slot < SL_LIMITS_MAX; slot++) {
		uint32_t home = policy->origin[slot];

		if (policy->spec[slot].name[0] && !policy->spec[slot].second)
			items.list[items.count++] = (struct item){
				.name = policy->spec[slot].name,
				.spec = &policy->spec[slot],
				.match = &policy->match[slot],
				.origin = home ? SL_ORIGIN_POLICY(home) : SL_POLICY(version),
			};
	}
	if (version && policy_has_budget(policy))
		items.list[items.count++] = (struct item){
			.origin = policy->newcomers_origin ?: SL_POLICY(version),
		};
	return items;
}

/* Returns the item of the same name, or NULL. */
static const struct item *items_find(const struct items *items, const struct item *item)
{
	for (unsigned int i = 0; i < items->count; i++) {
		const struct item *found = &items->list[i];

		if (found->name && item->name ? !strncmp(found->name, item->name, SL_NAME)
					      : found->name == item->name)
			return found;
	}
	return NULL;
}

/*
 * Returns how a limit is weaker than the limit of its name that it replaces; SHADOW_REASONS: it is
 * not. Matches are compared only for any packet and for equality.
 */
static enum shadow_reason weaker_by(const struct item *found, const struct item *item)
{
	bool matches_any = found->match->fact == SL_FACT_ANY && !found->match->vlan;

	if (!matches_any && memcmp(found->match, item->match, sizeof(*found->match)))
		return SHADOW_REPLACED;
	if (found->spec->action == SL_ACTION_OBSERVE && item->spec->action != SL_ACTION_OBSERVE)
		return SHADOW_OBSERVED;
	if (found->spec->key_dst && !item->spec->key_dst)
		return SHADOW_KEYED;
	return SHADOW_REASONS;
}

static bool items_have(const struct items *items, const struct item *item)
{
	const struct item *found = items_find(items, item);

	return found && found->origin == item->origin;
}

/* Whether the set has the item, or a limit of that name which is not weaker. */
static bool items_cover(const struct items *items, const struct item *item)
{
	const struct item *found = items_find(items, item);

	return found && (found->origin == item->origin ||
			 (item->name && weaker_by(found, item) == SHADOW_REASONS));
}

/* --- Versions before the change ------------------------------------------------------------- */

static uint32_t version_before(const struct gate *gate, const struct sl_rule *rule)
{
	return rule_content(rule, rulemap_generation(gate) - 1)->version;
}

/* --- One policy ----------------------------------------------------------------------------- */

/* What one policy lacks by one cause. */
struct shadow {
	enum shadow_reason reason;
	bool had;
	struct sl_prefix cause;
	unsigned int items_count;
	char items[INHERITED_TEXT];
	size_t length;
};

struct shadows {
	struct shadow list[2 * (SL_LIMITS_MAX + 1)];
	unsigned int count;
};

/*
 * Returns the first policy, from this one upwards, that does not inherit. Each parent has a shorter
 * prefix than its child: a damaged version that says otherwise ends the walk.
 */
static const struct sl_policy *inheritance_end(const struct gate *gate, uint32_t version)
{
	const struct sl_policy *policy = policy_version(gate, version), *parent;

	while (policy->inherits && policy->parent) {
		parent = policy_version(gate, policy->parent);
		if (parent->prefix.bits >= policy->prefix.bits)
			break;
		policy = parent;
	}
	return policy;
}

/* Returns how a version lacks an item after the change, and by which policy. */
static enum shadow_reason reason_of(const struct gate *gate, const struct item *item,
				    uint32_t version, const struct items *after,
				    struct sl_prefix *ret_cause)
{
	const struct sl_policy *origin = policy_in_force(gate, item->origin);
	struct items written = items_of(gate, origin ? policy_version_index(gate, origin) : 0);
	const struct item *found = items_find(after, item);

	*ret_cause = policy_version(gate, version)->prefix;
	if (!items_have(&written, item))
		return SHADOW_DELETED;
	if (!found) {
		*ret_cause = inheritance_end(gate, version)->prefix;
		return SHADOW_LIFTED;
	}
	*ret_cause = *limit_origin(gate, SL_ORIGIN(found->origin, 0));
	return item->name ? weaker_by(found, item) : SHADOW_BUDGET;
}

static void shadow_add(const struct gate *gate, const struct item *item, uint32_t version,
		       const struct items *after, bool had, struct shadows *ret)
{
	struct sl_prefix cause;
	enum shadow_reason reason = reason_of(gate, item, version, after, &cause);
	struct shadow *shadow = ret->list;

	if (reason == SHADOW_BUDGET && !had && !policy_version(gate, version)->inherits)
		return; /* both policies have a budget, and neither replaces the other */
	while (shadow < ret->list + ret->count && (shadow->reason != reason || shadow->had != had ||
						   !prefix_equal(&shadow->cause, &cause)))
		shadow++;
	if (shadow == ret->list + ret->count) {
		*shadow = (struct shadow){.reason = reason, .had = had, .cause = cause};
		ret->count++;
	}
	shadow->length = inherited_add(item->name, limit_origin(gate, SL_ORIGIN(item->origin, 0)),
				       shadow->items, shadow->length);
	shadow->items_count++;
}

/*
 * Finds what a policy lacks: a limit or a budget that applied to its prefix before the change and
 * does not now, and one that a shorter policy has now and it lacks. Its own items, and those that
 * it lacked before, do not count.
 */
static void policy_compare(const struct gate *gate, const struct rulemap_entry *entry,
			   struct shadows *ret)
{
	uint32_t before = entry->rule.prev.version, version = entry->rule.cur.version;
	uint32_t generation = rulemap_generation(gate), shorter, parent;
	struct items had, beside, after = items_of(gate, version), offered;

	/* what cannot be read is not reported */
	policy_parent(gate, &entry->prefix, generation - 1, &shorter);
	policy_parent(gate, &entry->prefix, generation, &parent);
	had = items_of(gate, before ?: shorter);
	beside = items_of(gate, shorter);
	offered = items_of(gate, parent);
	for (unsigned int i = 0; i < had.count; i++) {
		const struct item *item = &had.list[i];

		if (item->origin != SL_POLICY(version) && !items_cover(&after, item) &&
		    (before || policy_in_force(gate, item->origin)))
			shadow_add(gate, item, version, &after, before, ret);
	}
	for (unsigned int i = 0; i < offered.count; i++) {
		const struct item *item = &offered.list[i];
		bool was_missing = items_have(&beside, item) && !items_cover(&had, item);

		if (!items_cover(&after, item) && !items_have(&had, item) && !was_missing)
			shadow_add(gate, item, version, &after, false, ret);
	}
}

/* --- All policies --------------------------------------------------------------------------- */

static void group_add(struct shadow_group *group, const struct sl_prefix *prefix,
		      const struct shadow *shadow)
{
	bool own = prefix_equal(prefix, &shadow->cause);
	bool same = !group->count ||
		    (!group->cause_is_each && prefix_equal(&group->cause, &shadow->cause));

	if (!group->count) {
		group->cause = shadow->cause;
		group->own = own;
		group->items_count = shadow->items_count;
		memcpy(group->items, shadow->items, sizeof(group->items));
	} else if (strcmp(group->items, shadow->items) || !(same || (own && group->own))) {
		group->others++;
		return;
	}
	group->cause_is_each |= !same;
	group->own &= own;
	if (group->count < SHADOW_NAMED)
		group->prefix[group->count] = *prefix;
	group->count++;
}

/* Finds policies of all of IPv4 or IPv6 that exist beside that of `default` since this change. */
static void families_find(const struct gate *gate, struct shadowed *ret)
{
	static const char *const families[] = {"0.0.0.0/0", "::/0"};
	const struct sl_prefix all = {.bits = 0};
	struct sl_rule usual, rule;

	if (rulemap_get(gate, &all, &usual) <= 0 || !usual.cur.version)
		return;
	for (unsigned int i = 0; i < SL_FAMILIES; i++) {
		struct sl_prefix prefix;

		prefix_parse(families[i], &prefix);
		if (rulemap_get(gate, &prefix, &rule) <= 0 || !rule.cur.version ||
		    (version_before(gate, &rule) && version_before(gate, &usual)))
			continue;
		ret->family[ret->families] = prefix;
		ret->family_inherits[ret->families++] =
			policy_version(gate, rule.cur.version)->inherits;
	}
}

void shadowed_find(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count,
		   struct shadowed *ret)
{
	bool rewritten = false;

	*ret = (struct shadowed){.families = 0};
	for (unsigned int i = 0; i < count; i++) {
		const struct rulemap_entry *entry = &entries[i];
		struct shadows shadows = {.count = 0};

		if (entry->rule.prev.version == entry->rule.cur.version)
			continue;
		rewritten = true;
		if (!entry->rule.cur.version)
			continue;
		policy_compare(gate, entry, &shadows);
		for (unsigned int j = 0; j < shadows.count; j++)
			group_add(&ret->group[shadows.list[j].had][shadows.list[j].reason],
				  &entry->prefix, &shadows.list[j]);
	}
	if (rewritten)
		families_find(gate, ret);
}
