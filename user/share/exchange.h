/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: runs rounds with the store in a thread, because the functions of store.h block. At most
 * one round runs at a time.
 */
#ifndef SLUICE_EXCHANGE_H
#define SLUICE_EXCHANGE_H

#include <stdbool.h>

#include "share/store.h"

#define EXCHANGE_ERROR 160

/* A round. The caller sets the members before `is_answered`. The thread sets the others. */
struct round {
	struct store_item *items;
	unsigned int count;
	unsigned int expire_s; /* expiry of a key, in seconds after the last addition by any node */
	uint64_t meaning;      /* sum of the hashes of all limits that this node shares */

	bool is_answered;	/* an item got a reply; without items: the nodes were counted */
	unsigned int nodes;	/* number of nodes, at most FLOW_NODES_MAX; 0: not yet known */
	unsigned int unlike;	/* number of nodes whose limits have differed for UNLIKE_LASTS_MS */
	unsigned int same_node; /* other processes of this node's name, after SAME_NODE_LASTS_MS */
	unsigned int took_ms;
	struct store_counts counts;
	char error[EXCHANGE_ERROR]; /* text of the last failure; "": nothing failed */
};

struct exchange;

/*
 * Starts the thread. name: common name of all nodes. node: name of this node. Both texts must stay
 * valid. Returns 0, or a negative errno after error_add().
 */
int exchange_open(const struct store_options *options, const char *name, const char *node,
		  struct exchange **ret);
void exchange_close(struct exchange *exchange);

/* Begins a round. The round must end before the caller accesses its items. */
void exchange_begin(struct exchange *exchange, struct store_item *items, unsigned int count,
		    unsigned int expire_s, uint64_t meaning);

/* Returns a file descriptor that is readable when a round has ended. */
int exchange_fd(const struct exchange *exchange);

/*
 * Returns the round that has ended, or NULL if the round has not ended. The result is valid until
 * the next round begins.
 */
const struct round *exchange_end(struct exchange *exchange);

#endif
