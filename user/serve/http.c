// SPDX-License-Identifier: GPL-2.0
#include "serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "serve/assets.h"
#include "serve/route.h"

#define CONNECTION_MEMORY 16384 /* for the headers of a request and its answer, in bytes */
#define TIMEOUT_S	  30	/* close a connection after 30 s without traffic */
#define BODY_MAX	  65536 /* largest body of a request, in bytes; bodies are ignored */

struct http {
	struct MHD_Daemon *daemon;
	struct documents *documents;
	struct http_secrets secrets;
	struct connections connections;
};

/* A request, from its first line until its answer is sent. */
struct request {
	struct asker asker; /* must be first, because request_ready() casts it */
	struct http *http;
	struct MHD_Connection *connection;
	struct connection_entry *entry;
	char *target;
	bool is_begun, is_resumed;
	size_t body; /* number of bytes of the body so far */
	struct event_stream *stream;
	uint64_t since; /* number of the last event that the client has received */
	bool wants_events;
};

/* --- Checks of headers ---------------------------------------------------------------------- */

bool token_matches(const char *token, const char *header)
{
	static const char scheme[] = "Bearer ";
	size_t length = strlen(token), given;
	unsigned char differs = 0;

	if (!header || strncasecmp(header, scheme, strlen(scheme)))
		return false;
	header += strlen(scheme);
	given = strlen(header);
	for (size_t i = 0; i < length; i++)
		differs |= token[i] ^ header[given ? i % given : 0];
	return !differs && given == length;
}

bool host_is_local(const char *header)
{
	unsigned char address[sizeof(struct in6_addr)];
	char host[INET6_ADDRSTRLEN + 1];
	bool is_ipv6 = header && *header == '[';
	size_t length;

	if (!header)
		return false;
	header += is_ipv6;
	length = strcspn(header, is_ipv6 ? "]" : ":");
	if (length >= sizeof(host))
		return false;
	memcpy(host, header, length);
	host[length] = '\0';
	if (is_ipv6)
		return header[length] == ']' && inet_pton(AF_INET6, host, address) == 1;
	return !strcasecmp(host, "localhost") || inet_pton(AF_INET, host, address) == 1;
}

/* Returns whether the clients' CA has signed the certificate of this client. */
static bool client_is_known(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	unsigned int status;

	return info && info->tls_session &&
	       !gnutls_certificate_verify_peers2(info->tls_session, &status) && !status;
}

/* --- Answers -------------------------------------------------------------------------------- */

static const char *const headers[][2] = {
	{"Cache-Control", "no-store"},
	{"Content-Security-Policy",
	 "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	 "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Referrer-Policy", "no-referrer"},
	{"X-Content-Type-Options", "nosniff"},
};

/*
 * Sends a response, and drops the reference to it. If `response` is NULL, returns MHD_NO, which
 * closes the connection.
 */
static enum MHD_Result response_send(struct MHD_Connection *connection, unsigned int status,
				     const char *type, struct MHD_Response *response)
{
	enum MHD_Result sent;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					"Bearer realm=\"sluice\"");
	sent = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return sent;
}

static void answer_sent(void *answer)
{
	answer_drop(answer);
}

/*
 * Sends an answer, and drops the reference to it. If `answer` is NULL, returns MHD_NO, which closes
 * the connection.
 */
static enum MHD_Result answer_send(struct MHD_Connection *connection, struct answer *answer)
{
	struct MHD_Response *response;

	if (!answer)
		return MHD_NO;
	response = MHD_create_response_from_buffer_with_free_callback_cls(
		answer->length, answer->text, answer_sent, answer);
	if (!response) {
		answer_drop(answer);
		return MHD_NO;
	}
	return response_send(connection, answer->status, answer->type, response);
}

static enum MHD_Result error_send(struct MHD_Connection *connection, unsigned int status,
				  const char *id, const char *text)
{
	return answer_send(connection, answer_refusal(status, id, text));
}

static enum MHD_Result asset_send(struct MHD_Connection *connection, enum route_id route)
{
	const struct asset asset = asset_of(route);

	return response_send(connection, MHD_HTTP_OK, asset.type,
			     MHD_create_response_from_buffer(asset.length, (void *)asset.text,
							     MHD_RESPMEM_PERSISTENT));
}

/* --- Clients -------------------------------------------------------------------------------- */

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Called by the thread that reads documents. */
static void request_ready(struct asker *asker)
{
	struct request *request = (struct request *)asker;

	MHD_resume_connection(request->connection);
}

/* Called if a client disconnects while its request waits for a document or an event. */
static void request_abandon(void *data)
{
	struct request *request = data;

	if (request->stream)
		stream_abandon(request->stream);
	else if (documents_cancel(request->http->documents, &request->asker))
		MHD_resume_connection(request->connection);
}

