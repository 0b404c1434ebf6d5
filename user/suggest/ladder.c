// SPDX-License-Identifier: GPL-2.0
#include "suggest/ladder.h"

/* Expands to `item` for each rate of the ladder. */
#define DECADE(item, unit) item(1 * (unit)), item(2 * (unit)), item(3 * (unit)), item(5 * (unit))
#define RATES(item)                                                                                \
	DECADE(item, 1), DECADE(item, 10), DECADE(item, 100), DECADE(item, 1000),                  \
		DECADE(item, 10000), DECADE(item, 100000), item(1000000)

#define RATE(rate) (rate)
#define COST(rate) ((SL_TICKS_PER_SEC + (rate)-1) / (rate)) /* ticks, rounded up */

const uint32_t ladder_rate[LADDER_RATES] = {RATES(RATE)};
const uint64_t ladder_cost[LADDER_RATES] = {RATES(COST)};

static inline uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void track_add(struct track *track, uint64_t now, uint32_t packets)
{
	uint64_t passed = now - track->last;

	track->last = now;
	for (unsigned int i = 0; i < LADDER_RATES; i++) {
		uint64_t need = track->need[i] - least(track->need[i], passed);

		/* limit the burst to SL_BURST_TICKS_MAX, so that the sum does not overflow */
		need = least(need + ladder_cost[i] * packets, SL_BURST_TICKS_MAX);
		track->need[i] = need;
		track->most[i] = need > track->most[i] ? need : track->most[i];
	}
}

uint64_t track_burst(const struct track *track, unsigned int step)
{
	return (track->most[step] + ladder_cost[step] - 1) / ladder_cost[step];
}

uint64_t track_demand(const struct track *track)
{
	uint64_t demand = UINT64_MAX;

	for (unsigned int i = 0; i < LADDER_RATES; i++) {
		uint64_t burst = track_burst(track, i);

		demand = least(demand, burst > ladder_rate[i] ? burst : ladder_rate[i]);
	}
	return demand;
}
