/* SPDX-License-Identifier: GPL-2.0 */
/* The commands: one idea a file, user/cli/cmd_*.c; the table is in user/cli/main.c. */
#ifndef SLUICE_COMMAND_H
#define SLUICE_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/log.h"
#include "gate/gate.h"
#include "sluice.h"

/* What the options say. */
struct context {
	const char *gate;
	bool gate_given; /* else commands that look at gates look at all */
	bool json;
	const char *file; /* of a command that takes -f; NULL: not given */
	bool resize;	  /* of `apply` */
};

/* argv[0] is the command's name; the words follow. */
typedef enum status command_fn(const struct context *context, int argc, char **argv);

command_fn cmd_allow, cmd_apply, cmd_attach, cmd_check, cmd_del, cmd_del_list, cmd_deny, cmd_detach,
	cmd_diff, cmd_dump, cmd_export, cmd_forgive, cmd_lists, cmd_newcomers, cmd_set, cmd_show,
	cmd_sources, cmd_stats, cmd_status, cmd_unallow, cmd_undeny, cmd_upgrade, cmd_version;

/*
 * Opens the gate that a command only looks at. Where none is named, that is `main`, or, where that does not exist, the
 * only one that does.
 */
enum status gate_open_to_look(struct gate *gate, const struct context *context);

/* The same for a command that needs its rules and sizes only: it may be of an older schema, as with gate_open_any. */
enum status gate_open_for_rules(struct gate *gate, const struct context *context);

/* Refuses a word that the command does not know. */
enum status unexpected(const char *command, const char *word);

/* The same where it may be one of these keywords, misspelt. */
enum status unexpected_for(const char *command, const char *word, const char *const keywords[],
			   size_t count);

/* Whether a word where an address may stand is none, and is nearly one of these keywords. */
bool keyword_is_meant(const char *word, const char *const keywords[], size_t count);

/* A keyword's value: the word after argv[*index], to which it moves. NULL, having said so: there is
 * none. */
const char *keyword_value(int argc, char **argv, int *index);

/* A name that the kernel takes from anybody: what is not UTF-8 in it becomes '?'. */
json_t *json_name(const char *name);

/* {"packets": ..., "bytes": ...} */
json_t *json_cell(const struct sl_cell *cell);

/* Prints a JSON document and frees it; NULL is out of memory. */
enum status json_print(json_t *document);

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
	OPTIONS,
};

/* A set of options, for a table of commands: the options of its own that a command takes. */
#define TAKES(option) (1U << (option))

/* A command line: its options by name, and the words that are left, in their order. */
struct command_line {
	const char *option[OPTIONS]; /* its value, or "" of one without; NULL: not given */
	int count;
	char **words; /* in argv */
};

/*
 * Sorts the words of argv from its options. A single - is a word, and so is all behind --. Refuses an option that
 * does not exist, lacks its value, or is given a second value.
 */
enum status options_parse(int argc, char **argv, struct command_line *ret);

/* Refuses an option that belongs to other commands than this one, which takes the set `takes`. */
enum status options_check(const struct command_line *line, const char *command, unsigned int takes);

/* The options of sluice itself, one a line. */
void options_print(FILE *out);

#endif
