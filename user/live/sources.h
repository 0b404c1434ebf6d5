/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Live: the sources that a viewer knows, and the rate of each source between its last two visits. A
 * visit reads the counters of a source. Sources are visited at different times, because reading all
 * of them at once would cost too much. Memory is bounded by LIVE_SOURCES_MAX.
 */
#ifndef SLUICE_LIVE_SOURCES_H
#define SLUICE_LIVE_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/prefix.h"
#include "sluice.h"

/* Largest number of known sources, which take about 40 MB. */
#define LIVE_SOURCES_MAX 262144U

/* Shortest time between two visits that yields a rate. */
#define LIVE_SPAN_LEAST_NS 100000000ULL

struct live_rate {
	float packets; /* per second */
	float bits;    /* per second, Ethernet header included */
};

/*
 * Returns the rate between two readings of a counter that are `ns` apart. Returns 0 if the counter
 * began again, or if `ns` is 0.
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
	uint32_t version;	 /* policy version of the source's bucket */
	uint32_t pass;		 /* pass in which the source was last seen */
	bool is_new;  /* visited once since it appeared, or since its counters began again */
	bool is_gone; /* the source had no bucket at the last visit */
	struct sl_cell count[LIVE_COUNTERS];
	struct live_rate rate[LIVE_COUNTERS]; /* 0 if the source is new */
	uint64_t dropped_before; /* packets dropped at the previous visit; 0 if it is new */
};

struct live_sources {
	struct live_source *items;
	unsigned int count, room;
	uint32_t *index;     /* hash table of positions in `items` + 1; 0 if free */
	uint32_t index_size; /* a power of two, at least twice `room` */
	uint32_t most;	     /* LIVE_SOURCES_MAX; smaller in tests */
	uint32_t pass;	     /* number of the present pass */
	uint32_t left_out;   /* sources that were not added in this pass because `most` are known */
	__u64 secret[SL_SECRETS]; /* secret of the hash, so that senders cannot choose collisions */
};

/* Begins an empty set. Returns 0, or -EIO if there are no random numbers. */
int live_sources_begin(struct live_sources *sources, uint32_t most);
void live_sources_free(struct live_sources *sources);

/* Returns the source of a prefix, valid until the next change of the set, or NULL. */
struct live_source *live_source_find(const struct live_sources *sources,
				     const struct sl_prefix *prefix);

/*
 * Records a visit at uptime `now`, in ns. If a counter is smaller than before, the source is new.
 * Returns 0, or -ENOMEM without an error.
 */
int live_visit(struct live_sources *sources, const struct sl_prefix *prefix,
	       const struct sl_cell count[LIVE_COUNTERS], uint32_t version, uint64_t now);

/*
 * Ends a pass over all sources of the gate. Removes the sources that are gone or were not seen in
 * the pass and, if the set is full, the sources whose rates are 0. Pointers to sources are invalid
 * after it.
 */
void live_pass_end(struct live_sources *sources);

/* --- Choosing ------------------------------------------------------------------------------- */

enum live_order {
	LIVE_BY_SOURCE,
	LIVE_BY_PASSED,
	LIVE_BY_DROPPED,
	LIVE_BY_OBSERVED,
	LIVE_BY_ALL, /* passed and dropped together */
	LIVE_ORDERS,
};

struct live_sorting {
	enum live_order order;
	bool by_bits; /* compare bits, not packets */
	bool is_reversed;
};

/*
 * Returns a number below 0 if source `a` is before `b`. Rates are in descending order, and equal
 * rates in the order of LIVE_BY_ALL, and then of prefixes.
 */
int live_compare(const struct live_source *a, const struct live_source *b,
		 const struct live_sorting *sorting);

/* The first sources in an order, found by adding all sources. */
struct live_choice {
	const struct live_source **list; /* a heap with the last source first, until it is sorted */
	unsigned int count, most;
	struct live_sorting sorting;
};

void live_choice_add(struct live_choice *choice, const struct live_source *source);
void live_choice_sort(struct live_choice *choice);

#endif
