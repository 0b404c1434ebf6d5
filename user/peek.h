/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How sources stand: their ledgers and purses, read with the packet path's own arithmetic. Looking
 * consumes nothing and does not keep a source from being forgotten.
 */
#ifndef SLUICE_PEEK_H
#define SLUICE_PEEK_H

#include <stdint.h>

#include "gate.h"

/* A source as all CPUs together remember it. */
struct source {
	struct sl_prefix prefix; /* an IPv4 address or an IPv6 /64 */
	struct sl_cell passed;
	struct sl_cell dropped;
	bool split;		/* rules longer than /64 divide it */
	struct sl_bucket *cpus; /* machine.cpus buckets; the owner frees them with source_free() */
};

/* Where a source stands with one limit. */
struct standing {
	bool allowed;		 /* a packet would pass now */
	uint64_t remaining;	 /* packets, or bytes of a bit rate */
	uint64_t retry_after_ms; /* until a packet would pass: 0 when allowed; UINT64_MAX: never */
};

/* Reads the source that an address belongs to. Not remembered: OK, and all is zero. */
enum status source_read(const struct gate *gate, const struct sl_prefix *address,
			struct source *ret);

/*
 * Reads all sources in memory within a prefix, busiest first. The caller frees them with
 * sources_free(). A source may be missed or counted twice that comes or goes meanwhile.
 */
enum status sources_read(const struct gate *gate, const struct sl_prefix *within,
			 struct source **ret, unsigned int *ret_count);

void source_free(struct source *source);
void sources_free(struct source *sources, unsigned int count);

/*
 * Where the source stands at `now` (ticks) with the limit of a policy: would a frame of so many
 * bytes pass? It passes if the ledger covers it, or the purse of any one CPU.
 */
enum status standing_read(const struct gate *gate, const struct source *source,
			  const struct sl_policy *policy, unsigned int frame_bytes, uint64_t now,
			  struct standing *ret);

/* The clock of the packet path. */
uint64_t now_ticks(void);

/* The burst in what `remaining` counts. */
uint64_t burst_units(const struct sl_limit *limit);

#endif
