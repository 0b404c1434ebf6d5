// SPDX-License-Identifier: GPL-2.0
/*
 * complete: prints what may stand at the end of a command line, one word a line, by the tables of
 * the commands. docs/sluice.bash calls it. It prints nothing on standard error, and reads only what
 * its caller may read.
 */
#include <ctype.h>
#include <dirent.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "gate/rules.h"
#include "gate/pins.h"
#include "migrate/open.h"
#include "rules/prefix.h"

#define NETNS_DIR "/run/netns"

/* A command line up to the word that is being typed. */
struct typed {
	const struct program *program;
	struct option_table options;
	const char *option[OPTIONS_MAX];
	const struct option_words *valued; /* the option whose value is being typed; NULL: none */
	const struct command *command;	   /* NULL: none is typed yet */
	bool is_unknown;		   /* no command has that name */
	const struct word *keyword;	   /* whose value is being typed; NULL: none */
	unsigned int values;		   /* how many words of that value are typed */
	const char *first_value;	   /* the first of them */
	bool has_keyword;		   /* one was typed */
	uint64_t keywords;		   /* which: a bit for each word of the command's table */
	const char *operand;		   /* the first one; NULL: none */
	char **words;
	unsigned int count; /* of those before the word that is being typed */
	bool options_ended; /* by --: what begins with - is a word now */
	const char *begun;  /* which begins with this */
};

/*
 * Prints a word if it continues what was typed. A name with a control character is left out: a
 * newline would make two words of it.
 */
static void offer(const struct typed *typed, const char *word)
{
	if (text_is_printable(word) && !strncmp(word, typed->begun, strlen(typed->begun)))
		puts(word);
}

static bool is_said(const struct typed *typed, const char *word)
{
	for (unsigned int i = 0; i < typed->count; i++)
		if (!strcmp(typed->words[i], word))
			return true;
	return false;
}

/* --- Values of placeholders ----------------------------------------------------------------- */

static void offer_devices(const struct typed *typed)
{
	struct if_nameindex *all = if_nameindex();

	for (struct if_nameindex *device = all; device && device->if_name; device++)
		offer(typed, device->if_name);
	if (all)
		if_freenameindex(all);
}

static int offer_gate(const char *name, void *data)
{
	offer(data, name);
	return OK;
}

static void offer_namespaces(const struct typed *typed)
{
	DIR *dir = opendir(NETNS_DIR);

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (*entry->d_name != '.')
			offer(typed, entry->d_name);
	if (dir)
		closedir(dir);
}

static int gate_open_typed(const struct typed *typed, struct gate *gate)
{
	const char *name = typed->option[OPTION_GATE];
	const struct context context = {.gate = name ?: GATE_USUAL, .gate_given = name};

	return gate_open_to_look(gate, &context);
}

/* The limits of the prefix that the command names. */
static void offer_limits(const struct typed *typed)
{
	struct gate gate = GATE_CLOSED;
	struct rule rule = {0};
	int status = typed->operand ? prefix_parse(typed->operand, &rule.prefix) : MISUSED;

	if (!status)
		status = gate_open_typed(typed, &gate);
	if (!status)
		status = rules_get(&gate, &rule.prefix, &rule);
	for (unsigned int i = 0; !status && i < rule.limits; i++)
		offer(typed, rule.limit[i].spec.name);
	rule_free(&rule);
	gate_close(&gate);
}

static void offer_lists(const struct typed *typed)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	struct gate gate = GATE_CLOSED;

	if (!gate_open_typed(typed, &gate)) {
		lists_copy(&gate, lists);
		for (int place = 0; place < SL_LIST_PLACES; place++)
			if (*lists[place].name)
				offer(typed, lists[place].name);
	}
	gate_close(&gate);
}

/* --- What the tables say -------------------------------------------------------------------- */

static void offer_commands(const struct typed *typed)
{
	for (unsigned int i = 0; i < typed->program->count; i++)
		offer(typed, typed->program->commands[i]->name);
}

