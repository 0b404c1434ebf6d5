/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the table of states in memory (include/ways.h). Packets go on to change it. A command
 * reads it, and may charge or fill an existing state. Only programs take the locks of sets, and so
 * insert states.
 */
#ifndef SLUICE_GATE_TABLE_H
#define SLUICE_GATE_TABLE_H

#include "gate/gate.h"
#include "ways.h"

/* One entry that was found in `states`. */
struct found_entry {
	struct sl_entry entry; /* a copy */
	uint32_t index;
	bool is_found;
};

/* All of a table, in memory. */
struct table {
	struct sl_entry *entries;
	uint32_t count;
	uint32_t id;		  /* the kernel's id of the map of entries; a resize changes it */
	struct array_view sets;	  /* not open for a reader */
	struct array_view states; /* the entries */
	const struct sl_entry **index; /* a reader's: the used entries by key; NULL: no reader */
	uint32_t index_count;
};

#define TABLE_CLOSED ((struct table){0})

int table_open(const struct gate *gate, struct table *ret);
void table_close(struct table *table);

/*
 * Reads the entry of a key in an open table; table NULL: with a few system calls. A reader, which
 * lacks the hash secret, searches a copy of the table.
 */
int table_read(const struct gate *gate, const struct table *table, const struct state_key *key,
	       struct found_entry *ret);

/*
 * Changes of the words of a state that packets charge at the same time, as they make them:
 * state_publish() in bpf/state.h.
 */

static inline bool word_swap(__u64 *word, __u64 from, __u64 to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static inline void moment_advance(__u64 *moment, __u64 to)
{
	if (credit_span(__atomic_load_n(moment, __ATOMIC_RELAXED), to) > 0)
		__atomic_store_n(moment, to, __ATOMIC_RELAXED);
}

#endif
