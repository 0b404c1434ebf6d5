/* SPDX-License-Identifier: GPL-2.0 */
/* Serve: reads the gates, and prints documents about them. Only one thread uses these functions. */
#ifndef SLUICE_READ_H
#define SLUICE_READ_H

#include "serve/answer.h"
#include "serve/rates.h"
#include "serve/route.h"

#define RATES_MAX 4 /* largest number of gates with known rates; each needs up to 40 MB */

struct gates_reader {
	struct serve_scope scope;
	struct rates rates[RATES_MAX];
};

/*
 * Reads a document. Stores the time for which it is valid, in ns, or 0 for the default. Returns
 * NULL if there is no memory.
 */
struct answer *document_read(struct gates_reader *reader, const struct route *route,
			     uint64_t *ret_least);

/* Closes the rates of gates that no client has asked for in the last 30 s. */
void reader_rest(struct gates_reader *reader);
void reader_close(struct gates_reader *reader);

#endif
