// SPDX-License-Identifier: GPL-2.0
/*
 * The command complete, for docs/sluice.bash: prints the words that can follow on a command line,
 * one per line. The tables of the commands contain these words. If the names of gates, rules or
 * devices cannot be read, prints fewer words, without an error.
 */
#include <ctype.h>
#include <dirent.h>
#include <net/if.h>

#include "cli/command.h"
#include "gate/pins.h"

/* A command line whose last word is being typed. */
struct typed {
	const struct program *program;
	struct option_table options;
	struct command_line line;
	const struct command *command; /* the command that the line names, or NULL */
	struct words_end end;
	const char *begun; /* the last word, as typed so far */
};

/*
 * Prints a candidate if it begins with the typed part of the last word. Omits a name with control
 * characters, because the shell would read a newline in the name as the end of a word.
 */
static void offer(const struct typed *typed, const char *word)
{
	if (text_is_printable(word) && !strncmp(word, typed->begun, strlen(typed->begun)))
		puts(word);
}

static int offer_gate(const char *name, void *typed)
{
	offer(typed, name);
	return 0;
}

/*
 * Prints the names of the gate's lists, or the names of the limits of the prefix on the command
 * line.
 */
static void offer_rules(const struct typed *typed, bool lists_wanted)
{
	const char *name = typed->line.option[OPTION_GATE];
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(rule_free) struct rule rule = {0};
	struct sl_list_info lists[SL_LIST_PLACES];

	if (gate_open_named(&gate, name))
		return;
	lists_copy(&gate, lists);
	for (int place = 0; lists_wanted && place < SL_LIST_PLACES; place++)
		if (*lists[place].name)
			offer(typed, lists[place].name);
	if (lists_wanted || !typed->end.operand || prefix_parse(typed->end.operand, &rule.prefix) ||
	    rules_get(&gate, &rule.prefix, &rule))
		return;
	for (unsigned int i = 0; i < rule.limits; i++)
		offer(typed, rule.limit[i].spec.name);
}

/*
 * Prints the names that may replace a placeholder such as DEV. Prints nothing for a number, a time
 * or an address.
 */
static void offer_placeholder(const struct typed *typed, const char *name)
{
	if (!strcmp(name, "DEV")) {
		struct if_nameindex *all = if_nameindex();

		for (struct if_nameindex *device = all; device && device->if_name; device++)
			offer(typed, device->if_name);
		if (all)
			if_freenameindex(all);
	} else if (!strcmp(name, "GATE")) {
		gates_for_each(offer_gate, NULL, (void *)typed);
	} else if (!strcmp(name, "NETNS")) {
		DIR *dir = opendir(NETNS_DIR);

		for (struct dirent *entry; dir && (entry = readdir(dir));)
			if (*entry->d_name != '.')
				offer(typed, entry->d_name);
		if (dir)
			closedir(dir);
	} else if (!strcmp(name, "COMMAND")) {
		for (unsigned int i = 0; i < typed->program->count; i++)
			offer(typed, typed->program->commands[i]->name);
	} else if (!strcmp(name, "LIMIT") || !strcmp(name, "LIST")) {
		offer_rules(typed, !strcmp(name, "LIST"));
	} else if (!strcmp(name, "FILE")) {
		puts(name); /* docs/sluice.bash replaces this name by the names of files */
	}
}

/*
 * Prints the first word of each alternative of a value such as "drop|observe|block TIME". If the
 * user has begun the value, also prints its optional words, such as `port` of "tcp|udp [port N]".
 */
static void offer_value(const struct typed *typed, const char *value)
{
	char choice[WORD_TEXT];

	for (; *value; value += strcspn(value, "|"), value += *value == '|') {
		size_t length = strcspn(value, "| ");
		bool is_typed = false;

		snprintf(choice, sizeof(choice), "%.*s", (int)length, value);
		for (unsigned int i = 0; typed->end.values && i < typed->line.count; i++)
			is_typed |= !strcmp(typed->line.words[i], choice);
		if (!islower((unsigned char)*choice))
			offer_placeholder(typed, choice);
		else if (!is_typed)
			offer(typed, choice);
		if (typed->end.values && !strncmp(value + length, " [", 2)) {
			value += length + 2;
			snprintf(choice, sizeof(choice), "%.*s", (int)strcspn(value, " ]"), value);
			offer(typed, choice);
		}
	}
}

