/* SPDX-License-Identifier: GPL-2.0 */
/* Replaying: the words of `suggest`, which `sluice` documents and sluice-replay runs. */
#ifndef SLUICE_COMMAND_SUGGEST_H
#define SLUICE_COMMAND_SUGGEST_H

#include "program/program.h"

/* A member is 0 or NULL if its word was not given. */
struct suggest_args {
	const char *capture; /* NULL with from_gate */
	bool from_gate;
	uint64_t watch_ns;
	unsigned int quantile; /* in thousandths of a per cent */
	unsigned int headroom; /* per cent + 1 */
	const char *to;
	const char *interface;
	bool is_in, is_out;
};

/* Command `suggest` without function `run`, because sluice-replay, in another package, runs it. */
extern const struct command command_suggest;

#endif
