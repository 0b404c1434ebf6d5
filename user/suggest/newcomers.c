// SPDX-License-Identifier: GPL-2.0
#include "suggest/parts.h"

#include "base/clock.h"

/*
 * Possible ages, in ns, from which a source counts as established: the time in which its empty
 * state refills, plus SPAN_MORE_NS, but at most 66 s (span_due() in include/ways.h).
 */
static const uint64_t ages_ns[NEW_AGES] = {4 * NS_PER_SEC, 16 * NS_PER_SEC, 66 * NS_PER_SEC};
#define SPAN_MORE_NS (3 * NS_PER_SEC)

/* Possible warm-ups: times at the beginning of a capture in which every source looks new. */
static const uint64_t warm_ups_ns[NEW_WARM_UPS] = {3 * NS_PER_SEC, 15 * NS_PER_SEC,
						   120 * NS_PER_SEC};

/* A warm-up is at most a third of the capture. */
#define WARM_UP_PART 3

static void source_count(struct newcomer_counts *counts, uint64_t now, unsigned int sources)
{
	uint64_t second = now / SL_TICKS_PER_SEC;

	counts->sources += sources;
	counts->now = (second == counts->second ? counts->now : 0) + sources;
	counts->second = second;
	if (counts->most < counts->now)
		counts->most = counts->now;
}

void newcomers_add(struct suggest *suggest, const struct member *source, uint64_t now,
		   uint32_t packets)
{
	uint32_t weight = 1U << suggest->population[SUGGEST_ALL][SUGGEST_SOURCES].halvings;

	for (int age = 0; age < NEW_AGES; age++)
		if (now - source->first < ages_ns[age] * SL_TICKS_PER_NS)
			track_add(&suggest->start[age], now, packets * weight);
	for (int i = 0; i < NEW_WARM_UPS; i++) {
		struct newcomer_counts *counts = &suggest->newcomers[i];

		if (source->first < warm_ups_ns[i] * SL_TICKS_PER_NS)
			continue;
		if (source->packets == packets)
			source_count(counts, now, weight);
		for (int age = 0; age < NEW_AGES; age++)
			if (now - source->first < ages_ns[age] * SL_TICKS_PER_NS)
				track_add(&counts->track[age], now, packets * weight);
	}
}

void newcomers_try(struct suggest *suggest, const struct member *source, uint64_t now,
		   uint32_t packets)
{
	struct newcomer_proposal *budget = &suggest->budget;
	struct track *start = &suggest->start[budget->age];

	if (!budget->is_tried)
		*start = (struct track){0}; /* drop the packets of the first reading */
	budget->is_tried = true;
	if (source && now - source->first < budget->age_ns * SL_TICKS_PER_NS)
		track_add(start, now,
			  packets << suggest->population[SUGGEST_ALL][SUGGEST_SOURCES].halvings);
}

/* Returns the index of the lowest age at which all proposed limits have refilled. */
static int age_choose(const struct suggest *suggest)
{
	unsigned int count = 0;
	int age = 0;

	for (int scope = 0; scope < SUGGEST_SCOPES; scope++)
		for (int i = 0; i < SUGGEST_CLASSES; i++) {
			const struct proposal *proposal = &suggest->proposal[i][scope];
			const struct sl_limit_spec *spec = &proposal->limit.spec;

			if (proposal->refusal != SUGGEST_PROPOSED || count++ >= SL_LIMITS_MAX)
				continue;
			while (age < NEW_AGES - 1 &&
			       ages_ns[age] <
				       (double)spec->burst / spec->rate * NS_PER_SEC + SPAN_MORE_NS)
				age++;
		}
	return age;
}

void newcomers_propose(struct suggest *suggest)
{
	struct newcomer_proposal *budget = &suggest->budget;
	uint64_t span_ns = suggest_span_ns(suggest);
	const struct newcomer_counts *counts;
	int age = age_choose(suggest), warm_up = 0;

	while (warm_up < NEW_WARM_UPS - 1 && warm_ups_ns[warm_up + 1] * WARM_UP_PART <= span_ns)
		warm_up++;
	counts = &suggest->newcomers[warm_up];
	*budget = (struct newcomer_proposal){
		.warm_up_ns = warm_ups_ns[warm_up],
		.sources = counts->sources,
		.most = counts->most,
		.age_ns = ages_ns[age],
		.age = age,
	};
	if (!counts->sources || span_ns < SUGGEST_SPAN_MIN_NS) {
		budget->refusal = counts->sources ? SUGGEST_TOO_LITTLE : SUGGEST_NO_PACKETS;
		return;
	}
	for (unsigned int i = 0; i < LADDER_RATES; i++)
		budget->curve.burst[i] = track_burst(&counts->track[age], i);
	curve_choose(&budget->curve, span_ns);
	limit_of_curve(&budget->limit, &budget->curve, suggest->settings.headroom);
}

/*
 * Sets the burst of the budget. It is computed from all sources, because all sources are new when a
 * gate starts. The rate is computed from sources that appear after the warm-up. In a flood, new
 * sources can use only 7/8 of the burst (credit_is_low() in include/credit.h).
 */
void suggest_finish(struct suggest *suggest)
{
	struct newcomer_proposal *budget = &suggest->budget;
	uint64_t burst = track_burst(&suggest->start[budget->age], budget->curve.knee);

	if (budget->refusal == SUGGEST_PROPOSED)
		budget->limit.spec.burst =
			headroom_add((burst * 8 + 6) / 7, suggest->settings.headroom);
}
