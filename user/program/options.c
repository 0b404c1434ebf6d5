// SPDX-License-Identifier: GPL-2.0
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

int option_find(const struct option_table *table, const char *word)
{
	bool is_long = word[1] == '-';
	size_t length = is_long ? strcspn(word + 2, "=") : 0;

	for (unsigned int i = 0; i < table->count; i++) {
		const struct option_words *option = &table->words[i];

		if (is_long ? !strncmp(option->name, word + 2, length) && !option->name[length]
			    : option->letter == word[1])
			return i;
	}
	return -1;
}

/* --- Command lines -------------------------------------------------------------------------- */

/* Words of argv, and the current one. */
struct cursor {
	char **argv;
	int argc, at;
};

/*
 * Sets an option. typed: as it is typed, for errors. joined: the value in the same word, or NULL.
 */
static int option_take(struct command_line *line, struct cursor *cursor, int option,
		       const char *typed, const char *joined)
{
	const struct option_words *words = &line->options->words[option];

	if (!words->type && joined)
		return error_misuse("unexpected-value", NULL, "--%s accepts no value: '%s'",
				    words->name, typed);
	if (words->type && !joined && cursor->at + 1 == cursor->argc) {
		line->lacks_value = option;
		return error_misuse("no-value", NULL, "%s needs a value, %s; see 'sluice help'",
				    typed, words->type->name);
	}
	if (words->type && !joined)
		joined = cursor->argv[++cursor->at];
	if (words->type && line->option[option])
		return error_misuse("given-twice", NULL, "--%s is given twice: '%s' and '%s'",
				    words->name, line->option[option], joined);
	line->option[option] = joined ?: "";
	return 0;
}

/* Parses a word of options: "--gate=main", "--gate", "-gmain", "-jv". ret_last: the last option. */
static int options_take(struct command_line *line, struct cursor *cursor, int *ret_last)
{
	const struct option_table *table = line->options;
	const char *word = cursor->argv[cursor->at], *value = strchr(word, '=');
	int option = -1, err = 0;

	if (word[1] == '-') {
		option = option_find(table, word);
		*ret_last = option;
		if (option < 0)
			return error_misuse("no-option", NULL,
					    "there is no option '%s'; see 'sluice help'", word);
		return option_take(line, cursor, option, word, value ? value + 1 : NULL);
	}
	for (const char *letter = word + 1; !err && *letter; letter++) {
		option = option_find(table, (char[3]){'-', *letter});
		if (option < 0)
			return error_misuse(
				"no-option", NULL,
				"there is no option '-%c' in '%s'; see 'sluice help'. A "
				"word that begins with - goes after --",
				*letter, word);
		*ret_last = option;
		if (!table->words[option].type) {
			err = option_take(line, cursor, option, word, NULL);
			continue;
		}
		return option_take(line, cursor, option, word, letter[1] ? letter + 1 : NULL);
	}
	return err;
}

/*
 * Joins a time without a unit and the unit after it: --confirm 5 minutes. Returns whether the word
 * is such a unit.
 */
static bool unit_take(struct command_line *line, int option, const char *word)
{
	static char joined[OPTIONS_MAX][WORD_TEXT];
	const struct value_type *type = option < 0 ? NULL : line->options->words[option].type;
	const char *value = type ? line->option[option] : "";

	if (!*value || type->extent != VALUE_NUMBERS || value[strspn(value, "0123456789.")] ||
	    !unit_is_known(word) || strlen(value) + strlen(word) + 1 >= WORD_TEXT)
		return false;
	stpcpy(stpcpy(stpcpy(joined[option], value), " "), word);
	line->option[option] = joined[option];
	return true;
}

int options_parse(int argc, char **argv, struct command_line *line)
{
	struct cursor cursor = {.argv = argv, .argc = argc, .at = 1};
	int last = -1, err = 0;

	line->lacks_value = -1;
	for (; !err && cursor.at < argc; cursor.at++) {
		char *word = argv[cursor.at];

		if (!line->options_ended && !strcmp(word, "--")) {
			line->options_ended = true;
		} else if (!line->options_ended && word[0] == '-' && word[1]) {
			err = options_take(line, &cursor, &last);
			continue;
		} else if (!unit_take(line, last, word)) {
			line->first = line->first ?: cursor.at;
			line->words[line->count++] = word;
		}
		last = -1;
	}
	return err;
}
