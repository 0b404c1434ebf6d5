// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "program/command.h"
#include "rules/value.h"

/* Bytes for the joined values of one keyword, and the most keywords with such values. */
#define JOINED_TEXT 160
#define JOINED_MAX  8

/* A command line while it is parsed. */
struct filling {
	struct context *context;
	const struct command *command;
	const struct command_line *line;
	unsigned int at;   /* the current word */
	uint64_t keywords; /* that were parsed: a bit for each word of the table */
	unsigned int joined;
	char *args;
};

/* Returns the keyword of that name in the command's table, or NULL. */
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

int unexpected(const struct command *command, const char *word)
{
	const char *nearly = keyword_nearly(command, word), *name = command->name;

	if (!nearly)
		return error_misuse("unexpected", name, "'%s' is unexpected; see 'sluice help %s'",
				    word, name);
	return error_misuse("unexpected", name,
			    "'%s' is unexpected; did you mean '%s'? See 'sluice help %s'", word,
			    nearly, name);
}

/* Stores the value of a word; text: "" for a word without one. */
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
 * Returns the number of words in a text: a value in quotes has several, an empty one counts as one,
 * and a unit belongs to the number before it.
 */
static unsigned int words_in(const char *text)
{
	unsigned int count = 0;

	if (unit_is_known(text))
		return 0;
	for (; *text; text += strcspn(text, " \t")) {
		text += strspn(text, " \t");
		count += *text != '\0';
	}
	return count ?: 1;
}

/*
 * Returns whether a word continues the value of a keyword after `count` words, of which the type's
 * name has a placeholder each: "N per TIME". VALUE_NUMBERS go on with a number, but not with an
 * address, which allow and deny accept anywhere, or with a unit; "30 per minute" is a rate,
 * although `per` is also a keyword. VALUE_WORDS go on with any word that is not a keyword.
 */
static bool value_goes_on(const struct command *command, const struct word *keyword,
			  unsigned int count, const char *word, const char *next)
{
	const char *point = strchr(word, '.');
	bool is_number = isdigit((unsigned char)*word) && !strchr(word, ':') &&
			 !(point && strchr(point + 1, '.'));
	char own[WORD_TEXT];

	if (keyword->type->extent == VALUE_WORD)
		return !count;
	if (choice_word(keyword->type->name, "", count, own) && !strcmp(own, word))
		return true;
	if (keyword->type->extent == VALUE_WORDS)
		return !keyword_find(command, word);
	return !count || is_number || unit_is_known(word) ||
	       (!strcmp(word, "per") && !isdigit((unsigned char)*next) && unit_is_known(next));
}

/* Returns how many words, after a keyword, are its value. ret_values: without units. */
static unsigned int value_words(const struct command *command, const struct word *keyword,
				char *const words[], unsigned int count, unsigned int *ret_values)
{
	unsigned int i = 0;

	for (*ret_values = 0; keyword->type && i < count; i++) {
		const char *next = i + 1 < count ? words[i + 1] : "";

		if (!value_goes_on(command, keyword, *ret_values, words[i], next))
			break;
		*ret_values += words_in(words[i]) ?: !*ret_values;
	}
	return i;
}

static int keyword_take(struct filling *filling, const struct word *keyword)
{
	static char joined[JOINED_MAX][JOINED_TEXT];
	char **words = filling->line->words + filling->at + 1;
	const char *text = *words, *name = filling->command->name;
	uint64_t bit = 1ULL << (keyword - filling->command->words);
	unsigned int values, count = value_words(filling->command, keyword, words,
						 filling->line->count - filling->at - 1, &values);
	size_t length = 0;

	if (filling->keywords & bit)
		return error_misuse("given-twice", name, "'%s' is given twice", keyword->name);
	if (keyword->type && !count)
		return error_misuse("no-value", name, "'%s' needs a value; see 'sluice help %s'",
				    keyword->name, name);
	if (count > 1)
		text = joined[filling->joined++ % JOINED_MAX];
	for (unsigned int i = 0; count > 1 && i < count; i++) {
		length += snprintf((char *)text + length, JOINED_TEXT - length, "%s%s",
				   i ? " " : "", words[i]);
		if (length >= JOINED_TEXT)
			return error_misuse("too-long", name,
					    "the words after '%s' are too long: '%s'",
					    keyword->name, words[i]);
	}
	filling->keywords |= bit;
	filling->at += count;
	return value_store(filling, keyword, keyword->name, text);
}

/* Adds an operand. Operands move to the front of the line's words, over words already parsed. */
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
	/* if the operand is optional, a word like a keyword, and unlike a prefix, is misspelt */
	if (!command->question && !text[strcspn(text, ".:/")] && keyword_nearly(command, text))
		return unexpected(command, text);
	words[1 + (*count)++] = text;
	if (operand->kind == OPERAND)
		return value_store(filling, operand, NULL, text);
	*(struct operands *)(filling->args + operand->field) = (struct operands){words + 1, *count};
	return 0;
}

/* Stores the options of the command, and refuses those of others. */
static int options_take(struct filling *filling)
{
	const struct command *command = filling->command;
	const struct command_line *line = filling->line;
	bool has[OPTIONS_MAX] = {false};
	int err = 0;

	for (unsigned int i = 0; !err && i < command->word_count; i++) {
		const struct word *word = &command->words[i];
		int option = word->kind == OPTION ? option_find(line->options, word->name) : -1;

		if (option < 0)
			continue;
		has[option] = true;
		if (line->option[option])
			err = value_store(filling, word, word->name, line->option[option]);
	}
	for (unsigned int i = OPTION_COMMON; !err && i < line->options->count; i++)
		if (line->option[i] && !has[i])
			return error_misuse("no-option", command->name,
					    "there is no option '--%s' here; see 'sluice help %s'",
					    line->options->words[i].name, command->name);
	return err;
}

int words_parse(struct context *context, const struct command_line *line, void *args)
{
	const struct command *command = context->command;
	struct filling filling = {context, command, line, .at = 1, .args = args};
	int err = options_take(&filling);

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
