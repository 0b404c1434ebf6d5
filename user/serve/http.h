/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: answers requests with libmicrohttpd, in one thread. If a request must wait for a document,
 * it is suspended, so no client waits for another client's request.
 */
#ifndef SLUICE_HTTP_H
#define SLUICE_HTTP_H

#include "serve/connections.h"
#include "serve/documents.h"

struct http;

/* Contents of the files with secrets. NULL: not used. */
struct http_secrets {
	const char *token;
	const char *certificate, *key, *client_ca;
};

/* Starts the thread that answers requests. Returns 0, or a negative errno with an error. */
int http_open(struct documents *documents, const struct http_secrets *secrets, struct http **ret);

/* Accepts a waiting connection of a listening socket. Returns 0 or a negative errno. */
int http_accept(struct http *http, int listener);

/* Closes slow connections. Called once a second. */
void http_expire(struct http *http);

/* Ends the thread. Call it when no client waits for a document. */
void http_close(struct http *http);

/*
 * Returns whether a header "Authorization" contains the token. The time of the comparison does not
 * depend on the token.
 */
bool token_matches(const char *token, const char *header);

/*
 * Returns whether a header "Host" contains an address or "localhost". A web page of another host
 * cannot make a browser send such a header, even if the name of that host resolves to an address of
 * this machine.
 */
bool host_is_local(const char *header);

#endif
