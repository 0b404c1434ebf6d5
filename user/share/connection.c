// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "share/connection.h"

#ifdef SL_STORE_TLS
#include <hiredis/hiredis_ssl.h> /* needs hiredis.h before it */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

#define BACKOFF_FIRST_MS 50
#define BACKOFF_MAX_MS	 1000
#define CONNECT_MAX_MS	 5000
#define MEASURE_EVERY	 10 /* attempts in vain: the way to a node is learned anew */
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

int connection_fail(struct connection_setup *setup, const struct connection *connection, int status,
		    const char *format, ...)
{
	char at[ENDPOINT_TEXT] = "", what[ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (connection)
		endpoint_format(&connection->at, at);
	/* A name may be as long as the text: what failed comes first in importance. */
	snprintf(setup->error, sizeof(setup->error), "%.64s%s%.180s", at, *at ? ": " : "", what);
	text_make_printable(setup->error);
	setup->status = status;
	return status;
}

static bool host_is_address(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* --- TLS ------------------------------------------------------------------------------------ */

#ifdef SL_STORE_TLS
/* hiredis checks the authority of a certificate, and not whose it is: the SSL is made here. */
struct tls {
	SSL_CTX *context;
};

struct tls *tls_open(const char *ca_file)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return NULL;
	tls->context = SSL_CTX_new(TLS_client_method());
	if (tls->context && SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) &&
	    SSL_CTX_load_verify_locations(tls->context, ca_file, NULL)) {
		SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
		return tls;
	}
	errno = tls->context ? EINVAL : ENOMEM;
	ERR_clear_error();
	SSL_CTX_free(tls->context);
	free(tls);
	return NULL;
}

void tls_close(struct tls *tls)
{
	if (tls)
		SSL_CTX_free(tls->context);
	free(tls);
}

/* The certificate must have this host: a DNS name, or an IP address. */
static bool host_expect(SSL *ssl, const char *host)
{
	if (host_is_address(host))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

/* Returns what is wrong with the certificate, as "hostname mismatch", or what hiredis reports. */
static const char *tls_error(const redisContext *context, const SSL *ssl)
{
	long result = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;

	if (result != X509_V_OK)
		return X509_verify_cert_error_string(result);
	return *context->errstr ? context->errstr : "out of memory";
}

/*
 * Begins the handshake, which reading and writing then go on with. If it succeeds the SSL is freed
 * with the context. Returns NULL, or what failed.
 */
static const char *tls_begin(const struct tls *tls, struct connection *connection)
{
	SSL *ssl = SSL_new(tls->context);
	const char *error;

	if (ssl && host_expect(ssl, connection->at.host) &&
	    redisInitiateSSL(connection->context, ssl) == REDIS_OK) {
		connection->ssl = ssl;
		return NULL;
	}
	error = tls_error(connection->context, ssl);
	SSL_free(ssl);
	return error;
}

#else
struct tls *tls_open(const char *ca_file)
{
	(void)ca_file;
	errno = EOPNOTSUPP;
	return NULL;
}

void tls_close(struct tls *tls)
{
	(void)tls;
}

static const char *tls_begin(const struct tls *tls, struct connection *connection)
{
	(void)tls, (void)connection;
	return "none";
}

static const char *tls_error(const redisContext *context, const struct ssl_st *ssl)
{
	(void)ssl;
	return context->errstr;
}
#endif

/* --- Names ---------------------------------------------------------------------------------- */

/*
 * The lookup of a name by a thread of the C library, as a name server may take longer to answer
 * than a round may last.
 */
struct lookup {
	struct gaicb request;
	struct addrinfo hints;
	char host[HOST_TEXT];
	struct lookup *next; /* of those that are left to their threads */
};

static struct lookup *lookup_begin(const char *host)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup));
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

/* False: the thread works on it, so it cannot be ended. */
static bool lookup_end(struct lookup *lookup)
{
	if (!lookup)
		return true;
	if (gai_cancel(&lookup->request) == EAI_NOTCANCELED)
		return false;
	if (lookup->request.ar_result)
		freeaddrinfo(lookup->request.ar_result);
	free(lookup);
	return true;
}

