// SPDX-License-Identifier: GPL-2.0
/* Parses command lines by the tables of the commands. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "program/program.h"
#include "rules/value.h"

/* --- Options -------------------------------------------------------------------------------- */

static const struct option_words common[OPTION_COMMON] = {
	[OPTION_GATE] = {'g', "gate", VALUE_TEXT("GATE"),
			 "the gate, a named set of rules. Default: main"},
	[OPTION_NETNS] = {'n', "netns", VALUE_TEXT("NETNS"),
			  "the network namespace of the devices ('ip netns')"},
	[OPTION_JSON] = {'j', "json", NULL, "print JSON on standard output"},
	[OPTION_VERBOSE] = {'v', "verbose", NULL,
			    "print messages of libbpf and the kernel on standard error"},
	[OPTION_HELP] = {'h', "help", NULL, "print this help, or the help of a command"},
	[OPTION_VERSION] = {'V', "version", NULL, "print the version"},
};

/* Options with a letter, such as -f, that only some commands have. */
static const struct option_words lettered[] = {
	{'f', "file", VALUE_TEXT("FILE"), NULL},
	{'b', "batch", NULL, NULL},
	{'w', "write", VALUE_TEXT("FILE"), NULL},
};

/* Returns the letter, name and value type of an option in a command's table. */
static struct option_words option_of(const struct word *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(lettered); i++)
		if (word->name[1] == lettered[i].letter && !word->name[2])
			return lettered[i];
	return (struct option_words){0, word->name + 2, word->type, NULL};
}

struct option_table options_of(const struct command *const commands[], unsigned int count)
{
	struct option_table table = {.count = OPTION_COMMON};

