/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Suggest: the smallest burst that refuses no packet of a source, at each rate of a ladder.
 *
 * The excess of a span of time is the cost of the packets in the span, minus the length of the
 * span. A token bucket refuses nothing if its burst is at least the largest excess of any span. A
 * track computes this maximum for each rate while packets arrive. `need` is the largest excess of a
 * span that ends now. It falls to 0 with time, and each packet raises it by its cost. The result is
 * exact, because include/credit.h charges the same costs. So a bucket with a burst of `most` ticks
 * passes all packets, and a smaller bucket refuses at least one packet.
 */
#ifndef SLUICE_LADDER_H
#define SLUICE_LADDER_H

#include <stdint.h>

#include "sluice.h"

/* Rates in packets per second: 1, 2, 3 and 5 times each power of ten up to 1,000,000. */
#define LADDER_RATES 25

extern const uint32_t ladder_rate[LADDER_RATES];

/* The cost of a packet at each rate of the ladder, in ticks, as limit_compile() computes it. */
extern const uint64_t ladder_cost[LADDER_RATES];

/* The packets of one source or network. Initialize it with zeros. */
struct track {
	uint64_t last; /* time of the last packet, in ticks */
	uint64_t need[LADDER_RATES];
	uint64_t most[LADDER_RATES]; /* highest value of `need` so far, in ticks */
};

/* Adds packets at time `now`, in ticks. `now` must not be earlier than at the previous call. */
void track_add(struct track *track, uint64_t now, uint32_t packets);

/* Returns the smallest burst, in packets, at which rate `step` of the ladder refuses nothing. */
uint64_t track_burst(const struct track *track, unsigned int step);

/*
 * Returns the demand: the lowest rate that refuses nothing of a source if the burst is one second
 * of this rate. It is the lowest N for which a rate of the ladder, at most N, needs a burst of at
 * most N packets.
 */
uint64_t track_demand(const struct track *track);

#endif
