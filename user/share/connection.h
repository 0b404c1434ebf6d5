/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: a connection to a node of a store. Its functions never block. It adds to hiredis:
 * asynchronous name lookup, limits for the size of replies, timeouts, and a back-off between
 * attempts to connect.
 */
#ifndef SLUICE_SHARE_CONNECTION_H
#define SLUICE_SHARE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "share/slots.h"
#include "share/store.h"

/* Limits of a reply: enough for CLUSTER SLOTS with 3,000 ranges and two replicas each. */
#define REPLY_BYTES_MAX	   (2 << 20)
#define REPLY_ELEMENTS_MAX (64 << 10)
#define REPLY_DEPTH_MAX	   6 /* levels of nested arrays; the reply to CLUSTER SLOTS has 4 */

#define ERROR_TEXT 256

/* State that all connections of a store share. */
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
	CONNECTION_LOOKUP,  /* the host name is being looked up */
	CONNECTION_OPENING, /* connect() is in progress */
	CONNECTION_LOGIN,   /* the TLS handshake, and then AUTH or PING, is in progress */
	CONNECTION_READY,
};

struct connection {
	struct connection_setup *setup;
	struct endpoint at;
	enum connection_state state;
	redisContext *context;
	struct ssl_st *ssl;	    /* TLS of `context`, which frees it; NULL without TLS */
	struct name_lookup *lookup; /* may be of an earlier attempt or of an earlier host */
	/* attempts to connect since the last reply to a command other than CLUSTER SLOTS */
	unsigned int attempts;
	uint64_t give_up_ms; /* give up connecting at this time */
	uint64_t retry_ms;   /* do not connect again before this time */
	uint64_t asked_ms;   /* when the idle node was sent a command; 0: it has replied since */
	uint64_t rtt_ms;     /* smoothed round trip, rounded up; 0: unknown */
	bool has_failed;     /* it failed since the reply from which `attempts` counts */
	bool has_output;     /* hiredis has output that was not sent yet */
	/* hiredis' functions, with array_create(); bytes and elements left for the current reply */
	redisReplyObjectFunctions functions, *defaults;
	size_t bytes, elements;
};

/*
 * Creates a TLS context. ca_file: the CA that certificates must be signed by. Returns NULL and sets
 * errno on failure: EOPNOTSUPP if this build has no TLS, EINVAL if ca_file cannot be read.
 */
struct ssl_ctx_st *tls_open(const char *ca_file);
void tls_close(struct ssl_ctx_st *tls);

/* Returns a random time of 0.5 to 1.5 times `ms`, so that not all nodes retry at once. */
uint64_t jitter(uint64_t ms);

/* Stores a failure in `setup`, made printable. at: the failed node, or NULL. Returns err. */
int store_fail(struct connection_setup *setup, const struct endpoint *at, int err,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Closes a connection that failed, and sets the time of the next attempt. Returns false. */
bool connection_end(struct connection *connection);

/* Stores a failure, and closes the connection by connection_end(). Returns false. */
#define connection_fail(connection, err, ...)                                                      \
	(store_fail((connection)->setup, &(connection)->at, err, __VA_ARGS__),                     \
	 connection_end(connection))

/* Begins or continues to connect. Returns false if it failed, or if it is too early. */
bool connection_advance(struct connection *connection);

/* Returns a file descriptor for poll(), or -1 while a name is being looked up. */
int connection_fd(const struct connection *connection, short *ret_events);

/* Send pending output, and read input. Both return false if the connection failed. */
bool connection_flush(struct connection *connection);
bool connection_read(struct connection *connection);

/* Returns the next reply, or NULL if it is incomplete or the connection failed. */
redisReply *connection_reply(struct connection *connection);

/* Closes an idle connection that the node has closed, so that the next attempt begins at once. */
void connection_check(struct connection *connection);

/* Closes a connection, and assigns it to another node. at: the address, or NULL for none. */
void connection_reset(struct connection *connection, const struct endpoint *at);

#endif