	memcpy(table.words, common, sizeof(common));
	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int j = 0; j < commands[i]->word_count; j++) {
			const struct word *word = &commands[i]->words[j];

			if (word->kind == OPTION && option_find(&table, word->name) < 0 &&
			    table.count < OPTIONS_MAX)
				table.words[table.count++] = option_of(word);
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

static int option_refuse_again(const struct command_line *line, int option, const char *value)
{
	return error_misuse("given-twice", NULL, "--%s is given twice: '%s' and '%s'",
			    line->options->words[option].name, line->option[option], value);
}

/*
 * Parses argv[*at], which has one option, or several short options, such as "--gate=main" or "-jv".
 * If the option's argument is the next word of argv, increments *at. Stores the index of the last
 * option in `ret_last`.
 */
static int options_take(struct command_line *line, int argc, char **argv, int *at, int *ret_last)
{
	const char *typed = argv[*at], *letter = typed + 1, *joined;
	bool is_long = *letter == '-';

	do {
		int i = option_find(line->options, is_long ? typed : (char[3]){'-', *letter});
		const struct option_words *option;

		*ret_last = i;
		if (i < 0 && is_long)
			return error_misuse("no-option", NULL,
					    "there is no option '%s'; see 'sluice help'", typed);
		if (i < 0)
			return error_misuse(
				"no-option", NULL,
				"there is no option '-%c' in '%s'; see 'sluice help'. A "
				"word that begins with - goes after --",
				*letter, typed);
		option = &line->options->words[i];
		joined = is_long ? strchr(typed, '=') : letter[1] ? letter : NULL;
		if (!option->type && is_long && joined)
			return error_misuse("unexpected-value", NULL, "--%s accepts no value: '%s'",
					    option->name, typed);
		if (!option->type) {
			line->option[i] = "";
			continue;
		}
		if (!joined && *at + 1 == argc) {
			line->lacks_value = i;
			return error_misuse("no-value", NULL,
					    "%s needs a value, %s; see 'sluice help'", typed,
					    option->type->name);
		}
		joined = joined ? joined + 1 : argv[++*at];
		if (line->option[i] && i < OPTION_COMMON)
			return option_refuse_again(line, i, joined);
		if (line->again[i])
			line->is_excess[i] = true;
		else if (line->option[i])
			line->again[i] = joined;
		else
			line->option[i] = joined;
		return 0;
	} while (!is_long && *++letter);
	return 0;
}

/*
 * Appends `word` to an option's value if the value is a number and the word is a unit of time, as
 * in "--confirm 5 minutes". Returns whether it did. option: index of the option that precedes
 * `word`, or -1.
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
	int last = -1, err = 0;

	line->lacks_value = -1;
	for (int at = 1; !err && at < argc; at++) {
		char *word = argv[at];

		if (!line->options_ended && !strcmp(word, "--")) {
			line->options_ended = true;
		} else if (!line->options_ended && word[0] == '-' && word[1]) {
			err = options_take(line, argc, argv, &at, &last);
			continue;
		} else if (!unit_take(line, last, word)) {
			line->first = line->first ?: at;
			line->words[line->count++] = word;
		}
		last = -1;
	}
	return err;
}

/* --- Keywords ------------------------------------------------------------------------------- */

/* Returns the keyword named `name` in the command's table, or NULL. */
static const struct word *keyword_find(const struct command *command, const char *name)
{
	for (unsigned int i = 0; i < command->word_count; i++) {
		const struct word *word = &command->words[i];

		if (word->kind == KEYWORD && !strcmp(word->name, name))
			return word;
	}
	return NULL;
}

const char *keyword_nearly(const struct command *command, const char *typed)
{
	const char *names[command->word_count + 1];
	size_t count = 0;

	for (unsigned int i = 0; i < command->word_count; i++)
		if (command->words[i].kind >= KEYWORD)
			names[count++] = command->words[i].name;
	return nearly_find(typed, names, count);
}

/*
 * Returns a keyword whose value may begin with `value`, or NULL. For example, returns `proto` for
 * "tcp".
 */
static const struct word *keyword_of(const struct command *command, const char *value)
{
	for (unsigned int i = 0; i < command->word_count; i++) {
		const struct word *word = &command->words[i];

		if (word->kind == KEYWORD && word->type && word->type->words &&
		    word_find(word->type->words, word->type->word_count, value) >= 0)
			return word;
	}
	return NULL;
}

int unexpected(const struct command *command, const char *word)
{
	const char *nearly = keyword_nearly(command, word), *name = command->name;
	const struct word *keyword = keyword_of(command, word);

	if (keyword)
		return error_misuse(
			"unexpected", name,
			"'%s' is unexpected; did you mean '%s %s'? See 'sluice help %s'", word,
			keyword->name, word, name);
	return nearly ? error_misuse("unexpected", name,
				     "'%s' is unexpected; did you mean '%s'? See 'sluice help %s'",
				     word, nearly, name)
		      : error_misuse("unexpected", name, "'%s' is unexpected; see 'sluice help %s'",
				     word, name);
}

bool choice_word(const char *value, const char *first, unsigned int place, char ret[WORD_TEXT])
{
	size_t length = strlen(first), end;
	bool is_only = !strchr(value, '|');

	while (!is_only && (strncmp(value, first, length) || !strchr("| ", value[length]))) {
		value += strcspn(value, "|");
		if (!*value++)
			return false;
	}
	end = strcspn(value, "|");
	for (; place; place--) {
		size_t word = strcspn(value, " |");

		if (word >= end || value[word] != ' ')
			return false;
		value += word + 1;
		end -= word + 1;
	}
	snprintf(ret, WORD_TEXT, "%.*s", (int)strcspn(value, " |"), value);
	return true;
}

/*
 * Returns whether `word` continues the value of `keyword`. count: number of words that the value
 * has so far. next: the word after `word`.
 *
 * - VALUE_WORD: the value is one word.
 * - VALUE_NUMBERS: numbers and units continue the value, but not an address, which is an operand of
 *   allow and deny. `per` continues the value only if a unit follows, as in "30 per minute",
 *   because `per` is also a keyword.
 * - VALUE_WORDS: all words up to the next keyword continue the value.
 *
 * For the last two extents, a word also continues the value if the type's name has it at this
 * position, such as "per" in "N per TIME".
 */
static bool value_goes_on(const struct command *command, const struct word *keyword,
			  unsigned int count, const char *word, const char *next)
{
	const char *point = strchr(word, '.');
	bool is_number = isdigit((unsigned char)*word) && !strchr(word, ':') &&
			 !(point && strchr(point + 1, '.'));
	char own[WORD_TEXT];

	switch (keyword->type->extent) {
	case VALUE_WORD:
		return !count;
	case VALUE_NUMBERS:
		if (!count || is_number || unit_is_known(word) ||
		    (!strcmp(word, "per") && !isdigit((unsigned char)*next) && unit_is_known(next)))
			return true;
		break;
	case VALUE_WORDS:
		if (!keyword_find(command, word))
			return true;
	}
	return choice_word(keyword->type->name, "", count, own) && !strcmp(own, word);
}

/*
 * Returns how many of the words after a keyword belong to its value. Stores in `ret_values` how
 * many of them are not units. A quoted word counts as the words in it; an empty quoted word counts
 * as 1.
 */
static unsigned int value_words(const struct command *command, const struct word *keyword,
				char *const words[], unsigned int count, unsigned int *ret_values)
{
	unsigned int i = 0;

	for (*ret_values = 0; keyword->type && i < count; i++) {
		const char *next = i + 1 < count ? words[i + 1] : "";
		unsigned int parts = 0;

		if (!value_goes_on(command, keyword, *ret_values, words[i], next))
			break;
		for (const char *text = words[i]; *text; text += strcspn(text, " \t")) {
			text += strspn(text, " \t");
			parts += *text != '\0';
		}
		if (!*ret_values || !unit_is_known(words[i]))
			*ret_values += parts ?: 1;
	}
	return i;
}

/* --- Command lines -------------------------------------------------------------------------- */

#define JOINED_TEXT 160 /* buffer size for all words of a value */

/* State of the parser of a command line. */
struct filling {
	struct context *context;
	const struct command *command;
	const struct command_line *line;
	unsigned int at;   /* index of the word that is being parsed */
	uint64_t keywords; /* bit i: the command line has word i of the table */
	char *args;	   /* arguments of the command, filled by the parser */
};

/*
 * Parses the value of a word, and stores it in the word's field. Stores `true` if the word has no
 * value.
 */
static int value_store(struct filling *filling, const struct word *word, const char *what,
		       const char *text)
{
	void *field = word->field == FIELD_CONTEXT ? (void *)&filling->context->trial_ns
						   : filling->args + word->field;

	if (word->type)
		return value_parse(word->type, what, text, field);
	*(bool *)field = true;
	return 0;
}

/* Parses the current word as a keyword, and its value. */
static int keyword_take(struct filling *filling, const struct word *keyword)
{
	static char text[JOINED_TEXT];
	char **words = filling->line->words + filling->at + 1;
	const char *name = filling->command->name;
	uint64_t bit = 1ULL << (keyword - filling->command->words);
	unsigned int values, count = value_words(filling->command, keyword, words,
						 filling->line->count - filling->at - 1, &values);
	size_t length = 0;

	if (filling->keywords & bit)
		return error_misuse("given-twice", name, "'%s' is given twice", keyword->name);
	if (keyword->type && !count)
		return error_misuse("no-value", name, "'%s' needs a value; see 'sluice help %s'",
				    keyword->name, name);
	filling->keywords |= bit;
	filling->at += count;
	if (count <= 1)
		return value_store(filling, keyword, keyword->name, *words);
	for (unsigned int i = 0; i < count; i++) {
		length += snprintf(text + length, JOINED_TEXT - length, "%s%s", i ? " " : "",
				   words[i]);
		if (length >= JOINED_TEXT)
			return error_misuse("too-long", name,
					    "the words after '%s' are too long: '%s'",
					    keyword->name, words[i]);
	}
	return value_store(filling, keyword, keyword->name, text);
}

/*
 * Parses an operand, and stores it at the beginning of line->words. Overwrites words that are
 * already parsed.
 */
static int operand_take(struct filling *filling, char *text)
{
	const struct command *command = filling->command;
	const struct word *operand = command->words;
	unsigned int *count = &filling->context->operands;
	char **words = filling->line->words;

	if (!command->word_count || operand->kind >= KEYWORD ||
	    (operand->kind == OPERAND && *count) ||
	    (operand->kind != OPERANDS_ANYWHERE && filling->keywords))
		return unexpected(command, text);
	/*
	 * if an optional operand resembles a keyword and is no prefix, report a misspelled keyword
	 */
	if (!command->question && !text[strcspn(text, ".:/")] && keyword_nearly(command, text))
		return unexpected(command, text);
	words[1 + (*count)++] = text;
	if (operand->kind == OPERAND)
		return value_store(filling, operand, NULL, text);
	*(struct operands *)(filling->args + operand->field) = (struct operands){words + 1, *count};
	return 0;
}

/* Stores the values of the options that the command's table has. Refuses other options. */
static int options_store(struct filling *filling)
{
	const struct command *command = filling->command;
	const struct command_line *line = filling->line;

	for (int i = OPTION_COMMON; i < (int)line->options->count; i++) {
		const struct word *word = command->words, *end = word + command->word_count;
		int err;

		if (!line->option[i])
			continue;
		while (word < end &&
		       (word->kind != OPTION || option_find(line->options, word->name) != i))
			word++;
		if (word == end)
			return error_misuse("no-option", command->name,
					    "there is no option '--%s' here; see 'sluice help %s'",
					    line->options->words[i].name, command->name);
		err = value_store(filling, word, word->name, line->option[i]);
		if (!err && line->is_excess[i] && word->type->is_pair)
			return error_misuse("given-twice", NULL, "%s is accepted twice at most",
					    word->name);
		if (!err && line->again[i])
			err = word->type->is_pair
				      ? value_parse(word->type, word->name, line->again[i],
						    filling->args + word->field + sizeof(char *))
				      : option_refuse_again(line, i, line->again[i]);
		if (err)
			return err;
	}
	return 0;
}

int words_parse(struct context *context, const struct command_line *line, void *args)
{
	const struct command *command = context->command;
	struct filling filling = {context, command, line, .at = 1, .args = args};
	int err = options_store(&filling);

	for (; !err && filling.at < line->count; filling.at++) {
		char *text = line->words[filling.at];
		const struct word *keyword = keyword_find(command, text);

		err = keyword ? keyword_take(&filling, keyword) : operand_take(&filling, text);
	}
	if (!err && command->question && !context->operands)
		return error_misuse("no-operand", command->name, "%s See 'sluice help %s'",
				    command->question, command->name);
	return err;
}

struct words_end words_scan(const struct command *command, char *const words[], unsigned int count)
{
	struct words_end end = {0};

	for (unsigned int i = 0; i < count; i++) {
		const struct word *keyword = keyword_find(command, words[i]);
		unsigned int length;

		if (!keyword) {
			end.operand = end.operand ?: words[i];
			continue;
		}
		end.keywords |= 1ULL << (keyword - command->words);
		length = value_words(command, keyword, words + i + 1, count - i - 1, &end.values);
		end.first_value = words[i + 1];
		i += length;
		if (i + 1 == count && keyword->type &&
		    (!length || keyword->type->extent != VALUE_WORD))
			end.keyword = keyword;
		else
			end.values = 0;
	}
	return end;
}
