/* SPDX-License-Identifier: GPL-2.0 */
/* Program: the main function of `sluice` and of the programs `sluice-NAME`. */
#ifndef SLUICE_PROGRAM_H
#define SLUICE_PROGRAM_H

#include "program/command.h"

struct program {
	const char *name;
	const struct command *const *commands; /* in the order of the help */
	unsigned int count;		       /* 1: the command is not typed */
	const char *usage;		       /* lines of the help, after the options */
	/*
	 * Ends a command that changed a gate: undoes its trial, or reports it. NULL: nothing to do.
	 */
	void (*finish)(const struct context *context, int err);
};

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

/* --- Help ----------------------------------------------------------------------------------- */

void usage_print(const struct program *program, bool is_error);
void command_print(const struct command *command);

/* Commands of every program that has more than one. */
extern const struct command command_help, command_version;

#endif
