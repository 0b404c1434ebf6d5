// SPDX-License-Identifier: GPL-2.0
/* dump, show and diff: the rules as a file, as commands, and compared with a file. */
#include <errno.h>
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
#include "gate/gate.h"
#include "gate/gate_make.h"
#include "gate/pins.h"
#include "gate/rules.h"
#include "migrate/open.h"
#include "rules/lists.h"
#include "rules/sizes.h"

static int dump_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	struct config config = {0};
	int err = gate_open_to_look(&gate, context)
		  ?: gate_sizes_read_stated(&gate, &config.sizes)
		  ?: rules_read(&gate, &config.rules) ?: gate_places(&gate, &config.places);

	(void)args;
	if (!err && context->json && print_tree(NULL, config_json(&config)))
		err = error_add(ENOMEM, "no-memory", NULL, "cannot write JSON: %s", why(ENOMEM));
	else if (!err && !context->json)
		err = config_write(stdout, &config);
	config_free(&config);
	gate_close(&gate);
	return err;
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
static bool print_attach(const struct attachment *a, struct gate_sizes sizes, const char *gate,
			 const char *lead)
{
	enum mode mode = attachment_mode(a);
	char option[NETNS_OPTION];

	netns_option(a->netns, netns_home(), option);
	if (!*option && a->netns != netns_home())
		return false;
	print_text("%ssluice %s%sattach %s", lead, option, gate_option(gate),
		   operand_typed(a->device));
	if (a->hook != HOOK_XDP)
		print_text(" hook %s", hook_names[a->hook]);
	if (mode != MODE_AUTO)
		print_text(" mode %s", mode_names[mode]);
	for (int i = 0; i < SIZES; i++)
		if (size_specified(&sizes, i))
			print_text(" %s %u", size_names[i], size_specified(&sizes, i));
	print_text("\n");
	return true;
}

/*
 * Prints the attachments that filter, the first with the sizes of the gate, which it makes.
 * ret_lacks_fq: limits shape, and a device on hook egress lacks the qdisc fq.
 */
static int print_attachments(const struct gate *gate, bool *ret_lacks_fq)
{
	struct gate_sizes sizes;
	struct shaping shaping;
	struct seen seen;
	int err = gate_sizes_read_stated(gate, &sizes) ?: shaping_read(gate, &shaping)
		  ?: attachments_see(gate, &seen);

	if (err)
		return err;
	for (unsigned int i = 0; i < seen.count; i++) {
		const struct attachment *a = &seen.all[i];
		struct holding holding;

		if (!a->program_id)
			continue;
		if (shaping.any && a->hook == HOOK_EGRESS) {
			err = shaping_look(&shaping, a, &holding);
			if (err)
				return err;
			*ret_lacks_fq |= !holding.holds;
			free(holding.command);
		}
		if (print_attach(a, sizes, gate->name, ""))
			sizes = (struct gate_sizes){0};
		else
			error_notice("no-netns-name", a->device,
				     "left out, because -n cannot name its network namespace");
	}
	return 0;
}

/* Prints JSON: "attach", as in a rules file. */
static int print_places(const struct gate *gate)
{
	struct config config = {0};
	json_t *tree, *attach;
	int err = gate_places(gate, &config.places);

	if (err)
		return err;
	tree = config_json(&config);
	attach = json_incref(json_object_get(tree, "attach"));
	json_decref(tree);
	config_free(&config);
	if (!tree || !print_is_whole() || (attach && print_tree("attach", attach)))
		return error_add(ENOMEM, "no-memory", NULL, "cannot write JSON: %s", why(ENOMEM));
	return 0;
}

static int show_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	struct rules_shown shown = {0};
	struct ruleset set = {0};
	int err = gate_open_to_look(&gate, context) ?: rules_read(&gate, &set);

	(void)args;
	if (!err && context->json) {
		print_object(NULL);
		print_string("gate", NULL, gate.name);
		err = print_places(&gate);
	} else if (!err) {
		err = print_attachments(&gate, &shown.lacks_fq);
	}
	if (!err) {
		print_array("rules");
		for (unsigned int i = 0; i < set.count; i++)
			if (context->json)
				print_rule(NULL, &set.rules[i], set.lists);
			else
				print_commands(&set.rules[i], set.lists, &shown, gate.name, "");
		print_end();
		print_end();
	}
	ruleset_free(&set);
	gate_close(&gate);
	return err;
}

const struct command command_show = {
	.name = "show",
	.brief = "the devices and the rules, as commands that make them",
	.run = show_run,
};

/* --- diff ----------------------------------------------------------------------------------- */

/* Both sides. A gate that does not exist has no rules, no device, and differs in no size. */
struct diff {
	const char *gate;
	struct config config;
	struct ruleset rules;	 /* in force */
	struct gate_sizes sizes; /* of the gate */
	struct placings placings;
	struct rules_shown shown_from, shown_to;
	bool differs;
};

