/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: the documents that clients ask for. One thread reads all gates. It keeps each document for
 * a second, or for longer if reading it is expensive. So the load on a gate depends on the number
 * of different documents, not on the number of clients.
 */
#ifndef SLUICE_DOCUMENTS_H
#define SLUICE_DOCUMENTS_H

#include "serve/answer.h"
#include "serve/feed.h"
#include "serve/route.h"

struct documents;

/*
 * Returns the event feeds. The thread that reads documents also reads events. After feeds_join(),
 * call documents_kick() to wake it.
 */
struct feeds *documents_feeds(struct documents *documents);
void documents_kick(struct documents *documents);

/* Starts the thread that reads documents. Returns 0, or a negative errno with an error. */
int documents_open(const struct serve_scope *scope, struct documents **ret);

/*
 * Ends the thread after the document that it reads at present. Calls ready() of all waiting
 * clients, without an answer. Later calls of documents_ask() store an error as the answer.
 */
void documents_stop(struct documents *documents);
void documents_close(struct documents *documents);

/* A client that waits for a document. The caller sets it to zeros before the first use. */
struct asker {
	struct asker *next;
	/*
	 * Called by the reading thread after it has stored a reference to the answer in `answer`.
	 */
	void (*ready)(struct asker *asker);
	struct answer *answer;
	uint64_t asked_at; /* uptime of the request, in ns */
};

/*
 * If a recent copy of a document exists, stores a reference in asker->answer, and returns true.
 * Otherwise returns false. If `waits` is true, a thread then reads the document and calls
 * asker->ready().
 */
bool documents_ask(struct documents *documents, const struct route *route, struct asker *asker,
		   bool waits);

/*
 * Removes a waiting client. Returns false if ready() was already called for the client, or is being
 * called.
 */
bool documents_cancel(struct documents *documents, const struct asker *asker);

/* Gives an error to clients that have waited for too long. Called once a second. */
void documents_expire(struct documents *documents);

/*
 * Returns how long the thread has been reading the present document, in ns. Returns 0 if it reads
 * none.
 */
uint64_t documents_busy_ns(struct documents *documents);

#endif
