// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>

#include "attach/places.h"
#include "attach/published.h"
#include "attach/shaping.h"
#include "base/array.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "config/config.h"
#include "program/print_rules.h"
#include "gate/gate.h"
#include "gate/pins.h"
#include "gate/gate_make.h"
#include "migrate/open.h"
#include "gate/rules.h"
#include "rules/lists.h"
#include "rules/sizes.h"

static int dump_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	struct config config = {0};
	int status;

	(void)args;
	status = gate_open_to_look(&gate, context);
	if (!status)
		status = gate_sizes_read_stated(&gate, &config.sizes);
	if (!status)
		status = rules_read(&gate, &config.rules);
	if (!status)
		status = gate_places(&gate, &config.places);
	if (!status)
		status = context->json ? json_print(config_json(&config))
				       : config_write(stdout, &config);
	config_free(&config);
	gate_close(&gate);
	return status;
}

const struct command command_dump = {
	.name = "dump",
	.brief = "the rules, as a file for apply",
	.run = dump_run,
};

/* --- show ----------------------------------------------------------------------------------- */

/*
 * Prints the command that makes an attachment, to be run in the network namespace in which sluice
 * was started. sizes: the sizes to state. Returns false if -n cannot name the namespace of the
 * device.
 */
static bool attachment_print(const struct attachment *a, const struct gate_sizes *sizes,
			     const char *gate, const char *lead)
{
	struct gate_sizes stated = *sizes;
	enum mode mode = attachment_mode(a);
	char option[NETNS_OPTION];

	netns_option(a->netns, netns_home(), option);
	if (!*option && a->netns != netns_home())
		return false;
	printf("%ssluice %s%sattach %s", lead, option, gate_option(gate), operand_typed(a->device));
	if (a->hook != HOOK_XDP)
		printf(" hook %s", hook_names[a->hook]);
	if (mode != MODE_AUTO)
		printf(" mode %s", mode_names[mode]);
	for (int i = 0; i < SIZES; i++)
		if (size_told(&stated, i))
			printf(" %s %u", size_names[i], size_told(&stated, i));
	putchar('\n');
	return true;
}

/* Whether limits shape, and a device on hook egress lacks the qdisc fq. */
static int fq_check(const struct shaping *shaping, const struct attachment *a, bool *lacks)
{
	struct holding holding;
	int status;

	if (!shaping->any || a->hook != HOOK_EGRESS)
		return OK;
	status = shaping_look(shaping, a, &holding);
	*lacks |= !holding.holds;
	free(holding.command);
	return status;
}

/* Prints the attachments that are alive. The first command makes the gate. */
static int attachments_print(const struct gate *gate, bool *ret_lacks_fq)
{
	struct gate_sizes sizes;
	struct shaping shaping;
	struct seen seen;
	int status = gate_sizes_read_stated(gate, &sizes);

	if (!status)
		status = shaping_read(gate, &shaping);
	if (!status)
		status = attachments_see(gate, &seen);
	for (unsigned int i = 0; !status && i < seen.count; i++) {
		if (!seen.all[i].program_id)
			continue;
		status = fq_check(&shaping, &seen.all[i], ret_lacks_fq);
		if (attachment_print(&seen.all[i], &sizes, gate->name, ""))
			sizes = (struct gate_sizes){0};
		else
			note("%s: left out, because -n cannot name its network namespace",
			     seen.all[i].device);
	}
	return status;
}

/* Prints rule by rule: millions of them as one JSON document would take gigabytes. */
static int rules_print_json(const struct gate *gate, const struct places *places,
			    const struct ruleset *set)
{
	const struct config devices = {.places = *places};
	json_t *config = config_json(&devices), *attach = json_object_get(config, "attach");
	int status = OK;

	printf("{\n  \"gate\": \"%s\",\n", gate->name);
	if (attach) {
		fputs("  \"attach\": ", stdout);
		json_dumpf(attach, stdout, 0);
		fputs(",\n", stdout);
	}
	json_decref(config);
	fputs("  \"rules\": [", stdout);
	for (unsigned int i = 0; !status && i < set->count; i++)
		status = json_print_item(rule_json(&set->rules[i], set->lists), !i);
	fputs(set->count ? "\n  ]\n}\n" : "]\n}\n", stdout);
	return status;
}

