/* SPDX-License-Identifier: GPL-2.0 */
/* Serve: reads the gates, and prints a document of them. Used by one thread. */
#ifndef SLUICE_READ_H
#define SLUICE_READ_H

#include "serve/answer.h"
#include "serve/rates.h"
#include "serve/route.h"

#define RATES_MAX 4 /* gates whose rates are known at a time; each takes up to 40 MB */

struct gates_reader {
	struct serve_scope scope;
	struct rates rates[RATES_MAX];
};

/*
 * Reads a document. Returns NULL if there is no memory. Stores how long it is valid at least, in
 * ns, or 0.
 */
struct answer *document_read(struct gates_reader *reader, const struct route *route,
			     uint64_t *ret_least);

/* Forgets the rates of gates that no client asks for. */
void reader_rest(struct gates_reader *reader);
void reader_close(struct gates_reader *reader);

#endif
