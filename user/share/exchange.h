/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: runs rounds with the store in a thread, because the calls of store.h block. Only one round
 * is in progress at a time.
 */
#ifndef SLUICE_EXCHANGE_H
#define SLUICE_EXCHANGE_H

#include <stdbool.h>

#include "share/store.h"

#define EXCHANGE_ERROR 160

/* A round. The caller sets the members before `is_answered`, the thread sets the others. */
struct round {
	struct store_item *items;
	unsigned int count;
	unsigned int expire_s; /* expiry of a key after its last addition */
	uint64_t meaning;      /* hash of all limits that this node shares */

	bool is_answered;    /* an item got a reply, or without items, the nodes were counted */
	unsigned int nodes;  /* number of nodes that share, at most FLOW_NODES_MAX; 0: unknown */
	unsigned int unlike; /* number of nodes that have shared other limits for UNLIKE_LASTS_MS */
	unsigned int same_node; /* processes with this node's name for SAME_NODE_LASTS_MS */
	unsigned int took_ms;
	struct store_counts counts;
	char error[EXCHANGE_ERROR]; /* text of the last failure; "" if nothing failed */
};

struct exchange;

/*
 * Starts the thread. name: the common name of the nodes that share; node: the name of this node;
 * both must stay valid. Returns 0, or a negative errno after error_add().
 */
int exchange_open(const struct store_options *options, const char *name, const char *node,
		  struct exchange **ret);
void exchange_close(struct exchange *exchange);

/* Begins a round. The caller must not touch the items until the round has ended. */
void exchange_begin(struct exchange *exchange, struct store_item *items, unsigned int count,
		    unsigned int expire_s, uint64_t meaning);

/* Returns a file descriptor that becomes readable when a round has ended. */
int exchange_fd(const struct exchange *exchange);

/* Returns the round, valid until the next round begins, or NULL if it is still in progress. */
const struct round *exchange_end(struct exchange *exchange);

#endif
