// SPDX-License-Identifier: GPL-2.0
#include "gate/losses.h"

#include <stdio.h>
#include <string.h>

#include "gate/policy.h"
#include "gate/records.h"
#include "rules/prefix.h"

/* --- Limits and budget of a record ---------------------------------------------------------- */

/* A limit, or the newcomers' budget, which has no name. */
struct item {
	const char *name;
	const struct sl_limit_spec *spec;
	const struct sl_match *match;
	uint32_t home; /* the number of the policy that has it */
};

struct items {
	struct item list[SL_LIMITS_MAX + 1];
	unsigned int count;
};

static struct items items_of(const struct gate *gate, uint32_t record)
{
	const struct sl_policy *policy = record_read(gate, record);
	struct items items = {.count = 0};

	for (unsigned int slot = 0; record && slot < SL_LIMITS_MAX; slot++) {
		uint32_t home = policy->origin[slot];

		if (policy->spec[slot].name[0] && !policy->spec[slot].second)
			items.list[items.count++] = (struct item){
				.name = policy->spec[slot].name,
				.spec = &policy->spec[slot],
				.match = &policy->match[slot],
				.home = home ? SL_ORIGIN_POLICY(home) : SL_POLICY(record),
			};
	}
	if (record && policy->newcomers.burst)
		items.list[items.count++] = (struct item){
			.home = policy->newcomers_origin ?: SL_POLICY(record),
		};
	return items;
}

/* The item of the same name; NULL: none. */
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
 * How a limit is weaker than the one of its name that it replaces; LOSSES: it is not. Matches are
 * compared only for any packet and for equality.
 */
static enum loss replaced_loss(const struct item *found, const struct item *item)
{
	bool matches_any = found->match->fact == SL_FACT_ANY && !found->match->vlan;

	if (!matches_any && memcmp(found->match, item->match, sizeof(*found->match)))
		return LOSS_REPLACED;
	if (found->spec->action == SL_ACTION_OBSERVE && item->spec->action != SL_ACTION_OBSERVE)
		return LOSS_OBSERVED;
	if (found->spec->key_dst && !item->spec->key_dst)
		return LOSS_KEYED;
	return LOSSES;
}

static bool items_have(const struct items *items, const struct item *item)
{
	const struct item *found = items_find(items, item);

	return found && found->home == item->home;
}

/* Whether the set has the item, or a limit of that name which is not weaker. */
static bool items_cover(const struct items *items, const struct item *item)
{
	const struct item *found = items_find(items, item);

	return items_have(items, item) ||
	       (found && item->name && replaced_loss(found, item) == LOSSES);
}

/* --- Records before the change -------------------------------------------------------------- */

static uint32_t record_before(const struct gate *gate, const struct sl_rule *rule)
{
	return rulemap_content(rule, rulemap_generation(gate) - 1)->version;
}

/* The record of a prefix before the change, from a rule of at most `bits` bits; 0: none. */
static uint32_t cover_before(const struct gate *gate, const struct sl_prefix *prefix, uint32_t bits)
{
	struct sl_rule rule;

	while (rulemap_cover(gate, prefix, bits, &rule) > 0) {
		if (record_before(gate, &rule))
			return record_before(gate, &rule);
		if (!rule.bits)
			break;
		bits = rule.bits - 1;
	}
	return 0;
}

/* --- Losses of one policy ------------------------------------------------------------------- */

/* What one policy loses by one cause. */
struct lost {
	enum loss loss;
	bool had;
	struct sl_prefix cause;
	unsigned int items_count;
	char items[INHERITED_TEXT];
	size_t length;
};

struct lost_list {
	struct lost list[2 * (SL_LIMITS_MAX + 1)];
	unsigned int count;
};

/*
 * The first policy, from this one upwards, that does not inherit. Each parent has a shorter prefix
 * than its heir: a damaged record that says otherwise ends the walk.
 */
static const struct sl_policy *heritage_end(const struct gate *gate, uint32_t record)
{
	const struct sl_policy *policy = record_read(gate, record), *parent;

	while (policy->inherits && policy->parent) {
		parent = record_read(gate, policy->parent);
		if (parent->prefix.bits >= policy->prefix.bits)
			break;
		policy = parent;
	}
	return policy;
}

/* How and by which policy a record loses an item that it does not have after the change. */
static enum loss loss_of(const struct gate *gate, const struct item *item, uint32_t record,
			 const struct items *after, struct sl_prefix *ret_cause)
{
	const struct sl_policy *home = policy_in_force(gate, item->home);
	struct items written = items_of(gate, home ? record_number(gate, home) : 0);
	const struct item *found = items_find(after, item);

	*ret_cause = record_read(gate, record)->prefix;
	if (!items_have(&written, item))
		return LOSS_DELETED;
	if (!found) {
		*ret_cause = heritage_end(gate, record)->prefix;
		return LOSS_LIFTED;
	}
	*ret_cause = *inherit_home(gate, SL_ORIGIN(found->home, 0));
	return item->name ? replaced_loss(found, item) : LOSS_BUDGET;
}

