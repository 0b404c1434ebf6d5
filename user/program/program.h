/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Program: the main function of `sluice` and of the programs `sluice-NAME`. Each command is
 * described by a table of its words. The parser, the help, its JSON and the shell completion read
 * these tables.
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
 * Kinds of words. The parser stores the value of a word at offset `field` of the command's
 * arguments, or `true` if the word has no type. A table lists operands first, then keywords, then
 * options.
 */
enum word_kind {
	OPERAND,	   /* one word, before all keywords */
	OPERANDS,	   /* any number of words; stored as struct operands, not parsed */
	OPERANDS_ANYWHERE, /* like OPERANDS, but also allowed after keywords */
	KEYWORD,	   /* a keyword, followed by its value if it has a type */
	OPTION,		   /* an option that only some commands have */
};

struct word {
	const char *name; /* "rate", "-f", "--resize"; for operands a placeholder, "DEV" */
	enum word_kind kind;
	const struct value_type
		*type;	  /* type of the value; NULL for OPERANDS, and if it has no value */
	size_t field;	  /* offset in the arguments; FIELD_CONTEXT: context.trial_ns */
	const char *help; /* lines of text, or NULL */
};

#define FIELD_CONTEXT ((size_t)-1)

/* The option --confirm, of all commands that change rules. */
#define WORD_CONFIRM                                                                               \
	{                                                                                          \
		"--confirm", OPTION, &value_trial, FIELD_CONTEXT,                                  \
			"undo the change after TIME, 5s to 1h, unless 'sluice confirm' is run"     \
	}
extern const struct value_type value_trial;

/* Two sets of keywords that exclude each other, such as "|rate|burst|" and "|window|". */
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
	bool gate_given; /* the user wrote -g; otherwise some commands read all gates */
	bool json;
	uint64_t trial_ns;     /* time that --confirm specifies, 0 if there is no trial */
	unsigned int operands; /* number of operands on the command line */
};

struct command {
	const char *name;
	const char *brief;
	const char *details;  /* lines of text, or NULL */
	const char *question; /* error for a missing operand: "which file?"; NULL if optional */
	const struct word *words;
	unsigned int word_count;
	const struct apart *apart;
	unsigned int apart_count;
	size_t args_size;
	int exit_failed; /* exit status after an error that is no misuse; 0 means 1 */
	/*
	 * Runs the command. Returns 0, a negative errno after an error, or a positive exit status.
	 * args: args_size bytes; the field of a word that was not given is 0. NULL: the command is
	 * a separate program, sluice-NAME.
	 */
	int (*run)(const struct context *context, const void *args);
	const char *package; /* Debian package of the separate program */
};

/*
 * Sets the members of a command that describe its words: their table, and the type of its
 * arguments.
 */
#define COMMAND_WORDS(table, arguments)                                                            \
	.words = (table), .word_count = ARRAY_SIZE(table), .args_size = sizeof(arguments)

struct program {
	const char *name;
	const struct command *const *commands; /* the commands, in the order of the help */
	unsigned int count; /* number of commands; a single command is not typed by the user */
	const char *usage;  /* text that the help prints after the options */
	/* Called after each command with its result, to undo or report a trial. May be NULL. */
	void (*finish)(const struct context *context, int err);
};

/* --- Running -------------------------------------------------------------------------------- */

/*
 * Parses the command line, runs its command, and returns the exit status. Prints errors on standard
 * error and, with -j, also the first as {"error": ...} on standard output, unless a document was
 * begun. If the command has no `run`, or is unknown, it executes the program sluice-COMMAND with
 * the same options, from the directory of this program or else from $PATH.
 */
int program_main(const struct program *program, int argc, char **argv);

/* Returns the command of that name, or NULL. */
const struct command *command_find(const struct program *program, const char *name);

/*
 * Replaces this process by the program sluice-NAME, and sets argv[0]. Returns only if that fails:
 * -ENOENT, without an error, if the program does not exist; otherwise an error.
 */
