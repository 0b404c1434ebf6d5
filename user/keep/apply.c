// SPDX-License-Identifier: GPL-2.0
#include "keep/apply.h"

#include <stdlib.h>
#include <string.h>

#include "attach/published.h"
#include "attach/shaping.h"
#include "base/text.h"
#include "gate/change.h"
#include "gate/gate_make.h"
#include "gate/rules.h"
#include "migrate/remake.h"
#include "rules/lists.h"

/* --- Counting what changes ------------------------------------------------------------------ */

static void policy_count(struct change *change, const struct rule *from, const struct rule *to)
{
	struct rule a = *from, b = *to;

	/* without its entries */
	a.access = b.access = SL_LIST_NONE;
	a.lists = b.lists = 0;
	if (!from->limits && to->limits)
		change->effects[POLICIES_ADDED]++;
	else if (from->limits && !to->limits)
		change->effects[POLICIES_DELETED]++;
	else if (!rule_equal(&a, &b))
		change->effects[POLICIES_CHANGED]++;
}

/* The word that decides for a prefix: by hand, else of its lists. */
static enum sl_list rule_word(const struct rule *rule, const struct sl_list_info *lists)
{
	return rule->access ?: lists_access(lists, rule->lists);
}

static void entry_count(struct change *change, const struct rule *from, const struct rule *to)
{
	struct rule a = *from, b = *to;
	enum sl_list before = rule_word(from, change->from);
	enum sl_list after = rule_word(to, change->wanted.lists);

	a.limits = b.limits = 0; /* and so no budget counts */
	if (rule_equal(&a, &b))
		return;
	if (after)
		change->effects[after == SL_LIST_DENY ? NOW_DENIED : NOW_ALLOWED]++;
	else
		change->effects[before == SL_LIST_DENY ? NO_LONGER_DENIED : NO_LONGER_ALLOWED]++;
}

/* Callback of ruleset_diff(): adds the rule that is wanted. An empty rule deletes. */
static int rule_take(void *data, const struct rule *from, const struct rule *to)
{
	const struct rule none = {.prefix = (from ?: to)->prefix};
	struct change *change = data;
	struct rule before, wanted;
	int status;

	if (to)
		room_add(&change->room, from, to);
	from = from ?: &none;
	to = to ?: &none;
	policy_count(change, from, to);
	entry_count(change, from, to);
	status = rule_copy(from, &before) ?: ruleset_add(&change->before, &before);
	return status ?: rule_copy(to, &wanted) ?: ruleset_add(&change->wanted, &wanted);
}

/* --- Sizes ---------------------------------------------------------------------------------- */

/*
 * Computes the sizes after the change, and those while old and new rules stand beside each other.
 * A file states the sizes it says, and with --resize no others.
 */
static void sizes_plan(struct change *change, const struct gate *gate, bool may_resize)
{
	struct gate_sizes said = change->said;
	struct gate_sizes needed = room_sizes(&change->room);

	change->was_stated = gate->state->sizes_stated;
	change->stated = sizes_bits(&said) | (may_resize ? 0 : change->was_stated);
	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t after = *size_of(&said, i) ?: *size_of(&change->has, i);
		uint32_t least = change->stated & SIZE_BIT(i) ? *size_of(&needed, i) : 0;

		*size_of(&change->after, i) = after;
		*size_of(&change->during, i) = after > least ? after : least;
	}
	change->resized = memcmp(&change->after, &change->has, sizeof(change->has));
}

/* Refuses a change of sizes: without --resize a gate keeps its maps. */
static int sizes_check(const struct gate *gate, struct change *change)
{
	int status = OK;

	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t has = size_told(&change->has, i), after = size_told(&change->after, i);
		uint32_t during = size_told(&change->during, i);
		char held[SIZE_TEXT], taken[SIZE_TEXT];

		size_format(has, held);
		if (after != has)
			status = misuse("gate '%s' has %s %s, and the file says %s: only 'apply "
					"FILE --resize' changes that",
					gate->name, size_names[i], held,
					size_format(size_told(&change->said, i), taken));
		else if (during != has)
			status = failure(
				"gate '%s' has %s %s, and this change takes %s, as old rules "
				"and new ones stand beside each other: 'apply FILE --resize' "
				"makes room",
				gate->name, size_names[i], held, size_format(during, taken));
	}
	return status;
}

/* --- Preparing ------------------------------------------------------------------------------ */

bool change_has_rules(const struct change *change)
{
	return change->wanted.count || change->lists_changed;
}

