/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the buckets of a source, one on each CPU that remembers it (struct sl_hot).
 */
#ifndef SLUICE_BUCKETS_H
#define SLUICE_BUCKETS_H

#include "gate/array_view.h"
#include "gate/gate.h"

/* The buckets of all sources, in memory. */
struct buckets {
	struct array_view hot;
	struct array_view all;
};

#define BUCKETS_CLOSED ((struct buckets){0})

enum status buckets_open(const struct gate *gate, struct buckets *ret);
void buckets_close(struct buckets *buckets);

/* Copies the bucket at an index. False: it is no source's. */
bool bucket_copy(const struct buckets *buckets, uint32_t index, struct sl_bucket *ret);

/*
 * Reads the buckets of the source of an address. buckets: NULL: by some calls of the kernel a CPU.
 * The caller frees `ret`; NULL: it has none.
 */
enum status buckets_read(const struct gate *gate, const struct buckets *buckets,
			 const struct sl_prefix *address, struct sl_bucket **ret,
			 unsigned int *ret_count);

/*
 * Empties the purses of a source, and clears what they record of refusals. A packet that is charged
 * at that moment may write its purse back: it then holds, or refuses, what it did before, for as
 * long as a purse is good. A bucket that goes to another source at that moment loses the credit of
 * its purses.
 */
enum status buckets_empty_purses(const struct gate *gate, const struct buckets *buckets,
				 const struct sl_prefix *address);

#endif
