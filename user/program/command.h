/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Program: commands as tables of words. The parser, the help, its JSON and the completion of the
 * shell read the same tables.
 */
#ifndef SLUICE_COMMAND_H
#define SLUICE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "rules/value.h"

/* --- Tables --------------------------------------------------------------------------------- */

/*
 * Kinds of words. The parser fills the member at offset `field` of the command's arguments: with a
 * value of the word's type, or with true if the word has no type. The order matters: operands, then
 * keywords, then options.
 */
enum word_kind {
	OPERAND,	   /* one word before all keywords */
	OPERANDS,	   /* any number of them: struct operands, and not parsed */
	OPERANDS_ANYWHERE, /* the same, also after keywords */
	KEYWORD,	   /* a word, and its value */
	OPTION,		   /* an option of this command */
};

struct word {
	const char *name; /* "rate", "-f", "--resize"; of an operand a placeholder */
	enum word_kind kind;
	const struct value_type *type; /* NULL: a keyword or option alone, or operands */
	size_t field;		       /* FIELD_CONTEXT: trial_ns of the context */
	const char *help;	       /* lines; NULL: none */
};

#define FIELD_CONTEXT ((size_t)-1)

/* The option of each command that changes rules. */
#define WORD_CONFIRM                                                                               \
	{                                                                                          \
		"--confirm", OPTION, &value_trial, FIELD_CONTEXT,                                  \
			"undo the change after TIME, 5s to 1h, unless 'sluice confirm' follows"    \
	}
extern const struct value_type value_trial;

/* Keywords of which those of one side exclude those of the other: "|rate|burst|", "|window|". */
struct apart {
	const char *these, *those;
};

struct operands {
	char **words;
	unsigned int count;
};

struct program;

struct context {
	const struct program *program;
	const struct command *command;
	const char *gate;
	bool gate_given; /* false: status and export read all gates */
	bool json;
	uint64_t trial_ns;     /* of --confirm; 0: the change stays */
	unsigned int operands; /* how many were typed */
};

/*
 * args: the command's arguments, of args_size bytes; arguments that were not given are 0.
 * Returns 0, a negative errno after an error, or an exit status.
 */
typedef int command_fn(const struct context *context, const void *args);

struct command {
	const char *name;
	const char *brief;
	const char *details;  /* lines; NULL: none */
	const char *question; /* if the operand is missing, "which file?"; NULL: it is optional */
	const struct word *words;
	unsigned int word_count;
	const struct apart *apart;
	unsigned int apart_count;
	size_t args_size;
	int exit_failed;     /* the exit status after an error that is no misuse; 0: 1 */
	command_fn *run;     /* NULL: it is a program, sluice-NAME */
	const char *package; /* of that program */
};

/* The members of a command that has words: their table, and the struct of its arguments. */
#define COMMAND_WORDS(table, arguments)                                                            \
	.words = (table), .word_count = ARRAY_SIZE(table), .args_size = sizeof(arguments)

/* --- Command lines -------------------------------------------------------------------------- */

/* The options of every command. */
enum common_option {
	OPTION_GATE,
	OPTION_NETNS,
	OPTION_JSON,
	OPTION_VERBOSE,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_COMMON,
};

struct option_words {
	char letter; /* 0: none */
	const char *name;
	const struct value_type *type; /* NULL: the option has no value */
	const char *brief;	       /* NULL: the tables of commands have it */
};

/* The options of every command, then those of the tables, each name once. */
#define OPTIONS_MAX 32

struct option_table {
	struct option_words words[OPTIONS_MAX];
	unsigned int count;
};

struct option_table options_of(const struct command *const commands[], unsigned int count);

/* Returns the index of the option with that spelling, "-g" or "--gate"; -1: there is none. */
int option_find(const struct option_table *options, const char *word);

/* A command line: its options by their index, and the words that are left, in their order. */
struct command_line {
	const struct option_table *options;
	const char *option[OPTIONS_MAX]; /* its value, or "" of one without; NULL: not given */
	bool options_ended;		 /* by -- */
	int lacks_value;		 /* the last option, after a failure; -1: none */
	int first;			 /* the first of these words in argv; 0: none */
	unsigned int count;
	char **words; /* room for all of argv; the first is the command */
};

/*
 * Adds the words of argv to those of the line, and sets its options. A single - is a word, and so
 * is all after --. Refuses an option that does not exist, lacks its value, or has a second value.
 * After a failure the words and options before it are set.
 */
int options_parse(int argc, char **argv, struct command_line *line);

/* --- Words ---------------------------------------------------------------------------------- */

#define WORD_TEXT 64 /* room for a word of a table */

/* Returns the keyword or option of the command that is close to what was typed, or NULL. */
const char *keyword_nearly(const struct command *command, const char *typed);

/* What the words of a command line leave open, for completion. */
struct words_end {
	const struct word *keyword; /* whose value may continue; NULL: none */
	unsigned int values;	    /* how many words of that value are typed */
	const char *first_value;
	uint64_t keywords;   /* a bit for each word of the table that was typed */
	const char *operand; /* the first one; NULL: none */
};

/* Returns what words after the command leave open. */
struct words_end words_scan(const struct command *command, char *const words[], unsigned int count);

/*
 * Copies the word of a choice of values at that place: "[escalate" of "block TIME [escalate N]".
 * The choice is the one that begins with `first`, or the only one. False: it has no more words.
 */
bool choice_word(const char *value, const char *first, unsigned int place, char ret[WORD_TEXT]);

/*
 * Fills the arguments of the context's command, all 0 before, by its table. Refuses a word that the
 * table does not have, a keyword that is given twice or lacks its value, and a missing operand. The
 * values of a keyword that has several live until the next call.
 */
int words_parse(struct context *context, const struct command_line *line, void *args);

/* Refuses an unknown word, and suggests a similar one. */
int unexpected(const struct command *command, const char *word);

#endif