/* Offers what a placeholder stands for. Numbers, times and addresses have no candidates. */
static void offer_placeholder(const struct typed *typed, const char *name)
{
	if (!strcmp(name, "DEV"))
		offer_devices(typed);
	else if (!strcmp(name, "GATE"))
		gates_for_each(offer_gate, (void *)typed);
	else if (!strcmp(name, "NETNS"))
		offer_namespaces(typed);
	else if (!strcmp(name, "COMMAND"))
		offer_commands(typed);
	else if (!strcmp(name, "LIMIT"))
		offer_limits(typed);
	else if (!strcmp(name, "LIST"))
		offer_lists(typed);
	else if (!strcmp(name, "FILE"))
		puts("FILE"); /* docs/sluice.bash lets the shell complete files */
}

/* "drop|observe|block TIME": the first word of each choice. */
static void offer_value(const struct typed *typed, const char *value)
{
	char choice[64];

	for (; *value; value += strcspn(value, "|"), value += *value == '|') {
		snprintf(choice, sizeof(choice), "%.*s", (int)strcspn(value, "| "), value);
		if (*choice >= 'A' && *choice <= 'Z')
			offer_placeholder(typed, choice);
		else if (!typed->values || !is_said(typed, choice))
			offer(typed, choice);
	}
}

/*
 * Offers what goes on with a value of several words, `per` behind "window 1000". Returns whether
 * the value may end before that.
 */
static bool offer_more(const struct typed *typed)
{
	const char *value = typed->keyword->type->name;
	char next[WORD_TEXT];
	size_t bracket;

	if (!choice_word(value, typed->first_value, typed->values, next)) {
		offer_value(typed, value);
		return true;
	}
	bracket = strspn(next, "[");
	if (islower((unsigned char)next[bracket]))
		offer(typed, next + bracket);
	return bracket;
}

static void offer_option(const struct typed *typed, const char *name)
{
	char text[32];

	snprintf(text, sizeof(text), "--%s", name);
	offer(typed, text);
}

static bool words_have(const char *words, const char *name)
{
	char text[WORD_TEXT];

	snprintf(text, sizeof(text), "|%s|", name);
	return strstr(words, text);
}

static bool words_exclude(const struct command *command, const char *a, const char *b)
{
	for (unsigned int i = 0; i < command->apart_count; i++) {
		const struct apart *apart = &command->apart[i];

		if ((words_have(apart->these, a) && words_have(apart->those, b)) ||
		    (words_have(apart->these, b) && words_have(apart->those, a)))
			return true;
	}
	return false;
}

/* Whether a keyword is typed already, or one that excludes it. */
static bool is_ruled_out(const struct typed *typed, unsigned int keyword)
{
	const struct command *command = typed->command;
	const char *name = command->words[keyword].name;

	for (unsigned int i = 0; i < command->word_count; i++)
		if (typed->keywords >> i & 1 &&
		    (i == keyword || words_exclude(command, command->words[i].name, name)))
			return true;
	return false;
}

/*
 * Offers the operand of the command, and the keywords and options that may still be said. An
 * operand that is needed comes before keywords.
 */
static void offer_words(const struct typed *typed)
{
	const struct command *command = typed->command;
	bool lacks_operand = command->question && !typed->operand;
	bool is_option = *typed->begun == '-' && !typed->options_ended;

	for (unsigned int i = 0; i < command->word_count; i++) {
		const struct word *word = &command->words[i];

		if ((word->kind == OPTION) != is_option)
			continue;
		if (word->kind == OPTION)
			offer_option(typed,
				     typed->options.words[option_find(&typed->options, word->name)]
					     .name);
		else if (word->kind >= KEYWORD && !lacks_operand && !is_ruled_out(typed, i))
			offer(typed, word->name);
		else if (word->kind == OPERANDS_ANYWHERE ||
			 (word->kind < KEYWORD && !typed->has_keyword &&
			  (word->kind == OPERANDS || !typed->operand)))
			offer_value(typed, word->name);
	}
}

/* --- What is typed -------------------------------------------------------------------------- */

/* The value of the option in "--gate=main" or "-gmain"; NULL: the word is none of these. */
static const char *value_joined(const struct option_words *option, const char *word)
{
	size_t length = strlen(option->name);

	if (!option->type || word[0] != '-')
		return NULL;
	if (word[1] != '-')
		return word[1] == option->letter && word[2] ? word + 2 : NULL;
	return !strncmp(word + 2, option->name, length) && word[2 + length] == '='
		       ? word + 2 + length + 1
		       : NULL;
}