/* Gives each list of the file its place: a list that stays keeps the place that it has. */
static int lists_prepare_all(struct change *change, const struct ruleset *in_force,
				     struct ruleset *wanted)
{
	int status = ruleset_match_lists(wanted, in_force->lists);

	if (!status)
		status = ruleset_make_lists(&change->wanted);
	if (!status)
		status = ruleset_make_lists(&change->before);
	if (status)
		return status;
	memcpy(change->wanted.lists, wanted->lists, SL_LIST_PLACES * sizeof(*wanted->lists));
	memcpy(change->before.lists, in_force->lists, SL_LIST_PLACES * sizeof(*wanted->lists));
	for (int place = 0; place < SL_LIST_PLACES; place++)
		change->lists_changed |=
			strcmp(wanted->lists[place].name, in_force->lists[place].name) != 0;
	return OK;
}

/* Checks that the devices can do what the file's limits shape. */
static int shaping_prepare(const struct gate *gate, const struct config *config,
				   const struct change *change, bool may_lack)
{
	const struct placings *placings = &change->placings;
	struct shaping shaping = {0};

	for (unsigned int i = 0; i < config->rules.count; i++)
		shaping_add(&shaping, &config->rules.rules[i]);
	if (!config->places.said)
		return shaping_check(gate, &shaping, may_lack);
	return shaping_check_planned(gate, &shaping, placings->wanted, placings->wanted_count,
				     may_lack);
}

static int rules_prepare(struct gate *gate, struct config *config, struct change *change)
{
	struct ruleset in_force = {0};
	int status;

	change_sweep_lists(gate);
	status = rules_read(gate, &in_force);
	if (!status)
		status = lists_prepare_all(change, &in_force, &config->rules);
	if (!status) {
		change->room = room_needed(&in_force);
		change->from = in_force.lists;
		status = ruleset_diff(&in_force, &config->rules, rule_take, change);
	}
	ruleset_free(&in_force);
	change->from = NULL;
	return status;
}

int change_prepare(struct gate *gate, struct config *config, const struct apply_may *may,
			   struct change *ret)
{
	int status;

	*ret = (struct change){.said = config->sizes};
	status = gate_sizes_read(gate, &ret->has);
	if (!status)
		status = rules_prepare(gate, config, ret);
	if (status)
		return status;
	sizes_plan(ret, gate, may->resize);
	if (!may->resize)
		status = sizes_check(gate, ret);
	if (!status)
		status = placings_plan(gate, &config->places, false, &ret->placings);
	return status ?: shaping_prepare(gate, config, ret, may->lack_fq);
}

void change_free(struct change *change)
{
	ruleset_free(&change->before);
	ruleset_free(&change->wanted);
	placings_free(&change->placings);
}

/* --- Making it so --------------------------------------------------------------------------- */

/* Changes the rules. The sizes that grow for it stay so: now and when the change is undone. */
static int rules_make(struct gate *gate, struct change *change)
{
	struct gate_sizes now;
	int status = policies_change(gate, &change->wanted, &change->losses);

	if (!status)
		status = gate_sizes_read(gate, &now);
	for (unsigned int i = 0; !status && i < SIZES; i++)
		if (!(change->stated & SIZE_BIT(i)))
			*size_of(&change->has, i) = *size_of(&change->during, i) =
				*size_of(&change->after, i) = *size_of(&now, i);
	return status;
}

int change_undo_rules(struct gate *gate, struct change *change)
{
	struct losses losses = {0};
	int status = remake(gate, &change->during);

	if (!status && change_has_rules(change))
		status = policies_change(gate, &change->before, &losses);
	gate->state->sizes_stated = change->was_stated;
	return remake(gate, &change->has) ?: status;
}

int change_make(struct gate *gate, struct change *change)
{
	int status = remake(gate, &change->during);

	gate->state->sizes_stated = change->stated;
	if (!status && change_has_rules(change))
		status = rules_make(gate, change);
	else if (!status)
		lists_clear(gate, change->wanted.lists); /* only dates change */
	if (status) {
		gate->state->sizes_stated = change->was_stated;
		remake(gate, &change->has);
		return status;
	}
	status = remake(gate, &change->after);
	if (!status)
		status = placings_make(gate, &change->placings);
	if (status && !gate->made && change_undo_rules(gate, change))
		note("gate '%s': the rules of the file stay in force", gate->name);
	if (!status || !gate->made)
		attachments_publish(gate);
	return status;
}
