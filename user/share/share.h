/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the process that shares a gate's limits with other nodes. Every 10 ms it charges states
 * for what others took; every round it reports to the store what this node took, and gets the
 * totals. No packet waits for it, and the filter continues without it.
 */
#ifndef SLUICE_SHARE_H
#define SLUICE_SHARE_H

#include "share/store.h"
#include "sharing/command_share.h"

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

struct share_args {
	const char *gate;
	const char *name;    /* of the cluster: the same on all nodes */
	const char *node;    /* of this machine: different on each */
	const char *command; /* share_source.command */
	unsigned int round_ms;
	unsigned int most; /* keys that are reported at a time */
	enum share_on_loss on_loss;
	struct store_options store; /* without timeout_ms */
};

/* Shares until SIGTERM, SIGINT or SIGHUP. Returns -ENOENT if there is no gate. */
int share_run(const struct share_args *args);

#endif
