/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: a table of ledgers (include/ways.h) in memory that no packet uses yet, to be filled with
 * the ledgers of another one.
 */
#ifndef SLUICE_FILL_H
#define SLUICE_FILL_H

#include "gate/gate.h"

struct fill {
	const struct sl_meeting *meeting;
	struct sl_set *sets;
	struct sl_line *lines;
};

/* Maps the table of a gate. 0, or a negative errno. */
int fill_open(const struct gate *gate, struct fill *ret);
void fill_close(struct fill *fill);

/*
 * Puts a line, whose key has none yet, where table_find() finds it. False: both sets of its key are
 * full, and no line of its home can move. So lines that lose most come first, and what is left out
 * loses least.
 */
bool fill_put(const struct fill *fill, const struct sl_line *line);

#endif
