/* SPDX-License-Identifier: GPL-2.0 */
/* Options: one table for all of them, wherever they stand among the words. */
#ifndef SLUICE_OPTIONS_H
#define SLUICE_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "log.h"

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
