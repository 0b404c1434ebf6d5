// SPDX-License-Identifier: GPL-2.0
#include "keep/apply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/published.h"
#include "attach/shaping.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "gate/rules.h"
#include "gate/maps.h"
#include "gate/transaction.h"
#include "migrate/open.h"
#include "rules/ruleset.h"

void apply_free(struct apply *apply)
{
	ruleset_free(&apply->before);
	ruleset_free(&apply->wanted);
}

/* --- Preparing ------------------------------------------------------------------------------ */

/* Counts the effects of a change of one rule: on its policy, and on its `allow` or `deny` entry. */
static void effects_count(struct apply *apply, const struct rule *from, const struct rule *to)
{
	unsigned int *effects = apply->effects;
	struct rule a = *from, b = *to;
	enum sl_access before, after;

	a.access = b.access = SL_ACCESS_NONE;
	a.lists = b.lists = 0;
	if (!from->limits && to->limits)
		effects[POLICIES_ADDED]++;
	else if (from->limits && !to->limits)
		effects[POLICIES_DELETED]++;
	else if (!rule_equal(&a, &b))
		effects[POLICIES_CHANGED]++;

	a = *from;
	b = *to;
	a.limits = b.limits = 0;
	if (rule_equal(&a, &b))
		return;
	/* the access of a runtime entry overrides the access of lists */
	before = from->access ?: lists_access(apply->before.lists, from->lists);
	after = to->access ?: lists_access(apply->wanted.lists, to->lists);
	if (after)
		effects[after == SL_ACCESS_DENY ? NOW_DENIED : NOW_ALLOWED]++;
	else
		effects[before == SL_ACCESS_DENY ? NO_LONGER_DENIED : NO_LONGER_ALLOWED]++;
}

/*
 * Callback of ruleset_diff(). Adds the old rule `from` and the new rule `to` of a prefix. NULL
 * means that there is no such rule.
 */
static int rule_add_change(void *data, const struct rule *from, const struct rule *to)
{
	const struct rule none = {.prefix = (from ?: to)->prefix};
	struct apply *apply = data;
	struct rule before, wanted;

	if (to)
		room_add(&apply->room, from, to);
	from = from ?: &none;
	to = to ?: &none;
	effects_count(apply, from, to);
	return rule_copy(from, &before) ?: ruleset_add(&apply->before, &before)
					?: rule_copy(to, &wanted)
					?: ruleset_add(&apply->wanted, &wanted);
}

/*
 * Finds the rules that change. A list of the file gets the index that it already has in the gate.
 */
static int rules_prepare(struct gate *gate, struct config *config, struct apply *apply)
{
	_cleanup_(ruleset_free) struct ruleset in_force = {0};
	struct ruleset *wanted = &config->rules;
	int err;

	rules_expire_some(gate);
	err = rules_read(gate, &in_force)
		      ?: ruleset_match_lists(wanted, in_force.lists)
		      ?: ruleset_make_lists(&apply->wanted)
		      ?: ruleset_make_lists(&apply->before);
	if (err)
		return err;
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		apply->wanted.lists[place] = wanted->lists[place];
		apply->before.lists[place] = in_force.lists[place];
		apply->has_rules |=
			strcmp(wanted->lists[place].name, in_force.lists[place].name) != 0;
	}
	apply->room = room_needed(&in_force);
	err = ruleset_diff(&in_force, wanted, rule_add_change, apply);
	apply->has_rules |= apply->wanted.count;
	return err;
}

/*
 * Computes the sizes during and after the change. During the change, old and new rules coexist. If
 * `may_resize` is set, sizes that the file does not specify can grow with the rules.
 */
static void sizes_plan(struct apply *apply, const struct gate *gate, bool may_resize)
{
	struct gate_sizes needed = room_sizes(&apply->room);

	apply->was_stated = gate->state->sizes_stated;
	apply->stated = sizes_bits(&apply->specified) | (may_resize ? 0 : apply->was_stated);
	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t after = *size_of(&apply->specified, i) ?: *size_of(&apply->has, i);
		uint32_t least = apply->stated & SIZE_BIT(i) ? *size_of(&needed, i) : 0;

		*size_of(&apply->after, i) = after;
		*size_of(&apply->during, i) = after > least ? after : least;
	}
	apply->resized = memcmp(&apply->after, &apply->has, sizeof(apply->has));
}

