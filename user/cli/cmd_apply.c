// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/shaping.h"
#include "attach/attachment.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
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

/* What a change does: the counters of the report. */
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

struct apply_args {
	const char *file;
	const char *resize;
	const char *no_fq;
};

struct change {
	struct ruleset wanted; /* the rules that change; an empty one deletes */
	struct ruleset before; /* those of them whose limits change, as they were */
	const struct sl_list_info
		*from; /* the lists of before, at the places that they have in `wanted` */
	bool lists_changed;
	struct losses losses; /* of policies that now inherit less */
	unsigned int effects[EFFECTS];
	/* Old and new rules stand beside each other until the change is in force. */
	struct room room;
	struct gate_sizes said;	  /* by the file, and then raised */
	struct gate_sizes has;	  /* what the gate has */
	struct gate_sizes during; /* what the change needs until it is in force */
	struct gate_sizes after;
	bool resized;
};

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
static enum status rule_take(void *data, const struct rule *from, const struct rule *to)
{
	const struct rule none = {.prefix = (from ?: to)->prefix};
	struct change *change = data;
	struct rule before, wanted;
	enum status status = OK;

	if (to)
		room_add(&change->room, from, to);
	from = from ?: &none;
	to = to ?: &none;
	policy_count(change, from, to);
	entry_count(change, from, to);
	if (from->limits && to->limits)
		status = rule_copy(from, &before) ?: ruleset_add(&change->before, &before);
	return status ?: rule_copy(to, &wanted) ?: ruleset_add(&change->wanted, &wanted);
}

/* --- Sizes ---------------------------------------------------------------------------------- */

/*
 * Sizes of a gate that is made here: room for the rules of the file twice, as the next file's rules
 * stand beside them.
 */
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

/*
 * Computes the sizes after the change, and those while old and new rules stand beside each other.
 */
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
	change->resized = memcmp(&change->after, &change->has, sizeof(change->has));
}

/* Refuses a change of sizes: without --resize a gate keeps its maps. */
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

/* Names the sizes that were raised above what the file says, and only those that took effect. */
static void sizes_say(struct change *change, const struct gate *gate)
{
	for (unsigned int i = 0; !gate->made && i < SIZES; i++)
		if (*size_of(&change->after, i) == *size_of(&change->has, i))
			*size_of(&change->said, i) = 0;
	sizes_say_raised(&change->said, &gate->machine);
}

/* --- Report --------------------------------------------------------------------------------- */

/* Prints "2 policies added, 1 changed": only the first count has the noun. */
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

/* True also where only a list without entries comes or goes. */
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

/* Warns of a gate without a device: it has rules, and no packet to judge by them. */
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

/* Gives each list of the file its place: a list that stays keeps the place that it has. */
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

/* Computes the change, and refuses one that needs other sizes unless it may resize. */
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
 * restores the sizes. A kill leaves the sizes of the step that it hit.
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

/* Checks that the devices can do what the file's limits shape. */
static enum status shaping_prepare(const struct gate *gate, const struct ruleset *rules, bool no_fq)
{
	struct shaping shaping = {0};

	for (unsigned int i = 0; i < rules->count; i++)
		shaping_add(&shaping, &rules->rules[i]);
	return shaping_check(gate, &shaping, no_fq);
}

/* Both sets are in the order of their prefixes. */
static void kinds_say(const struct gate *gate, const struct change *change)
{
	const struct rule *before = change->before.rules, *end = before + change->before.count;
	struct oversize oversize = {0};

	for (unsigned int i = 0; i < change->wanted.count; i++) {
		const struct rule *rule = &change->wanted.rules[i];
		bool was_there = before < end && prefix_equal(&before->prefix, &rule->prefix);

		oversize_add(&oversize, was_there ? before : NULL, rule);
		if (was_there)
			warn_afresh(before++, rule);
	}
	warn_oversize(gate, &oversize);
}

static enum status config_apply(const struct context *context, struct config *config,
				const struct apply_args *args)
{
	struct gate gate = GATE_CLOSED;
	struct change change = {.said = config->sizes};
	struct gate_sizes wanted;
	enum status status = sizes_want(config, &wanted);

	if (!status)
		status = gate_open_or_make(&gate, context->gate, &wanted);
	if (!status)
		status = change_prepare(&change, &gate, config, args->resize);
	if (!status)
		status = shaping_prepare(&gate, &config->rules, args->no_fq);
	if (!status)
		status = change_make(&change, &gate);
	if (status) {
		gate_undo(&gate);
	} else {
		sizes_say(&change, &gate);
		kinds_say(&gate, &change);
		warn_newcomers(change.wanted.rules, change.wanted.count);
		warn_losses(&gate, &change.losses, true);
		status = report(context, &gate, &change);
		if (!status)
			status = say_unattached(&gate);
	}
	ruleset_free(&change.before);
	ruleset_free(&change.wanted);
	gate_close(&gate);
	return status;
}

static enum status apply_run(const struct context *context, const void *data)
{
	const struct apply_args *args = data;
	struct config config = {0};
	enum status status = config_read(args->file, &config);

	if (!status)
		status = config_apply(context, &config, args);
	config_free(&config);
	return status;
}

static const struct word apply_words[] = {
	{"FILE", OPERAND, NULL, offsetof(struct apply_args, file), NULL},
	{"no-fq", FLAG, NULL, offsetof(struct apply_args, no_fq),
	 "shape although a device lacks the qdisc fq, and so holds no packet back yet"},
	{"--resize", OPTION, NULL, offsetof(struct apply_args, resize),
	 "also make maps of the sizes that the file says, and carry over what they hold"},
};

static const char apply_details[] =
	"Makes the gate if it is not there yet; 'sluice attach' then makes it filter.\n"
	"The file is YAML or JSON, as 'sluice dump' writes it; - is standard input. All errors in\n"
	"it are said, with line and column, and then nothing is applied; else all of it is, in "
	"one\n"
	"step. Rules that the file does not have go. An entry whose 'until' has passed is left "
	"out,\n"
	"and that is said. Sizes are those of 'sluice help attach'.";

const struct command command_apply = {
	.name = "apply",
	.brief = "make a file's rules those in force",
	.details = apply_details,
	.question = "which file?",
	COMMAND_WORDS(apply_words, struct apply_args),
	.run = apply_run,
};
