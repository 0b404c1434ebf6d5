/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Program: the main function of `sluice` and of the programs `sluice-NAME`. A table describes the
 * words of each command. The parser, the help, its JSON and the shell completion use these tables.
 */
#ifndef SLUICE_PROGRAM_H
#define SLUICE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/error.h"
#include "rules/value.h"

/* --- Tables --------------------------------------------------------------------------------- */

/*
 * Kinds of words of a command. The parser stores a word's value at offset `field` of the command's
 * arguments. It stores `true` for a word that has no value. A table of words begins with operands,
 * then has keywords, then options.
 */
enum word_kind {
	OPERAND,	   /* one word, before all keywords */
	OPERANDS,	   /* any number of words; stored unparsed as struct operands */
	OPERANDS_ANYWHERE, /* like OPERANDS, but keywords may precede these words */
	KEYWORD,	   /* a keyword, followed by a value if it has a type */
	OPTION,		   /* an option that only some commands have */
};

struct word {
	const char *name; /* such as "rate", "-f", "--resize"; placeholder of an operand: "DEV" */
	enum word_kind kind;
	const struct value_type *type; /* type of the value; NULL for OPERANDS or no value */
	/*
	 * offset of the value in the command's arguments; FIELD_CONTEXT: store it in
	 * context.trial_ns
	 */
	size_t field;
	const char *help; /* lines of text, or NULL */
};

#define FIELD_CONTEXT ((size_t)-1)

/* The option --confirm, which all commands that change rules have. */
#define WORD_CONFIRM                                                                               \
	{                                                                                          \
		"--confirm", OPTION, &value_trial, FIELD_CONTEXT,                                  \
			"undo the change after TIME, 5s to 1h, unless 'sluice confirm' is run"     \
	}
extern const struct value_type value_trial;

/*
 * Two sets of keywords, such as "|rate|burst|" and "|window|". A command line must not have
 * keywords of both.
 */
struct apart {
	const char *these, *those;
};

struct operands {
	char **words;
	unsigned int count;
};

struct context {
	const struct program *program;
	const struct command *command;
	const char *gate;
	bool gate_given; /* whether -g was given; without -g, some commands read all gates */
	bool json;
	uint64_t trial_ns;     /* TIME of --confirm, in ns; 0 if there is no trial */
	unsigned int operands; /* number of operands on the command line */
};

struct command {
	const char *name;
	const char *brief;
	const char *details; /* lines of text, or NULL */
	/* error text if this operand is missing; NULL: the operand is optional */
	const char *question;
	const struct word *words;
	unsigned int word_count;
	const struct apart *apart;
	unsigned int apart_count;
	size_t args_size;
	int exit_failed; /* exit status after an error other than a misuse; 0 means 1 */
	/*
	 * Runs the command. `args` points to args_size bytes; the field of an absent word is 0.
	 * Returns 0, a negative errno after an error, or a positive exit status. If `run` is NULL,
	 * the program sluice-NAME runs the command.
	 */
	int (*run)(const struct context *context, const void *args);
	/* name of the program without "sluice-"; NULL: the name of the command */
	const char *program;
	const char *package; /* Debian package that contains the separate program */
};

/* Initializers of a command: its words, and the size of its arguments. */
#define COMMAND_WORDS(table, arguments)                                                            \
	.words = (table), .word_count = ARRAY_SIZE(table), .args_size = sizeof(arguments)

struct program {
	const char *name;
	const struct command *const *commands; /* the commands, in the order of the help */
	/* number of commands; if it is 1, users do not type the command's name */
	unsigned int count;
	const char *usage; /* text that the help prints after the options */
	/*
	 * Called after each command with the command's result. Undoes or reports a trial. May be
	 * NULL.
	 */
	void (*finish)(const struct context *context, int err);
};

/* --- Running -------------------------------------------------------------------------------- */

/*
 * Parses the command line, runs the command, and returns the exit status. Prints errors on standard
 * error. With -j, prints the first error on standard output as {"error": ...} unless a JSON
 * document has already begun. If the command is unknown or has no `run`, executes the program
 * sluice-COMMAND with the same options. Searches it in the directory of this program, then in
 * $PATH.
 */
int program_main(const struct program *program, int argc, char **argv);

/* Returns the command named `name`, or NULL. */
const struct command *command_find(const struct program *program, const char *name);

/*
 * Executes the program sluice-NAME in this process, and sets argv[0]. Does not return on success.
 * Returns -ENOENT without an error in the list if the program does not exist. Otherwise adds an
 * error, and returns another negative errno.
 */
int program_exec(const char *name, char **argv);