/* Takes an option into account. False: the word is none. */
static bool option_pass(struct typed *typed, const char *word)
{
	int option = option_find(&typed->options, word);

	if (typed->options_ended || word[0] != '-' || !word[1])
		return false;
	if (!strcmp(word, "--"))
		typed->options_ended = true;
	if (option >= 0 && typed->options.words[option].type)
		typed->valued = &typed->options.words[option];
	for (unsigned int i = 0; i < typed->options.count; i++)
		typed->option[i] = value_joined(&typed->options.words[i], word) ?: typed->option[i];
	return true;
}

/* Takes a word of the line into account, as the parser would. */
static void word_pass(struct typed *typed, const char *word)
{
	const struct word *keyword;

	if (typed->valued) {
		typed->option[typed->valued - typed->options.words] = word;
		typed->valued = NULL;
	} else if (option_pass(typed, word)) {
		return;
	} else if (!typed->command && !typed->is_unknown) {
		typed->command = command_find(typed->program, word);
		typed->is_unknown = !typed->command;
	} else if (typed->is_unknown) {
		return;
	} else if (typed->keyword && typed->keyword->type->extent == VALUE_WORD) {
		typed->keyword = NULL;
	} else if (typed->keyword &&
		   words_go_on(typed->command, typed->keyword, typed->values, word)) {
		if (!typed->values)
			typed->first_value = word;
		typed->values += words_in(word) ?: !typed->values;
	} else {
		keyword = keyword_find(typed->command, word);
		typed->has_keyword |= keyword != NULL;
		if (keyword)
			typed->keywords |= 1ULL << (keyword - typed->command->words);
		typed->keyword = keyword && keyword->type ? keyword : NULL;
		typed->values = 0;
		if (!keyword && !typed->operand)
			typed->operand = word;
	}
}

static void offer_all(const struct typed *typed)
{
	bool begins_option = !typed->keyword && *typed->begun == '-' && !typed->options_ended;
	bool may_end = !typed->keyword;

	if (typed->valued) {
		offer_value(typed, typed->valued->type->name);
		return;
	}
	if (typed->keyword && typed->values)
		may_end = offer_more(typed);
	else if (typed->keyword)
		offer_value(typed, typed->keyword->type->name);
	for (int i = 0; begins_option && i < OPTION_COMMON; i++)
		offer_option(typed, typed->options.words[i].name);
	if (!typed->command)
		offer_commands(typed);
	else if (may_end)
		offer_words(typed);
}

struct complete_args {
	struct operands words;
};

/*
 * Succeeds also where the command is unknown or the gate cannot be read: there is nothing to offer.
 */
static int complete_run(const struct context *context, const void *data)
{
	const struct complete_args *args = data;
	struct typed typed = {
		.program = context->program,
		.options = options_of(context->program->commands, context->program->count),
		.words = args->words.words,
		.count = args->words.count - 1,
	};

	if (!freopen("/dev/null", "w", stderr))
		return FAILED;
	typed.begun = args->words.words[typed.count];
	for (unsigned int i = 0; i < typed.count; i++)
		word_pass(&typed, args->words.words[i]);
	if (typed.option[OPTION_NETNS] && netns_enter(typed.option[OPTION_NETNS]))
		return OK;
	if (!typed.is_unknown)
		offer_all(&typed);
	return OK;
}

static const struct word complete_words[] = {
	{"WORD", OPERANDS, NULL, offsetof(struct complete_args, words),
	 "the words behind sluice, up to the one that is being typed, which may be ''"},
};

static const char complete_details[] =
	"As 'sluice complete -- -g main set default ra': the words that continue the last one.\n"
	"FILE stands for the name of any file.";

const struct command command_complete = {
	.name = "complete",
	.brief = "the words that may follow, for the shell's completion",
	.details = complete_details,
	.question = "which words?",
	COMMAND_WORDS(complete_words, struct complete_args),
	.run = complete_run,
};
