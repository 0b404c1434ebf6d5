// SPDX-License-Identifier: GPL-2.0
#include "share/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "share/lookup.h"
#include "share/tls.h"

#define BACKOFF_FIRST_MS 50
#define BACKOFF_MAX_MS	 1000
#define CONNECT_MAX_MS	 5000
#define MEASURE_EVERY	 10 /* failed attempts, after which the round trip is measured again */
#define CODE_MAX	 16 /* the longest code of an error */

uint64_t store_now_ms(void)
{
	return clock_read(CLOCK_MONOTONIC) / NS_PER_MS;
}

uint64_t jitter(struct connection_setup *setup, uint64_t ms)
{
	setup->random = setup->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return ms / 2 + (setup->random >> 33) % ms;
}

/* --- Failures and ends ---------------------------------------------------------------------- */

static int error_store(struct connection_setup *setup, const struct connection *connection, int err,
		       const char *format, va_list args)
{
	char at[ENDPOINT_TEXT] = "", what[ERROR_TEXT];

	vsnprintf(what, sizeof(what), format, args);
	if (connection)
		endpoint_format(&connection->at, at);
	/* a name may be as long as the text, and what failed is more important */
	snprintf(setup->error, sizeof(setup->error), "%.64s%s%.180s", at, *at ? ": " : "", what);
	text_make_printable(setup->error);
	setup->err = err;
	return err;
}

int connection_error(struct connection_setup *setup, const struct connection *connection, int err,
		     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	error_store(setup, connection, err, format, args);
	va_end(args);
	return err;
}