static void item_lose(const struct gate *gate, const struct item *item, uint32_t record,
		      const struct items *after, bool had, struct lost_list *ret)
{
	struct sl_prefix cause;
	enum loss loss = loss_of(gate, item, record, after, &cause);
	struct lost *lost = ret->list;

	if (loss == LOSS_BUDGET && !had && !record_read(gate, record)->inherits)
		return; /* both policies have a budget, and neither replaces the other */
	while (lost < ret->list + ret->count &&
	       (lost->loss != loss || lost->had != had || !prefix_equal(&lost->cause, &cause)))
		lost++;
	if (lost == ret->list + ret->count) {
		*lost = (struct lost){.loss = loss, .had = had, .cause = cause};
		ret->count++;
	}
	lost->length = inherited_add(item->name, inherit_home(gate, SL_ORIGIN(item->home, 0)),
				     lost->items, lost->length);
	lost->items_count++;
}

/*
 * Finds what a policy loses: a limit or a budget that applied to its prefix before the change and
 * does not now, and one that a shorter policy has now and it lacks. Its own items, and those that
 * it lacked before, do not count.
 */
static void policy_compare(const struct gate *gate, const struct rulemap_entry *entry,
			   struct lost_list *ret)
{
	uint32_t before = entry->rule.prev.version, record = entry->rule.cur.version;
	uint32_t bits = entry->prefix.bits;
	uint32_t shorter = bits ? cover_before(gate, &entry->prefix, bits - 1) : 0;
	struct items had = items_of(gate, before ?: shorter), beside = items_of(gate, shorter);
	struct items after = items_of(gate, record);
	struct items offered;
	uint32_t parent;

	policy_parent(gate, &entry->prefix, &parent); /* what cannot be read is not told */
	offered = items_of(gate, parent);
	for (unsigned int i = 0; i < had.count; i++)
		if (had.list[i].home != SL_POLICY(record) && !items_cover(&after, &had.list[i]) &&
		    (before || policy_in_force(gate, had.list[i].home)))
			item_lose(gate, &had.list[i], record, &after, before, ret);
	for (unsigned int i = 0; i < offered.count; i++) {
		const struct item *item = &offered.list[i];
		bool was_missing = items_have(&beside, item) && !items_cover(&had, item);

		if (!items_cover(&after, item) && !items_have(&had, item) && !was_missing)
			item_lose(gate, item, record, &after, false, ret);
	}
}

/* --- Losses of all policies ----------------------------------------------------------------- */

static void lost_tell(struct loss_told *told, const struct sl_prefix *prefix,
		      const struct lost *lost)
{
	bool own = prefix_equal(prefix, &lost->cause);
	bool same =
		!told->count || (!told->cause_is_each && prefix_equal(&told->cause, &lost->cause));

	if (!told->count) {
		told->cause = lost->cause;
		told->own = own;
		told->items_count = lost->items_count;
		memcpy(told->items, lost->items, sizeof(told->items));
	} else if (strcmp(told->items, lost->items) || !(same || (own && told->own))) {
		told->others++;
		return;
	}
	told->cause_is_each |= !same;
	told->own &= own;
	if (told->count < LOSS_NAMED)
		told->prefix[told->count] = *prefix;
	told->count++;
}

/* The record of a prefix before the change, or after it. */
static uint32_t record_of(const struct gate *gate, const struct sl_prefix *prefix, bool before)
{
	struct sl_rule rule;

	if (rulemap_get(gate, prefix, &rule) <= 0)
		return 0;
	return before ? record_before(gate, &rule) : rule.cur.version;
}

/* Finds policies of all of IPv4 or IPv6 that exist beside that of `default` since this change. */
static void families_find(const struct gate *gate, struct losses *losses)
{
	static const char *const families[] = {"0.0.0.0/0", "::/0"};
	const struct sl_prefix all = {.bits = 0};

	for (unsigned int i = 0; i < SL_FAMILIES && record_of(gate, &all, false); i++) {
		struct sl_prefix prefix;
		uint32_t record;

		prefix_parse(families[i], &prefix);
		record = record_of(gate, &prefix, false);
		if (!record || (record_of(gate, &prefix, true) && record_of(gate, &all, true)))
			continue;
		losses->family[losses->families] = prefix;
		losses->family_inherits[losses->families++] = record_read(gate, record)->inherits;
	}
}

void losses_find(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count,
		 struct losses *ret)
{
	bool rewritten = false;

	*ret = (struct losses){.families = 0};
	for (unsigned int i = 0; i < count; i++) {
		const struct rulemap_entry *entry = &entries[i];
		struct lost_list lost = {.count = 0};

		if (entry->rule.prev.version == entry->rule.cur.version)
			continue;
		rewritten = true;
		if (!entry->rule.cur.version)
			continue;
		policy_compare(gate, entry, &lost);
		for (unsigned int j = 0; j < lost.count; j++)
			lost_tell(&ret->told[lost.list[j].had][lost.list[j].loss], &entry->prefix,
				  &lost.list[j]);
	}
	if (rewritten)
		families_find(gate, ret);
}
