// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attachment.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/warnings.h"
#include "config/config.h"
#include "gate/change.h"
#include "gate/gate.h"
#include "gate/gate_make.h"
#include "gate/rules.h"
#include "migrate/session.h"
#include "migrate/takeover.h"
#include "rules/lists.h"
#include "rules/sizes.h"

/* What a change does, counted. */
enum effect {
	POLICIES_ADDED,
	POLICIES_CHANGED,
	POLICIES_DELETED,
	NOW_DENIED,
	NOW_ALLOWED,
	NO_LONGER_DENIED,
	NO_LONGER_ALLOWED,
	EFFECTS,
};

struct change {
	struct ruleset wanted;
	const struct sl_list_info
		*from; /* the lists of before, at the places that they have in `wanted` */
	bool lists_changed;
	struct losses losses; /* of policies that have less of shorter ones now */
	unsigned int effects[EFFECTS];
	/* Until the switch old rules and new ones stand beside each other. */
	struct room room;
	struct gate_sizes said;	  /* by the file, and then raised */
	struct gate_sizes has;	  /* what the gate has */
	struct gate_sizes during; /* what the change takes */
	struct gate_sizes after;
	bool resized;
};

/* --- Counting ------------------------------------------------------------------------------- */

static bool limits_differ(const struct rule *from, const struct rule *to)
{
	struct rule a = *from, b = *to;

	a.access = b.access = SL_LIST_NONE;
	a.lists = b.lists = 0;
	return !rule_equal(&a, &b);
}

static void policy_count(struct change *change, const struct rule *from, const struct rule *to)
{
	if (!from->limits && to->limits)
		change->effects[POLICIES_ADDED]++;
	else if (from->limits && !to->limits)
		change->effects[POLICIES_DELETED]++;
	else if (limits_differ(from, to))
		change->effects[POLICIES_CHANGED]++;
}

static bool entries_differ(const struct rule *from, const struct rule *to)
{
	struct rule a = *from, b = *to;

	a.limits = b.limits = 0; /* and so no budget counts */
	return !rule_equal(&a, &b);
}

/* What is said of a prefix, by hand or by lists. */
static enum sl_list rule_word(const struct rule *rule, const struct sl_list_info *lists)
{
	return rule->access ?: lists_access(lists, rule->lists);
}

static void entry_count(struct change *change, const struct rule *from, const struct rule *to)
{
	enum sl_list before = rule_word(from, change->from);
	enum sl_list after = rule_word(to, change->wanted.lists);

	if (!entries_differ(from, to))
		return;
	if (after)
		change->effects[after == SL_LIST_DENY ? NOW_DENIED : NOW_ALLOWED]++;
	else
		change->effects[before == SL_LIST_DENY ? NO_LONGER_DENIED : NO_LONGER_ALLOWED]++;
}

/* For ruleset_diff(): what a rule is to be; an empty one deletes it. */
static enum status rule_take(void *data, const struct rule *from, const struct rule *to)
{
	const struct rule none = {.prefix = (from ?: to)->prefix};
	struct change *change = data;
	struct rule wanted;

	if (to)
		room_add(&change->room, from, to);
	from = from ?: &none;
	to = to ?: &none;
	policy_count(change, from, to);
	entry_count(change, from, to);
	return rule_copy(to, &wanted) ?: ruleset_add(&change->wanted, &wanted);
}

/* --- Sizes ---------------------------------------------------------------------------------- */

/* A gate that is to be made has room for the file's rules, and for as many beside them. */
static enum status sizes_want(const struct config *config, struct gate_sizes *ret)
{
	struct room room = room_needed(&config->rules);
	struct gate_sizes wanted = config->sizes, needed = room_sizes(&room), usual;
	struct machine machine;
	enum status status = machine_get(&machine);

	if (status)
		return status;
	usual = gate_sizes_default(&machine);
	wanted = sizes_raise(&wanted, &machine);
	for (unsigned int i = 0; i < SIZES; i++)
		if (!*size_of(&wanted, i) && *size_of(&needed, i) > *size_of(&usual, i) / 2)
			*size_of(&wanted, i) = 2 * *size_of(&needed, i);
	*ret = wanted;
	return OK;
}

