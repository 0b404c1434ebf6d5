/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: rounds with the store in a thread of their own, as the store's client waits for answers.
 * One round is under way at a time.
 */
#ifndef SLUICE_EXCHANGE_H
#define SLUICE_EXCHANGE_H

#include <stdbool.h>

#include "base/log.h"
#include "share/store.h"

#define EXCHANGE_ERROR 160

/* What came of the last round. */
struct round {
	struct store_item *items;
	unsigned int count;
	bool is_answered;    /* some item was, or there was none and the store told its nodes */
	unsigned int nodes;  /* that share, with this one; FLOW_NODES_MAX at most; 0: never told */
	unsigned int unlike; /* of them, whose limits have differed from here for a while */
	unsigned int same_node; /* other processes under this node's name, for a while */
	unsigned int took_ms;
	struct store_counts counts;
	char error[EXCHANGE_ERROR]; /* of the last failure; "": none */
};

struct exchange;

/*
 * Starts the thread. name: of the cluster, which the caller keeps; node: of this machine, as the
 * others are to count it. alive_ms: how long a node counts after its last round.
 */
int exchange_open(const struct store_options *options, const char *name, const char *node,
		  unsigned int alive_ms, struct exchange **ret);
void exchange_close(struct exchange *exchange);

/*
 * Begins a round. The items stay the caller's, and are the thread's until the round has ended.
 * expire_s: when the store forgets a key that nobody adds to. meaning: of all limits that this node
 * shares.
 */
void exchange_begin(struct exchange *exchange, struct store_item *items, unsigned int count,
		    unsigned int expire_s, uint64_t meaning);

/* Readable when a round has ended. */
int exchange_fd(const struct exchange *exchange);

/* Whether the round has ended; then `ret` is set, and the next one may begin. */
bool exchange_end(struct exchange *exchange, struct round *ret);

#endif
