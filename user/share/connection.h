/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: a connection to a node of a store. No function blocks. It adds to hiredis asynchronous
 * name lookup, limits for the size of replies, timeouts, and a back-off between attempts to
 * connect.
 */
#ifndef SLUICE_SHARE_CONNECTION_H
#define SLUICE_SHARE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "share/slots.h"
#include "share/store.h"

/* Limits for a reply. CLUSTER SLOTS may have 3,000 ranges of two replicas each. */
#define REPLY_BYTES_MAX	   (2 << 20)
#define REPLY_ELEMENTS_MAX (64 << 10)
#define REPLY_DEPTH_MAX	   6 /* levels of nested arrays; CLUSTER SLOTS has 4 */

#define ERROR_TEXT 256

/* Settings, counters and errors that all connections of a store share. */
struct connection_setup {
	char *user, *password;
	struct ssl_ctx_st *tls; /* TLS settings; NULL without TLS */
	int timeout_ms;
	struct store_counts *counts;
	char error[ERROR_TEXT]; /* text of the last failure */
	int err;		/* negative errno of the last failure */
};

enum connection_state {
	CONNECTION_CLOSED,
	CONNECTION_LOOKUP,  /* the name of the host is being looked up */
	CONNECTION_OPENING, /* connect() is in progress */
	CONNECTION_LOGIN,   /* the TLS handshake, AUTH or PING is in progress */
	CONNECTION_READY,
};

struct connection {
	struct connection_setup *setup;
	struct endpoint at;
	enum connection_state state;
	redisContext *context;
	struct ssl_st *ssl;	    /* TLS state, which `context` frees; NULL without TLS */
	struct name_lookup *lookup; /* name lookup, perhaps of the previous host */
	/* attempts to connect since the last reply; replies to CLUSTER SLOTS do not count */
	unsigned int attempts;
	uint64_t give_up_ms; /* when to give up the current attempt to connect */
	uint64_t retry_ms;   /* earliest time of the next attempt */
	uint64_t asked_ms; /* when the first unanswered command was sent; 0: the node has replied */
	uint64_t rtt_ms;   /* smoothed round-trip time, rounded up; 0: unknown */
	bool has_failed;   /* a failure occurred after the last reply */
	bool has_output;   /* hiredis has commands that are not sent yet */
	/*
	 * array_create() is in `functions`. The current reply may use `bytes` more bytes and
	 * `elements` more elements.
	 */
	redisReplyObjectFunctions functions, *defaults;
	size_t bytes, elements;
};

/*
 * Creates a TLS context that accepts certificates signed by the CA in `ca_file`. On failure,
 * returns NULL and sets errno: EOPNOTSUPP if this build has no TLS; EINVAL if ca_file cannot be
 * read.
 */
struct ssl_ctx_st *tls_open(const char *ca_file);
void tls_close(struct ssl_ctx_st *tls);

/*
 * Returns a random time between 0.5 and 1.5 times `ms`. It keeps nodes from retrying at the same
 * time.
 */
uint64_t jitter(uint64_t ms);

/* Stores the text of a failure. at: the node that failed, or NULL. Returns `err`. */
int store_fail(struct connection_setup *setup, const struct endpoint *at, int err,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Closes a connection after a failure, and sets the time of the next attempt. Returns false. */
bool connection_end(struct connection *connection);

/* Stores a failure, and closes the connection. Returns false. */
#define connection_fail(connection, err, ...)                                                      \
	(store_fail((connection)->setup, &(connection)->at, err, __VA_ARGS__),                     \
	 connection_end(connection))

/* Begins or continues to connect. Returns false after a failure, or before retry_ms. */
bool connection_advance(struct connection *connection);

/* Returns a file descriptor for poll(), or -1 while a name is being looked up. */
int connection_fd(const struct connection *connection, short *ret_events);

/* Send pending output, or read pending input. Return false if the connection failed. */
bool connection_flush(struct connection *connection);
bool connection_read(struct connection *connection);

/*
 * Returns the next complete reply. Returns NULL if no reply is complete, or if the connection
 * failed.
 */
redisReply *connection_reply(struct connection *connection);

/* Closes an idle connection that the node has closed, so that it can reconnect at once. */
void connection_check(struct connection *connection);

/*
 * Closes a connection. Assigns it to the store node at address `at`, or to no node if `at` is NULL.
 */
void connection_reset(struct connection *connection, const struct endpoint *at);

#endif
