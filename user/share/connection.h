/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: a connection to a node of a store, which never blocks. It adds to hiredis: names that are
 * looked up without waiting, limits of a reply, timeouts, and a back-off between attempts.
 */
#ifndef SLUICE_SHARE_CONNECTION_H
#define SLUICE_SHARE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "share/slots.h"
#include "share/store.h"

/* The limits of a reply: the map of a cluster in some 3,000 ranges, with two replicas. */
#define REPLY_BYTES_MAX	   (2 << 20)
#define REPLY_ELEMENTS_MAX (64 << 10)
#define REPLY_DEPTH_MAX	   6 /* of nested arrays; that map has 4 */

#define ERROR_TEXT 256

/* Shared by all connections of a store. */
struct connection_setup {
	char *user, *password;
	struct ssl_ctx_st *tls; /* NULL: no TLS */
	int timeout_ms;
	struct store_counts *counts;
	char error[ERROR_TEXT]; /* the last failure */
	int err;		/* its negative errno */
};

enum connection_state {
	CONNECTION_CLOSED,
	CONNECTION_LOOKUP, /* of the host's name */
	CONNECTION_OPENING,
	CONNECTION_LOGIN, /* waits for the reply to AUTH, or to PING */
	CONNECTION_READY,
};

struct connection {
	struct connection_setup *setup;
	struct endpoint at;
	enum connection_state state;
	redisContext *context;
	struct ssl_st *ssl;    /* of the context; NULL: no TLS */
	struct lookup *lookup; /* of a name; may be of an earlier attempt, or of an earlier host */
	unsigned int attempts; /* since a reply to a command that a hanging node would not give */
	uint64_t give_up_ms;   /* when to stop connecting */
	uint64_t retry_ms;     /* when to connect again */
	uint64_t asked_ms;     /* when it was last asked, having been idle; 0: it has replied */
	uint64_t rtt_ms;       /* the smoothed time of a reply, rounded up; 0: not known */
	bool has_failed;       /* it ended, or timed out, since such a reply */
	bool has_output;       /* not everything has been sent */
	/* the limits of a reply, and what the present reply has left of them */
	redisReplyObjectFunctions functions, *defaults;
	size_t bytes, elements;
};

/* ca_file: the authority of certificates. NULL: errno is EOPNOTSUPP without TLS, or EINVAL. */
struct ssl_ctx_st *tls_open(const char *ca_file);
void tls_close(struct ssl_ctx_st *tls);

/* Returns a random time of 0.5 to 1.5 times `ms`, because many nodes lose a store at once. */
uint64_t jitter(uint64_t ms);

/* Stores a failure, printable, in setup->error. at: of the node, or NULL. Returns err. */
int store_fail(struct connection_setup *setup, const struct endpoint *at, int err,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Ends a connection that failed, and waits before the next attempt. Returns false. */
bool connection_end(struct connection *connection);

/* Stores a failure, and ends the connection. Returns false. */
#define connection_fail(connection, err, ...)                                                      \
	(store_fail((connection)->setup, &(connection)->at, err, __VA_ARGS__),                     \
	 connection_end(connection))

/* Connects if it is time to, and continues that. Returns false if the connection is closed. */
bool connection_advance(struct connection *connection);

/* Returns what poll() has to wait for; -1: nothing, because a name is being looked up. */
int connection_fd(const struct connection *connection, short *ret_events);

/* Return false if the connection is closed afterwards. */
bool connection_flush(struct connection *connection);
bool connection_read(struct connection *connection);

/* Returns the next reply; NULL: it has not come, or the connection failed. */
redisReply *connection_reply(struct connection *connection);

/* Closes an idle connection that the node has ended, without back-off. */
void connection_check(struct connection *connection);

/* Ends a connection, and makes it one to another node. at: NULL: to no node. */
void connection_reset(struct connection *connection, const struct endpoint *at);

#endif
