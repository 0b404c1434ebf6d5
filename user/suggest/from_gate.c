// SPDX-License-Identifier: GPL-2.0
#include "suggest/from_gate.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "gate/policy.h"
#include "histogram.h"
#include "rules/limit_words.h"
#include "rules/value.h"

/* A policy needs at least this many source-seconds, as many as a source that sends for 10 s has. */
#define SECONDS_MIN (SUGGEST_SPAN_MIN_NS / NS_PER_SEC)

/*
 * Returns the upper bound of a quantile, in packets. A value in the last bucket, which has no upper
 * bound, is at most the sum of all packets. quantile: as in struct suggest_settings.
 */
static uint64_t rates_quantile(const struct sl_rates *rates, unsigned int quantile)
{
	const struct histogram histogram = rates_histogram(rates);
	uint64_t bound = histogram_part(&histogram, quantile, SUGGEST_WHOLE);

	return bound == HISTOGRAM_UNBOUNDED ? rates->packets : bound;
}

/* Returns the number of source-seconds that may have more than `rate` packets. */
static uint64_t seconds_above(const struct sl_rates *rates, uint64_t rate)
{
	const struct histogram histogram = rates_histogram(rates);
	uint64_t seconds = 0;

	for (unsigned int i = 0; i < SL_RATE_BUCKETS; i++)
		if (histogram_bound(&histogram, i) > rate)
			seconds += rates->seconds[i];
	return seconds;
}

void rates_propose(const struct sl_counters *counters, uint64_t span_ns,
		   const struct suggest_settings *settings, struct gate_proposal *ret)
{
	const struct sl_rates *rates = &counters->rates;
	uint64_t needed = rates_quantile(rates, settings->quantile);
	struct sl_limit_spec *spec = &ret->limit.spec;

	*ret = (struct gate_proposal){
		.span_ns = span_ns,
		.packets = rates->packets,
		.judged = counters_passed(counters).packets + counters_dropped(counters).packets,
		.p50 = rates_quantile(rates, 50000),
		.p99 = rates_quantile(rates, 99000),
		.p999 = rates_quantile(rates, 99900),
		.max = rates_quantile(rates, SUGGEST_WHOLE),
		.limit = limit_defaults,
	};
	for (unsigned int i = 0; i < SL_RATE_BUCKETS; i++)
		ret->seconds += rates->seconds[i];
	if (rates->packets < SUGGEST_PACKETS_MIN || ret->seconds < SECONDS_MIN ||
	    span_ns < SUGGEST_SPAN_MIN_NS) {
		ret->refusal = SUGGEST_TOO_LITTLE;
		return;
	}
	strcpy(spec->name, suggest_words[SUGGEST_ALL].name);
	spec->action = SL_ACTION_OBSERVE;
	/* no CPU judges more packets than the highest rate */
	needed = needed < RATE_PPS_MAX ? needed : RATE_PPS_MAX;
	spec->rate = headroom_add(needed, settings->headroom);
	spec->rate = spec->rate < RATE_PPS_MAX ? spec->rate : RATE_PPS_MAX;
	spec->rate_unit = SL_RATE_PPS;
	spec->burst = 2 * spec->rate;
	spec->burst_unit = SL_BURST_PACKETS;
	ret->exceeded = seconds_above(rates, spec->rate);
}

int gate_propose(const struct gate *gate, const struct suggest_settings *settings,
		 struct gate_proposals *ret)
{
	_cleanup_(stats_free) struct stats stats = {0};
	int err = stats_read(gate, &stats);
	uint64_t now = uptime_ns(); /* later than the times in `stats` */

	*ret = (struct gate_proposals){0};
	if (err)
		return err;
	ret->items = calloc(stats.rules + 1, sizeof(*ret->items));
	if (!ret->items)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for the policies");
	for (unsigned int i = 0; i < stats.count; i++) {
		const struct stats_line *line = &stats.lines[i];
		struct gate_proposal *proposal = &ret->items[ret->count];

		if (line->kind != STATS_RULE)
			continue;
		/* the owner of a gate can write any time into it */
		rates_propose(&line->counters, now > line->made_ns ? now - line->made_ns : 0,
			      settings, proposal);
		memcpy(proposal->policy, line->policy, sizeof(proposal->policy));
		ret->proposed += proposal->refusal == SUGGEST_PROPOSED;
		ret->count++;
	}
	return 0;
}

void gate_proposals_free(struct gate_proposals *proposals)
{
	free(proposals->items);
	proposals->items = NULL;
}
