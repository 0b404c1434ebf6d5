/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands, one a file, user/cli/cmd_*.c. Each has one table of words, which the parser
 * (command.c), the help and its JSON (main.c) and the completion of the shell (cmd_complete.c)
 * read.
 */
#ifndef SLUICE_COMMAND_H
#define SLUICE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/array.h"
#include "base/log.h"
#include "gate/gate.h"
#include "sluice.h"

/* --- Commands ------------------------------------------------------------------------------- */

/*
 * Kinds of words in a command's table. The parser fills the member at offset `field` of the
 * command's arguments, of the type named here. The order matters: operands, then keywords, then
 * options.
 */
enum word_kind {
	OPERAND,	   /* one word before all keywords: const char * */
	OPERANDS,	   /* any number of them: struct operands */
	OPERANDS_ANYWHERE, /* the same, also behind keywords */
	FLAG,		   /* a keyword alone: const char *, the keyword itself */
	VALUE,		   /* a keyword and the word behind it: const char * */
	NUMBERS,	   /* the same, and the words that go on with it: words_go_on() */
	VALUES,		   /* a keyword and all words up to the next one, joined: const char * */
	OPTION,		   /* an option of this command: const char *, its value or "" */
};

struct word {
	const char *name; /* "rate"; "-f" or "--resize"; of an operand a placeholder */
	enum word_kind kind;
	const char *value; /* the choices of a value, "src|dst"; placeholders in capitals */
	size_t field;	   /* FIELD_CONTEXT: main.c puts it into the context */
	const char *help;  /* lines; NULL: none */
};

#define FIELD_CONTEXT ((size_t)-1)

/* The option of each command that changes rules. */
#define WORD_CONFIRM                                                                               \
	{                                                                                          \
		"--confirm", OPTION, "TIME", FIELD_CONTEXT,                                        \
			"undo the change after TIME, 5s to 1h, unless 'sluice confirm' follows"    \
	}

/* Keywords of which those of one side exclude those of the other: "|rate|burst|", "|window|". */
struct apart {
	const char *these, *those;
};

struct operands {
	char **words;
	unsigned int count;
};

struct context {
	const struct command *command;
	const char *gate;
	bool gate_given; /* false: status and export read all gates */
	bool json;
	uint64_t trial_ns; /* of --confirm; 0: the change stays */
};

/* args: the command's arguments, of args_size bytes; arguments that were not given are 0 */
typedef int command_fn(const struct context *context, const void *args);

struct command {
	const char *name;
	const char *brief;
	const char *details;  /* lines; NULL: none */
	const char *question; /* where the operand is missing, "which file?"; NULL: it may be */
	const struct word *words;
	unsigned int word_count;
	const struct apart *apart;
	unsigned int apart_count;
	size_t args_size;
	command_fn *run;
};

/* The members of a command that has words: their table, and the struct of its arguments. */
#define COMMAND_WORDS(table, arguments)                                                            \
	.words = (table), .word_count = ARRAY_SIZE(table), .args_size = sizeof(arguments)

extern const struct command command_attach, command_detach, command_status, command_doctor,
	command_set, command_newcomers, command_allow, command_deny, command_unallow,
	command_undeny, command_lists, command_del, command_forgive, command_show, command_apply,
	command_confirm, command_keep, command_share, command_diff, command_dump, command_check,
	command_stats, command_sources, command_export, command_upgrade, command_complete;

/* All of them, in the order of the help. */
extern const struct command *const commands[];
extern const unsigned int command_count;

/* NULL: there is none of that name. */
const struct command *command_find(const char *name);

/* Removes the list of that file or name: `del -f`. */
int list_take_back(const struct context *context, const char *file);

/* --- Gates ---------------------------------------------------------------------------------- */

/*
 * Opens the gate that a command only looks at. Without -g that is `main`, or, where `main` does not
 * exist, the only gate that does.
 */
int gate_open_to_look(struct gate *gate, const struct context *context);

/* --- Options -------------------------------------------------------------------------------- */

enum option_name {
	/* of sluice */
	OPTION_GATE,
	OPTION_NETNS,
	OPTION_JSON,
	OPTION_VERBOSE,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_COMMON,
	/* of some commands */
	OPTION_FILE = OPTION_COMMON,
	OPTION_RESIZE,
	OPTION_CONFIRM,
	OPTION_STATE,
	OPTION_INTERVAL,
	OPTION_WATCH,
	OPTION_NAME,
	OPTION_NODE,
	OPTION_ROUND,
	OPTION_ON_LOSS,
	OPTION_MOST,
	OPTION_USER,
	OPTION_PASSWORD_FILE,
	OPTION_TLS,
	OPTIONS,
};

struct option_words {
	char letter; /* 0: none */
	const char *name;
	const char *value; /* what it takes; NULL: nothing */
	const char *brief;
};

extern const struct option_words option_table[OPTIONS];

/* The option of that spelling, "-g" or "--gate"; OPTIONS: there is none. */
enum option_name option_typed(const char *word);

/* A command line: its options by name, and the words that are left, in their order. */
struct command_line {
	const char *option[OPTIONS]; /* its value, or "" of one without; NULL: not given */
	unsigned int count;
	char **words; /* in argv; the first is the command */
};

/*
 * Separates the options of argv from its words. A single - is a word, and so is all behind --.
 * Refuses an option that does not exist, lacks its value, or is given a second value.
 */
int options_parse(int argc, char **argv, struct command_line *ret);

/* The times that an option takes. */
struct time_range {
	uint64_t min_ns, max_ns;
	const char *words; /* both, for messages: "1s to 1d" */
};

/* Parses the value of an option that takes a time. text: NULL if it was not given; ret_ns is 0. */
int option_time(const char *option, const char *text, const struct time_range *range,
			uint64_t *ret_ns);

/* --- Words ---------------------------------------------------------------------------------- */

#define WORD_TEXT 64 /* room for a word of a table */

/* The keyword of that name in the command's table; NULL: there is none. */
const struct word *keyword_find(const struct command *command, const char *name);

/* The keyword or option of the command that is close to what was typed; NULL: none is. */
const char *keyword_nearly(const struct command *command, const char *typed);

/*
 * The number of words in a text: a value in quotes has several, an empty one counts as one, and a
 * unit belongs to the number before it.
 */
unsigned int words_in(const char *text);

/*
 * Returns whether a word continues the value of a keyword of kind NUMBERS or VALUES, after `count`
 * words. `per` continues "N per TIME" as its second word, although it is also a keyword. Otherwise
 * numbers go on with a number or a unit, values with any word that is not a keyword.
 */
bool words_go_on(const struct command *command, const struct word *keyword, unsigned int count,
		 const char *word);

/*
 * Copies the word of a choice of values at that place: "[escalate" of "block TIME [escalate N]".
 * The choice is the one that begins with `first`, or the only one. False: it has no more words.
 */
bool choice_word(const char *value, const char *first, unsigned int place, char ret[WORD_TEXT]);

/*
 * Fills the arguments of a command, all 0 before, by its table. Refuses a word that the table does
 * not have, a keyword that is given twice or lacks its value, and a missing operand. The values of
 * a keyword that has several live until the next call.
 */
int words_parse(const struct command *command, const struct command_line *line, void *args);

/* Refuses an unknown word, and suggests a similar one. */
int unexpected(const struct command *command, const char *word);

#endif
