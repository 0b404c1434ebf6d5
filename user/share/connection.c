// SPDX-License-Identifier: GPL-2.0
#include "share/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"

#ifdef SL_STORE_TLS
#include <hiredis/hiredis_ssl.h> /* must follow hiredis.h */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

#define BACKOFF_FIRST_MS 50
#define BACKOFF_MAX_MS	 1000
#define CONNECT_MAX_MS	 5000
#define MEASURE_EVERY	 10 /* failed attempts to connect before the round trip is measured again */
#define CODE_MAX	 16 /* length of the longest code of an error, such as NOAUTH */

uint64_t store_now_ms(void)
{
	return clock_read(CLOCK_MONOTONIC) / NS_PER_MS;
}

uint64_t jitter(uint64_t ms)
{
	uint32_t random;

	/* getrandom() may fail early at boot; then use no jitter */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = 0;
	return ms / 2 + random % ms;
}

/* --- Names ---------------------------------------------------------------------------------- */

/*
 * A DNS lookup by getaddrinfo_a(3). It does not block, because a DNS server can take longer than a
 * round.
 */
struct name_lookup {
	struct gaicb request;
	struct addrinfo hints;
	char host[HOST_TEXT];
};

static struct name_lookup *lookup_begin(const char *host)
{
	struct name_lookup *lookup = calloc(1, sizeof(*lookup));
	struct gaicb *list[1];

	if (!lookup)
		return NULL;
	strcpy(lookup->host, host);
	lookup->hints.ai_socktype = SOCK_STREAM;
	lookup->request.ar_name = lookup->host;
	lookup->request.ar_request = &lookup->hints;
	list[0] = &lookup->request;
	if (!getaddrinfo_a(GAI_NOWAIT, list, 1, NULL))
		return lookup;
	free(lookup);
	return NULL;
}

/*
 * Formats an address of the host. Chooses another address in each attempt. Returns false if the
 * host has no address.
 */
static bool lookup_read(struct name_lookup *lookup, unsigned int attempt, char text[NI_MAXHOST])
{
	const struct addrinfo *one = lookup->request.ar_result;
	unsigned int count = 0;

	if (gai_error(&lookup->request) || !one)
		return false;
	for (; one; one = one->ai_next)
		count++;
	one = lookup->request.ar_result;
	for (unsigned int i = 0; i < attempt % count; i++)
		one = one->ai_next;
	return !getnameinfo(one->ai_addr, one->ai_addrlen, text, NI_MAXHOST, NULL, 0,
			    NI_NUMERICHOST);
}

/*
 * Frees the name lookup of a connection. Does nothing if its thread is still running, because the
 * next lookup waits for this thread. So a connection never has two threads, however many names the
 * store reports.
 */
static void lookup_end(struct connection *connection)
{
	struct name_lookup *lookup = connection->lookup;

	if (!lookup || gai_cancel(&lookup->request) == EAI_NOTCANCELED)
		return;
	if (lookup->request.ar_result)
		freeaddrinfo(lookup->request.ar_result);
	free(lookup);
	connection->lookup = NULL;
}

/* --- TLS ------------------------------------------------------------------------------------ */

#ifdef SL_STORE_TLS
struct ssl_ctx_st *tls_open(const char *ca_file)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

	if (tls && SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) &&
	    SSL_CTX_load_verify_locations(tls, ca_file, NULL)) {
		SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
		return tls;
	}
	errno = tls ? EINVAL : ENOMEM;
	ERR_clear_error();
	SSL_CTX_free(tls);
	return NULL;
}

void tls_close(struct ssl_ctx_st *tls)
{
	SSL_CTX_free(tls);
}

/*
 * Requires that the certificate is for `host`, which hiredis does not check. Returns false on
 * failure.
 */