/*
 * Refuses a request if the client may not read. Returns whether it was refused. Stores the result
 * of the answer in *ret.
 */
static bool client_refuse(struct request *request, const struct route *route, enum MHD_Result *ret)
{
	const struct http_secrets *secrets = &request->http->secrets;
	struct MHD_Connection *connection = request->connection;

	if (secrets->client_ca && !client_is_known(connection)) {
		*ret = error_send(connection, MHD_HTTP_FORBIDDEN, "no-certificate",
				  "a certificate of the clients' CA is required");
		return true;
	}
	if (secrets->token && route->id >= ROUTES_FIXED &&
	    !token_matches(secrets->token, header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION))) {
		*ret = error_send(connection, MHD_HTTP_UNAUTHORIZED, "no-token",
				  "send the header Authorization: Bearer TOKEN");
		return true;
	}
	if (!secrets->token && !secrets->client_ca && request->entry->address[0] &&
	    !host_is_local(header_of(connection, MHD_HTTP_HEADER_HOST))) {
		*ret = error_send(connection, MHD_HTTP_MISDIRECTED_REQUEST, "wrong-host",
				  "the header Host must have an address or localhost");
		return true;
	}
	return false;
}

/* --- Streams -------------------------------------------------------------------------------- */

#define STREAM_BLOCK 4096

static void stream_sleep(void *data)
{
	struct request *request = data;

	MHD_suspend_connection(request->connection);
}

static void stream_resume(void *data)
{
	struct request *request = data;

	MHD_resume_connection(request->connection);
}

static ssize_t on_stream(void *data, uint64_t position, char *buffer, size_t room)
{
	ssize_t count = stream_write(data, buffer, room);

	(void)position;
	return count < 0 ? MHD_CONTENT_READER_END_OF_STREAM : count;
}

/* Begins a stream of the events of a gate. */
static enum MHD_Result stream_begin(struct request *request, const char *gate)
{
	struct connections *connections = &request->http->connections;
	struct event_stream *stream = calloc(1, sizeof(*stream));

	if (!stream ||
	    !connection_set(connections, request->entry, CONNECTION_STREAM, uptime_ns())) {
		free(stream);
		return error_send(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
				  "too many clients receive events; try again");
	}
	snprintf(stream->gate, sizeof(stream->gate), "%s", gate);
	stream->sent = request->since;
	stream->sleep = stream_sleep;
	stream->wake = stream_resume;
	stream->data = request;
	request->stream = stream;
	feeds_join(documents_feeds(request->http->documents), stream);
	documents_kick(request->http->documents);
	connection_wait(connections, request->entry, request);
	return response_send(request->connection, MHD_HTTP_OK, "text/event-stream",
			     MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
							       on_stream, stream, NULL));
}

/* Sends a document, or begins a stream if the client has asked for events. */
static enum MHD_Result document_send(struct request *request)
{
	struct answer *answer = steal_pointer(&request->asker.answer);
	char gate[GATE_NAME + 1];

	if (!answer || !request->wants_events || answer->status != MHD_HTTP_OK)
		return answer_send(request->connection, answer);
	snprintf(gate, sizeof(gate), "%s", answer->text);
	answer_drop(answer);
	return stream_begin(request, gate);
}

/* --- Requests ------------------------------------------------------------------------------- */

/* Answers a request that route_parse() has refused, with the error message of route_parse(). */
static enum MHD_Result route_refuse(struct MHD_Connection *connection, int err, unsigned int mark)
{
	const struct sl_error *error = error_last(mark);
	struct answer *answer = NULL;

	if (error)
		answer = answer_error(err == -ENOENT ? MHD_HTTP_NOT_FOUND : MHD_HTTP_BAD_REQUEST,
				      error);
	error_drop(mark);
	return answer_send(connection, answer);
}

/* Answers a complete request. If the document must be read first, suspends the request. */
static enum MHD_Result request_answer(struct request *request)
{
	struct MHD_Connection *connection = request->connection;
	struct documents *documents = request->http->documents;
	unsigned int mark = error_count();
	const char *accepted;
	struct route route;
	enum MHD_Result refused;
	int err = route_parse(request->target, &route);

