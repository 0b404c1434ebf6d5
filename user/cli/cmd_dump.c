// SPDX-License-Identifier: GPL-2.0
/* The commands dump, show and diff, which print the rules, or compare them with a file. */
#include "attach/places.h"
#include "cli/command.h"
#include "config/config.h"
#include "gate/pins.h"
#include "report/report.h"

static int dump_run(const struct context *context, const void *args)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(config_free) struct config config = {0};
	json_t *tree;
	int err = gate_open_to_look(&gate, context)
		  ?: gate_sizes_read_stated(&gate, &config.sizes)
		  ?: rules_read(&gate, &config.rules) ?: gate_places(&gate, &config.places);

	(void)args;
	if (err)
		return err;
	if (!context->json)
		return config_write(stdout, &config);
	tree = config_json(&config);
	if (!tree || !print_is_whole())
		err = error_add(ENOMEM, "no-memory", NULL, "cannot write JSON: %s", why(ENOMEM));
	else if (!json_dumpf(tree, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII))
		putchar('\n');
	json_decref(tree);
	return err;
}

const struct command command_dump = {
	.name = "dump",
	.brief = "the rules, as a file for apply",
	.run = dump_run,
};

/* --- show ----------------------------------------------------------------------------------- */

static int show_run(const struct context *context, const void *args)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;

	(void)args;
	return gate_open_to_look(&gate, context) ?: report_show(&gate);
}

const struct command command_show = {
	.name = "show",
	.brief = "the devices and the rules, as the commands that add them",
	.run = show_run,
};

/* --- diff ----------------------------------------------------------------------------------- */

/*
 * A comparison of a gate with a rules file. A gate that does not exist counts as a gate without
 * rules and devices; its sizes are not compared.
 */
struct diff {
	const char *gate;
	struct config config;
	struct ruleset rules;	 /* rules in force in the gate */
	struct gate_sizes sizes; /* present sizes of the gate */
	struct placings placings;
	struct rules_shown shown_from, shown_to;
	bool differs;
};

static void diff_free(struct diff *diff)
{
	ruleset_free(&diff->rules);
	config_free(&diff->config);
}

static int diff_read(const char *file, struct diff *diff)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	bool exists = false;
	int err = config_read(file, &diff->config) ?: gate_exists(diff->gate, &exists);

	if (!err && exists)
		err = gate_open(&gate, diff->gate, GATE_READ, NULL)
			      ?: gate_sizes_read(&gate, &diff->sizes)
			      ?: rules_read(&gate, &diff->rules);
	if (err)
		return err;
	err = placings_plan(&gate, &diff->config.places, MISSING_NOTED, NULL, &diff->placings)
		      ?: ruleset_match_lists(&diff->config.rules, diff->rules.lists);
	/* omit the end of a list that both the gate and the file have */
	if (!err && diff->rules.lists)
		diff->shown_from.ends = diff->shown_to.ends =
			lists_bits(diff->rules.lists) & lists_bits(diff->config.rules.lists);
	return err;
}

/* Prints the sizes in which gate and file differ. Ignores sizes that the file does not specify. */
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

/*
 * Prints the attachments that `apply` would remove or add. Omits an attachment whose device or
 * filter is gone.
 */
static void print_placings(struct diff *diff)
{
	for (int detaches = 1; detaches >= 0; detaches--) {
		print_array(detaches ? "detach" : "attach");
		for (unsigned int i = 0; i < diff->placings.count; i++) {
			const struct placing *placing = &diff->placings.list[i];
			const struct attachment *a = &placing->attachment;

			if (detaches && placing->replaces)
				a = &placing->before;
			else if (placing->detaches != detaches || (detaches && !a->program_id))
				continue;
			diff->differs = true;
			print_row(NULL);
			if (print_is_json())
				print_attachment(a, NULL);
			else if (!print_attach_command(a, (struct gate_sizes){0}, diff->gate,
						       detaches ? "- " : "+ "))
				error_notice(
					"no-netns-name", a->device,
					"it differs, but -n cannot name its network namespace");
			print_end();
		}
		print_end();
	}
}

/*
 * Prints commands that add the parts of `rule` that `other` does not have. NULL means a rule
 * without limits and entries.
 */
static int print_side(const struct diff *diff, const struct rule *rule, const struct rule *other,
		      const struct ruleset *set, struct rules_shown *shown, const char *lead)
{
	const struct rule none = {.prefix = (rule ?: other)->prefix};
	_cleanup_(rule_free) struct rule difference = {0};
	int err = rule_difference(rule ?: &none, other ?: &none, &difference);

	if (!err)
		print_commands(&difference, set->lists, shown, diff->gate, lead);
	return err;
}

/*
 * Callback of ruleset_diff(): prints a rule that differs in the gate (`from`) and in the file
 * (`to`).
 */
static int print_rule_pair(void *data, const struct rule *from, const struct rule *to)
{
	struct diff *diff = data;
	const struct ruleset *new = &diff->config.rules;

	diff->differs = true;
	if (!print_is_json())
		return print_side(diff, from, to, &diff->rules, &diff->shown_from, "- ")
			       ?: print_side(diff, to, from, new, &diff->shown_to, "+ ");
	print_object(NULL);
	print_rule("from", from, diff->rules.lists);
	print_rule("to", to, new->lists);
	print_end();
	return 0;
}

/* Returns 0 if the gate and the file are equal, 1 if they differ, or a negative errno. */
static int diff_run(const struct context *context, const void *data)
{
	_cleanup_(diff_free) struct diff diff = {.gate = context->gate};
	int err = diff_read(*(const char *const *)data, &diff);

	if (err)
		return err;
	print_object(NULL);
	print_string("gate", NULL, diff.gate);
	print_sizes(&diff);
	print_placings(&diff);
	print_array("rules");
	err = ruleset_diff(&diff.rules, &diff.config.rules, print_rule_pair, &diff);
	print_end();
	print_bool("differs", diff.differs);
	print_end();
	return err ?: diff.differs;
}

static const struct word diff_words[] = {
	{"FILE", OPERAND, VALUE_TEXT("FILE"), 0, NULL},
};

const struct command command_diff = {
	.name = "diff",
	.brief = "what apply would change",
	.details =
		"Prints commands, as 'sluice show' does: after - the rules that would be removed,\n"
		"and after + the rules that would be added. A device of the file that does not\n"
		"exist is reported, and not compared. Exit status 0: no difference; 1: a\n"
		"difference; 2: an error.",
	.question = "which file?",
	COMMAND_WORDS(diff_words, const char *),
	.exit_failed = 2,
	.run = diff_run,
};
