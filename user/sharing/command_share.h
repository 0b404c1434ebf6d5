/* SPDX-License-Identifier: GPL-2.0 */
/* Sharing: the words of the command `share`, which `sluice` describes and sluice-share runs. */
#ifndef SLUICE_COMMAND_SHARE_H
#define SLUICE_COMMAND_SHARE_H

#include "program/program.h"

struct share_words {
	const char *store;
	const char *name;
	const char *node;
	uint64_t round_ns;
	unsigned int on_loss; /* enum share_on_loss */
	unsigned int most;
	const char *user;
	const char *password_file;
	const char *ca_file;
};

/* What shared limits are while the store does not reply. */
enum share_on_loss {
	ON_LOSS_LOCAL,	/* this node's alone */
	ON_LOSS_DIVIDE, /* each node has 1/nodes of each: share/division.h */
};

extern const char *const on_loss_words[ON_LOSS_DIVIDE + 1];

/* The largest --most: charging this many states takes a quarter of the 10 ms of a step. */
#define SHARE_MOST_MAX 20000

/* Without `run`: its program is in another package. */
extern const struct command command_share;

#endif
