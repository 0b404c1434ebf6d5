/* SPDX-License-Identifier: GPL-2.0 */
/* Migrate: the ledgers of a gate, as lines of the table (struct sl_line). */
#ifndef SLUICE_LEVELS_H
#define SLUICE_LEVELS_H

#include "gate/gate.h"

/* The limits of all records that packets may see, sorted by id. Valid while the gate is open. */
struct limit_index {
	const struct sl_limit **limits[SL_FAMILIES];
	unsigned int count[SL_FAMILIES];
};

/* 0, or a negative errno. An index is zeroed at first, and always to be freed. */
int limit_index_make(const struct gate *gate, struct limit_index *ret);
void limit_index_free(struct limit_index *index);

/*
 * Opens the map of ledgers that is pinned in a directory; -1: none is. A pin of another shape is
 * left out: the owner of the gate may have made it, and its values have no room where ledgers are
 * read.
 */
int levels_open(const struct pins *pins);

typedef int level_call(void *data, const struct sl_limit *limit, const struct sl_line *line);

/*
 * Calls for each ledger whose limit exists, until a call returns a negative errno, which is
 * returned. Packets may go on to charge the ledgers. One that is made or forgotten meanwhile may be
 * left out.
 */
int levels_walk(int table, const struct limit_index *limits, level_call *call, void *data);

#endif