/* Adds the error that command `name` does not exist; suggests a similar one. Returns the errno. */
int no_such_command(const struct program *program, const char *name);

/*
 * usage_print() prints the help of a program. It prints on standard error if `is_error` is set.
 * command_print() prints the help of a command.
 */
void usage_print(const struct program *program, bool is_error);
void command_print(const struct command *command);

/* The commands of a program that has more than one command. */
extern const struct command command_help, command_version;

/* --- Messages ------------------------------------------------------------------------------- */

/*
 * Callback for error_set_printer(): prints "sluice: OBJECT: text; hint" on standard error. If
 * journald reads standard error, prints the priority before the line, as sd-daemon(3) specifies.
 */
void message_print(const struct sl_error *error);

/* Prints an error as a JSON document, by the calls of program/writer.h. */
void error_print(const struct sl_error *error);

/* Returns whether journald reads the file of `st`. stream: value of $JOURNAL_STREAM, or NULL. */
bool journal_reads(const char *stream, const struct stat *st);

/* --- Options -------------------------------------------------------------------------------- */

/* The options that all commands have. */
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
	char letter; /* letter of the short option; 0 if it has none */
	const char *name;
	const struct value_type *type; /* type of the value; NULL if the option has no value */
	const char *brief;	       /* help text; NULL: the command's table has the help */
};

#define OPTIONS_MAX 48

/*
 * All options: first the options that all commands have, then each option that only some commands
 * have.
 */
struct option_table {
	struct option_words words[OPTIONS_MAX];
	unsigned int count;
};

struct option_table options_of(const struct command *const commands[], unsigned int count);

/* Returns the index of an option such as "-g" or "--gate=x", or -1 if it does not exist. */
int option_find(const struct option_table *options, const char *word);

struct command_line {
	const struct option_table *options;
	/*
	 * Values of the options. The value is "" for an option without an argument, and NULL if the
	 * option was not given.
	 */
	const char *option[OPTIONS_MAX];
	const char *again[OPTIONS_MAX]; /* second value of a repeated option, or NULL */
	bool is_excess[OPTIONS_MAX];	/* the option was given more than twice */
	bool options_ended;		/* the word "--" has ended the options */
	/* index of the last option if its argument is missing, otherwise -1 */
	int lacks_value;
	int first;	    /* index of words[0] in argv; 0 if `words` is empty */
	unsigned int count; /* number of words */
	/* the words: first the command, then its operands; the array has room for all of argv */
	char **words;
};

/*
 * Separates options from other words in argv. A single "-" and everything after "--" are words.
 * Returns an error for an unknown option, an option without its argument, or a common option that
 * is repeated with an argument. words_parse() checks how often an option of a command may occur.
 * After an error, the result has the words and options before the wrong option.
 */
int options_parse(int argc, char **argv, struct command_line *line);

/* --- Words ---------------------------------------------------------------------------------- */

/*
 * Parses the words of the command line by the table of the command. Stores the values in `args`,
 * which must be zero before. Returns an error for an unexpected word, a repeated keyword, a missing
 * value or a missing operand. If a value has several words, it is valid until the next value with
 * several words is parsed.
 */
int words_parse(struct context *context, const struct command_line *line, void *args);

/* Adds the error that `word` is unexpected; suggests a similar word. Returns the errno. */
int unexpected(const struct command *command, const char *word);

/* Returns the keyword or option of the command that is similar to `typed`, or NULL. */
const char *keyword_nearly(const struct command *command, const char *typed);

/* State of the parser after the last complete word of a command line, for completion. */
struct words_end {
	const struct word *keyword; /* last keyword if its value may be incomplete, or NULL */
	unsigned int values;	    /* number of words of the keyword's value so far */
	const char *first_value;    /* first word of the value of `keyword` */
	uint64_t keywords;	    /* bit i is set if word i of the table was typed */
	const char *operand;	    /* the first operand, or NULL */
};

/*
 * Parses the words after the command's name, and skips wrong words. Returns the state of the parser
 * after the last word.
 */
struct words_end words_scan(const struct command *command, char *const words[], unsigned int count);

#define WORD_TEXT 64 /* buffer size for a word in a table, in bytes */

/*
 * Copies word number `place` of the alternative in `value` that begins with `first`. Example: if
 * `value` is "drop|block TIME [escalate N]" and `first` is "block", word 2 is "[escalate". If
 * `value` has one alternative, ignores `first`. Returns false if there is no such word.
 */
bool choice_word(const char *value, const char *first, unsigned int place, char ret[WORD_TEXT]);

#endif
