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

/* Shared limits while the store does not reply. */
enum share_on_loss {
	ON_LOSS_LOCAL,	/* this node's alone */
	ON_LOSS_DIVIDE, /* each node has 1/nodes of each: share/debt.h */
};

extern const char *const on_loss_words[ON_LOSS_DIVIDE + 1];

/*
 * Default round, in ms. With the default number of keys a packet costs at most 0.09 commands from
 * 103 packets a second, key and node on: table_commands() of tests/sim/share.c.
 */
#define SHARE_ROUND_MS 110

/*
 * Default number of keys that are reported at a time. A key costs 1 command a round, and 1 every 10
 * seconds: with the default round and the count of nodes some 2,400 a second, at most 2,800 if keys
 * come and go. A key of `shared block` costs 1 more a round, and 1 for each block.
 */
#define SHARE_MOST 256

/* The largest --most: charging this many states takes a quarter of the 10 ms of a step. */
#define SHARE_MOST_MAX 20000

/* Without `run`: its program is in another package. */
extern const struct command command_share;

#endif
