/* SPDX-License-Identifier: GPL-2.0 */
/* Replaying: the words of `replay`, which `sluice` documents and sluice-replay runs. */
#ifndef SLUICE_COMMAND_REPLAY_H
#define SLUICE_COMMAND_REPLAY_H

#include "program/program.h"

/* A member is 0 or NULL if its word was not given. */
struct replay_words {
	const char *capture;
	const char *rules[2]; /* the files of -f; the second is compared with the first */
	const char *out;      /* file to write (option -w) */
	unsigned int top;
	unsigned int cpus;
	unsigned int mtu;
	const char *to;
	const char *interface;
	bool is_in, is_out;
	const char *if_dropped, *unless_dropped; /* lists of prefixes, separated by commas */
};

/* Command `replay` without function `run`, because sluice-replay, in another package, runs it. */
extern const struct command command_replay;

#endif
