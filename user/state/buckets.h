/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the buckets of sources in maps `buckets4` and `buckets6` (bpf/bucket.h), and the list of
 * all sources. Each CPU has its own bucket for a source. A command that reads an entry does not
 * delay its eviction, because the kernel does not count this as a use.
 */
#ifndef SLUICE_BUCKETS_H
#define SLUICE_BUCKETS_H

#include "gate/gate.h"
#include "gate/table.h"

/*
 * Reads the buckets of an address's source. *ret contains one bucket for each CPU that has counted
 * a packet of the source, or is NULL if there is no such CPU. The caller frees *ret.
 */
int buckets_read(const struct gate *gate, const struct sl_prefix *address, struct sl_bucket **ret,
		 unsigned int *ret_count);

/*
 * Callback for each source and its buckets. The buckets are valid only during the call. If the
 * callback returns a value other than 0, the walk ends and returns this value.
 */
typedef int buckets_call(void *data, const struct sl_prefix *source,
			 const struct sl_bucket *buckets, unsigned int count);

/*
 * Calls `call` for each source in map `buckets4` or `buckets6`. If `call` is NULL, only counts the
 * entries. Reads the map in pages, so that the kernel locks only one hash bucket at a time. May
 * miss entries that are inserted or evicted meanwhile.
 */
int buckets_walk(const struct gate *gate, enum gate_map map, buckets_call *call, void *data,
		 uint32_t *ret_count);

/* A walk over a map that reads one page at a time. It has memory for one page. */
struct buckets_cursor {
	uint32_t token; /* the kernel's cursor: the next hash bucket to read */
	bool is_begun;	/* false if the next page is the first of the map */
	char *keys;
	struct sl_bucket *values;
	uint32_t room; /* number of entries that fit into a page */
};

#define BUCKETS_CURSOR_CLOSED ((struct buckets_cursor){0})

int buckets_cursor_open(const struct gate *gate, struct buckets_cursor *ret);
void buckets_cursor_close(struct buckets_cursor *cursor);

/*
 * Reads the next page of a map and advances the cursor. After the map's last page, sets `ret_ended`
 * and moves the cursor to the first page. Stores the number of entries in the page in `ret_count`.
 */
int buckets_page(const struct gate *gate, enum gate_map map, struct buckets_cursor *cursor,
		 buckets_call *call, void *data, uint32_t *ret_count, bool *ret_ended);

/*
 * Empties the slices of a source and removes its cached refusals. If a CPU charges a packet at the
 * same time, it may write its old slice back, or the packet may not be counted.
 */
int buckets_forgive(const struct gate *gate, const struct sl_prefix *address);

/* --- All sources ---------------------------------------------------------------------------- */

struct listed_source {
	struct sl_prefix prefix; /* the source, from prefix_source() */
	bool is_counted;	 /* the source has a bucket; otherwise the cells are 0 */
	struct sl_cell passed, dropped, observed;
};

struct source_list {
	struct listed_source *items; /* sorted by prefix, each prefix once */
	unsigned int count, room;
};

/*
 * Lists the sources within a prefix that have a bucket, or a state that is not full. May miss a
 * source that is new or evicted during the call. The caller frees ret->items.
 */
int sources_list(const struct gate *gate, const struct table *table, const struct sl_prefix *within,
		 struct source_list *ret);

#endif
