// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "gate/gate_dir.h"
#include "gate/gate_open.h"
#include "rules/value.h"

/* --- Options -------------------------------------------------------------------------------- */

const struct option_words option_table[OPTIONS] = {
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
	[OPTION_CONFIRM] = {0, "confirm", "TIME",
			    "undo the change unless 'sluice confirm' follows"},
	[OPTION_STATE] = {0, "state", "FILE", "what commands allow and deny survives here"},
	[OPTION_INTERVAL] = {0, "interval", "TIME", "how often files are looked at"},
	[OPTION_WATCH] = {0, "watch", "TIME", "how long to watch what arrives"},
	[OPTION_NAME] = {0, "name", "NAME", "of the nodes that share limits with each other"},
	[OPTION_NODE] = {0, "node", "NODE", "the name of this node among them"},
	[OPTION_ROUND] = {0, "round", "TIME", "how often the store is asked"},
	[OPTION_ON_LOSS] = {0, "on-loss", "local|divide", "what limits are without the store"},
	[OPTION_MOST] = {0, "most", "NUMBER", "how many sources the store is told of at a time"},
	[OPTION_USER] = {0, "user", "USER", "of the store's access list"},
	[OPTION_PASSWORD_FILE] = {0, "password-file", "FILE", "its first line is the password"},
	[OPTION_TLS] = {0, "tls", "CA-FILE", "the authority of the store's certificate"},
};

/* What getopt_long() returns for an option: its letter; without one, a number beyond characters. */
static int option_code(int option)
{
	return option_table[option].letter ?: 256 + option;
}

/* The option of that code; OPTIONS: there is none. */
static int option_find(int code)
{
	int option = 0;

	while (option < OPTIONS && option_code(option) != code)
		option++;
	return option;
}

enum option_name option_typed(const char *word)
{
	int option = 0;

	if (word[0] != '-' || !word[1])
		return OPTIONS;
	if (word[1] != '-')
		return word[2] ? OPTIONS : option_find(word[1]);
	while (option < OPTIONS && strcmp(option_table[option].name, word + 2))
		option++;
	return option;
}

/*
 * Tables of getopt_long(): "-" returns words in their place, ":" tells a missing value from an
 * unknown option.
 */
static void getopt_prepare(char letters[2 * OPTIONS + 3], struct option words[OPTIONS + 1])
{
	char *p = letters;

	*p++ = '-';
	*p++ = ':';
	for (int i = 0; i < OPTIONS; i++) {
		bool valued = option_table[i].value;

		words[i] = (struct option){option_table[i].name,
					   valued ? required_argument : no_argument, NULL,
					   option_code(i)};
		if (!option_table[i].letter)
			continue;
		*p++ = option_table[i].letter;
		if (valued)
			*p++ = ':';
	}
	*p = '\0';
	words[OPTIONS] = (struct option){0};
}

static int no_such_option(const char *word)
{
	return misuse("there is no option '%s': see 'sluice help'", word);
}

/*
 * getopt_long() takes the beginning of a name for the option. It may be one of another command, and
 * of another option once there is a new one.
 */
static bool is_abbreviated(const char *word, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(word, "--", 2) &&
	       (strncmp(word + 2, name, length) || (word[2 + length] && word[2 + length] != '='));
}

/* Says what is wrong with a word. optopt holds the option's code, or 0 for an unknown name. */
static int refuse(int code, int option, const char *word)
{
	if (code == ':')
		return misuse("%s needs a value, %s: see 'sluice help'", word,
			      option_table[option].value);
	if (option < OPTIONS)
		return misuse("--%s takes no value: '%s'", option_table[option].name, word);
	if (!optopt)
		return no_such_option(word);
	return misuse("there is no option '-%c'%s%s%s: see 'sluice help'; a word that begins with "
		      "- goes behind --",
		      optopt, word[2] ? " in '" : "", word[2] ? word : "", word[2] ? "'" : "");
}

static int option_take(int option, const char *value, struct command_line *line)
{
	if (option_table[option].value && line->option[option])
		return misuse("--%s is given twice: '%s' and '%s'", option_table[option].name,
			      line->option[option], value);
	line->option[option] = value ?: "";
	return OK;
}

/*
 * Joins a time without a unit and the unit after it: --confirm 5 minutes. False: no unit follows.
 */
static bool unit_take(int option, const char *word, struct command_line *line)
{
	static char joined[OPTIONS][WORD_TEXT];
	const char *value = option < OPTIONS ? line->option[option] : NULL;

	if (!value || !*value || !option_table[option].value ||
	    strcmp(option_table[option].value, "TIME") || value[strspn(value, "0123456789.")] ||
	    !unit_is_known(word) || strlen(value) + strlen(word) + 1 >= WORD_TEXT)
		return false;
	stpcpy(stpcpy(stpcpy(joined[option], value), " "), word);
	line->option[option] = joined[option];
	return true;
}

