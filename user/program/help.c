// SPDX-License-Identifier: GPL-2.0
/* The commands help and version, as text and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "program/program.h"
#include "program/writer.h"
#include "sluice.h"

#define USAGE_COLUMNS 80
#define USAGE_TEXT    96

void usage_print(const struct program *program, bool is_error)
{
	const struct option_table options = options_of(NULL, 0);
	FILE *out = is_error ? stderr : stdout;

	fprintf(out, "usage: %s [OPTION...] COMMAND ...\n", program->name);
	for (unsigned int i = 0; i < options.count; i++) {
		const struct option_words *option = &options.words[i];
		char text[32];

		snprintf(text, sizeof(text), "-%c, --%s %s", option->letter, option->name,
			 option->type ? option->type->name : "");
		fprintf(out, "  %-17s  %s\n", text, option->brief);
	}
	fprintf(out, "%s\n", program->usage);
	for (unsigned int i = 0; i < program->count; i++)
		fprintf(out, "  %-9s  %s\n", program->commands[i]->name,
			program->commands[i]->brief);
}

void command_print(const struct command *command)
{
	int indent = printf("usage: sluice %s", command->name), column = indent, width = 0;
	char text[USAGE_TEXT];

	for (unsigned int i = 0; i < command->word_count; i++) {
		const struct word *word = &command->words[i];
		bool is_many = word->kind == OPERANDS || word->kind == OPERANDS_ANYWHERE;
		bool is_operand = word->kind < KEYWORD, is_needed = is_operand && command->question;
		const char *value = is_operand || !word->type ? "" : word->type->name;
		int length = snprintf(text, sizeof(text), " %s%s%s%s%s%s", is_needed ? "" : "[",
				      word->name, is_many ? "..." : "", *value ? " " : "", value,
				      is_needed ? "" : "]");

		if (column + length > USAGE_COLUMNS)
			column = printf("\n%*s", indent, "") - 1;
		column += printf("%s", text);
		length = strlen(word->name) + 2;
		if (word->help && length > width)
			width = length;
	}
	printf("\n%s\n", command->brief);
	if (command->details)
		printf("\n%s\n", command->details);
	if (width)
		putchar('\n');
	/* print two columns: names of words, and their help */
	for (unsigned int i = 0; i < command->word_count; i++) {
		const char *label = command->words[i].name;

		for (const char *line = command->words[i].help ?: ""; *line; label = "") {
			size_t length = strcspn(line, "\n");

			printf("%-*s%.*s\n", width, label, (int)length, line);
			line += length + (line[length] == '\n');
		}
	}
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* Prints as JSON a command and the table of its words. */
static void command_write(const struct command *command)
{
	static const char *const kinds[] = {
		[OPERAND] = "operand", [OPERANDS] = "operands", [OPERANDS_ANYWHERE] = "operands",
		[KEYWORD] = "value",   [OPTION] = "option",
	};

	print_object(NULL);
	print_string("name", NULL, command->name);
	print_string("brief", NULL, command->brief);
	if (command->package)
		print_string("package", NULL, command->package);
	print_bool("needs_operand", command->question);
	print_array("words");
	for (unsigned int i = 0; i < command->word_count; i++) {
		const struct word *word = &command->words[i];
		const char *kind = kinds[word->kind];

		if (word->kind == KEYWORD && !word->type)
			kind = "flag";
		else if (word->kind == KEYWORD && word->type->extent != VALUE_WORD)
			kind = "values";
		print_object(NULL);
		print_string("name", NULL, word->name);
		print_string("kind", NULL, kind);
		if (word->kind >= KEYWORD && word->type)
			print_string("value", NULL, word->type->name);
		if (word->help)
			print_string("help", NULL, word->help);
		print_end();
	}
	print_end();
	print_end();
}

/* Prints as JSON the common options, and all commands with their tables. */
static void tables_write(const struct program *program)
{
	const struct option_table options = options_of(NULL, 0);

	print_object(NULL);
	print_array("options");
	for (unsigned int i = 0; i < options.count; i++) {
		const struct option_words *option = &options.words[i];

		print_object(NULL);
		print_string("letter", NULL, (char[2]){option->letter});
		print_string("name", NULL, option->name);
		if (option->type)
			print_string("value", NULL, option->type->name);
		print_string("brief", NULL, option->brief);
		print_end();
	}
	print_end();
	print_array("commands");
	for (unsigned int i = 0; i < program->count; i++)
		command_write(program->commands[i]);
	print_end();
	print_end();
}

/* --- help and version ----------------------------------------------------------------------- */

static int help_run(const struct context *context, const void *data)
{
	const char *name = *(const char *const *)data;
	const struct command *command = name ? command_find(context->program, name) : NULL;

	if (name && !command) {
		char *argv[] = {NULL, "--help", NULL};
		int err = program_exec(name, argv);

		return err == -ENOENT ? no_such_command(context->program, name) : err;
	}
	if (!command && context->json)
		tables_write(context->program);
	else if (!command)
		usage_print(context->program, false);
	else if (context->json)
		command_write(command);
	else
		command_print(command);
	return 0;
}

static const struct word help_words[] = {
	{"COMMAND", OPERAND, VALUE_TEXT("COMMAND"), 0, NULL},
};

const struct command command_help = {
	.name = "help",
	.brief = "this help, or the help of a command",
	COMMAND_WORDS(help_words, const char *),
	.run = help_run,
};

static int version_run(const struct context *context, const void *args)
{
	(void)context;
	(void)args;
	print_object(NULL);
	print_string("version", "sluice %s, ", SL_VERSION);
	print_number("schema", "schema %" PRIu64 "\n", SL_SCHEMA);
	print_end();
	return 0;
}

const struct command command_version = {
	.name = "version",
	.brief = "the version of this command",
	.run = version_run,
};