/* Frees those that were left, as far as they have ended. */
static void lookups_free(struct connection_setup *setup)
{
	struct lookup *left = setup->left;

	setup->left = NULL;
	while (left) {
		struct lookup *lookup = left;

		left = lookup->next;
		if (lookup_end(lookup))
			continue;
		lookup->next = setup->left;
		setup->left = lookup;
	}
}

/*
 * Leaves it to its thread where it cannot be ended. The C library has 20 such threads, so no more
 * than that are left, however many names a store tells of.
 */
static void lookup_leave(struct lookup *lookup, struct connection_setup *setup)
{
	if (lookup) {
		lookup->next = setup->left;
		setup->left = lookup;
	}
	lookups_free(setup);
}

/* Takes one of the addresses, the next at each attempt, as text. False: there is none. */
static bool lookup_take(const struct lookup *lookup, unsigned int attempt, char text[NI_MAXHOST])
{
	const struct addrinfo *first = lookup->request.ar_result, *one = first;
	unsigned int count = 0;

	if (gai_error((struct gaicb *)&lookup->request) || !first)
		return false;
	for (; one; one = one->ai_next)
		count++;
	one = first;
	for (unsigned int i = 0; i < attempt % count; i++)
		one = one->ai_next;
	return !getnameinfo(one->ai_addr, one->ai_addrlen, text, NI_MAXHOST, NULL, 0,
			    NI_NUMERICHOST);
}

/* --- What an answer may cost ---------------------------------------------------------------- */

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

/*
 * Makes an array as hiredis does, if the answer may have that many elements, and be so deep. The
 * header of an array announces them before they come, so a few bytes could cost gigabytes. An
 * answer is freed by recursion, and hiredis 1 reads one of any depth.
 */
static void *array_create(const redisReadTask *task, array_size elements)
{
	struct connection *connection = task->privdata;
	unsigned int depth = 1;

	for (const redisReadTask *outer = task->parent; outer; outer = outer->parent)
		depth++;
	if ((size_t)elements > connection->elements || depth > ANSWER_DEPTH_MAX)
		return NULL;
	connection->elements -= elements;
	return connection->defaults->createArray(task, elements);
}

static void answer_limit(struct connection *connection)
{
	connection->bytes = ANSWER_BYTES_MAX;
	connection->elements = ANSWER_ELEMENTS_MAX;
}

/* --- Ends ----------------------------------------------------------------------------------- */

/*
 * Ends by a reset: a socket that is only closed goes on for minutes to send what the node has not
 * acknowledged, so commands that are given up could be carried out when the network is back.
 */