/* Fails if any size would change. Adds an error for each such size. */
static int apply_check_sizes(const struct gate *gate, struct apply *apply)
{
	char object[GATE_NAME + 8];
	int err = 0;

	snprintf(object, sizeof(object), "gate '%s'", gate->name);
	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t has = size_specified(&apply->has, i),
			 after = size_specified(&apply->after, i);
		uint32_t during = size_specified(&apply->during, i);
		char has_text[SIZE_TEXT], text[SIZE_TEXT];

		size_format(has, has_text);
		if (after != has)
			err = error_misuse(
				"needs-resize", object,
				"has %s %s, but the file specifies %s; to resize it: 'sluice "
				"%sapply FILE --resize'",
				size_names[i], has_text,
				size_format(size_specified(&apply->specified, i), text),
				gate_option(gate->name));
		else if (during != has)
			err = error_add(
				ENOSPC, "needs-resize", object,
				"has %s %s, but needs %s while old and new rules exist at "
				"the same time; to resize it: 'sluice %sapply FILE --resize'",
				size_names[i], has_text, size_format(during, text),
				gate_option(gate->name));
	}
	return err;
}

int apply_prepare(struct gate *gate, struct config *config, const struct apply_may *may,
		  struct apply *ret)
{
	const struct placings *placings = &ret->placings;
	struct shaping shaping = {0};
	int err;

	*ret = (struct apply){.specified = config->sizes};
	err = gate_sizes_read(gate, &ret->has) ?: rules_prepare(gate, config, ret);
	if (err)
		return err;
	sizes_plan(ret, gate, may->resize);
	if (!may->resize)
		err = apply_check_sizes(gate, ret);
	if (!err)
		err = placings_plan(gate, &config->places, MISSING_FAILS, NULL, &ret->placings);
	for (unsigned int i = 0; !err && i < config->rules.count; i++)
		shaping_add(&shaping, &config->rules.rules[i]);
	return err
		       ?: shaping_check(gate, &shaping,
					config->places.specified ? placings->wanted : NULL,
					placings->wanted_count, may->lack_fq);
}

/* --- Making --------------------------------------------------------------------------------- */

int apply_undo_rules(struct gate *gate, struct apply *apply)
{
	struct shadowed shadowed = {0};
	int err = remake(gate, &apply->during);

	if (!err && apply->has_rules)
		err = rules_change(gate, &apply->before, &shadowed);
	gate->state->sizes_stated = apply->was_stated;
	return remake(gate, &apply->has) ?: err;
}

int apply_make(struct gate *gate, struct apply *apply)
{
	struct gate_sizes now = apply->during;
	int err = remake(gate, &apply->during);

	gate->state->sizes_stated = apply->stated;
	if (!err && apply->has_rules) {
		err = rules_change(gate, &apply->wanted, &apply->shadowed)
			      ?: gate_sizes_read(gate, &now);
		/* store the sizes of maps that grew, because an undo does not shrink maps */
		for (unsigned int i = 0; !err && i < SIZES; i++)
			if (!(apply->stated & SIZE_BIT(i)))
				*size_of(&apply->has, i) = *size_of(&apply->during, i) =
					*size_of(&apply->after, i) = *size_of(&now, i);
	} else if (!err) {
		/* store the times of list files, even if no rule changes */
		lists_set_dates(gate, apply->wanted.lists);
	}
	if (err) {
		gate->state->sizes_stated = apply->was_stated;
		remake(gate, &apply->has);
		return err;
	}
	err = remake(gate, &apply->after) ?: placings_make(gate, &apply->placings);
	if (err && !gate->made && apply_undo_rules(gate, apply))
		error_notice(
			"not-undone", gate->name,
			"the change of rules cannot be undone, so the new rules stay in force");
	if (!err || !gate->made)
		attachments_publish(gate);
	return err;
}
