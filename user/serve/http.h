/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: answers requests by libmicrohttpd, in one thread. A request that must wait for a document
 * is suspended, so no client waits for the request of another client.
 */
#ifndef SLUICE_HTTP_H
#define SLUICE_HTTP_H

#include "serve/connections.h"
#include "serve/documents.h"

struct http;

/* Texts of files; NULL if they are not used. */
struct http_secrets {
	const char *token;
	const char *certificate, *key, *client_ca;
};

/* Starts the thread. Returns 0, or a negative errno with an error. */
int http_open(struct documents *documents, const struct http_secrets *secrets, struct http **ret);

/* Accepts a connection that waits at a listening socket. Returns 0 or a negative errno. */
int http_accept(struct http *http, int listener);

/* Closes connections that are too slow. Called once a second. */
void http_expire(struct http *http);

/* Ends the thread. No client may wait for a document. */
void http_close(struct http *http);

/* Returns whether a header "Authorization" has the token, in a time that does not depend on it. */
bool token_matches(const char *token, const char *header);

/*
 * Returns whether a header "Host" names this machine: an address, or localhost. A page of another
 * host cannot make a browser send such a header, even if its name resolves to an address of this
 * machine.
 */
bool host_is_local(const char *header);

#endif
