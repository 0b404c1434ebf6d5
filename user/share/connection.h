/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: a connection to one node of a store, which never blocks. Does what hiredis leaves open:
 * names that are looked up without waiting, a limit to what an answer may cost, times to give up,
 * and to wait before the next attempt.
 */
#ifndef SLUICE_SHARE_CONNECTION_H
#define SLUICE_SHARE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "share/slots.h"
#include "share/store.h"

/* What a single answer may cost: the map of a cluster in some 3,000 ranges, with two replicas. */
#define ANSWER_BYTES_MAX    (2 << 20)
#define ANSWER_ELEMENTS_MAX (64 << 10)
#define ANSWER_DEPTH_MAX    6 /* of arrays in arrays; that map has 4 */

#define ERROR_TEXT 256

/* What all connections of a store have in common. */
struct connection_setup {
	char *user, *password;
	struct tls *tls;     /* NULL: none */
	struct lookup *left; /* of connections that were closed, which cannot be ended yet */
	int timeout_ms;
	uint64_t random; /* the state of jitter() */
	struct store_counts *counts;
	char error[ERROR_TEXT]; /* of the last failure */
	int status;		/* its negative errno */
};

enum connection_state {
	CONNECTION_CLOSED,
	CONNECTION_LOOKUP, /* of the host's name */
	CONNECTION_OPENING,
	CONNECTION_LOGIN, /* waits for the answer to AUTH, or to PING */
	CONNECTION_READY,
};

struct connection {
	struct endpoint at;
	enum connection_state state;
	redisContext *context;
	struct ssl_st *ssl;    /* of the context; NULL: there is no TLS */
	struct lookup *lookup; /* of at.host, while it is under way: also of an attempt before */
	unsigned int attempts; /* since it last proved sound */
	uint64_t give_up_ms;   /* when to stop connecting */
	uint64_t retry_ms;     /* when to connect again */
	uint64_t asked_ms;     /* when it was last asked, having been idle */
	uint64_t rtt_ms;       /* from then to its answer, rounded up; 0: not known */
	bool has_failed;       /* it ended, or was waited for in vain, since it proved sound */
	bool has_output;       /* not all has been sent */
	/* The limits of an answer: what of them the present one has left. */
	redisReplyObjectFunctions functions, *defaults;
	size_t bytes, elements;
};

/* A random time from half to one and a half of `ms`, as many nodes lose a store at once. */
uint64_t jitter(struct connection_setup *setup, uint64_t ms);

/* NULL, and errno is set: EOPNOTSUPP without TLS, else EINVAL. */
struct tls *tls_open(const char *ca_file);
void tls_close(struct tls *tls);

/* Says what failed: in setup->error, made printable. Returns `status`, a negative errno. */
int connection_fail(struct connection_setup *setup, const struct connection *connection, int status,
		    const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * Begins to connect where it is closed and the time has come, and goes on with that. False: it is
 * closed.
 */
bool connection_advance(struct connection *connection, struct connection_setup *setup);

/* What poll() is to wait for; -1: nothing, as a name is being looked up. */
int connection_fd(const struct connection *connection, short *ret_events);

bool connection_add(struct connection *connection, int argc, const char **argv);
bool connection_flush(struct connection *connection, struct connection_setup *setup);

/* Reads what has come. False: the connection is closed. */
bool connection_read(struct connection *connection, struct connection_setup *setup);

/* The next answer, which is freed by freeReplyObject(); NULL: it has not come, or is not taken. */
redisReply *connection_answer(struct connection *connection, struct connection_setup *setup);

/* It has answered what it is there for: more than a greeting, or what any node knows. */
void connection_proves_sound(struct connection *connection);

/* Whether an idle connection has not ended. One that has is closed, without back-off. */
bool connection_check(struct connection *connection, struct connection_setup *setup);

/* Ends a connection that failed, and waits before the next. */
void connection_break(struct connection *connection, struct connection_setup *setup);

/* Ends it, and forgets its past. */
void connection_close(struct connection *connection, struct connection_setup *setup);

#endif
