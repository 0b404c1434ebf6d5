/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: a source as a gate remembers it: the rule that decides about it, its buckets and, by them,
 * its counters. Its levels: source_state.h. Reading consumes no credit.
 */
#ifndef SLUICE_SOURCE_H
#define SLUICE_SOURCE_H

#include <stdint.h>

#include "gate/gate.h"
#include "gate/rules.h"
#include "gate/table.h"
#include "state/buckets.h"

/* A source, summed over all CPUs. */
struct source {
	struct sl_prefix prefix;	/* prefix_source() of its address */
	bool split;			/* rules longer than /64 divide it */
	struct judgement rule;		/* the rule of the address that was given */
	const struct sl_policy *policy; /* the policy that limits it; NULL: none */
	struct sl_cell passed;
	struct sl_cell dropped;
	struct sl_cell observed; /* passed, although a limit that observes had no credit */
	/*
	 * Of each CPU that remembers it, without slices that the next packet would find void. Freed
	 * by source_free().
	 */
	struct sl_bucket *buckets;
	unsigned int count;
	const struct table *table; /* that its levels are read from; NULL: from the map */
};

/*
 * Reads the source of an address. A source that has no bucket is OK, and has counters of zero.
 * table: NULL, or the table in memory, for a caller that reads many sources.
 */
int source_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
		struct source *ret);

void source_free(struct source *source);

#endif
