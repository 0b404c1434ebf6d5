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
	bool has_keyword;  /* one was parsed */
	uint64_t keywords; /* which: a bit for each word of the table */
	unsigned int joined;
	char *args;
};

const struct word *keyword_find(const struct command *command, const char *name)
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

unsigned int words_in(const char *text)
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

/* Whether a word begins with a digit and is no address: allow and deny accept those anywhere. */
static bool is_number(const char *word)
{
	const char *point = strchr(word, '.');

	return isdigit((unsigned char)*word) && !strchr(word, ':') &&
	       !(point && strchr(point + 1, '.'));
}

bool words_go_on(const struct command *command, const struct word *keyword, unsigned int count,
		 const char *word)
{
	bool is_numbers = keyword->type->extent == VALUE_NUMBERS;
	char own[WORD_TEXT];

	if (is_numbers && !count)
		return true;
	if (choice_word(keyword->type->name, "", count, own) && !strcmp(own, word))
		return true;
	if (is_numbers)
		return is_number(word) || unit_is_known(word);
	return !keyword_find(command, word);
}

/* Joins the words after a keyword. A single word is returned as it is. */
static int values_join(struct filling *filling, const struct word *keyword, const char **ret)
{
	static char joined[JOINED_MAX][JOINED_TEXT];
	char *text = joined[filling->joined++ % JOINED_MAX], **words = filling->line->words;
	const struct command *command = filling->command;
	unsigned int count = 0;
	size_t length = 0;

	while (filling->at + 1 < filling->line->count) {
		const char *word = words[filling->at + 1];
		const char *next =
			filling->at + 2 < filling->line->count ? words[filling->at + 2] : "";
		/* "30 per minute": "per" continues a rate, although it is also a keyword */
		bool is_rate_per = count && keyword->type->extent == VALUE_NUMBERS &&
				   !strcmp(word, "per") && !isdigit((unsigned char)*next) &&
				   unit_is_known(next);

		if (!is_rate_per && !words_go_on(command, keyword, count, word))
			break;
		*ret = count ? text : word;
		length += snprintf(text + length, JOINED_TEXT - length, "%s%s", count ? " " : "",
				   word);
		filling->at++;
		if (length >= JOINED_TEXT && count)
			return error_misuse("too-long", command->name,
					    "the words after '%s' are too long: '%s'",
					    keyword->name, word);
		if (length >= JOINED_TEXT)
			break;
		count += words_in(word) ?: !count;
	}
	return 0;
}

static int keyword_take(struct filling *filling, const struct word *keyword)
{
	const char *text = keyword->type ? NULL : "", *name = filling->command->name;
	uint64_t bit = 1ULL << (keyword - filling->command->words);
	int err = 0;

	if (filling->keywords & bit)
		return error_misuse("given-twice", name, "'%s' is given twice", keyword->name);
	filling->keywords |= bit;
	if (keyword->type && keyword->type->extent != VALUE_WORD)
		err = values_join(filling, keyword, &text);
	else if (keyword->type && filling->at + 1 < filling->line->count)
		text = filling->line->words[++filling->at];
	if (err)
		return err;
	if (!text)
		return error_misuse("no-value", name, "'%s' needs a value; see 'sluice help %s'",
				    keyword->name, name);
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
	    (operand->kind != OPERANDS_ANYWHERE && filling->has_keyword))
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
		filling.has_keyword |= keyword != NULL;
	}
	if (!err && command->question && !context->operands)
		return error_misuse("no-operand", command->name, "%s See 'sluice help %s'",
				    command->question, command->name);
	return err;
}
