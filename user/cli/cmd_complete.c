// SPDX-License-Identifier: GPL-2.0
/*
 * complete: prints the words that may continue a command line, one a line, by the tables of the
 * commands. docs/sluice.bash calls it. It reads only what its caller may read, and drops errors:
 * then there is nothing to offer.
 */
#include <ctype.h>
#include <dirent.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "gate/pins.h"
#include "gate/rules.h"
#include "rules/prefix.h"

/* A command line up to the word that is being typed. */
struct typed {
	const struct program *program;
	struct option_table options;
	const char *option[OPTIONS_MAX];
	int valued;		       /* the option whose value is being typed; -1: none */
	bool options_ended;	       /* by --: a word that begins with - is no option */
	const struct command *command; /* NULL: none is typed yet */
	bool is_unknown;	       /* no command has that name */
	const struct word *keyword;    /* the keyword whose value is being typed; NULL: none */
	unsigned int values;	       /* how many words of that value are typed */
	const char *first_value;       /* the first of them */
	bool has_keyword;	       /* one was typed */
	uint64_t keywords;	       /* which: a bit for each word of the command's table */
	const char *operand;	       /* the first one; NULL: none */
	struct operands words;	       /* all, before the word that is being typed */
	const char *begun;	       /* the beginning of that word */
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
	return 0;
}

static void offer_gates(const struct typed *typed)
{
	gates_for_each(offer_gate, (void *)typed);
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

static void offer_commands(const struct typed *typed)
{
	for (unsigned int i = 0; i < typed->program->count; i++)
		offer(typed, typed->program->commands[i]->name);
}

static int gate_open_typed(const struct typed *typed, struct gate *gate)
{
	const char *name = typed->option[OPTION_GATE];
	const struct context context = {.gate = name ?: GATE_USUAL, .gate_given = name};

	return gate_open_to_look(gate, &context);
}

/* Offers the limits of the prefix that the command names. */
static void offer_limits(const struct typed *typed)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(rule_free) struct rule rule = {0};

	if (!typed->operand || prefix_parse(typed->operand, &rule.prefix) ||
	    gate_open_typed(typed, &gate) || rules_get(&gate, &rule.prefix, &rule))
		return;
	for (unsigned int i = 0; i < rule.limits; i++)
		offer(typed, rule.limit[i].spec.name);
}

static void offer_lists(const struct typed *typed)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct sl_list_info lists[SL_LIST_PLACES];

	if (gate_open_typed(typed, &gate))
		return;
	lists_copy(&gate, lists);
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*lists[place].name)
			offer(typed, lists[place].name);
}

/* docs/sluice.bash lets the shell complete files. */
static void offer_files(const struct typed *typed)
{
	(void)typed;
	puts("FILE");
}

/* Numbers, times and addresses have no candidates. */
static const struct {
	const char *name;
	void (*offer)(const struct typed *typed);
} placeholders[] = {
	{"DEV", offer_devices},	     {"GATE", offer_gates},   {"NETNS", offer_namespaces},
	{"COMMAND", offer_commands}, {"LIMIT", offer_limits}, {"LIST", offer_lists},
	{"FILE", offer_files},
};

/* --- What the tables have ------------------------------------------------------------------- */

static bool is_typed(const struct typed *typed, const char *word)
{
	for (unsigned int i = 0; i < typed->words.count; i++)
		if (!strcmp(typed->words.words[i], word))
			return true;
	return false;
}

/* Offers the first word of each choice: "drop|observe|block TIME". */
static void offer_value(const struct typed *typed, const char *value)
{
	char choice[WORD_TEXT];

	for (; *value; value += strcspn(value, "|"), value += *value == '|') {
		snprintf(choice, sizeof(choice), "%.*s", (int)strcspn(value, "| "), value);
		if (islower((unsigned char)*choice) && !(typed->values && is_typed(typed, choice)))
			offer(typed, choice);
		for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++)
			if (!strcmp(choice, placeholders[i].name))
				placeholders[i].offer(typed);
	}
}

/*
 * Offers what continues a value of several words, `per` after "window 1000". Returns whether the
 * value may end before that.
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

static void offer_option(const struct typed *typed, int option)
{
	char text[WORD_TEXT];

	snprintf(text, sizeof(text), "--%s", typed->options.words[option].name);
	offer(typed, text);
}

static bool words_have(const char *words, const char *name)
{
	char text[WORD_TEXT];

	snprintf(text, sizeof(text), "|%s|", name);
	return strstr(words, text);
}

/* Returns whether a keyword is typed already, or one that excludes it. */
static bool is_ruled_out(const struct typed *typed, unsigned int keyword)
{
	const struct command *command = typed->command;
	const char *name = command->words[keyword].name;

	if (typed->keywords >> keyword & 1)
		return true;
	for (unsigned int i = 0; i < command->apart_count; i++) {
		const struct apart *apart = &command->apart[i];
		const char *others = words_have(apart->these, name)   ? apart->those
				     : words_have(apart->those, name) ? apart->these
								      : "";

		for (unsigned int j = 0; j < command->word_count; j++)
			if (typed->keywords >> j & 1 && words_have(others, command->words[j].name))
				return true;
	}
	return false;
}

