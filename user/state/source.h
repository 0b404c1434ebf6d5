/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sources as the gate remembers them. Looking consumes nothing and does not keep a source from
 * being forgotten.
 */
#ifndef SLUICE_SOURCE_H
#define SLUICE_SOURCE_H

#include <stdint.h>

#include "gate/gate.h"
#include "gate/rules.h"

/* A source as all CPUs together remember it. */
struct source {
	struct sl_prefix prefix; /* what its bucket is kept for: prefix_source() of its address */
	bool split;		 /* rules longer than /64 divide that */
	bool remembered;	 /* it has buckets; else `cpus` is empty */
	struct judgement rule;	 /* what decides about the address that was asked for */
	const struct sl_policy *policy; /* by which it is limited; NULL: by none */
	struct sl_cell passed;
	struct sl_cell dropped;
	struct sl_cell observed; /* passed, but a limit that only observes had no credit */
	/*
	 * machine.cpus buckets, less the purses that the next packet would find void; the owner
	 * frees them with source_free().
	 */
	struct sl_bucket *cpus;
};

/* Reads the source that an address belongs to. Not remembered: OK, and its counters are zero. */
enum status source_read(const struct gate *gate, const struct sl_prefix *address,
			struct source *ret);

/*
 * Reads all sources in memory within a prefix, busiest first. The caller frees them with
 * sources_free(). A source may be missed that comes or goes meanwhile.
 */
enum status sources_read(const struct gate *gate, const struct sl_prefix *within,
			 struct source **ret, unsigned int *ret_count);

void source_free(struct source *source);
void sources_free(struct source *sources, unsigned int count);

/* Empties the purses of a source on every CPU, and what they remember of refusals. */
enum status source_empty_purses(const struct gate *gate, const struct source *source);

#endif
