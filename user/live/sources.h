/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Live: the sources that refreshes have visited, and their rates. A visit reads the counters of a
 * source. A rate is computed from the last two visits. Sources are visited at different times,
 * because reading all sources at once would cost too much. Memory is bounded by LIVE_SOURCES_MAX.
 */
#ifndef SLUICE_LIVE_SOURCES_H
#define SLUICE_LIVE_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/prefix.h"
#include "sluice.h"

/* Largest number of sources to remember, which use about 40 MB. */
#define LIVE_SOURCES_MAX 262144U

/* Compute a rate only from two visits that are at least this time apart, in ns. */
#define LIVE_SPAN_LEAST_NS 100000000ULL

struct live_rate {
	float packets; /* per second */
	float bits;    /* per second, Ethernet header included */
};

/*
 * Returns the rate of a counter from two readings: `before`, and `now`, which is `ns` later.
 * Returns 0 if the counter was reset between the readings, or if `ns` is 0.
 */
struct live_rate live_rate_of(const struct sl_cell *before, const struct sl_cell *now, uint64_t ns);

/* The counters of a source. */
enum live_counter {
	LIVE_PASSED,
	LIVE_DROPPED,
	LIVE_OBSERVED, /* packets that passed, but exceeded a limit that observes */
	LIVE_COUNTERS,
};

struct live_source {
	struct sl_prefix prefix; /* the source, from prefix_source() */
	uint64_t visited_at;	 /* uptime of the last visit that set the rates, in ns */
	uint32_t version;	 /* policy version in the source's newest bucket */
	uint32_t pass;		 /* number of the pass in which the source was last visited */
	bool is_new;  /* only one visit since the source got a bucket or its counters were reset */
	bool is_gone; /* the source had no bucket at the last visit */
	struct sl_cell count[LIVE_COUNTERS];
	struct live_rate rate[LIVE_COUNTERS]; /* 0 while `is_new` */
	uint64_t dropped_before; /* packets dropped before the previous visit; 0 while `is_new` */
};

struct live_sources {
	struct live_source *items;
	unsigned int count, room;
	uint32_t *index;	  /* hash table of indexes in `items`, plus 1; 0: free */
	uint32_t index_size;	  /* number of elements: a power of two, at least twice `room` */
	uint32_t most;		  /* largest `room`: LIVE_SOURCES_MAX; smaller in tests */
	uint32_t pass;		  /* number of the present pass */
	uint32_t left_out;	  /* sources not added during this pass, because the set is full */
	__u64 secret[SL_SECRETS]; /* hash secret, so that senders cannot choose collisions */
};

/* Begins an empty set. Returns 0, or -EIO if the kernel has no random numbers yet. */
int live_sources_begin(struct live_sources *sources, uint32_t most);
void live_sources_free(struct live_sources *sources);

/* Returns the source with this prefix, valid until the set changes, or NULL. */
struct live_source *live_source_find(const struct live_sources *sources,
				     const struct sl_prefix *prefix);

/*
 * Records a visit at uptime `now`, in ns. If a counter is smaller than at the last visit, the
 * source counts as new. Returns 0 or -ENOMEM, and adds no error.
 */
int live_visit(struct live_sources *sources, const struct sl_prefix *prefix,
	       const struct sl_cell count[LIVE_COUNTERS], uint32_t version, uint64_t now);

/*
 * Ends a pass over all sources of the gate. Removes a source that is gone, or that the pass did not
 * visit. If the set is full, removes sources whose rates are 0. Pointers to sources become invalid.
 */
void live_pass_end(struct live_sources *sources);

/* --- Choosing ------------------------------------------------------------------------------- */

enum live_order {
	LIVE_BY_SOURCE,
	LIVE_BY_PASSED,
	LIVE_BY_DROPPED,
	LIVE_BY_OBSERVED,
	LIVE_BY_ALL, /* sum of passed and dropped packets */
	/* In the orders below, live_choose() chooses the busiest sources. The viewer sorts them. */
	LIVE_BY_POLICY,
	LIVE_BY_LIMIT,
	LIVE_BY_LEVEL,
	LIVE_BY_BLOCKED,
	LIVE_ORDERS,
};

struct live_sorting {
	enum live_order order;
	bool by_bits; /* sort by bits instead of packets */
	bool is_reversed;
};

/*
 * Compares two sources: returns a number below 0 if `a` comes before `b`. The higher rate comes
 * first. If rates are equal, compares by LIVE_BY_ALL, and then by prefix.
 */
int live_compare(const struct live_source *a, const struct live_source *b,
		 const struct live_sorting *sorting);

/* The first `most` sources in an order. The caller offers each source to live_choice_add(). */
struct live_choice {
	const struct live_source **list; /* heap with the last source on top; finally sorted */
	unsigned int count, most;
	struct live_sorting sorting;
};

void live_choice_add(struct live_choice *choice, const struct live_source *source);
void live_choice_sort(struct live_choice *choice);

#endif
