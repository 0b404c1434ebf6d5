/* SPDX-License-Identifier: GPL-2.0 */
/* Sharing: the words of the command `share`, which `sluice` documents and sluice-share runs. */
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

/* How shared limits apply while the store does not reply. */
enum share_on_loss {
	ON_LOSS_LOCAL,	/* each node applies the whole limit */
	ON_LOSS_DIVIDE, /* each node applies 1/nodes of the limit (share/debt.h) */
};

extern const char *const on_loss_words[ON_LOSS_DIVIDE + 1];

/*
 * Default interval of rounds, in ms. If each key gets at least 103 packets per second at each node,
 * a packet then costs at most 0.09 store commands: see table_commands() in tests/sim/share.c.
 */
#define SHARE_ROUND_MS 110

/*
 * Default number of keys that a node reports in a round. A key needs 1 store command per round, and
 * 1 every 10 s. With `shared block` it needs 1 more per round, and 1 for each block. With the
 * default interval, a node sends some 2,400 commands per second. If keys change often, it sends at
 * most 2,800.
 */
#define SHARE_MOST 256

/* Largest --most. With this many keys, charging their states takes a quarter of a 10 ms step. */
#define SHARE_MOST_MAX 20000

/*
 * Command `share`. It has no function `run`, because program sluice-share (in another package) runs
 * it.
 */
extern const struct command command_share;

#endif
