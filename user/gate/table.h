/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: reads and changes entries of map `states` (include/ways.h) while BPF programs change them.
 * Commands never insert entries. An insertion must lock a set of the map, and only BPF programs can
 * lock a set.
 */
#ifndef SLUICE_GATE_TABLE_H
#define SLUICE_GATE_TABLE_H

#include "gate/gate.h"
#include "ways.h"

/* The result of a search in map `states`. */
struct found_entry {
	struct sl_entry entry; /* a copy */
	uint32_t index;	       /* index of the entry in map `states` */
	bool is_found;
};

/* The whole table of states, in memory. */
struct table {
	struct sl_entry *entries;
	uint32_t count;
	uint32_t id;		       /* the kernel's id of map `states`; a resize changes it */
	struct array_view sets;	       /* map `sets`; not open for a reader */
	struct array_view states;      /* map `states` */
	const struct sl_entry **index; /* for a reader: used entries by key; otherwise NULL */
	uint32_t index_count;
};

#define TABLE_CLOSED ((struct table){0})

int table_open(const struct gate *gate, struct table *ret);

/* Opens a table to read all its entries. table_read() does not accept such a table. */
int table_open_all(const struct gate *gate, struct table *ret);
void table_close(struct table *table);

/* Fills `index`, which has room for `count` pointers, with the used entries, sorted by key. */
void table_index(struct table *table);

/*
 * Reads the entry of a key. Searches `table`, or the maps by system calls if `table` is NULL. A
 * reader always searches a copy of map `states`, because it does not have the hash secret.
 */
int table_read(const struct gate *gate, const struct table *table, const struct state_key *key,
	       struct found_entry *ret);

/* A limit in force. number: `limit` in the entries of its states. */
struct entry_limit {
	uint32_t number;
	const struct sl_limit *limit;
};

/*
 * Lists the limits of all policies in force, for both families. An inherited limit is listed once
 * for each policy that has it. The caller frees *ret.
 */
int entry_limits_list(const struct gate *gate, struct entry_limit **ret, unsigned int *ret_count);

/* Returns a limit with this number, or NULL. list: result of entry_limits_list(). */
const struct sl_limit *entry_limit_find(const struct entry_limit *list, unsigned int count,
					uint32_t number);

/*
 * The functions below change a word of a state that BPF programs may change at the same time. They
 * use atomic operations, like state_publish() in bpf/state.h.
 */

/* Sets a word to `to` if the word equals `from`. Returns whether the word was set. */
static inline bool word_swap(__u64 *word, __u64 from, __u64 to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

/* Stores `to` in a word, unless the word contains a later time. */
static inline void moment_advance(__u64 *moment, __u64 to)
{
	if (credit_span(__atomic_load_n(moment, __ATOMIC_RELAXED), to) > 0)
		__atomic_store_n(moment, to, __ATOMIC_RELAXED);
}

#endif
