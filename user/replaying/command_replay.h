/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replaying: the options of command `replay`. `sluice` documents the command, and sluice-replay
 * runs it.
 */
#ifndef SLUICE_COMMAND_REPLAY_H
#define SLUICE_COMMAND_REPLAY_H

#include "program/program.h"

/* A member is 0 or NULL if the user did not give the option. */
struct replay_words {
	const char *capture;
	const char *rules[2]; /* files of option -f; the second file is compared with the first */
	const char *out;      /* file that option -w writes */
	unsigned int top;
	unsigned int cpus;
	unsigned int mtu;
	const char *to;
	const char *interface;
	bool is_in, is_out;
	const char *if_dropped, *unless_dropped; /* comma-separated prefixes */
};

/*
 * Command `replay`. Its function `run` is NULL, because only sluice-replay, in another package, can
 * run it.
 */
extern const struct command command_replay;

#endif
