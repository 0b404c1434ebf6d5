/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Program: the main function of `sluice` and of the programs `sluice-NAME`. Commands are tables of
 * words, which the parser, the help, its JSON and the completion of the shell read.
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
 * Kinds of words. The parser fills the member at offset `field` of the command's arguments: with a
 * value of the word's type, or with true if the word has no type. In a table, operands come first,
 * then keywords, then options.
 */
enum word_kind {
	OPERAND,	   /* one word before all keywords */
	OPERANDS,	   /* any number of words: struct operands, not parsed */
	OPERANDS_ANYWHERE, /* the same, also after keywords */
	KEYWORD,	   /* a word, and its value */
	OPTION,		   /* an option of this command */
};

struct word {
	const char *name; /* "rate", "-f", "--resize"; of an operand a placeholder */
	enum word_kind kind;
	const struct value_type *type; /* NULL: a keyword or option without value, or operands */
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

/* Sets of keywords that exclude each other: "|rate|burst|", "|window|". */
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
	bool gate_given; /* false: status and export read all gates */
	bool json;
	uint64_t trial_ns;     /* of --confirm; 0: the change stays */
	unsigned int operands; /* how many were typed */
};

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
	int exit_failed; /* the exit status after an error that is no misuse; 0: 1 */
	/*
	 * Returns 0, a negative errno after an error, or an exit status. args: args_size bytes, 0
	 * where an argument was not given. NULL: the command is a program, sluice-NAME.
	 */
	int (*run)(const struct context *context, const void *args);
	const char *package; /* of that program */
};

/* The members of a command that has words: their table, and the type of its arguments. */
#define COMMAND_WORDS(table, arguments)                                                            \
	.words = (table), .word_count = ARRAY_SIZE(table), .args_size = sizeof(arguments)

struct program {
	const char *name;
	const struct command *const *commands; /* in the order of the help */
	unsigned int count;		       /* 1: the command is not typed */
	const char *usage;		       /* lines of the help, after the options */
	/* Called after a command: undoes or reports the trial of its change. NULL: nothing to do. */
	void (*finish)(const struct context *context, int err);
};

/* --- Running -------------------------------------------------------------------------------- */

/*
 * Parses the command line, runs its command, and prints errors: on standard error, and with -j as
 * {"error": ...} on standard output unless a document was printed. If a word is no command with a
 * `run`, runs the program sluice-WORD, with the same options: from the directory of this program,
 * otherwise from $PATH. Returns the exit status.
 */
int program_main(const struct program *program, int argc, char **argv);

/* Returns the command of that name, or NULL. */
const struct command *command_find(const struct program *program, const char *name);

/*
 * Runs the program sluice-NAME in place of this one; argv[0] is set. Returns only on failure:
 * -ENOENT without an error if there is no such program.
 */
int program_exec(const char *name, char **argv);

/* Refuses a word that is no command, and suggests a similar one. */
int no_such_command(const struct program *program, const char *name);

/* Prints the help of a program, or of a command. */
void usage_print(const struct program *program, bool is_error);
void command_print(const struct command *command);

/* Commands of every program that has more than one. */
extern const struct command command_help, command_version;

/* --- Messages ------------------------------------------------------------------------------- */

/*
 * Prints "sluice: OBJECT: text; hint" on standard error, for error_set_printer(). If the journal
 * reads standard error, each line begins with its priority, as sd-daemon(3) specifies.
 */
void message_print(const struct sl_error *error);

/* Returns whether $JOURNAL_STREAM, or NULL, names the device and inode of an open file. */
bool journal_reads(const char *stream, const struct stat *st);

/* --- Options -------------------------------------------------------------------------------- */

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

#define OPTIONS_MAX 32

/* The options of every command, then the options of the tables, each name once. */
struct option_table {
	struct option_words words[OPTIONS_MAX];
	unsigned int count;
};

struct option_table options_of(const struct command *const commands[], unsigned int count);

/* Returns the index of the option with that spelling, "-g" or "--gate=x"; -1: no option. */
int option_find(const struct option_table *options, const char *word);

struct command_line {
	const struct option_table *options;
	const char *option[OPTIONS_MAX]; /* its value, "" if it has none; NULL: not given */
	bool options_ended;		 /* by -- */
	int lacks_value;		 /* the last option, after a failure; -1: none */
	int first;			 /* index in argv of the first of `words`; 0: none */
	unsigned int count;
	char **words; /* room for all of argv; the first is the command */
};

/*
 * Separates the words of argv from options. A single - is a word, and so is everything after --.
 * Refuses an option that does not exist, lacks its value, or has a second value. After a failure
 * the words and options before it are set.
 */
int options_parse(int argc, char **argv, struct command_line *line);

/* --- Words ---------------------------------------------------------------------------------- */

/*
 * Fills the arguments of the context's command, all 0 before, by its table. Refuses a word that the
 * table does not have, a keyword that is given twice or lacks its value, and a missing operand. A
 * text of several words lives until the next one is parsed.
 */
int words_parse(struct context *context, const struct command_line *line, void *args);

/* Refuses an unknown word, and suggests a similar one. */
int unexpected(const struct command *command, const char *word);

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

struct words_end words_scan(const struct command *command, char *const words[], unsigned int count);

#define WORD_TEXT 64 /* room for a word of a table */

/*
 * Copies one word of a choice of values: word 2 of "drop|block TIME [escalate N]" is "[escalate" if
 * `first` is "block". The choice is the one that begins with `first`, or the only one. Returns
 * false if it has no more words.
 */
bool choice_word(const char *value, const char *first, unsigned int place, char ret[WORD_TEXT]);

#endif
