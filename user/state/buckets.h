/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the buckets of sources, which each CPU has in maps `buckets4` and `buckets6`
 * (bpf/bucket.h), and the list of all sources. A lookup or a walk by a command does not count as a
 * use, so it does not change which bucket the kernel evicts next.
 */
#ifndef SLUICE_BUCKETS_H
#define SLUICE_BUCKETS_H

#include "gate/gate.h"
#include "gate/table.h"

/*
 * Reads the buckets of the source of an address, one for each CPU that has used its bucket. If no
 * CPU has used a bucket, *ret is NULL. The caller frees it.
 */
int buckets_read(const struct gate *gate, const struct sl_prefix *address, struct sl_bucket **ret,
		 unsigned int *ret_count);

/*
 * Called for each source, with its buckets, which are valid during the call. A result other than 0
 * ends the walk, and becomes its result.
 */
typedef int buckets_call(void *data, const struct sl_prefix *source,
			 const struct sl_bucket *buckets, unsigned int count);

/*
 * Walks the sources of map `buckets4` or `buckets6` in pages, so that the kernel locks only one
 * hash bucket at a time. An entry that is inserted or evicted during the walk may be missed. If
 * `call` is NULL, the walk only counts the entries.
 */
int buckets_walk(const struct gate *gate, enum gate_map map, buckets_call *call, void *data,
		 uint32_t *ret_count);

/* The place of a walk that reads one page at a time, and memory for a page. */
struct buckets_cursor {
	uint32_t token; /* the kernel's number of the next hash bucket */
	bool is_begun;	/* false if the next page is the first of the map */
	char *keys;
	struct sl_bucket *values;
	uint32_t room; /* number of entries that fit in a page */
};

#define BUCKETS_CURSOR_CLOSED ((struct buckets_cursor){0})

int buckets_cursor_open(const struct gate *gate, struct buckets_cursor *ret);
void buckets_cursor_close(struct buckets_cursor *cursor);

/*
 * Reads the next page of a map, and moves the cursor: after the last page to the first. ret_count:
 * number of entries of the page. Sets `ret_ended` after the last page.
 */
int buckets_page(const struct gate *gate, enum gate_map map, struct buckets_cursor *cursor,
		 buckets_call *call, void *data, uint32_t *ret_count, bool *ret_ended);

/*
 * Empties the slices of a source, and forgets its cached refusals. A packet that is charged at the
 * same time may write its old slice back, or lose its count.
 */
int buckets_forgive(const struct gate *gate, const struct sl_prefix *address);

/* --- All sources ---------------------------------------------------------------------------- */

struct listed_source {
	struct sl_prefix prefix; /* the source, from prefix_source() */
	bool is_counted;	 /* the source has a bucket; otherwise the cells are 0 */
	struct sl_cell passed, dropped, observed;
};

struct source_list {
	struct listed_source *items; /* sorted by prefix */
	unsigned int count, room;
};

/*
 * Lists the sources within a prefix that have a bucket, or a state that is not full. The caller
 * frees `items`. A source whose first packet arrives during the call may be missed, as may a source
 * that is evicted.
 */
int sources_list(const struct gate *gate, const struct table *table, const struct sl_prefix *within,
		 struct source_list *ret);

#endif