static bool sizes_equal(const struct gate_sizes *a, const struct gate_sizes *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* What the sizes are to be, and what they have to be until the old rules are gone. */
static void sizes_plan(struct change *change, const struct gate *gate)
{
	struct gate_sizes said = sizes_raise(&change->said, &gate->machine);
	struct gate_sizes needed = room_sizes(&change->room);

	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t after = *size_of(&said, i) ?: *size_of(&change->has, i);
		uint32_t least = *size_of(&needed, i);

		*size_of(&change->after, i) = after;
		*size_of(&change->during, i) = after > least ? after : least;
	}
	change->resized = !sizes_equal(&change->after, &change->has);
}

/* The sizes that a gate has stay as they are, unless it is told to make new maps. */
static enum status sizes_check(const struct gate *gate, struct change *change)
{
	enum status status = OK;

	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t has = size_told(&change->has, i), after = size_told(&change->after, i);
		uint32_t during = size_told(&change->during, i);

		if (after != has)
			status =
				misuse("gate '%s' has %s %u, and the file says %u: only 'apply "
				       "FILE --resize' changes that",
				       gate->name, size_names[i], has, size_told(&change->said, i));
		else if (during != has)
			status = failure(
				"gate '%s' has %s %u, and this change takes %u, as old rules "
				"and new ones stand beside each other: 'apply FILE --resize' "
				"makes room",
				gate->name, size_names[i], has, during);
	}
	return status;
}

/* Says which sizes are not what the file says, where that was of any effect. */
static void sizes_say(struct change *change, const struct gate *gate)
{
	for (unsigned int i = 0; !gate->made && i < SIZES; i++)
		if (*size_of(&change->after, i) == *size_of(&change->has, i))
			*size_of(&change->said, i) = 0;
	sizes_say_raised(&change->said, &gate->machine);
}

/* --- Saying --------------------------------------------------------------------------------- */

/* "2 policies added, 1 changed": the noun stands with the first. */
static void policies_print(const struct change *change, const char **separator)
{
	static const char *const words[] = {
		[POLICIES_ADDED] = "added",
		[POLICIES_CHANGED] = "changed",
		[POLICIES_DELETED] = "deleted",
	};
	const char *noun = NULL;

	for (unsigned int i = POLICIES_ADDED; i <= POLICIES_DELETED; i++) {
		unsigned int count = change->effects[i];

		if (!count)
			continue;
		if (noun)
			printf(", %u %s", count, words[i]);
		else
			printf("%s%u %s %s", *separator, count, plural(count, "policy", "policies"),
			       words[i]);
		noun = words[i];
		*separator = "; ";
	}
}

static void entries_print(const struct change *change, const char **separator)
{
	static const char *const words[] = {
		[NOW_DENIED] = "denied",
		[NOW_ALLOWED] = "allowed",
		[NO_LONGER_DENIED] = "no longer denied",
		[NO_LONGER_ALLOWED] = "no longer allowed",
	};

	for (unsigned int i = NOW_DENIED; i < EFFECTS; i++) {
		if (!change->effects[i])
			continue;
		printf("%s%u %s", *separator, change->effects[i], words[i]);
		*separator = ", ";
	}
}

/* Also where only a list without entries comes or goes. */
static bool change_has_rules(const struct change *change)
{
	return change->wanted.count || change->lists_changed;
}

static enum status report_json(const struct gate *gate, const struct change *change)
{
	static const char *const keys[EFFECTS] = {
		[POLICIES_ADDED] = "policies_added",
		[POLICIES_CHANGED] = "policies_changed",
		[POLICIES_DELETED] = "policies_deleted",
		[NOW_DENIED] = "denied",
		[NOW_ALLOWED] = "allowed",
		[NO_LONGER_DENIED] = "no_longer_denied",
		[NO_LONGER_ALLOWED] = "no_longer_allowed",
	};
	json_t *object =
		json_pack("{s:s, s:I, s:b, s:b}", "gate", gate->name, "generation",
			  (json_int_t)gate->state->generation, "changed",
			  change_has_rules(change) || change->resized, "resized", change->resized);

	for (unsigned int i = 0; i < EFFECTS; i++)
		json_object_set_new(object, keys[i], json_integer(change->effects[i]));
	return json_print(object);
}

