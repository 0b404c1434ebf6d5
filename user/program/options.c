// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "program/command.h"
#include "rules/value.h"

static const struct option_words common[OPTION_COMMON] = {
	[OPTION_GATE] = {'g', "gate", VALUE_TEXT("GATE"),
			 "the gate, a named set of rules. Default: main"},
	[OPTION_NETNS] = {'n', "netns", VALUE_TEXT("NETNS"),
			  "the network namespace of the devices ('ip netns')"},
	[OPTION_JSON] = {'j', "json", NULL, "JSON on standard output"},
	[OPTION_VERBOSE] = {'v', "verbose", NULL,
			    "what libbpf and the kernel report, on standard error"},
	[OPTION_HELP] = {'h', "help", NULL, "this, or more about a command"},
	[OPTION_VERSION] = {'V', "version", NULL, "the version of this command"},
};

/* The options of commands that have a letter, by which their tables name them. */
static const struct option_words lettered = {'f', "file", VALUE_TEXT("FILE"), NULL};

struct option_table options_of(const struct command *const commands[], unsigned int count)
{
	struct option_table table = {.count = OPTION_COMMON};

	memcpy(table.words, common, sizeof(common));
	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int j = 0; j < commands[i]->word_count; j++) {
			const struct word *word = &commands[i]->words[j];
			struct option_words option = {0, word->name + 2, word->type, NULL};

			if (word->kind != OPTION || option_find(&table, word->name) >= 0 ||
			    table.count == OPTIONS_MAX)
				continue;
			table.words[table.count++] = strcmp(word->name, "-f") ? option : lettered;
		}
	}
	return table;
}

/* What getopt_long() returns for an option: its letter; without one, a number beyond characters. */
static int option_code(const struct option_table *table, unsigned int option)
{
	return table->words[option].letter ?: 256 + (int)option;
}

static int option_of_code(const struct option_table *table, int code)
{
	for (unsigned int i = 0; i < table->count; i++)
		if (option_code(table, i) == code)
			return i;
	return -1;
}

int option_find(const struct option_table *table, const char *word)
{
	if (word[0] != '-' || !word[1])
		return -1;
	if (word[1] != '-')
		return word[2] ? -1 : option_of_code(table, word[1]);
	for (unsigned int i = 0; i < table->count; i++)
		if (!strcmp(table->words[i].name, word + 2))
			return i;
	return -1;
}

/* The tables of getopt_long(). */
struct getopt_tables {
	char letters[2 * OPTIONS_MAX + 3];
	struct option words[OPTIONS_MAX + 1];
};

/*
 * mode: '-' returns words in their place, '+' ends at the first one. ':' makes getopt_long() report
 * a missing value apart from an unknown option.
 */
static struct getopt_tables getopt_begin(const struct option_table *table, char mode)
{
	struct getopt_tables result = {.letters = {mode, ':'}};
	char *p = result.letters + 2;

	for (unsigned int i = 0; i < table->count; i++) {
		const struct option_words *words = &table->words[i];

		result.words[i] =
			(struct option){words->name, words->type ? required_argument : no_argument,
					NULL, option_code(table, i)};
		if (!words->letter)
			continue;
		*p++ = words->letter;
		if (words->type)
			*p++ = ':';
	}
	opterr = 0;
	optind = 0; /* begin again, also after another argv */
	return result;
}

int options_skip(const struct option_table *table, int argc, char **argv)
{
	const struct getopt_tables tables = getopt_begin(table, '+');

	while (getopt_long(argc, argv, tables.letters, tables.words, NULL) != -1)
		;
	return optind;
}

static int no_such_option(const char *word)
{
	return error_misuse("no-option", NULL, "there is no option '%s'; see 'sluice help'", word);
}

/*
 * getopt_long() accepts the beginning of a name. It may be an option of another command, and of
 * another option once there is a new one.
 */
static bool is_abbreviated(const char *word, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(word, "--", 2) &&
	       (strncmp(word + 2, name, length) || (word[2 + length] && word[2 + length] != '='));
}

/* Refuses what getopt_long() did. optopt is the option's code, or 0 for an unknown name. */
static int refuse(const struct option_table *table, int code, int option, const char *word)
{
	if (code == ':')
		return error_misuse("no-value", NULL, "%s needs a value, %s; see 'sluice help'",
				    word, table->words[option].type->name);
	if (option >= 0)
		return error_misuse("unexpected-value", NULL, "--%s accepts no value: '%s'",
				    table->words[option].name, word);
	if (!optopt)
		return no_such_option(word);
	return error_misuse("no-option", NULL,
			    "there is no option '-%c'%s%s%s; see 'sluice help'. A word that begins "
			    "with - goes after --",
			    optopt, word[2] ? " in '" : "", word[2] ? word : "",
			    word[2] ? "'" : "");
}

/*
 * Joins a time without a unit and the unit after it: --confirm 5 minutes. Returns whether the word
 * is such a unit.
 */
static bool unit_take(struct command_line *line, int option, const char *word)
{
	static char joined[OPTIONS_MAX][WORD_TEXT];
	const struct value_type *type = option < 0 ? NULL : line->options->words[option].type;
	const char *value = option < 0 ? NULL : line->option[option];

	if (!value || !*value || !type || type->extent != VALUE_NUMBERS ||
	    value[strspn(value, "0123456789.")] || !unit_is_known(word) ||
	    strlen(value) + strlen(word) + 1 >= WORD_TEXT)
		return false;
	stpcpy(stpcpy(stpcpy(joined[option], value), " "), word);
	line->option[option] = joined[option];
	return true;
}

int options_parse(int argc, char **argv, struct command_line *line)
{
	const struct option_table *table = line->options;
	const struct getopt_tables tables = getopt_begin(table, '-');
	int code, at = 1, last = -1;

	for (; (code = getopt_long(argc, argv, tables.letters, tables.words, NULL)) != -1;
	     at = optind) {
		bool is_wrong = code == ':' || code == '?';
		int option = option_of_code(table, is_wrong ? optopt : code);

		if (code == 1) {
			if (!unit_take(line, last, optarg))
				line->words[line->count++] = optarg;
			last = -1;
			continue;
		}
		if (option >= 0 && is_abbreviated(argv[at], table->words[option].name))
			return no_such_option(argv[at]);
		if (is_wrong)
			return refuse(table, code, option, argv[at]);
		if (table->words[option].type && line->option[option])
			return error_misuse(
				"given-twice", NULL, "--%s is given twice: '%s' and '%s'",
				table->words[option].name, line->option[option], optarg);
		line->option[option] = optarg ?: "";
		last = option;
	}
	while (optind < argc)
		line->words[line->count++] = argv[optind++];
	return 0;
}