static void connection_drop(struct connection *connection)
{
	const struct linger reset = {.l_onoff = 1, .l_linger = 0};

	if (connection->context) {
		/*
		 * A closed socket continues for minutes to send what the node has not acknowledged:
		 * a command that was given up could be executed when the network is back. So reset.
		 */
		setsockopt(connection->context->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		redisFree(connection->context);
	}
	connection->context = NULL;
	connection->ssl = NULL;
	if (lookup_end(connection->lookup))
		connection->lookup = NULL;
	connection->has_output = false;
	connection->state = CONNECTION_CLOSED;
}

bool connection_fail(struct connection *connection, struct connection_setup *setup, int err,
		     const char *format, ...)
{
	uint64_t wait = BACKOFF_FIRST_MS;
	va_list args;

	va_start(args, format);
	error_store(setup, connection, err, format, args);
	va_end(args);
	connection_drop(connection);
	connection->has_failed = true;
	/* the round trip may have become longer than a login is waited for */
	if (connection->attempts % MEASURE_EVERY == 0)
		connection->rtt_ms = 0;
	setup->counts->broken++;
	for (unsigned int i = 1; i < connection->attempts && wait < BACKOFF_MAX_MS; i++)
		wait *= 2;
	connection->retry_ms = store_now_ms() + jitter(setup, wait);
	return false;
}

void connection_close(struct connection *connection, struct connection_setup *setup)
{
	connection_drop(connection);
	lookup_leave(connection->lookup, &setup->left);
	connection->lookup = NULL;
	connection->attempts = 0;
	connection->retry_ms = 0;
	connection->has_failed = false;
}

bool connection_check(struct connection *connection, struct connection_setup *setup)
{
	struct pollfd ready = {.fd = connection->context->fd, .events = POLLIN};

	if (!poll(&ready, 1, 0))
		return true;
	connection_error(setup, connection, -ECONNRESET, "the connection has ended");
	setup->counts->broken++;
	connection_close(connection, setup);
	return false;
}

/* --- Limits of a reply ---------------------------------------------------------------------- */

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

/*
 * Creates an array for hiredis, within the limits of a reply. The header of an array announces its
 * elements before they come, so a few bytes could cost gigabytes. hiredis 1 reads a reply of any
 * depth, and frees it by recursion.
 */
static void *array_create(const redisReadTask *task, array_size elements)
{
	struct connection *connection = task->privdata;
	unsigned int depth = 1;

	for (const redisReadTask *outer = task->parent; outer; outer = outer->parent)
		depth++;
	if ((size_t)elements > connection->elements || depth > REPLY_DEPTH_MAX)
		return NULL;
	connection->elements -= elements;
	return connection->defaults->createArray(task, elements);
}

static void reply_limit(struct connection *connection)
{
	connection->bytes = REPLY_BYTES_MAX;
	connection->elements = REPLY_ELEMENTS_MAX;
}

/* --- Bytes ---------------------------------------------------------------------------------- */

int connection_fd(const struct connection *connection, short *ret_events)
{
	*ret_events = POLLIN;
	if (!connection->context)
		return -1;
	if (connection->state == CONNECTION_OPENING)
		*ret_events = POLLOUT;
	else if (connection->has_output && connection->state == CONNECTION_READY)
		*ret_events |= POLLOUT;
	return connection->context->fd;
}

bool connection_add(struct connection *connection, int argc, const char **argv)
{
	connection->has_output = true;
	return redisAppendCommandArgv(connection->context, argc, argv, NULL) == REDIS_OK;
}

/* connection_fail() with the error of hiredis. */
static bool context_fail(struct connection *connection, struct connection_setup *setup)
{
	const redisContext *context = connection->context;
	bool is_protocol = context->err == REDIS_ERR_PROTOCOL || context->err == REDIS_ERR_OOM;
	bool is_handshake = setup->tls && connection->state == CONNECTION_LOGIN;

	setup->counts->bad += is_protocol;
	return connection_fail(connection, setup, is_protocol ? -EPROTO : -ECONNRESET, "%s%s%s",
			       is_handshake ? "TLS: " : "", is_protocol ? "a bad reply: " : "",
			       is_handshake ? tls_error(context, connection->ssl)
					    : context->errstr);
}

bool connection_flush(struct connection *connection, struct connection_setup *setup)
{
	int done = 0;

	if (!connection->has_output)
		return true;
	if (redisBufferWrite(connection->context, &done) != REDIS_OK)
		return context_fail(connection, setup);
	connection->has_output = !done;
	return true;
}

bool connection_read(struct connection *connection, struct connection_setup *setup)
{
	redisReader *reader = connection->context->reader;
	size_t before = reader->len - reader->pos, more;

	if (redisBufferRead(connection->context) != REDIS_OK)
		return context_fail(connection, setup);
	more = reader->len - reader->pos - before;
	if (more > connection->bytes) {
		setup->counts->bad++;
		return connection_fail(connection, setup, -EPROTO, "a reply of more than %d bytes",
				       REPLY_BYTES_MAX);
	}
	connection->bytes -= more;
	return true;
}

redisReply *connection_reply(struct connection *connection, struct connection_setup *setup)
{
	void *reply = NULL;

	if (redisGetReplyFromReader(connection->context, &reply) != REDIS_OK) {
		context_fail(connection, setup);
		return NULL;
	}
	if (reply)
		reply_limit(connection);
	return reply;
}

/* --- Login ---------------------------------------------------------------------------------- */

/* A node must reply once before commands that change something: a dead node loses none of them. */
static bool login_begin(struct connection *connection, struct connection_setup *setup)
{
	const char *ping[] = {"PING"};
	const char *auth[] = {"AUTH", setup->user ? setup->user : setup->password, setup->password};
	bool added = setup->password ? connection_add(connection, setup->user ? 3 : 2, auth)
				     : connection_add(connection, 1, ping);

	connection->state = CONNECTION_LOGIN;
	connection->asked_ms = store_now_ms();
	return added || connection_fail(connection, setup, -ENOMEM, "out of memory");
}

/* Returns 0 or a negative errno. NOPERM: the user may not PING, and has other rights. */
static int login_check(const redisReply *reply, struct connection_setup *setup)
{
	struct endpoint to;
	unsigned int slot;

	if (reply->type == REDIS_REPLY_STATUS)
		return 0;
	if (reply->type != REDIS_REPLY_ERROR) {
		setup->counts->bad++;
		return -EPROTO;
	}
	if (refusal_parse(reply->str, reply->len, &slot, &to) != REFUSAL_LOADING)
		return !setup->password && !strncmp(reply->str, "NOPERM", 6) ? 0 : -EACCES;
	setup->counts->loading++;
	return -EAGAIN;
}

/*
 * Reports a failed login. Of an error to AUTH only the code, such as ERR, is reported, and only if
 * it cannot be the password: a store that does not know the command repeats its words.
 */
static bool login_fail(struct connection *connection, struct connection_setup *setup, int err,
		       const redisReply *reply)
{
	const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : NULL;
	size_t size;

	if (!error)
		return connection_fail(connection, setup, err,
				       "it is no Redis or Valkey, by its reply to %s",
				       setup->password ? "AUTH" : "PING");
	if (!setup->password)
		return connection_fail(connection, setup, err, "login without --password-file: %s",
				       error);
	size = strspn(error, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	if (!size || size > CODE_MAX || (error[size] && error[size] != ' ') ||
	    !strncmp(error, setup->password, size)) {
		error = "an error";
		size = strlen(error);
	}
	return connection_fail(connection, setup, err,
			       "login: %.*s (the rest may have the password)", (int)size, error);
}

static bool login_advance(struct connection *connection, struct connection_setup *setup)
{
	redisReply *reply;
	uint64_t rtt;
	int err;

	if (!connection_flush(connection, setup) || !connection_read(connection, setup))
		return false;
	reply = connection_reply(connection, setup);
	if (!reply)
		return connection->state != CONNECTION_CLOSED;
	err = login_check(reply, setup);
	if (err)
		login_fail(connection, setup, err, reply);
	freeReplyObject(reply);
	if (err)
		return false;
	connection->state = CONNECTION_READY;
	/* it includes the time until the next call, if no call waited for the reply */
	rtt = store_now_ms() - connection->asked_ms + 1;
	if (!connection->rtt_ms || rtt < connection->rtt_ms)
		connection->rtt_ms = rtt;
	connection->asked_ms = 0;
	return true;
}

/* --- Connecting ----------------------------------------------------------------------------- */

static bool socket_open(struct connection *connection, struct connection_setup *setup,
			const char *address)
{
	redisContext *context = redisConnectNonBlock(address, connection->at.port);

	connection->context = context;
	if (!context || context->err)
		return connection_fail(connection, setup, -ECONNREFUSED, "connect: %s",
				       context ? context->errstr : "out of memory");
	fcntl(context->fd, F_SETFD, FD_CLOEXEC);
	connection->defaults = context->reader->fn;
	connection->functions = *connection->defaults;
	connection->functions.createArray = array_create;
	context->reader->fn = &connection->functions;
	context->reader->privdata = connection;
	reply_limit(connection);
	connection->state = CONNECTION_OPENING;
	return true;
}

static bool connection_begin(struct connection *connection, struct connection_setup *setup)
{
	uint64_t now = store_now_ms(), patience = 3 * (uint64_t)setup->timeout_ms;

	if (now < connection->retry_ms)
		return false;
	connection->attempts++;
	setup->counts->connects++;
	connection->give_up_ms = now + (patience < CONNECT_MAX_MS ? patience : CONNECT_MAX_MS);
	if (host_is_address(connection->at.host))
		return socket_open(connection, setup, connection->at.host);
	if (!connection->lookup)
		connection->lookup = lookup_begin(connection->at.host);
	if (!connection->lookup)
		return connection_fail(connection, setup, -ENOMEM, "the name cannot be looked up");
	connection->state = CONNECTION_LOOKUP;
	return true;
}

static bool lookup_advance(struct connection *connection, struct connection_setup *setup)
{
	char address[NI_MAXHOST];

	if (!lookup_is_done(connection->lookup))
		return true;
	if (!lookup_take(connection->lookup, connection->attempts, address))
		return connection_fail(connection, setup, -EHOSTUNREACH, "the name has no address");
	lookup_end(connection->lookup);
	connection->lookup = NULL;
	return socket_open(connection, setup, address);
}

static bool opening_advance(struct connection *connection, struct connection_setup *setup)
{
	struct pollfd ready = {.fd = connection->context->fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	const char *error = NULL;
	int err = 0;

	if (poll(&ready, 1, 0) <= 0)
		return true;
	if (getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &err, &size))
		err = errno;
	if (err)
		return connection_fail(connection, setup, -err, "connect: %s", strerror(err));
	connection->context->flags |= REDIS_CONNECTED;
	if (setup->tls)
		error = tls_begin(setup->tls, connection->context, connection->at.host,
				  &connection->ssl);
	if (error)
		return connection_fail(connection, setup, -ECONNABORTED, "TLS: %s", error);
	return login_begin(connection, setup);
}

bool connection_advance(struct connection *connection, struct connection_setup *setup)
{
	if (connection->state == CONNECTION_CLOSED && !connection_begin(connection, setup))
		return false;
	if (connection->state == CONNECTION_LOOKUP && !lookup_advance(connection, setup))
		return false;
	if (connection->state == CONNECTION_OPENING && !opening_advance(connection, setup))
		return false;
	if (connection->state == CONNECTION_LOGIN && !login_advance(connection, setup))
		return false;
	if (connection->state == CONNECTION_READY || store_now_ms() < connection->give_up_ms)
		return true;
	return connection_fail(connection, setup, -ETIMEDOUT, "no connection after %d ms",
			       setup->timeout_ms);
}