static enum status report(const struct context *context, const struct gate *gate,
			  const struct change *change)
{
	const char *separator = "";

	if (context->json)
		return report_json(gate, change);
	printf("gate '%s': ", gate->name);
	if (change->resized)
		printf("resized%s", change_has_rules(change) ? "; " : "\n");
	else if (!change_has_rules(change))
		puts("nothing to change");
	if (!change_has_rules(change))
		return OK;
	policies_print(change, &separator);
	entries_print(change, &separator);
	if (!change->wanted.count)
		printf("only lists without entries");
	printf("; in force as generation %u\n", gate->state->generation);
	return OK;
}

/* A gate that no device is attached to has rules, and no packet to judge by them. */
static enum status say_unattached(const struct gate *gate)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count, alive = 0;
	enum status status = attachments_read(gate, all, &count);

	for (unsigned int i = 0; !status && i < count; i++)
		alive += all[i].program_id != 0;
	if (!status && !alive)
		note("gate '%s' filters nothing yet: no device is attached. That does 'sluice "
		     "%s-g %s attach DEV'",
		     gate->name, netns_typed(), gate->name);
	return status;
}

/* --- The command ---------------------------------------------------------------------------- */

/* The lists as they are to be, each that stays at the place that it has. */
static enum status lists_prepare_all(struct change *change, const struct ruleset *in_force,
				     struct ruleset *wanted)
{
	enum status status = ruleset_match_lists(wanted, in_force->lists);

	if (!status)
		status = ruleset_make_lists(&change->wanted);
	if (status)
		return status;
	memcpy(change->wanted.lists, wanted->lists, SL_LIST_PLACES * sizeof(*wanted->lists));
	for (int place = 0; place < SL_LIST_PLACES; place++)
		change->lists_changed |=
			strcmp(wanted->lists[place].name, in_force->lists[place].name) != 0;
	return OK;
}

/* Finds out what is to change, and whether it may. */
static enum status change_prepare(struct change *change, struct gate *gate, struct config *config,
				  bool may_resize)
{
	struct ruleset in_force = {0};
	enum status status = gate_sizes_read(gate, &change->has);

	change_sweep_lists(gate);
	if (!status)
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
	if (status)
		return status;
	sizes_plan(change, gate);
	if (!may_resize)
		status = sizes_check(gate, change);
	return status;
}

/*
 * Resizes to what the change needs, changes the rules, and resizes to what the file says. A failure
 * puts the sizes back. A kill leaves those of the step that it hit.
 */
static enum status change_make(struct change *change, struct gate *gate)
{
	enum status status = resize(gate, &change->during);

	if (!status && change_has_rules(change))
		status = policies_change(gate, &change->wanted, &change->losses);
	if (!status)
		return resize(gate, &change->after);
	resize(gate, &change->has);
	return status;
}

static enum status config_apply(const struct context *context, struct config *config)
{
	struct gate gate = GATE_CLOSED;
	struct change change = {.said = config->sizes};
	struct gate_sizes wanted;
	enum status status = sizes_want(config, &wanted);

	if (!status)
		status = gate_open_or_make(&gate, context->gate, &wanted);
	if (!status)
		status = change_prepare(&change, &gate, config, context->resize);
	if (!status)
		status = change_make(&change, &gate);
	if (status) {
		gate_undo(&gate);
	} else {
		sizes_say(&change, &gate);
		warn_newcomers(change.wanted.rules, change.wanted.count);
		warn_losses(&gate, &change.losses, true);
		status = report(context, &gate, &change);
		if (!status)
			status = say_unattached(&gate);
	}
	ruleset_free(&change.wanted);
	gate_close(&gate);
	return status;
}

enum status cmd_apply(const struct context *context, int argc, char **argv)
{
	static const char *const options[] = {"--resize"};
	struct config config = {0};
	enum status status;

	if (argc < 2)
		return misuse("apply: which file? See 'sluice help apply'");
	if (argc > 2)
		return unexpected_for(argv[0], argv[2], options, 1);
	status = config_read(argv[1], &config);
	if (!status)
		status = config_apply(context, &config);
	config_free(&config);
	return status;
}