int options_parse(int argc, char **argv, struct command_line *ret)
{
	struct command_line line = {.words = argv};
	struct option words[OPTIONS + 1];
	char letters[2 * OPTIONS + 3];
	int status = OK;
	int code, at = 1, last = OPTIONS;

	getopt_prepare(letters, words);
	opterr = 0;
	for (; !status && (code = getopt_long(argc, argv, letters, words, NULL)) != -1;
	     at = optind) {
		bool is_wrong = code == ':' || code == '?';
		int option = option_find(is_wrong ? optopt : code);

		if (code == 1) {
			if (!unit_take(last, optarg, &line))
				line.words[line.count++] = optarg;
		} else if (option < OPTIONS && is_abbreviated(argv[at], option_table[option].name))
			status = no_such_option(argv[at]);
		else if (is_wrong)
			status = refuse(code, option, argv[at]);
		else
			status = option_take(option, optarg, &line);
		last = option;
	}
	while (!status && optind < argc)
		line.words[line.count++] = argv[optind++];
	if (!status)
		*ret = line;
	return status;
}

int option_time(const char *option, const char *text, const struct time_range *range,
		uint64_t *ret_ns)
{
	int status = OK;

	*ret_ns = 0;
	if (text)
		status = value_parse(&value_time, option, text, ret_ns);
	if (status || !text)
		return status;
	if (*ret_ns < range->min_ns || *ret_ns > range->max_ns)
		return misuse("%s '%s' is too %s: it is %s", option, text,
			      *ret_ns < range->min_ns ? "short" : "long", range->words);
	return OK;
}

/* --- Keywords and operands ------------------------------------------------------------------ */

/*
 * Bytes for the joined values of one keyword, and the most keywords with such values in a command.
 */
#define JOINED_TEXT 160
#define JOINED_MAX  8

const struct word *keyword_find(const struct command *command, const char *name)
{
	for (unsigned int i = 0; i < command->word_count; i++) {
		const struct word *word = &command->words[i];
		bool is_keyword = word->kind >= FLAG && word->kind < OPTION;

		if (is_keyword && !strcmp(word->name, name))
			return word;
	}
	return NULL;
}

/* NULL: the command takes none. */
static const struct word *operand_find(const struct command *command)
{
	for (unsigned int i = 0; i < command->word_count; i++)
		if (command->words[i].kind < FLAG)
			return &command->words[i];
	return NULL;
}

const char *keyword_nearly(const struct command *command, const char *typed)
{
	const char *names[command->word_count + 1];
	size_t count = 0;

	for (unsigned int i = 0; i < command->word_count; i++)
		if (command->words[i].kind >= FLAG)
			names[count++] = command->words[i].name;
	return nearly_find(typed, names, count);
}

int unexpected(const struct command *command, const char *word)
{
	const char *nearly = keyword_nearly(command, word), *name = command->name;

	if (!nearly)
		return misuse("%s: '%s' is unexpected: see 'sluice help %s'", name, word, name);
	return misuse("%s: '%s' is unexpected: did you mean '%s'? See 'sluice help %s'", name, word,
		      nearly, name);
}

/* A command line while it is read. */
struct filling {
	const struct command *command;
	const struct command_line *line;
	unsigned int at; /* the word that is being read */
	unsigned int operands;
	bool has_keyword; /* one was read */
	unsigned int joined;
	char *args;
};