int program_exec(const char *name, char **argv);

/*
 * Adds the error that a command does not exist, and suggests a similar command. Returns the error.
 */
int no_such_command(const struct program *program, const char *name);

/* Print the help of a program, on standard error if `is_error`, and the help of a command. */
void usage_print(const struct program *program, bool is_error);
void command_print(const struct command *command);

/* Commands of each program that has more than one command. */
extern const struct command command_help, command_version;

/* --- Messages ------------------------------------------------------------------------------- */

/*
 * Prints "sluice: OBJECT: text; hint" on standard error; a callback for error_set_printer(). If the
 * journal reads standard error, it puts the priority before the line, as sd-daemon(3) specifies.
 */
void message_print(const struct sl_error *error);

/* Returns whether `stream`, the value of $JOURNAL_STREAM or NULL, names the file of `st`. */
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
	const char *brief;	       /* help text; NULL if the table of a command contains it */
};

#define OPTIONS_MAX 32

/*
 * The options that all commands have, and then the options in the tables of commands, without
 * duplicates.
 */
struct option_table {
	struct option_words words[OPTIONS_MAX];
	unsigned int count;
};

struct option_table options_of(const struct command *const commands[], unsigned int count);

/*
 * Returns the index of the option that is typed as "-g" or "--gate=x", or -1 if it does not exist.
 */
int option_find(const struct option_table *options, const char *word);

struct command_line {
	const struct option_table *options;
	/* the values of options: "" without a value; NULL if the option is not given */
	const char *option[OPTIONS_MAX];
	bool options_ended; /* the word "--" was found */
	int lacks_value;    /* index of the last option if its value is missing, otherwise -1 */
	int first;	    /* index of words[0] in argv; 0 if there are no words */
	unsigned int count; /* number of words */
	char **words; /* the words that are no options: the command first; has room for argv */
};

/*
 * Separates the words of argv from the options. A single - is a word, and everything after -- is a
 * word. Refuses an option that does not exist, lacks its value, or is given twice. After a failure,
 * the words and options before the wrong option are set.
 */
int options_parse(int argc, char **argv, struct command_line *line);

/* --- Words ---------------------------------------------------------------------------------- */

/*
 * Parses the words of the command line by the table of the context's command, and stores their
 * values in `args`, which the caller has set to 0. Refuses a word that is not in the table, a
 * keyword that is given twice or lacks its value, and a missing operand. A stored text that joins
 * several words is valid until the next value of several words is parsed.
 */
int words_parse(struct context *context, const struct command_line *line, void *args);

/* Adds the error that a word is unexpected, and suggests a similar word. Returns the error. */
int unexpected(const struct command *command, const char *word);

/* Returns the keyword or option of the command whose name is similar to `typed`, or NULL. */
const char *keyword_nearly(const struct command *command, const char *typed);

/* The state of an incomplete command line after its last word, for completion. */
struct words_end {
	const struct word
		*keyword;    /* the last keyword, if more words may belong to its value, or NULL */
	unsigned int values; /* number of words of this value that were typed */
	const char *first_value; /* the first word of this value */
	uint64_t keywords;	 /* bit i is set if the line has word i of the table */
	const char *operand;	 /* the first operand, or NULL */
};

/* Returns the state after the words that follow the command. Ignores wrong words. */
struct words_end words_scan(const struct command *command, char *const words[], unsigned int count);

#define WORD_TEXT 64 /* size of a word of a table, in bytes */

/*
 * Copies word number `place` of the alternative of a value that begins with `first`: for
 * "drop|block TIME [escalate N]", first = "block" and place = 2, it copies "[escalate". If the
 * value has only one alternative, `first` is ignored. Returns false if there is no such word.
 */
bool choice_word(const char *value, const char *first, unsigned int place, char ret[WORD_TEXT]);

#endif
