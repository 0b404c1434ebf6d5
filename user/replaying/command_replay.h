/* SPDX-License-Identifier: GPL-2.0 */
/* Replaying: the words of `replay`, which `sluice` documents and sluice-replay runs. */
#ifndef SLUICE_COMMAND_REPLAY_H
#define SLUICE_COMMAND_REPLAY_H

#include "program/program.h"

/* Words that were not given are 0 or NULL. */
struct replay_words {
	const char *capture;
	const char *rules[2]; /* the files of -f; the second is compared with the first */
	const char *out;      /* file of -w */
	unsigned int top;
	unsigned int cpus;
	unsigned int mtu;
	const char *to;
	const char *interface;
	bool is_in, is_out;
	const char *if_dropped, *unless_dropped; /* lists of prefixes, separated by commas */
};

/* The command without `run`: another package has its program. */
extern const struct command command_replay;

#endif
