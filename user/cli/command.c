// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "gate/gate_dir.h"
#include "gate/gate_open.h"

/* The name of the gate to look at; only: room for it. */
static enum status gate_choose(const struct context *context, char only[GATE_NAME + 1],
			       const char **ret)
{
	enum status status = OK;

	*only = '\0';
	if (!context->gate_given)
		status = gates_only(context->gate, only);
	*ret = *only ? only : context->gate;
	return status;
}

enum status gate_open_to_look(struct gate *gate, const struct context *context)
{
	char only[GATE_NAME + 1];
	const char *name;
	enum status status = gate_choose(context, only, &name);

	return status ? status : gate_open(gate, name);
}

enum status gate_open_for_rules(struct gate *gate, const struct context *context)
{
	char only[GATE_NAME + 1];
	const char *name;
	enum status status = gate_choose(context, only, &name);

	return status ? status : gate_open_any(gate, name);
}

enum status unexpected(const char *command, const char *word)
{
	return misuse("%s: '%s' is unexpected: see 'sluice help %s'", command, word, command);
}

enum status unexpected_for(const char *command, const char *word, const char *const keywords[],
			   size_t count)
{
	const char *nearly = nearly_find(word, keywords, count);

	if (!nearly)
		return unexpected(command, word);
	return misuse("%s: '%s' is unexpected: did you mean '%s'? See 'sluice help %s'", command,
		      word, nearly, command);
}

bool keyword_is_meant(const char *word, const char *const keywords[], size_t count)
{
	return !word[strcspn(word, ".:/")] && nearly_find(word, keywords, count);
}

const char *keyword_value(int argc, char **argv, int *index)
{
	if (*index + 1 < argc)
		return argv[++*index];
	misuse("%s: '%s' needs a value: see 'sluice help %s'", argv[0], argv[*index], argv[0]);
	return NULL;
}

json_t *json_name(const char *name)
{
	json_t *text = json_string(name);
	char clean[256];
	size_t i;

	if (text)
		return text;
	for (i = 0; name[i] && i < sizeof(clean) - 1; i++)
		clean[i] = (unsigned char)name[i] < 0x80 ? name[i] : '?';
	clean[i] = '\0';
	return json_string(clean);
}

json_t *json_cell(const struct sl_cell *cell)
{
	return json_pack("{s:I, s:I}", "packets", (json_int_t)cell->packets, "bytes",
			 (json_int_t)cell->bytes);
}

enum status json_print(json_t *document)
{
	int err = document ? json_dumpf(document, stdout, JSON_INDENT(2)) : -1;

	json_decref(document);
	if (err)
		return failure("cannot write JSON: %s", why(document ? errno : ENOMEM));
	putchar('\n');
	return OK;
}

/* --- Options -------------------------------------------------------------------------------- */

struct option_words {
	char letter; /* 0: none */
	const char *name;
	const char *value; /* what it takes; NULL: nothing */
	const char *brief;
};

static const struct option_words options[OPTIONS] = {
	[OPTION_GATE] = {'g', "gate", "GATE", "the gate, a named set of rules. Default: main"},
	[OPTION_NETNS] = {'n', "netns", "NETNS",
			  "the network namespace of the devices ('ip netns')"},
	[OPTION_JSON] = {'j', "json", NULL, "JSON on standard output"},
	[OPTION_VERBOSE] = {'v', "verbose", NULL,
			    "what libbpf and the kernel say, on standard error"},
	[OPTION_HELP] = {'h', "help", NULL, "this, or more about a command"},
	[OPTION_VERSION] = {'V', "version", NULL, "the version of this command"},
	[OPTION_FILE] = {'f', "file", "FILE", "a file of prefixes"},
	[OPTION_RESIZE] = {0, "resize", NULL, "make maps of the sizes that the file says"},
};

/* What getopt_long() returns for an option: its letter, or, of one without, a number that is no character. */
static int option_code(int option)
{
	return options[option].letter ?: 256 + option;
}

/* The option of that code; OPTIONS: there is none. */
static int option_find(int code)
{
	int option = 0;

	while (option < OPTIONS && option_code(option) != code)
		option++;
	return option;
}

/* What getopt_long() is told: "-" hands over words in their place, ":" tells a missing value from a wrong option. */
static void getopt_prepare(char letters[2 * OPTIONS + 3], struct option words[OPTIONS + 1])
{
	char *p = letters;

	*p++ = '-';
	*p++ = ':';
	for (int i = 0; i < OPTIONS; i++) {
		bool valued = options[i].value;

		words[i] =
			(struct option){options[i].name, valued ? required_argument : no_argument,
					NULL, option_code(i)};
		if (!options[i].letter)
			continue;
		*p++ = options[i].letter;
		if (valued)
			*p++ = ':';
	}
	*p = '\0';
	words[OPTIONS] = (struct option){0};
}

/* What is wrong with a word: optopt tells in which option, or 0, where that is a name that none has. */
static enum status refuse(int code, const char *word)
{
	int option = optopt ? option_find(optopt) : OPTIONS;

	if (code == ':')
		return misuse("%s needs a value, %s: see 'sluice help'", word,
			      options[option].value);
	if (option < OPTIONS)
		return misuse("--%s takes no value: '%s'", options[option].name, word);
	if (!optopt)
		return misuse("there is no option '%s': see 'sluice help'", word);
	return misuse("there is no option '-%c'%s%s%s: see 'sluice help'; a word that begins with "
		      "- goes behind --",
		      optopt, word[2] ? " in '" : "", word[2] ? word : "", word[2] ? "'" : "");
}

static enum status option_take(int option, const char *value, struct command_line *line)
{
	if (options[option].value && line->option[option])
		return misuse("--%s is given twice: '%s' and '%s'", options[option].name,
			      line->option[option], value);
	line->option[option] = value ?: "";
	return OK;
}

enum status options_parse(int argc, char **argv, struct command_line *ret)
{
	struct command_line line = {.words = argv};
	struct option words[OPTIONS + 1];
	char letters[2 * OPTIONS + 3];
	enum status status = OK;
	int code, at = 1;

	getopt_prepare(letters, words);
	opterr = 0;
	for (; !status && (code = getopt_long(argc, argv, letters, words, NULL)) != -1;
	     at = optind) {
		if (code == 1)
			line.words[line.count++] = optarg;
		else if (code == ':' || code == '?')
			status = refuse(code, argv[at]);
		else
			status = option_take(option_find(code), optarg, &line);
	}
	while (!status && optind < argc)
		line.words[line.count++] = argv[optind++];
	if (!status)
		*ret = line;
	return status;
}

enum status options_check(const struct command_line *line, const char *command, unsigned int takes)
{
	for (int i = OPTION_COMMON; i < OPTIONS; i++)
		if (line->option[i] && !(takes & TAKES(i)))
			return misuse("%s: there is no option '--%s' here: see 'sluice help %s'",
				      command, options[i].name, command);
	return OK;
}

void options_print(FILE *out)
{
	for (int i = 0; i < OPTION_COMMON; i++) {
		const struct option_words *option = &options[i];
		char text[32];

		snprintf(text, sizeof(text), "-%c, --%s %s", option->letter, option->name,
			 option->value ?: "");
		fprintf(out, "  %-17s  %s\n", text, option->brief);
	}
}
