/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the table of ledgers in memory (include/ways.h), to read. Packets go on to change it. A
 * command never inserts into it: only the packet path takes the locks of sets.
 */
#ifndef SLUICE_GATE_TABLE_H
#define SLUICE_GATE_TABLE_H

#include "gate/array_view.h"
#include "gate/gate.h"
#include "ways.h"

/* One line that was found in `ledgers`. */
struct found_line {
	struct sl_line line; /* a copy */
	uint32_t index;
	bool is_found;
};

/* All of a table, in memory. */
struct table {
	struct sl_line *lines;
	uint32_t count;
	uint32_t id; /* of the map of lines, by the kernel: a resize makes another one */
	struct array_view sets;
	struct array_view ledgers; /* the lines */
};

#define TABLE_CLOSED ((struct table){0})

enum status table_open(const struct gate *gate, struct table *ret);
void table_close(struct table *table);

/* Reads the line of a key, by some calls of the kernel. */
enum status table_read(const struct gate *gate, const struct ledger_key *key,
		       struct found_line *ret);

/* The same without a call. table NULL: table_read(). */
enum status table_read_in(const struct gate *gate, const struct table *table,
			  const struct ledger_key *key, struct found_line *ret);

#endif