	if (client_refuse(request, &route, &refused)) {
		error_drop(mark);
		return refused;
	}
	if (err)
		return route_refuse(connection, err, mark);
	if (route.id < ROUTES_FIXED)
		return asset_send(connection, route.id);
	request->wants_events = route.id == ROUTE_EVENTS;
	request->since = route.since;
	route.since = 0; /* all streams of a gate ask for the same document */
	accepted = header_of(connection, MHD_HTTP_HEADER_ACCEPT);
	route.open_metrics = route.id == ROUTE_METRICS && accepted &&
			     strstr(accepted, "application/openmetrics-text");
	request->asker.ready = request_ready;
	if (documents_ask(documents, &route, &request->asker, false))
		return document_send(request);
	/*
	 * Suspend before documents_ask(), because the other thread may resume the connection at
	 * once.
	 */
	request->is_resumed = true;
	MHD_suspend_connection(connection);
	if (documents_ask(documents, &route, &request->asker, true))
		MHD_resume_connection(connection);
	else
		connection_wait(&request->http->connections, request->entry, request);
	return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_size, void **context)
{
	struct request *request = *context;
	struct http *http = cls;

	(void)url;
	(void)version;
	(void)body;
	if (!request || !request->target || !request->entry)
		return MHD_NO;
	if (!request->is_begun) {
		request->is_begun = true;
		if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
			return error_send(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "read-only",
					  "only GET and HEAD are supported");
		return MHD_YES;
	}
	if (*body_size) {
		request->body += *body_size;
		*body_size = 0;
		return request->body <= BODY_MAX ? MHD_YES : MHD_NO;
	}
	connection_set(&http->connections, request->entry, CONNECTION_BUSY, uptime_ns());
	return request->is_resumed ? document_send(request) : request_answer(request);
}

/* --- Connections ---------------------------------------------------------------------------- */

static int fd_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

/* Called with the target of a request, before its headers are parsed. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
	struct http *http = cls;
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->http = http;
	request->connection = connection;
	request->entry = connection_of(&http->connections, fd_of(connection));
	request->target = strdup(target);
	return request;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode code)
{
	struct request *request = *context;
	struct http *http = cls;

	(void)connection;
	(void)code;
	if (!request)
		return;
	if (request->entry)
		connection_set(&http->connections, request->entry, CONNECTION_IDLE, uptime_ns());
	if (request->stream)
		feeds_leave(request->stream);
	free(request->stream);
	answer_drop(request->asker.answer);
	free(request->target);
	free(request);
	*context = NULL;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http *http = cls;

	(void)context;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED)
		connection_remove(&http->connections, fd_of(connection));
}

int http_accept(struct http *http, int listener)
{
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof(address);
	int fd = accept4(listener, (struct sockaddr *)&address, &length,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!connection_add(&http->connections, fd, &address, uptime_ns())) {
		close(fd);
		return 0;
	}
	if (MHD_add_connection(http->daemon, fd, (struct sockaddr *)&address, length) != MHD_YES)
		connection_remove(&http->connections, fd); /* MHD has closed the fd */
	return 0;
}

void http_expire(struct http *http)
{
	connections_expire(&http->connections, uptime_ns());
	feeds_refresh(documents_feeds(http->documents));
}

/* --- The thread ----------------------------------------------------------------------------- */

/* Ignores messages of libmicrohttpd, because they are about wrong requests of clients. */
static void ignore_message(void *cls, const char *format, va_list args)
{
	(void)cls;
	(void)format;
	(void)args;
}

#define TLS_PRIORITIES "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1:-VERS-DTLS-ALL"

static int daemon_start(struct http *http)
{
	const struct http_secrets *secrets = &http->secrets;
	unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET |
			     MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
			     (secrets->certificate ? MHD_USE_TLS : 0);
	struct MHD_OptionItem options[] = {
		{MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)ignore_message, NULL},
		{MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, http},
		{MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, http},
		{MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_target, http},
		{MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL},
		{MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX + 2 * CONNECTIONS_CLOSED, NULL},
		{MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S, NULL},
		{MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
		{secrets->certificate ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0,
		 (void *)secrets->certificate},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)secrets->key},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_PRIORITIES},
		{secrets->client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
		 (void *)secrets->client_ca},
		{MHD_OPTION_END, 0, NULL},
	};

	if (secrets->certificate && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return error_add(ENOTSUP, "no-tls", "--tls-cert",
				 "libmicrohttpd was built without TLS; use a proxy");
	http->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, http, MHD_OPTION_ARRAY,
					options, MHD_OPTION_END);
	if (!http->daemon)
		return error_add(EIO, "no-http", NULL,
				 secrets->certificate
					 ? "cannot start the server; are the certificate and the "
					   "key in PEM format, and do they belong together?"
					 : "cannot start the server");
	return 0;
}

int http_open(struct documents *documents, const struct http_secrets *secrets, struct http **ret)
{
	struct http *http = calloc(1, sizeof(*http));
	int err;

	if (!http)
		return error_add(ENOMEM, "no-memory", NULL, "cannot start: %s", why(ENOMEM));
	http->documents = documents;
	http->secrets = *secrets;
	pthread_mutex_init(&http->connections.lock, NULL);
	http->connections.abandon = request_abandon;
	err = daemon_start(http);
	if (err) {
		free(http);
		return err;
	}
	*ret = http;
	return 0;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	MHD_stop_daemon(http->daemon);
	free(http);
}
