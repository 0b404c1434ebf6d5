// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/streams.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/report.h"
#include "gate/gate.h"
#include "program/messages.h"
#include "sluice.h"

static const struct command command_help, command_version;

const struct command *const commands[] = {
	&command_attach,    &command_detach,  &command_status,	&command_doctor,  &command_set,
	&command_newcomers, &command_allow,   &command_deny,	&command_unallow, &command_undeny,
	&command_lists,	    &command_del,     &command_forgive, &command_show,	  &command_apply,
	&command_confirm,   &command_keep,    &command_share,	&command_diff,	  &command_dump,
	&command_check,	    &command_stats,   &command_sources, &command_export,  &command_upgrade,
	&command_complete,  &command_version, &command_help,
};

const unsigned int command_count = ARRAY_SIZE(commands);

const struct command *command_find(const char *name)
{
	for (unsigned int i = 0; i < command_count; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int no_such_command(const char *name)
{
	const char *names[ARRAY_SIZE(commands)], *nearly;

	for (unsigned int i = 0; i < command_count; i++)
		names[i] = commands[i]->name;
	nearly = nearly_find(name, names, command_count);
	return misuse("there is no command '%s': %s%s%s'sluice help'", name,
		      nearly ? "did you mean '" : "see ", nearly ?: "", nearly ? "'? See " : "");
}

/* --- Help ----------------------------------------------------------------------------------- */

#define USAGE_COLUMNS 80
#define USAGE_TEXT    96

static void options_print(FILE *out)
{
	for (int i = 0; i < OPTION_COMMON; i++) {
		const struct option_words *option = &option_table[i];
		char text[32];

		snprintf(text, sizeof(text), "-%c, --%s %s", option->letter, option->name,
			 option->value ?: "");
		fprintf(out, "  %-17s  %s\n", text, option->brief);
	}
}

static void usage_print(FILE *out)
{
	fprintf(out, "usage: sluice [OPTION...] COMMAND ...\n");
	options_print(out);
	fprintf(out,
		"Options stand before or behind the command; a word that begins with - goes behind "
		"--.\n"
		"Without -g, check, dump, lists, show, sources and stats look at the only gate "
		"there\n"
		"is; status, doctor and export tell of all.\n\n");
	for (unsigned int i = 0; i < command_count; i++)
		fprintf(out, "  %-9s  %s\n", commands[i]->name, commands[i]->brief);
}

/* "[rate RATE]", "DEV...": a word as the usage says it. */
static const char *word_usage(const struct command *command, const struct word *word,
			      char text[USAGE_TEXT])
{
	bool is_many = word->kind == OPERANDS || word->kind == OPERANDS_ANYWHERE;
	bool is_needed = word->kind < FLAG && command->question;

	snprintf(text, USAGE_TEXT, "%s%s%s%s%s%s", is_needed ? "" : "[", word->name,
		 is_many ? "..." : "", word->value ? " " : "", word->value ?: "",
		 is_needed ? "" : "]");
	return text;
}

/* A label on the first line, and all lines in one column. */
static void help_print(const char *label, int width, const char *lines)
{
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		printf("%-*s%.*s\n", width, label, (int)length, lines);
		lines += length + (lines[length] == '\n');
		label = "";
	}
}

static void words_print(const struct command *command)
{
	int width = 0;

	for (unsigned int i = 0; i < command->word_count; i++) {
		int length = strlen(command->words[i].name) + 2;

		if (command->words[i].help && length > width)
			width = length;
	}
	if (width)
		putchar('\n');
	for (unsigned int i = 0; i < command->word_count; i++)
		if (command->words[i].help)
			help_print(command->words[i].name, width, command->words[i].help);
}

static void command_print(const struct command *command)
{
	int indent = printf("usage: sluice %s", command->name), column = indent;
	char text[USAGE_TEXT];

	for (unsigned int i = 0; i < command->word_count; i++) {
		const char *word = word_usage(command, &command->words[i], text);

		if (column + 1 + strlen(word) > USAGE_COLUMNS)
			column = printf("\n%*s", indent, "") - 1;
		column += printf(" %s", word);
	}
	printf("\n%s\n", command->brief);
	if (command->details)
		printf("\n%s\n", command->details);
	words_print(command);
}

static json_t *word_json(const struct word *word)
{
	static const char *const kinds[] = {
		[OPERAND] = "operand", [OPERANDS] = "operands", [OPERANDS_ANYWHERE] = "operands",
		[FLAG] = "flag",       [VALUE] = "value",	[NUMBERS] = "values",
		[VALUES] = "values",   [OPTION] = "option",
	};

	return json_pack("{s:s, s:s, s:s*, s:s*}", "name", word->name, "kind", kinds[word->kind],
			 "value", word->value, "help", word->help);
}

static json_t *command_json(const struct command *command)
{
	json_t *words = json_array();

	for (unsigned int i = 0; i < command->word_count; i++)
		json_array_append_new(words, word_json(&command->words[i]));
	return json_pack("{s:s, s:s, s:b, s:o}", "name", command->name, "brief", command->brief,
			 "needs_operand", command->question != NULL, "words", words);
}

/* All tables, for programs: tests compare the documents with them. */
static json_t *tables_json(void)
{
	json_t *options = json_array(), *list = json_array();

	for (int i = 0; i < OPTION_COMMON; i++) {
		const struct option_words *option = &option_table[i];
		char letter[2] = {option->letter, '\0'};

		json_array_append_new(options,
				      json_pack("{s:s*, s:s, s:s*, s:s}", "letter",
						*letter ? letter : NULL, "name", option->name,
						"value", option->value, "brief", option->brief));
	}
	for (unsigned int i = 0; i < command_count; i++)
		json_array_append_new(list, command_json(commands[i]));
	return json_pack("{s:o, s:o}", "options", options, "commands", list);
}

struct help_args {
	const char *command;
};

static int help_run(const struct context *context, const void *data)
{
	const struct help_args *args = data;
	const struct command *command = args->command ? command_find(args->command) : NULL;

	if (args->command && !command)
		return no_such_command(args->command);
	if (context->json)
		return json_print(command ? command_json(command) : tables_json());
	if (command)
		command_print(command);
	else
		usage_print(stdout);
	return 0;
}

static const struct word help_words[] = {
	{"COMMAND", OPERAND, NULL, offsetof(struct help_args, command), NULL},
};

static const struct command command_help = {
	.name = "help",
	.brief = "this, or more about a command",
	COMMAND_WORDS(help_words, struct help_args),
	.run = help_run,
};

/* --- version -------------------------------------------------------------------------------- */

static int version_run(const struct context *context, const void *args)
{
	(void)args;
	if (context->json)
		return json_print(
			json_pack("{s:s, s:i}", "version", SL_VERSION, "schema", SL_SCHEMA));
	printf("sluice %s, schema %d\n", SL_VERSION, SL_SCHEMA);
	return 0;
}

static const struct command command_version = {
	.name = "version",
	.brief = "the version of this command",
	.run = version_run,
};

/* --- Running -------------------------------------------------------------------------------- */

/* Set when a command runs: until then a failure is none of its own. */
static bool is_running;

static const struct time_range confirm_range = {
	.min_ns = 5 * NS_PER_SEC,
	.max_ns = 3600 * NS_PER_SEC,
	.words = "5s to 1h",
};

/* Runs a command. With --confirm undoes a change that failed halfway, or prints when it ends. */
static int command_run(struct context *context, const void *args, const char *confirm)
{
	int status = option_time("--confirm", confirm, &confirm_range, &context->trial_ns);

	if (status)
		return status;
	is_running = true;
	status = context->command->run(context, args);
	if (status)
		trial_abort();
	else if (context->trial_ns && !context->json)
		printf("gate '%s': the change is undone in %s; to keep it: 'sluice %sconfirm'\n",
		       context->gate, confirm, gate_option(context->gate));
	return status;
}

static int run(struct context *context, const struct command_line *line)
{
	const struct command *command = command_find(line->words[0]);
	int status;
	void *args;

	if (!command)
		return no_such_command(line->words[0]);
	/* any word may be one to complete, "help" too */
	if (line->option[OPTION_HELP] ||
	    (line->count == 2 && !strcmp(line->words[1], "help") && command != &command_complete)) {
		command_print(command);
		return 0;
	}
	args = calloc(1, command->args_size ?: 1);
	if (!args)
		return failure("%s: out of memory", command->name);
	context->command = command;
	status = words_parse(command, line, args);
	if (!status)
		status = command_run(context, args, line->option[OPTION_CONFIRM]);
	free(args);
	return status;
}

/* diff exits with 1 if there is a difference, so a failure around it exits with 2. */
static int exit_of_failure(const struct command_line *line, int exit)
{
	bool is_diff = line->count && command_find(line->words[0]) == &command_diff;

	return exit == 1 && is_diff ? 2 : exit;
}

static int run_line(const struct command_line *line)
{
	const char *const *option = line->option;
	struct context context = {
		.gate = option[OPTION_GATE] ?: GATE_USUAL,
		.gate_given = option[OPTION_GATE],
		.json = option[OPTION_JSON],
	};
	int status;

	if (option[OPTION_VERSION])
		return version_run(&context, NULL);
	if (!line->count) {
		usage_print(option[OPTION_HELP] ? stdout : stderr);
		return option[OPTION_HELP] ? 0 : MISUSED;
	}
	log_libbpf(option[OPTION_VERBOSE]);
	status = gate_check_name(context.gate);
	if (!status && option[OPTION_NETNS])
		status = netns_enter(option[OPTION_NETNS]);
	return status ? status : run(&context, line);
}

/*
 * Prints the messages, and fails if output could not be written. The errno of an earlier write is
 * lost, so another write is made, which fails in the same way. Returns the exit status.
 */
static int output_end(const struct command_line *line, int exit)
{
	bool failed = fflush(stdout);

	error_flush();
	if (failed || ferror(stdout)) {
		if (!failed)
			failed = putchar('\n') == EOF || fflush(stdout);
		failure("cannot write the output%s%s", failed ? ": " : "",
			failed ? strerror(errno) : "");
		exit = exit_of_failure(line, 1);
	}
	if (!json_is_whole() && !exit) {
		failure("the output is not whole: %s", why(ENOMEM));
		exit = exit_of_failure(line, 1);
	}
	error_flush();
	return exit;
}

int main(int argc, char **argv)
{
	struct command_line line = {0};
	int status, exit;

	streams_open();
	signal(SIGXFSZ, SIG_IGN); /* a write then fails with EFBIG */
	messages_begin();
	json_begin();
	status = options_parse(argc, argv, &line);
	if (!status)
		status = run_line(&line);
	exit = messages_exit_status(status);
	if (!is_running || status == MISUSED)
		exit = exit_of_failure(&line, exit);
	return output_end(&line, exit);
}
