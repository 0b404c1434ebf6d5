/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: the documents that clients ask for. One thread reads all gates, and keeps each document
 * for a second, or for longer if reading it is expensive. So the load on a gate depends on how many
 * different documents are asked for, and not on the number of clients.
 */
#ifndef SLUICE_DOCUMENTS_H
#define SLUICE_DOCUMENTS_H

#include "serve/answer.h"
#include "serve/feed.h"
#include "serve/route.h"

struct documents;

/* Returns the events, which the same thread reads. Call documents_kick() after feeds_join(). */
struct feeds *documents_feeds(struct documents *documents);
void documents_kick(struct documents *documents);

/* Starts the thread. Returns 0, or a negative errno with an error. */
int documents_open(const struct serve_scope *scope, struct documents **ret);

/*
 * Ends the thread after its present document. Gives the clients that still wait an answer, and
 * every later call of documents_ask() as well.
 */
void documents_stop(struct documents *documents);
void documents_close(struct documents *documents);

/* A client that waits for a document. The caller clears it before the first use. */
struct asker {
	struct asker *next;
	/* Called by the thread with a reference to the answer, which asker->answer then has. */
	void (*ready)(struct asker *asker);
	struct answer *answer;
	uint64_t asked_at; /* uptime, in ns */
};

/*
 * Stores a reference to a document in asker->answer, if it was read lately, and returns true.
 * Otherwise returns false; if `waits` is set, calls asker->ready() later.
 */
bool documents_ask(struct documents *documents, const struct route *route, struct asker *asker,
		   bool waits);

/*
 * Removes a client that waits. Returns false if it does not wait, so that ready() was or will be
 * called. A document that no other client waits for is not read.
 */
bool documents_cancel(struct documents *documents, const struct asker *asker);

/* Gives an answer to clients that have waited for too long. Called once a second. */
void documents_expire(struct documents *documents);

/* Returns for how long the thread has worked on the present document, in ns; 0 if on none. */
uint64_t documents_busy_ns(struct documents *documents);

#endif