static int diff_read(struct diff *diff)
{
	struct gate gate = GATE_CLOSED;
	bool exists = false;
	int err = gate_check_name(diff->gate) ?: gate_exists(diff->gate, &exists);

	if (!err && exists)
		err = gate_open(&gate, diff->gate, GATE_READ, NULL);
	if (!err && exists)
		err = gate_sizes_read(&gate, &diff->sizes) ?: rules_read(&gate, &diff->rules);
	if (!err)
		err = placings_plan(&gate, &diff->config.places, true, &diff->placings)
			      ?: ruleset_match_lists(&diff->config.rules, diff->rules.lists);
	gate_close(&gate);
	return err;
}

/* Sizes that the file does not give do not differ. */
static void print_sizes(struct diff *diff)
{
	char from_text[SIZE_TEXT], to_text[SIZE_TEXT];

	print_object("sizes");
	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t from = size_specified(&diff->sizes, i),
			 to = size_specified(&diff->config.sizes, i);

		if (!from || !to || to == from)
			continue;
		diff->differs = true;
		print_text("# gate %s %s -> %s\n", size_names[i], size_format(from, from_text),
			   size_format(to, to_text));
		print_object(size_names[i]);
		print_number("from", NULL, from);
		print_number("to", NULL, to);
		print_end();
	}
	print_end();
}

static void print_placing(struct diff *diff, const struct attachment *a, const char *lead)
{
	const struct gate_sizes none = {0};

	diff->differs = true;
	print_row(NULL, NULL);
	if (print_is_json())
		print_attachment(a, NULL);
	else if (!print_attach(a, none, diff->gate, lead))
		error_notice("no-netns-name", a->device, "differs, and no line here can name it");
	print_end();
}

/* An attachment that no longer filters is no difference. */
static void print_placings(struct diff *diff)
{
	const struct placings *placings = &diff->placings;

	print_array("detach");
	for (unsigned int i = 0; i < placings->count; i++) {
		const struct placing *placing = &placings->list[i];

		if (placing->replaces)
			print_placing(diff, &placing->before, "- ");
		if (placing->detaches && placing->attachment.program_id)
			print_placing(diff, &placing->attachment, "- ");
	}
	print_end();
	print_array("attach");
	for (unsigned int i = 0; i < placings->count; i++)
		if (!placings->list[i].detaches)
			print_placing(diff, &placings->list[i].attachment, "+ ");
	print_end();
}

/* Prints what one side has of a rule, and the other side has not. */
static int print_side(const struct rule *rule, const struct rule *other,
		      const struct sl_list_info *lists, struct rules_shown *shown, const char *gate,
		      const char *lead)
{
	struct rule difference;
	int err = rule_difference(rule, other, &difference);

	if (err)
		return err;
	print_commands(&difference, lists, shown, gate, lead);
	rule_free(&difference);
	return 0;
}

/* Callback of ruleset_diff(). */
static int print_rule_pair(void *data, const struct rule *from, const struct rule *to)
{
	const struct rule none = {.prefix = (from ?: to)->prefix};
	struct diff *diff = data;

	diff->differs = true;
	if (!print_is_json())
		return print_side(from ?: &none, to ?: &none, diff->rules.lists, &diff->shown_from,
				  diff->gate, "- ")
			       ?: print_side(to ?: &none, from ?: &none, diff->config.rules.lists,
					     &diff->shown_to, diff->gate, "+ ");
	print_object(NULL);
	print_rule("from", from, diff->rules.lists);
	print_rule("to", to, diff->config.rules.lists);
	print_end();
	return 0;
}

struct diff_args {
	const char *file;
};

/* Returns 1 if both sides differ. */
static int diff_run(const struct context *context, const void *data)
{
	const struct diff_args *args = data;
	struct diff diff = {.gate = context->gate};
	int err = config_read(args->file, &diff.config) ?: diff_read(&diff);

	if (!err) {
		/* lists of both sides have the same index, and so the same end */
		if (diff.rules.lists)
			diff.shown_from.ends = diff.shown_to.ends =
				lists_bits(diff.rules.lists) & lists_bits(diff.config.rules.lists);
		print_object(NULL);
		print_string("gate", NULL, diff.gate);
		print_sizes(&diff);
		print_placings(&diff);
		print_array("rules");
		err = ruleset_diff(&diff.rules, &diff.config.rules, print_rule_pair, &diff);
		print_end();
		print_bool("differs", diff.differs);
		print_end();
	}
	placings_free(&diff.placings);
	ruleset_free(&diff.rules);
	config_free(&diff.config);
	return err ?: diff.differs;
}

static const struct word diff_words[] = {
	{"FILE", OPERAND, VALUE_TEXT("FILE"), offsetof(struct diff_args, file), NULL},
};

static const char diff_details[] =
	"As the commands of 'sluice show', - before what would go and + before what would come.\n"
	"A device of the file that is missing is noted, and the rest is compared.\n"
	"Exit status 0: no difference; 1: a difference; 2: an error.";

const struct command command_diff = {
	.name = "diff",
	.brief = "what apply would change",
	.details = diff_details,
	.question = "which file?",
	COMMAND_WORDS(diff_words, struct diff_args),
	.exit_failed = 2,
	.run = diff_run,
};
