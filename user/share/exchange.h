/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: rounds with the store, in a thread, because the store's client waits for replies. One
 * round is in progress at a time.
 */
#ifndef SLUICE_EXCHANGE_H
#define SLUICE_EXCHANGE_H

#include <stdbool.h>

#include "share/store.h"

#define EXCHANGE_ERROR 160

/* A round. The caller sets the members above `is_answered`. */
struct round {
	struct store_item *items;
	unsigned int count;
	unsigned int expire_s; /* until the store drops a key without additions */
	uint64_t meaning;      /* of all limits that this node shares */

	bool is_answered;	/* an item was, or there was none and the store counted the nodes */
	unsigned int nodes;	/* that share, at most FLOW_NODES_MAX; 0: not known yet */
	unsigned int unlike;	/* nodes whose limits have differed from those here for a while */
	unsigned int same_node; /* other processes with this node's name, for a while */
	unsigned int took_ms;
	struct store_counts counts;
	char error[EXCHANGE_ERROR]; /* the last failure; "": none */
};

struct exchange;

/* Starts the thread. name: of the cluster; node: of this machine; the caller keeps both. */
int exchange_open(const struct store_options *options, const char *name, const char *node,
		  struct exchange **ret);
void exchange_close(struct exchange *exchange);

/* Begins a round. The thread uses the items until the round has ended. */
void exchange_begin(struct exchange *exchange, struct store_item *items, unsigned int count,
		    unsigned int expire_s, uint64_t meaning);

/* Readable when a round has ended. */
int exchange_fd(const struct exchange *exchange);

/* Returns the round if it has ended, until the next one begins; otherwise NULL. */
const struct round *exchange_end(struct exchange *exchange);

#endif
