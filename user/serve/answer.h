/* SPDX-License-Identifier: GPL-2.0 */
/* Serve: answers to requests. */
#ifndef SLUICE_ANSWER_H
#define SLUICE_ANSWER_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/error.h"

/* A document that is complete. It is shared by all clients that asked for it, and never changes. */
struct answer {
	atomic_uint references;
	unsigned int status; /* HTTP status */
	const char *type;    /* media type */
	char *text;
	size_t length;
};

void answer_take(struct answer *answer);
void answer_drop(struct answer *answer);

/* Return an error as a document in the form of `sluice -j`, or NULL if there is no memory. */
struct answer *answer_error(unsigned int status, const struct sl_error *error);
struct answer *answer_refusal(unsigned int status, const char *id, const char *text);

/* What is served. */
struct serve_scope {
	const char *gate; /* the only gate that is served, or NULL */
	unsigned int metrics_sources;
};

#endif