static int show_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	struct places places = {0};
	struct ruleset set = {0};
	struct rules_shown shown = {0};
	int status;

	(void)args;
	status = gate_open_to_look(&gate, context);
	if (!status)
		status = rules_read(&gate, &set);
	if (!status)
		status = context->json ? gate_places(&gate, &places)
				       : attachments_print(&gate, &shown.lacks_fq);
	if (!status && context->json)
		status = rules_print_json(&gate, &places, &set);
	for (unsigned int i = 0; !status && !context->json && i < set.count; i++)
		print_commands(&set.rules[i], set.lists, &shown, gate.name, "");
	places_free(&places);
	ruleset_free(&set);
	gate_close(&gate);
	return status;
}

const struct command command_show = {
	.name = "show",
	.brief = "the devices and the rules, as commands that make them",
	.run = show_run,
};

/* --- diff ----------------------------------------------------------------------------------- */

struct diff {
	const char *gate;
	const struct sl_list_info
		*from; /* the lists of both sides: the same ones at the same places */
	const struct sl_list_info *to;
	struct rules_shown shown_from, shown_to;
	json_t *rules; /* NULL, as those below: print lines */
	json_t *attach;
	json_t *detach;
	bool differs;
};

/* --- diff: rules ---------------------------------------------------------------------------- */

/* Prints what one side has of a rule and the other has not. */
static int side_print(const struct rule *rule, const struct rule *other,
		      const struct sl_list_info *lists, struct rules_shown *shown, const char *gate,
		      const char *lead)
{
	struct rule difference;
	int status = rule_difference(rule, other, &difference);

	if (status)
		return status;
	print_commands(&difference, lists, shown, gate, lead);
	rule_free(&difference);
	return OK;
}

/* Callback of ruleset_diff(). */
static int rule_diff(void *data, const struct rule *from, const struct rule *to)
{
	const struct rule none = {.prefix = (from ?: to)->prefix};
	struct diff *diff = data;

	diff->differs = true;
	if (!diff->rules)
		return side_print(from ?: &none, to ?: &none, diff->from, &diff->shown_from,
				  diff->gate, "- ")
			       ?: side_print(to ?: &none, from ?: &none, diff->to, &diff->shown_to,
					     diff->gate, "+ ");
	json_array_append_new(diff->rules,
			      json_pack("{s:o, s:o}", "from",
					from ? rule_json(from, diff->from) : json_null(), "to",
					to ? rule_json(to, diff->to) : json_null()));
	return OK;
}

/* --- diff: sizes ---------------------------------------------------------------------------- */

static void size_diff(struct diff *diff, json_t *sizes, enum size size, uint32_t from, uint32_t to)
{
	char from_text[SIZE_TEXT], to_text[SIZE_TEXT];

	diff->differs = true;
	if (sizes)
		json_object_set_new(
			sizes, size_names[size],
			json_pack("{s:I, s:I}", "from", (json_int_t)from, "to", (json_int_t)to));
	else
		printf("# gate %s %s -> %s\n", size_names[size], size_format(from, from_text),
		       size_format(to, to_text));
}

/* Compares sizes. A size that the file does not give does not differ. */
static int sizes_diff(struct diff *diff, json_t *sizes, const struct gate *gate,
		      const struct config *config)
{
	struct gate_sizes said = config->sizes, has;
	int status = gate_sizes_read(gate, &has);

	for (unsigned int i = 0; !status && i < SIZES; i++) {
		uint32_t to = size_told(&said, i), from = size_told(&has, i);

		if (to && to != from)
			size_diff(diff, sizes, i, from, to);
	}
	return status;
}

/* --- diff: devices -------------------------------------------------------------------------- */

static void attachment_diff(struct diff *diff, const struct attachment *a, bool goes)
{
	const struct gate_sizes none = {0};

	diff->differs = true;
	if (diff->attach)
		json_array_append_new(goes ? diff->detach : diff->attach, attachment_json(a));
	else if (!attachment_print(a, &none, diff->gate, goes ? "- " : "+ "))
		note("%s differs, and no line here can name it", a->device);
}