static const char **field_text(const struct filling *filling, const struct word *word)
{
	return (const char **)(filling->args + word->field);
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

/* Whether a word begins with a digit, and is no address, which allow and deny accept anywhere. */
static bool is_number(const char *word)
{
	const char *point = strchr(word, '.');

	return isdigit((unsigned char)*word) && !strchr(word, ':') &&
	       !(point && strchr(point + 1, '.'));
}

bool words_go_on(const struct command *command, const struct word *keyword, unsigned int count,
		 const char *word)
{
	char own[WORD_TEXT];

	if (keyword->kind == NUMBERS && !count)
		return true;
	if (choice_word(keyword->value, "", count, own) && !strcmp(own, word))
		return true;
	if (keyword->kind == NUMBERS)
		return is_number(word) || unit_is_known(word);
	return !keyword_find(command, word);
}

/* Whether "per" goes on with a rate, as in "30 per minute". The keyword `per` has no such value. */
static bool is_rate_per(const struct word *keyword, const char *word, const char *next)
{
	return keyword->kind == NUMBERS && !strcmp(word, "per") && next &&
	       !isdigit((unsigned char)*next) && unit_is_known(next);
}

/* Joins the words behind a keyword. A word alone stays what it is. */
static int values_join(struct filling *filling, const struct word *keyword, const char **ret)
{
	static char joined[JOINED_MAX][JOINED_TEXT];
	char *text = joined[filling->joined++ % JOINED_MAX], **words = filling->line->words;
	unsigned int count = 0;
	size_t length = 0;

	for (; filling->at + 1 < filling->line->count;
	     count += words_in(words[filling->at]) ?: !count) {
		const char *word = words[filling->at + 1];

		const char *next =
			filling->at + 2 < filling->line->count ? words[filling->at + 2] : NULL;

		if (!words_go_on(filling->command, keyword, count, word) &&
		    !(count && is_rate_per(keyword, word, next)))
			break;
		filling->at++;
		*ret = count ? text : word;
		length += snprintf(text + length, JOINED_TEXT - length, "%s%s", count ? " " : "",
				   word);
		if (length < JOINED_TEXT)
			continue;
		if (!count)
			break;
		return misuse("%s: the words after '%s' are too long: '%s'", filling->command->name,
			      keyword->name, word);
	}
	return OK;
}

static int keyword_take(struct filling *filling, const struct word *keyword)
{
	const char **field = field_text(filling, keyword), *name = filling->command->name;
	int status = OK;

	if (*field)
		return misuse("%s: '%s' is given twice", name, keyword->name);
	if (keyword->kind == FLAG)
		*field = keyword->name;
	else if (keyword->kind == NUMBERS || keyword->kind == VALUES)
		status = values_join(filling, keyword, field);
	else if (filling->at + 1 < filling->line->count)
		*field = filling->line->words[++filling->at];
	if (status || *field)
		return status;
	return misuse("%s: '%s' needs a value: see 'sluice help %s'", name, keyword->name, name);
}

/*
 * Takes an operand. Operands move to the front of the line's words, over words that are read
 * already.
 */
static int operand_take(struct filling *filling, char *text)
{
	const struct word *operand = operand_find(filling->command);

	if (!operand || (operand->kind == OPERAND && filling->operands) ||
	    (operand->kind != OPERANDS_ANYWHERE && filling->has_keyword))
		return unexpected(filling->command, text);
	/*
	 * where no operand is needed, a word close to a keyword, and no prefix, is a keyword
	 * misspelt
	 */
	if (!filling->command->question && !text[strcspn(text, ".:/")] &&
	    keyword_nearly(filling->command, text))
		return unexpected(filling->command, text);
	if (operand->kind == OPERAND)
		*field_text(filling, operand) = text;
	else
		*(struct operands *)(filling->args + operand->field) = (struct operands){
			filling->line->words + 1,
			filling->operands + 1,
		};
	filling->line->words[1 + filling->operands++] = text;
	return OK;
}

/* Takes the options that the command has, and refuses those that only others have. */
static int command_options_take(struct filling *filling)
{
	const struct command *command = filling->command;
	bool has[OPTIONS] = {false};

	for (unsigned int i = 0; i < command->word_count; i++) {
		const struct word *word = &command->words[i];
		enum option_name option = option_typed(word->name);

		if (word->kind != OPTION)
			continue;
		has[option] = true;
		if (word->field != FIELD_CONTEXT)
			*field_text(filling, word) = filling->line->option[option];
	}
	for (int i = OPTION_COMMON; i < OPTIONS; i++)
		if (filling->line->option[i] && !has[i])
			return misuse("%s: there is no option '--%s' here: see 'sluice help %s'",
				      command->name, option_table[i].name, command->name);
	return OK;
}

int words_parse(const struct command *command, const struct command_line *line, void *args)
{
	struct filling filling = {.command = command, .line = line, .at = 1, .args = args};
	int status = command_options_take(&filling);

	for (; !status && filling.at < line->count; filling.at++) {
		char *text = line->words[filling.at];
		const struct word *keyword = keyword_find(command, text);

		status = keyword ? keyword_take(&filling, keyword) : operand_take(&filling, text);
		filling.has_keyword |= keyword != NULL;
	}
	if (!status && command->question && !filling.operands)
		status = misuse("%s: %s See 'sluice help %s'", command->name, command->question,
				command->name);
	return status;
}

/* --- Gates to look at ----------------------------------------------------------------------- */

int gate_open_to_look(struct gate *gate, const struct context *context)
{
	char only[GATE_NAME + 1] = "";
	int status = context->gate_given ? OK : gates_only(context->gate, only);

	return status ?: gate_open(gate, *only ? only : context->gate);
}