static void context_free(redisContext *context)
{
	const struct linger reset = {.l_onoff = 1, .l_linger = 0};

	if (!context)
		return;
	setsockopt(context->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	redisFree(context);
}

static void connection_drop(struct connection *connection)
{
	context_free(connection->context);
	connection->context = NULL;
	connection->ssl = NULL;
	if (lookup_end(connection->lookup))
		connection->lookup = NULL;
	connection->has_output = false;
	connection->state = CONNECTION_CLOSED;
}

void connection_close(struct connection *connection, struct connection_setup *setup)
{
	connection_drop(connection);
	lookup_leave(connection->lookup, setup);
	connection->lookup = NULL;
	connection->attempts = 0;
	connection->retry_ms = 0;
	connection->has_failed = false;
}

void connection_break(struct connection *connection, struct connection_setup *setup)
{
	uint64_t wait = BACKOFF_FIRST_MS;

	connection_drop(connection);
	connection->has_failed = true;
	/* the way may have become longer since it was sound; a login may take it for too long */
	if (connection->attempts % MEASURE_EVERY == 0)
		connection->rtt_ms = 0;
	setup->counts->broken++;
	for (unsigned int i = 1; i < connection->attempts && wait < BACKOFF_MAX_MS; i++)
		wait *= 2;
	connection->retry_ms = store_now_ms() + jitter(setup, wait);
}

/* --- Beginnings ----------------------------------------------------------------------------- */

/*
 * Nothing is sent that changes anything before the node has answered once, so what a dead, a
 * wedged or a loading one is sent is not lost.
 */
static bool login_begin(struct connection *connection, struct connection_setup *setup)
{
	const char *ping[] = {"PING"};
	const char *auth[] = {"AUTH", setup->user ? setup->user : setup->password, setup->password};
	bool added = setup->password ? connection_add(connection, setup->user ? 3 : 2, auth)
				     : connection_add(connection, 1, ping);

	connection->state = CONNECTION_LOGIN;
	connection->asked_ms = store_now_ms();
	if (!added) {
		connection_fail(setup, connection, -ENOMEM, "out of memory");
		connection_break(connection, setup);
	}
	return added;
}

/* 0, or a negative errno. NOPERM: the user may not PING, and has the rights of others. */
static int login_status(const redisReply *answer, struct connection_setup *setup)
{
	struct endpoint to;
	unsigned int slot;

	if (answer->type == REDIS_REPLY_STATUS)
		return 0;
	if (answer->type != REDIS_REPLY_ERROR) {
		setup->counts->bad++;
		return -EPROTO;
	}
	if (refusal_parse(answer->str, answer->len, &slot, &to) != REFUSAL_LOADING)
		return !setup->password && !strncmp(answer->str, "NOPERM", 6) ? 0 : -EACCES;
	setup->counts->loading++;
	return -EAGAIN;
}

/* The size of the code that an error begins with, as ERR; 0: it has none. */
static int code_size(const char *error)
{
	size_t size = strspn(error, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return size > CODE_MAX || (error[size] && error[size] != ' ') ? 0 : (int)size;
}

/*
 * Of an error to AUTH only the code is said: a store that does not know the command repeats its
 * words, the password among them. The first word is none if it may be the password.
 */
static void login_fail(struct connection *connection, struct connection_setup *setup, int status,
		       const redisReply *answer)
{
	const char *error = answer->type == REDIS_REPLY_ERROR ? answer->str : NULL;
	int size = error ? code_size(error) : 0;

	if (!error) {
		connection_fail(setup, connection, status,
				"it is no Redis or Valkey, by its answer to %s",
				setup->password ? "AUTH" : "PING");
		return;
	}
	if (!setup->password) {
		connection_fail(setup, connection, status, "login without --password-file: %s",
				error);
		return;
	}
	if (!size || !strncmp(error, setup->password, size)) {
		error = "an error";
		size = strlen(error);
	}
	connection_fail(setup, connection, status, "login: %.*s (the rest may have the password)",
			size, error);
}

static bool login_advance(struct connection *connection, struct connection_setup *setup)
{
	redisReply *answer;
	uint64_t rtt;
	int status;

	if (!connection_flush(connection, setup) || !connection_read(connection, setup))
		return false;
	answer = connection_answer(connection, setup);
	if (!answer)
		return connection->state != CONNECTION_CLOSED;
	status = login_status(answer, setup);
	if (status)
		login_fail(connection, setup, status, answer);
	freeReplyObject(answer);
	if (status) {
		connection_break(connection, setup);
		return false;
	}
	connection->state = CONNECTION_READY;
	/* where no call waited for it, it was waited for until the next call, too */
	rtt = store_now_ms() - connection->asked_ms + 1;
	if (!connection->rtt_ms || rtt < connection->rtt_ms)
		connection->rtt_ms = rtt;
	connection->asked_ms = 0;
	return true;
}

/* Connects to an address in numbers, which takes no name server. */
static bool socket_open(struct connection *connection, struct connection_setup *setup,
			const char *address)
{
	redisContext *context = redisConnectNonBlock(address, connection->at.port);

	connection->context = context;
	if (!context || context->err) {
		connection_fail(setup, connection, -ECONNREFUSED, "connect: %s",
				context ? context->errstr : "out of memory");
		connection_break(connection, setup);
		return false;
	}
	fcntl(context->fd, F_SETFD, FD_CLOEXEC);
	connection->defaults = context->reader->fn;
	connection->functions = *connection->defaults;
	connection->functions.createArray = array_create;
	context->reader->fn = &connection->functions;
	context->reader->privdata = connection;
	answer_limit(connection);
	connection->state = CONNECTION_OPENING;
	return true;
}

static bool lookup_advance(struct connection *connection, struct connection_setup *setup)
{
	char address[NI_MAXHOST];

	if (gai_error(&connection->lookup->request) == EAI_INPROGRESS)
		return true;
	if (!lookup_take(connection->lookup, connection->attempts, address)) {
		connection_fail(setup, connection, -EHOSTUNREACH, "the name has no address");
		connection_break(connection, setup);
		return false;
	}
	lookup_end(connection->lookup);
	connection->lookup = NULL;
	return socket_open(connection, setup, address);
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
	if (!connection->lookup) {
		connection_fail(setup, connection, -ENOMEM, "the name cannot be looked up");
		connection_break(connection, setup);
		return false;
	}
	connection->state = CONNECTION_LOOKUP;
	return true;
}

/* Whether the socket is connected: 0, -EINPROGRESS, or what became of it. */
static int socket_state(const redisContext *context)
{
	struct pollfd ready = {.fd = context->fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int error = 0;

	if (poll(&ready, 1, 0) <= 0)
		return -EINPROGRESS;
	if (getsockopt(context->fd, SOL_SOCKET, SO_ERROR, &error, &size))
		return -errno;
	return -error;
}

static bool opening_advance(struct connection *connection, struct connection_setup *setup)
{
	int status = socket_state(connection->context);
	const char *error;

	if (status == -EINPROGRESS)
		return true;
	if (status) {
		connection_fail(setup, connection, status, "connect: %s", strerror(-status));
		connection_break(connection, setup);
		return false;
	}
	connection->context->flags |= REDIS_CONNECTED;
	error = setup->tls ? tls_begin(setup->tls, connection) : NULL;
	if (error) {
		connection_fail(setup, connection, -ECONNABORTED, "TLS: %s", error);
		connection_break(connection, setup);
		return false;
	}
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
	connection_fail(setup, connection, -ETIMEDOUT, "no connection after %d ms",
			setup->timeout_ms);
	connection_break(connection, setup);
	return false;
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

/* Breaks what hiredis says has failed. */
static bool context_fail(struct connection *connection, struct connection_setup *setup)
{
	const redisContext *context = connection->context;
	bool is_protocol = context->err == REDIS_ERR_PROTOCOL || context->err == REDIS_ERR_OOM;
	bool is_handshake = setup->tls && connection->state == CONNECTION_LOGIN;

	setup->counts->bad += is_protocol;
	connection_fail(setup, connection, is_protocol ? -EPROTO : -ECONNRESET, "%s%s%s",
			is_handshake ? "TLS: " : "", is_protocol ? "a bad answer: " : "",
			is_handshake ? tls_error(context, connection->ssl) : context->errstr);
	connection_break(connection, setup);
	return false;
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
		connection_fail(setup, connection, -EPROTO, "an answer of more than %d bytes",
				ANSWER_BYTES_MAX);
		connection_break(connection, setup);
		return false;
	}
	connection->bytes -= more;
	return true;
}

redisReply *connection_answer(struct connection *connection, struct connection_setup *setup)
{
	void *answer = NULL;

	if (redisGetReplyFromReader(connection->context, &answer) != REDIS_OK) {
		context_fail(connection, setup);
		return NULL;
	}
	if (!answer)
		return NULL;
	answer_limit(connection);
	return answer;
}

void connection_proves_sound(struct connection *connection)
{
	connection->attempts = 0;
	connection->has_failed = false;
}

bool connection_check(struct connection *connection, struct connection_setup *setup)
{
	struct pollfd ready = {.fd = connection->context->fd, .events = POLLIN};

	if (!poll(&ready, 1, 0))
		return true;
	connection_fail(setup, connection, -ECONNRESET, "the connection has ended");
	setup->counts->broken++;
	connection_close(connection, setup);
	return false;
}