/*
 * What would be attached and detached. The gate may be closed: then it is attached nowhere. What
 * filters nothing any more is no difference.
 */
static int places_diff(struct diff *diff, const struct gate *gate, const struct config *config)
{
	struct placings placings;
	int status = placings_plan(gate, &config->places, true, &placings);

	if (status)
		return status;
	for (unsigned int i = 0; i < placings.count; i++) {
		const struct placing *placing = &placings.list[i];

		if (placing->replaces)
			attachment_diff(diff, &placing->before, true);
		if (!placing->detaches || placing->attachment.program_id)
			attachment_diff(diff, &placing->attachment, placing->detaches);
	}
	placings_free(&placings);
	return OK;
}

/* --- diff: the command ---------------------------------------------------------------------- */

/* Reads the rules in force. A gate that does not exist has none, and differs in no size. */
static int gate_read(struct diff *diff, json_t *sizes, const struct config *config,
		     struct ruleset *ret)
{
	struct gate gate = GATE_CLOSED;
	bool exists = false;
	int status = gate_check_name(diff->gate);

	if (!status)
		status = gate_exists(diff->gate, &exists);
	if (!status && !exists)
		return places_diff(diff, &gate, config);
	if (!status)
		status = gate_open(&gate, diff->gate, GATE_READ, NULL);
	if (!status)
		status = sizes_diff(diff, sizes, &gate, config);
	if (!status)
		status = rules_read(&gate, ret);
	if (!status)
		status = places_diff(diff, &gate, config);
	gate_close(&gate);
	return status;
}

static int config_diff(struct diff *diff, json_t *sizes, struct config *config)
{
	struct ruleset in_force = {0};
	int status = gate_read(diff, sizes, config, &in_force);

	if (!status)
		status = ruleset_match_lists(&config->rules, in_force.lists);
	diff->from = in_force.lists;
	diff->to = config->rules.lists;
	/* lists of both sides have the same index, and so the same end */
	if (!status && diff->from)
		diff->shown_from.ends = diff->shown_to.ends =
			lists_bits(diff->from) & lists_bits(diff->to);
	if (!status)
		status = ruleset_diff(&in_force, &config->rules, rule_diff, diff);
	ruleset_free(&in_force);
	return status;
}

struct diff_args {
	const char *file;
};

static int diff_run(const struct context *context, const void *data)
{
	const struct diff_args *args = data;
	struct diff diff = {.gate = context->gate};
	json_t *sizes = context->json ? json_object() : NULL;
	struct config config = {0};
	int status;

	if (context->json) {
		diff.rules = json_array();
		diff.attach = json_array();
		diff.detach = json_array();
	}
	status = config_read(args->file, &config);
	if (!status)
		status = config_diff(&diff, sizes, &config);
	if (!status && context->json)
		status = json_print(json_pack("{s:s, s:b, s:O, s:O, s:O, s:O}", "gate", diff.gate,
					      "differs", diff.differs, "sizes", sizes, "rules",
					      diff.rules, "attach", diff.attach, "detach",
					      diff.detach));
	json_decref(sizes);
	json_decref(diff.rules);
	json_decref(diff.attach);
	json_decref(diff.detach);
	config_free(&config);
	return status ?: diff.differs; /* exit status 1, as diff(1) */
}

static const struct word diff_words[] = {
	{"FILE", OPERAND, VALUE_TEXT("FILE"), offsetof(struct diff_args, file), NULL},
};

static const char diff_details[] =
	"As the commands of 'sluice show', - before what would go and + before what would come.\n"
	"A device of the file that is missing is noted, and the rest is compared.\n"
	"Exit status 0: no difference; 1: there is one; 2: it cannot be told.";

const struct command command_diff = {
	.name = "diff",
	.brief = "what apply would change",
	.details = diff_details,
	.question = "which file?",
	COMMAND_WORDS(diff_words, struct diff_args),
	.exit_failed = 2,
	.run = diff_run,
};