/*
 * Prints the word that can follow in a keyword's value, such as `per` after "window 1000". Returns
 * whether the value is valid without this word.
 */
static bool offer_more(const struct typed *typed)
{
	const char *value = typed->end.keyword->type->name;
	char next[WORD_TEXT];
	size_t bracket;

	if (!typed->end.values ||
	    !choice_word(value, typed->end.first_value, typed->end.values, next)) {
		offer_value(typed, value);
		return typed->end.values;
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

/* Returns whether a set of words such as "|rate|burst|" contains a word. */
static bool words_have(const char *words, const char *name)
{
	char text[WORD_TEXT];

	snprintf(text, sizeof(text), "|%s|", name);
	return strstr(words, text);
}

/* Returns whether the command line has the keyword, or a keyword that excludes it. */
static bool is_ruled_out(const struct typed *typed, unsigned int keyword)
{
	const struct command *command = typed->command;
	const char *name = command->words[keyword].name;

	for (unsigned int i = 0; i < command->word_count; i++) {
		const char *other = command->words[i].name;

		if (!(typed->end.keywords >> i & 1))
			continue;
		if (i == keyword)
			return true;
		for (unsigned int j = 0; j < command->apart_count; j++) {
			const struct apart *apart = &command->apart[j];

			if ((words_have(apart->these, name) && words_have(apart->those, other)) ||
			    (words_have(apart->those, name) && words_have(apart->these, other)))
				return true;
		}
	}
	return false;
}

/*
 * Prints the operands that may follow. Prints keywords as well if no required operand is missing.
 */
static void offer_words(const struct typed *typed)
{
	const struct command *command = typed->command;
	bool lacks_operand = command->question && !typed->end.operand;

	for (unsigned int i = 0; i < command->word_count; i++) {
		const struct word *word = &command->words[i];
		bool may_follow =
			word->kind == OPERANDS_ANYWHERE ||
			(!typed->end.keywords && (word->kind == OPERANDS || !typed->end.operand));

		if (word->kind < KEYWORD && may_follow)
			offer_value(typed, word->name);
		else if (word->kind == KEYWORD && !lacks_operand && !is_ruled_out(typed, i))
			offer(typed, word->name);
	}
}

static void offer_all(const struct typed *typed)
{
	const struct command *command = typed->command;

	if (typed->line.lacks_value >= 0) {
		offer_value(typed, typed->options.words[typed->line.lacks_value].type->name);
		return;
	}
	if (typed->end.keyword && !offer_more(typed))
		return;
	if (*typed->begun == '-' && !typed->line.options_ended) {
		for (int i = 0; !typed->end.keyword && i < OPTION_COMMON; i++)
			offer_option(typed, i);
		for (unsigned int i = 0; command && i < command->word_count; i++)
			if (command->words[i].kind == OPTION)
				offer_option(typed,
					     option_find(&typed->options, command->words[i].name));
	} else if (command) {
		offer_words(typed);
	}
	if (!command)
		offer_placeholder(typed, "COMMAND");
}

static int complete_run(const struct context *context, const void *data)
{
	const struct program *program = context->program;
	const struct operands *words = data;
	char *left[words->count + 1];
	struct typed typed = {
		.program = program,
		.options = options_of(program->commands, program->count),
		.line = {.options = &typed.options, .words = left},
		.begun = words->words[words->count - 1],
	};
	struct command_line *line = &typed.line;
	int err;

	memset(left, 0, sizeof(left));
	/* options_parse() skips its first word, which here is "complete" */
	err = options_parse(words->count, words->words - 1, line);
	if (line->count)
		typed.command = command_find(program, left[0]);
	if (typed.command)
		typed.end = words_scan(typed.command, left + 1, line->count - 1);
	if ((!err || line->lacks_value >= 0) && (typed.command || !line->count) &&
	    (!line->option[OPTION_NETNS] || !netns_enter(line->option[OPTION_NETNS])))
		offer_all(&typed);
	error_drop(0);
	return 0;
}

static const struct word complete_words[] = {
	{"WORD", OPERANDS, NULL, 0,
	 "the words after 'sluice', up to the word that is being typed, which may be ''"},
};

const struct command command_complete = {
	.name = "complete",
	.brief = "the words that may follow, for shell completion",
	.details =
		"'sluice complete -- -g main set default ra' prints the words that the last word\n"
		"may become. FILE means any file name.",
	.question = "which words?",
	COMMAND_WORDS(complete_words, struct operands),
	.run = complete_run,
};
