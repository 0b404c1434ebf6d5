/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replaying: the options of command `suggest`. `sluice` documents the command, and sluice-replay
 * runs it.
 */
#ifndef SLUICE_COMMAND_SUGGEST_H
#define SLUICE_COMMAND_SUGGEST_H

#include "program/program.h"

/* A member is 0 or NULL if the user did not give the option. */
struct suggest_args {
	const char *capture; /* NULL if `from_gate` is set */
	bool from_gate;
	unsigned int quantile; /* thousandths of a per cent */
	unsigned int headroom; /* per cent + 1; 0: the default */
	const char *to;
	const char *interface;
	bool is_in, is_out;
};

/*
 * Command `suggest`. Its function `run` is NULL, because only sluice-replay, in another package,
 * can run it.
 */
extern const struct command command_suggest;

#endif