/*
 * Offers the operand of the command, and the keywords and options that may still be typed. An
 * operand that is needed comes before keywords.
 */
static void offer_words(const struct typed *typed)
{
	const struct command *command = typed->command;
	bool lacks_operand = command->question && !typed->operand;
	bool is_option = *typed->begun == '-' && !typed->options_ended;

	for (unsigned int i = 0; i < command->word_count; i++) {
		const struct word *word = &command->words[i];
		bool is_operand = word->kind < KEYWORD;
		bool may_follow =
			word->kind == OPERANDS_ANYWHERE ||
			(!typed->has_keyword && (word->kind == OPERANDS || !typed->operand));

		if ((word->kind == OPTION) != is_option)
			continue;
		if (is_option)
			offer_option(typed, option_find(&typed->options, word->name));
		else if (is_operand && may_follow)
			offer_value(typed, word->name);
		else if (!is_operand && !lacks_operand && !is_ruled_out(typed, i))
			offer(typed, word->name);
	}
}

static void offer_all(const struct typed *typed)
{
	bool may_end = !typed->keyword;

	if (typed->valued >= 0) {
		offer_value(typed, typed->options.words[typed->valued].type->name);
		return;
	}
	if (typed->keyword && typed->values)
		may_end = offer_more(typed);
	else if (typed->keyword)
		offer_value(typed, typed->keyword->type->name);
	for (int i = 0; i < OPTION_COMMON; i++)
		if (!typed->keyword && *typed->begun == '-' && !typed->options_ended)
			offer_option(typed, i);
	if (!typed->command)
		offer_commands(typed);
	else if (may_end)
		offer_words(typed);
}

/* --- What is typed -------------------------------------------------------------------------- */

/* Returns the value of the option in "--gate=main" or "-gmain"; NULL: the word has none. */
static const char *value_joined(const struct option_words *option, const char *word)
{
	size_t length = strlen(option->name);

	if (!option->type)
		return NULL;
	if (word[1] != '-')
		return word[1] == option->letter && word[2] ? word + 2 : NULL;
	return !strncmp(word + 2, option->name, length) && word[2 + length] == '='
		       ? word + 2 + length + 1
		       : NULL;
}

static void option_pass(struct typed *typed, const char *word)
{
	int option = option_find(&typed->options, word);

	if (!strcmp(word, "--"))
		typed->options_ended = true;
	if (option >= 0 && typed->options.words[option].type)
		typed->valued = option;
	for (unsigned int i = 0; i < typed->options.count; i++)
		typed->option[i] = value_joined(&typed->options.words[i], word) ?: typed->option[i];
}

/* Passes a word of the command that is no part of a value. */
static void own_word_pass(struct typed *typed, const char *word)
{
	const struct word *keyword = keyword_find(typed->command, word);

	typed->keyword = keyword && keyword->type ? keyword : NULL;
	typed->values = 0;
	if (keyword) {
		typed->has_keyword = true;
		typed->keywords |= 1ULL << (keyword - typed->command->words);
	} else if (!typed->operand) {
		typed->operand = word;
	}
}

/* Passes a word of the line, as the parser would. */
static void word_pass(struct typed *typed, const char *word)
{
	if (typed->valued >= 0) {
		typed->option[typed->valued] = word;
		typed->valued = -1;
	} else if (!typed->options_ended && word[0] == '-' && word[1]) {
		option_pass(typed, word);
	} else if (!typed->command) {
		typed->command = typed->is_unknown ? NULL : command_find(typed->program, word);
		typed->is_unknown = !typed->command;
	} else if (typed->keyword && typed->keyword->type->extent == VALUE_WORD) {
		typed->keyword = NULL;
	} else if (typed->keyword &&
		   words_go_on(typed->command, typed->keyword, typed->values, word)) {
		if (!typed->values)
			typed->first_value = word;
		typed->values += words_in(word) ?: !typed->values;
	} else {
		own_word_pass(typed, word);
	}
}

struct complete_args {
	struct operands words;
};

static int complete_run(const struct context *context, const void *data)
{
	const struct operands *words = &((const struct complete_args *)data)->words;
	struct typed typed = {
		.program = context->program,
		.options = options_of(context->program->commands, context->program->count),
		.valued = -1,
		.words = {words->words, words->count - 1},
		.begun = words->words[words->count - 1],
	};

	for (unsigned int i = 0; i < typed.words.count; i++)
		word_pass(&typed, words->words[i]);
	if (!typed.is_unknown &&
	    (!typed.option[OPTION_NETNS] || !netns_enter(typed.option[OPTION_NETNS])))
		offer_all(&typed);
	error_drop(0);
	return 0;
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
