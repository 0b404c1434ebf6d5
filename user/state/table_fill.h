/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: how full the table of states is (include/ways.h), and whether its room is short.
 */
#ifndef SLUICE_TABLE_FILL_H
#define SLUICE_TABLE_FILL_H

#include "gate/table.h"
#include "state/pressure.h"

struct table_fill {
	uint32_t entries;
	uint32_t in_use;
	uint32_t partial;   /* states that are not full, so that an eviction loses something */
	uint32_t protected; /* partial states that are evicted last */
	uint32_t bytes;	    /* bytes of the table for each of `sources` */
	uint32_t sources;   /* size of the gate: so many sources with one limit fit */
	/* while room is short, the least size with a larger table, or the largest size; else 0 */
	uint32_t sources_short;
};

/* Walks the table. pressure: of the same moment. */
int table_fill_read(const struct gate *gate, const struct pressure *pressure,
		    struct table_fill *ret);

/*
 * What follows from the counts of entries, and from what was forgotten and refused in the last
 * second: the rest of `fill`.
 */
void table_fill_judge(struct table_fill *fill, const struct pressure *pressure);

#define TABLE_SHORT_TEXT 160

/* Says that room is short, and which size has more; NULL: it is not. */
const char *table_fill_short(const struct table_fill *fill, char text[TABLE_SHORT_TEXT]);

#endif