static bool host_expect(SSL *ssl, const char *host)
{
	if (host_is_address(host))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

/* Returns the reason why the certificate was refused, or the error text of hiredis. */
static const char *tls_error(const struct connection *connection)
{
	long result = connection->ssl ? SSL_get_verify_result(connection->ssl) : X509_V_OK;

	if (result != X509_V_OK)
		return X509_verify_cert_error_string(result);
	return *connection->context->errstr ? connection->context->errstr : "out of memory";
}

/*
 * Begins the TLS handshake. Later reads and writes continue it. The certificate must be for the
 * host of the connection. Returns NULL, or the text of the error.
 */
static const char *tls_begin(struct connection *connection)
{
	/* redisFree() frees `ssl` if redisInitiateSSL() succeeds */
	SSL *ssl = connection->ssl = SSL_new(connection->setup->tls);
	const char *error;

	if (ssl && host_expect(ssl, connection->at.host) &&
	    redisInitiateSSL(connection->context, ssl) == REDIS_OK)
		return NULL;
	error = tls_error(connection);
	connection->ssl = NULL;
	SSL_free(ssl);
	return error;
}

#else
struct ssl_ctx_st *tls_open(const char *ca_file)
{
	(void)ca_file;
	errno = EOPNOTSUPP;
	return NULL;
}

void tls_close(struct ssl_ctx_st *tls)
{
	(void)tls;
}

static const char *tls_begin(struct connection *connection)
{
	(void)connection;
	return "none";
}

static const char *tls_error(const struct connection *connection)
{
	return connection->context->errstr;
}
#endif

/* --- Failures and ends ---------------------------------------------------------------------- */

int store_fail(struct connection_setup *setup, const struct endpoint *at, int err,
	       const char *format, ...)
{
	char place[ENDPOINT_TEXT] = "", what[ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (at)
		endpoint_format(at, place);
	/* shorten a long host name, because the text must have room for the reason */
	snprintf(setup->error, sizeof(setup->error), "%.64s%s%.180s", place, *place ? ": " : "",
		 what);
	text_make_printable(setup->error);
	setup->err = err;
	return err;
}

static void connection_drop(struct connection *connection)
{
	const struct linger reset = {.l_onoff = 1, .l_linger = 0};

	if (connection->context) {
		/*
		 * Close by a TCP reset. After a normal close, the kernel retransmits commands for
		 * minutes, so the node could execute old commands after a network outage.
		 */
		setsockopt(connection->context->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		redisFree(connection->context);
	}
	connection->context = NULL;
	connection->ssl = NULL;
	lookup_end(connection);
	connection->has_output = false;
	connection->state = CONNECTION_CLOSED;
}

bool connection_end(struct connection *connection)
{
	uint64_t wait = BACKOFF_FIRST_MS;

	connection_drop(connection);
	connection->has_failed = true;
	/* Logins may time out because the round trip is longer now. So measure it again. */
	if (connection->attempts % MEASURE_EVERY == 0)
		connection->rtt_ms = 0;
	for (unsigned int i = 1; i < connection->attempts && wait < BACKOFF_MAX_MS; i++)
		wait *= 2;
	connection->retry_ms = store_now_ms() + jitter(wait);
	return false;
}

void connection_reset(struct connection *connection, const struct endpoint *at)
{
	const struct endpoint to = at ? *at : (struct endpoint){0};

	connection_drop(connection);
	*connection = (struct connection){
		.setup = connection->setup, .at = to, .lookup = connection->lookup};
}

void connection_check(struct connection *connection)
{
	struct pollfd ready = {.fd = connection->context->fd, .events = POLLIN};

	if (!poll(&ready, 1, 0))
		return;
	store_fail(connection->setup, &connection->at, -ECONNRESET, "the connection has ended");
	connection_reset(connection, &connection->at);
}

/* --- Bytes ---------------------------------------------------------------------------------- */

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

/*
 * Creates an array for hiredis. Returns NULL if the reply exceeds the limits. Otherwise a reply of
 * a few bytes could use gigabytes, because hiredis allocates as many elements as the header of an
 * array announces. hiredis 1 also accepts arrays of any depth, and frees them recursively.
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

/* Closes the connection after an error of hiredis. Returns false. */
static bool context_fail(struct connection *connection)
{
	const redisContext *context = connection->context;
	bool is_protocol = context->err == REDIS_ERR_PROTOCOL || context->err == REDIS_ERR_OOM;
	bool is_handshake = connection->setup->tls && connection->state == CONNECTION_LOGIN;

	connection->setup->counts->bad += is_protocol;
	return connection_fail(connection, is_protocol ? -EPROTO : -ECONNRESET, "%s%s%s",
			       is_handshake ? "TLS: " : "", is_protocol ? "a bad reply: " : "",
			       is_handshake ? tls_error(connection) : context->errstr);
}

bool connection_flush(struct connection *connection)
{
	int done = 0;

	if (!connection->has_output)
		return true;
	if (redisBufferWrite(connection->context, &done) != REDIS_OK)
		return context_fail(connection);
	connection->has_output = !done;
	return true;
}

bool connection_read(struct connection *connection)
{
	redisReader *reader = connection->context->reader;
	size_t before = reader->len - reader->pos, more;

	if (redisBufferRead(connection->context) != REDIS_OK)
		return context_fail(connection);
	more = reader->len - reader->pos - before;
	if (more > connection->bytes) {
		connection->setup->counts->bad++;
		return connection_fail(connection, -EPROTO, "a reply of more than %d bytes",
				       REPLY_BYTES_MAX);
	}
	connection->bytes -= more;
	return true;
}

redisReply *connection_reply(struct connection *connection)
{
	void *reply = NULL;

	if (redisGetReplyFromReader(connection->context, &reply) != REDIS_OK) {
		context_fail(connection);
		return NULL;
	}
	if (reply)
		reply_limit(connection);
	return reply;
}

/* --- Connecting ----------------------------------------------------------------------------- */

static bool connection_begin(struct connection *connection)
{
	uint64_t now = store_now_ms(), patience = 3 * (uint64_t)connection->setup->timeout_ms;

	if (now < connection->retry_ms)
		return false;
	connection->attempts++;
	connection->setup->counts->connects++;
	connection->give_up_ms = now + (patience < CONNECT_MAX_MS ? patience : CONNECT_MAX_MS);
	connection->state = CONNECTION_LOOKUP;
	return true;
}

static bool socket_open(struct connection *connection, const char *address)
{
	redisContext *context = redisConnectNonBlock(address, connection->at.port);

	connection->context = context;
	if (!context || context->err)
		return connection_fail(connection, -ECONNREFUSED, "connect: %s",
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

static bool lookup_advance(struct connection *connection)
{
	const char *host = connection->at.host;
	char address[NI_MAXHOST];

	if (host_is_address(host))
		return socket_open(connection, host);
	if (connection->lookup && strcmp(connection->lookup->host, host))
		lookup_end(connection);
	if (!connection->lookup)
		connection->lookup = lookup_begin(host);
	if (!connection->lookup)
		return connection_fail(connection, -ENOMEM, "the name cannot be looked up");
	if (gai_error(&connection->lookup->request) == EAI_INPROGRESS ||
	    strcmp(connection->lookup->host, host))
		return true;
	if (!lookup_read(connection->lookup, connection->attempts, address))
		return connection_fail(connection, -EHOSTUNREACH, "the name has no address");
	lookup_end(connection);
	return socket_open(connection, address);
}

/*
 * Sends AUTH or PING. Commands are sent only after the reply, so that no command is sent to a dead
 * node.
 */
static bool login_begin(struct connection *connection)
{
	const struct connection_setup *setup = connection->setup;
	redisContext *context = connection->context;
	int status = !setup->password ? redisAppendCommand(context, "PING")
		     : setup->user    ? redisAppendCommand(context, "AUTH %s %s", setup->user,
							   setup->password)
				      : redisAppendCommand(context, "AUTH %s", setup->password);

	connection->state = CONNECTION_LOGIN;
	connection->has_output = true;
	connection->asked_ms = store_now_ms();
	return status == REDIS_OK || connection_fail(connection, -ENOMEM, "out of memory");
}

static bool opening_advance(struct connection *connection)
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
		return connection_fail(connection, -err, "connect: %s", strerror(err));
	connection->context->flags |= REDIS_CONNECTED;
	if (connection->setup->tls)
		error = tls_begin(connection);
	if (error)
		return connection_fail(connection, -ECONNABORTED, "TLS: %s", error);
	return login_begin(connection);
}

/*
 * Reads the reply to AUTH or PING. Returns true if the login succeeded. Otherwise closes the
 * connection and returns false. NOPERM after PING is a success, because the user may only lack the
 * right to PING. The text of an error may contain the password, because some servers quote the
 * arguments of an unknown command. So this reports only the code of an error, such as ERR. It omits
 * even the code if the password begins with it.
 */
static bool login_read(struct connection *connection, const redisReply *reply)
{
	const char *password = connection->setup->password, *error = reply->str;
	struct endpoint to;
	unsigned int slot;
	int err = -EACCES;
	size_t size;

	if (reply->type == REDIS_REPLY_STATUS)
		return true;
	if (reply->type != REDIS_REPLY_ERROR) {
		connection->setup->counts->bad++;
		return connection_fail(connection, -EPROTO,
				       "it is no Redis or Valkey, by its reply to %s",
				       password ? "AUTH" : "PING");
	}
	if (!password && !strncmp(error, "NOPERM", 6))
		return true;
	if (refusal_parse(error, reply->len, &slot, &to) == REFUSAL_LATER) {
		connection->setup->counts->refusals[REFUSAL_LATER]++;
		err = -EAGAIN;
	}
	if (!password)
		return connection_fail(connection, err, "login without --password-file: %s", error);
	size = strspn(error, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	if (!size || size > CODE_MAX || (error[size] && error[size] != ' ') ||
	    !strncmp(error, password, size)) {
		error = "an error";
		size = strlen(error);
	}
	return connection_fail(connection, err, "login: %.*s (the rest may have the password)",
			       (int)size, error);
}

static bool login_advance(struct connection *connection)
{
	redisReply *reply;
	uint64_t rtt;
	bool is_ready;

	if (!connection_flush(connection) || !connection_read(connection))
		return false;
	reply = connection_reply(connection);
	if (!reply)
		return connection->state != CONNECTION_CLOSED;
	is_ready = login_read(connection, reply);
	freeReplyObject(reply);
	if (!is_ready)
		return false;
	connection->state = CONNECTION_READY;
	/* The result is too large if the reply arrived before this call. */
	rtt = store_now_ms() - connection->asked_ms + 1;
	if (!connection->rtt_ms || rtt < connection->rtt_ms)
		connection->rtt_ms = rtt;
	connection->asked_ms = 0;
	return true;
}

bool connection_advance(struct connection *connection)
{
	if (connection->state == CONNECTION_CLOSED && !connection_begin(connection))
		return false;
	if (connection->state == CONNECTION_LOOKUP && !lookup_advance(connection))
		return false;
	if (connection->state == CONNECTION_OPENING && !opening_advance(connection))
		return false;
	if (connection->state == CONNECTION_LOGIN && !login_advance(connection))
		return false;
	if (connection->state == CONNECTION_READY || store_now_ms() < connection->give_up_ms)
		return true;
	return connection_fail(connection, -ETIMEDOUT, "no connection after %d ms",
			       connection->setup->timeout_ms);
}
