/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: sources as a gate remembers them. Reading consumes no credit and does not delay eviction.
 */
#ifndef SLUICE_SOURCE_H
#define SLUICE_SOURCE_H

#include <stdint.h>

#include "gate/gate.h"
#include "gate/rules.h"

/* A source, summed over all CPUs. */
struct source {
	struct sl_prefix prefix;	/* prefix_source() of its address */
	bool split;			/* rules longer than /64 divide it */
	bool remembered;		/* it has bucket entries; else `cpus` is empty */
	struct judgement rule;		/* the rule of the address that was given */
	const struct sl_policy *policy; /* the policy that limits it; NULL: none */
	struct sl_cell passed;
	struct sl_cell dropped;
	struct sl_cell observed; /* passed, although a limit that observes had no credit */
	/*
	 * machine.cpus bucket entries, without purses that the next packet would find void. Freed
	 * by source_free().
	 */
	struct sl_bucket *cpus;
};

/*
 * Reads the source of an address. A source that is not remembered is OK, and has counters of zero.
 */
enum status source_read(const struct gate *gate, const struct sl_prefix *address,
			struct source *ret);

/*
 * Reads all remembered sources within a prefix, busiest first. The caller frees them with
 * sources_free(). Sources that come or go meanwhile may be missed.
 */
enum status sources_read(const struct gate *gate, const struct sl_prefix *within,
			 struct source **ret, unsigned int *ret_count);

void source_free(struct source *source);
void sources_free(struct source *sources, unsigned int count);

/* Empties the purses of a source on every CPU, and clears what they record of refusals. */
enum status source_empty_purses(const struct gate *gate, const struct source *source);

#endif
