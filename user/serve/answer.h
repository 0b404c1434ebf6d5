/* SPDX-License-Identifier: GPL-2.0 */
/* Serve: complete answers to requests, shared by the clients that ask for the same document. */
#ifndef SLUICE_ANSWER_H
#define SLUICE_ANSWER_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/error.h"

/* A complete document. All clients that asked for it share it. It never changes. */
struct answer {
	atomic_uint references;
	unsigned int status; /* HTTP status */
	const char *type;    /* media type */
	char *text;
	size_t length;
	size_t counted; /* bytes that answers_bytes() includes for this answer */
};

void answer_take(struct answer *answer);
void answer_drop(struct answer *answer);

/* Includes an answer in answers_bytes(), until its last reference is dropped. */
void answer_count(struct answer *answer);
size_t answers_bytes(void);

/* Return an error as a document in the form of `sluice -j`. Return NULL if there is no memory. */
struct answer *answer_error(unsigned int status, const struct sl_error *error);
struct answer *answer_refusal(unsigned int status, const char *id, const char *text);

/* The gates and metrics that the server offers. */
struct serve_scope {
	const char *gate; /* the only gate to serve; NULL: serve all gates */
	unsigned int metrics_sources;
};

#endif
