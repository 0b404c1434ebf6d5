/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the buckets of sources, one on each CPU, in maps `buckets4` and `buckets6` (bpf/bucket.h),
 * and the list of all sources. A lookup or a walk by a command does not count as a use, so it does
 * not change what the kernel evicts next.
 */
#ifndef SLUICE_BUCKETS_H
#define SLUICE_BUCKETS_H

#include "gate/gate.h"
#include "gate/table.h"

/*
 * Reads the buckets of the source of an address, of each CPU that has used its bucket. The caller
 * frees `ret`; it is NULL if the source has no bucket.
 */
int buckets_read(const struct gate *gate, const struct sl_prefix *address, struct sl_bucket **ret,
		 unsigned int *ret_count);

/*
 * Called with a source and its buckets, valid during the call. A result other than 0 ends the walk,
 * which returns it.
 */
typedef int buckets_call(void *data, const struct sl_prefix *source,
			 const struct sl_bucket *buckets, unsigned int count);

/*
 * Walks the sources that have an entry in one of the maps, in pages: the kernel locks one hash
 * bucket at a time. An entry that is inserted or evicted during the walk may be missed. call: NULL
 * to count the entries only.
 */
int buckets_walk(const struct gate *gate, enum gate_map map, buckets_call *call, void *data,
		 uint32_t *ret_count);

/*
 * Empties the slices of a source, with the refusals that they remember. A packet that is charged at
 * that moment may write its slice back, or lose its count.
 */
int buckets_forgive(const struct gate *gate, const struct sl_prefix *address);

/* --- All sources ---------------------------------------------------------------------------- */

struct listed_source {
	struct sl_prefix prefix; /* prefix_source() of its address */
	bool is_counted;	 /* it has a bucket; otherwise the cells are 0 */
	struct sl_cell passed, dropped, observed;
};

struct source_list {
	struct listed_source *items; /* by prefix */
	unsigned int count, room;
};

/*
 * Lists the sources within a prefix that have a bucket, or a state that is not full. The caller
 * frees `items`. Sources that begin or end meanwhile may be missed.
 */
int sources_list(const struct gate *gate, const struct table *table, const struct sl_prefix *within,
		 struct source_list *ret);

#endif
