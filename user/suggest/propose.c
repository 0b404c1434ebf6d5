// SPDX-License-Identifier: GPL-2.0
#include "suggest/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "credit.h"
#include "rules/limit_words.h"

/* --- One limit ------------------------------------------------------------------------------ */

void curve_choose(struct suggest_curve *curve, uint64_t span_ns)
{
	uint64_t refill_ns = span_ns / 10 > NS_PER_SEC ? span_ns / 10 : NS_PER_SEC;
	uint64_t least = UINT64_MAX;

	curve->knee = LADDER_RATES - 1;
	for (unsigned int i = 0; i < LADDER_RATES; i++) {
		uint64_t rate = ladder_rate[i], burst = curve->burst[i];

		if ((double)burst * NS_PER_SEC > (double)rate * refill_ns || rate + burst >= least)
			continue;
		least = rate + burst;
		curve->knee = i;
	}
}

uint64_t headroom_add(uint64_t number, unsigned int headroom)
{
	uint64_t unit = 1;

	if (!headroom)
		return number;
	number = (number * (100 + headroom) + 99) / 100;
	while (number / unit >= 100)
		unit *= 10;
	return (number + unit - 1) / unit * unit;
}

void limit_of_curve(struct limit *limit, const struct suggest_curve *curve, unsigned int headroom)
{
	limit->spec.rate = headroom_add(ladder_rate[curve->knee], headroom);
	limit->spec.rate_unit = SL_RATE_PPS;
	limit->spec.burst = headroom_add(curve->burst[curve->knee], headroom);
	limit->spec.burst_unit = SL_BURST_PACKETS;
}

/* Makes the limit of a class and scope. Its action is observe. */
static void limit_make(const struct suggest *suggest, enum suggest_class class,
		       enum suggest_scope scope, struct proposal *proposal)
{
	struct limit *limit = &proposal->limit;

	*limit = limit_defaults;
	limit->match = suggest->match[class];
	limit->spec.action = SL_ACTION_OBSERVE;
	strcpy(limit->spec.name, suggest_words[class].name);
	if (scope == SUGGEST_NETWORKS) {
		strcat(limit->spec.name, "-net");
		limit->spec.per[SL_IPV4] = 24;
		limit->spec.per[SL_IPV6] = 56;
	}
	limit_of_curve(limit, &proposal->curve, suggest->settings.headroom);
}

static int number_compare(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

static int demand_compare(const void *a, const void *b)
{
	const struct member *one = *(const struct member *const *)a;
	const struct member *other = *(const struct member *const *)b;

	return number_compare(&other->demand, &one->demand);
}

/* Returns the index of a quantile in `count` sorted numbers (nearest-rank method). */
static unsigned int rank_of(unsigned int count, unsigned int quantile)
{
	uint64_t rank = ((uint64_t)count * quantile + SUGGEST_WHOLE - 1) / SUGGEST_WHOLE;

	return rank ? rank - 1 : 0;
}

/*
 * Finds the outliers. `sorted` has the members with the highest demands first. At most three
 * members are outliers, or 1 % of all members if that is more. The demand of each outlier exceeds
 * SUGGEST_OUTLIER_TIMES the demand of any member that is not an outlier.
 */
static void outliers_find(const struct member *const *sorted, unsigned int count,
			  struct proposal *proposal)
{
	unsigned int most = count / 100 > 3 ? count / 100 : 3;

	for (unsigned int i = most; i && count >= SUGGEST_SOURCES_MIN && !proposal->outliers; i--)
		if (sorted[i - 1]->demand > SUGGEST_OUTLIER_TIMES * sorted[i]->demand)
			proposal->outliers = i;
	for (unsigned int i = 0; i < proposal->outliers && i < SUGGEST_OUTLIERS_SHOWN; i++)
		proposal->outlier[i] = (struct suggest_outlier){
			.addr = {sorted[i]->addr[0], sorted[i]->addr[1]},
			.ipv4 = sorted[i]->ipv4,
			.packets = sorted[i]->packets,
			.demand = sorted[i]->demand,
		};
	proposal->rest = sorted[proposal->outliers]->demand;
}

/*
 * Sets the demands, the outliers and the curve of a population. The population must not be empty.
 */
static int curve_make(struct population *population, const struct suggest_settings *settings,
		      struct proposal *proposal)
{
	unsigned int count = population->count, rest;
	_cleanup_free_ const struct member **sorted = calloc(count, sizeof(*sorted));
	_cleanup_free_ uint64_t *bursts = calloc(count, sizeof(*bursts));

	if (!sorted || !bursts)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for the sources");
	population_measure(population);
	for (unsigned int i = 0; i < count; i++)
		sorted[i] = &population->items[i];
	qsort(sorted, count, sizeof(*sorted), demand_compare);
	proposal->p50 = sorted[count - 1 - rank_of(count, 50000)]->demand;
	proposal->p99 = sorted[count - 1 - rank_of(count, 99000)]->demand;
	proposal->p999 = sorted[count - 1 - rank_of(count, 99900)]->demand;
	proposal->max = sorted[0]->demand;
	outliers_find(sorted, count, proposal);
	rest = count - proposal->outliers;
	for (unsigned int step = 0; step < LADDER_RATES; step++) {
		for (unsigned int i = 0; i < rest; i++)
			bursts[i] = member_burst(sorted[proposal->outliers + i], step);
		qsort(bursts, rest, sizeof(*bursts), number_compare);
		proposal->curve.burst[step] = bursts[rank_of(rest, settings->quantile)];
	}
	return 0;
}

/*
 * Gives a full token bucket to each member for which the limit may refuse packets. The limit
 * refuses nothing of a member whose packets fit in the burst even at the next lower rate of the
 * ladder. The limit has no slices, so the result does not depend on the number of CPUs.
 */
static int trials_begin(struct population *population, struct proposal *proposal)
{
	static const struct machine any = {.jiffy_ns = 4 * NS_PER_MS, .cpus = 1};
	const struct limit *limit = &proposal->limit;
	unsigned int step = 0;

	proposal->charged = limit_compile(limit, SL_IPV4, &any);
	proposal->charged.refill = proposal->charged.burst;
	proposal->charged.slice = 0;
	while (step < LADDER_RATES - 1 && ladder_rate[step + 1] <= limit->spec.rate)
		step++;
	for (unsigned int i = 0; i < population->count; i++) {
		struct member *member = &population->items[i];

		if (member_burst(member, step) <= limit->spec.burst)
			continue;
		member->trial = malloc(sizeof(*member->trial));
		if (!member->trial)
			return error_add(ENOMEM, "no-memory", NULL,
					 "out of memory for the sources");
		*member->trial = (struct member_trial){
			.state = credit_full(&proposal->charged, member->first)};
		population->trials++;
	}
	return 0;
}

/* Returns SUGGEST_PROPOSED, or the reason why no limit is proposed for the class and scope. */
static enum suggest_refusal refusal_of(const struct suggest *suggest, enum suggest_class class,
				       enum suggest_scope scope)
{
	const struct population *sources = &suggest->population[class][SUGGEST_SOURCES];
	const struct population *all = &suggest->population[SUGGEST_ALL][SUGGEST_SOURCES];

	if (sources->packets < SUGGEST_PACKETS_MIN ||
	    suggest_span_ns(suggest) < SUGGEST_SPAN_MIN_NS)
		return SUGGEST_TOO_LITTLE;
	if (class != SUGGEST_ALL && sources->packets == all->packets)
		return SUGGEST_SAME;
	if (population_keys(sources) < SUGGEST_SOURCES_MIN &&
	    population_keys(all) >= SUGGEST_SOURCES_MIN)
		return SUGGEST_TOO_LITTLE;
	if (scope == SUGGEST_NETWORKS &&
	    population_keys(sources) ==
		    population_keys(&suggest->population[class][SUGGEST_NETWORKS]))
		return SUGGEST_SAME;
	return SUGGEST_PROPOSED;
}

static int limit_propose(struct suggest *suggest, enum suggest_class class,
			 enum suggest_scope scope)
{
	struct population *population = &suggest->population[class][scope];
	struct proposal *proposal = &suggest->proposal[class][scope];
	int err;

	*proposal = (struct proposal){
		.members = population_keys(population),
		.packets = population->packets,
		.halvings = population->halvings,
	};
	if (!population->count) {
		proposal->refusal = SUGGEST_NO_PACKETS;
		return 0;
	}
	err = curve_make(population, &suggest->settings, proposal);
	if (err)
		return err;
	proposal->refusal = refusal_of(suggest, class, scope);
	if (proposal->refusal != SUGGEST_PROPOSED)
		return 0;
	curve_choose(&proposal->curve, suggest_span_ns(suggest));
	limit_make(suggest, class, scope, proposal);
	return trials_begin(population, proposal);
}

/* --- An attack ------------------------------------------------------------------------------ */

/*
 * A few sources dominate if they send at least this share of the packets, in per cent. One shape
 * dominates if at least this share of the packets has it.
 */
#define FEW_SHARE   80
#define SHAPE_SHARE 80

/* "A few sources" are at most this many sources, and at most a tenth of all sources. */
#define FEW_SOURCES 3

/*
 * A class looks forged if it has at least FORGED_SOURCES sources, if FORGED_SHARE per cent of its
 * packets have one shape, and if FORGED_SHARE per cent of its sources sent at most two packets.
 */
#define FORGED_SOURCES 1000
#define FORGED_SHARE   90

static unsigned int per_cent(uint64_t part, uint64_t whole)
{
	return whole ? part * 100 / whole : 0;
}

/* Stores whether a few sources send most of the packets. */
static void few_find(const struct population *sources, struct suggest_attack *attack)
{
	uint64_t busiest[FEW_SOURCES] = {0}, sum = 0;

	for (unsigned int i = 0; i < sources->count; i++) {
		uint64_t packets = sources->items[i].packets;

		for (int place = 0; place < FEW_SOURCES; place++)
			if (packets > busiest[place]) {
				uint64_t other = busiest[place];

				busiest[place] = packets;
				packets = other;
			}
	}
	for (unsigned int i = 0; i < FEW_SOURCES && sum * 100 < FEW_SHARE * sources->packets; i++) {
		sum += busiest[i];
		attack->busiest = i + 1;
	}
	attack->busiest_share = per_cent(sum, sources->packets);
	attack->few_sources =
		sources->count >= 10 * attack->busiest && attack->busiest_share >= FEW_SHARE;
}

/* Returns whether at least half of the sources sent only one packet. */
static bool are_single(const struct population *sources)
{
	uint64_t singles = 0;

	for (unsigned int i = 0; i < sources->count; i++)
		singles += sources->items[i].packets == 1;
	return 2 * singles >= sources->count;
}

/* Stores the most frequent shape of a class. */
static void shape_read(const struct suggest *suggest, enum suggest_class class,
		       struct suggest_attack *attack)
{
	const struct shape_count *shapes = suggest->shape[class], *most = shapes;

	for (int i = 1; i < SHAPES; i++)
		if (shapes[i].packets > most->packets)
			most = &shapes[i];
	attack->shape_class = class;
	attack->shape_share =
		per_cent(most->packets, suggest->population[class][SUGGEST_SOURCES].packets);
	attack->shape_bytes = most->shape >> 16;
	attack->shape_proto = most->shape >> 8;
	attack->shape_syn = most->shape & 1;
}

/*
 * Returns whether a class has many sources, and whether nearly all of these sources sent at most
 * two packets. This is a sign of forged sources, because a real client sends more packets than its
 * SYN.
 */
static bool are_forged(const struct suggest *suggest, enum suggest_class class)
{
	const struct population *sources = &suggest->population[class][SUGGEST_SOURCES];
	uint64_t known = 0, brief = 0;

	if (population_keys(sources) < FORGED_SOURCES)
		return false;
	for (unsigned int i = 0; i < sources->count; i++) {
		const struct member *source = &sources->items[i];

		/*
		 * Each population has its own sample. So a source of this population may be missing
		 * in the population of all packets.
		 */
		source = population_find(&suggest->population[SUGGEST_ALL][SUGGEST_SOURCES],
					 source->addr, source->ipv4);
		known += source != NULL;
		brief += source && source->packets <= 2;
	}
	return per_cent(brief, known) >= FORGED_SHARE;
}

/*
 * Stores whether most packets have one shape. The ACKs of a download have one shape, too. So TCP
 * without SYN counts only if at least half of the sources sent only one packet. If no shape is so
 * frequent, finds a class in which nearly all packets have one shape and the sources look forged.
 */
static void shape_find(const struct suggest *suggest, struct suggest_attack *attack)
{
	const struct population *sources = &suggest->population[SUGGEST_ALL][SUGGEST_SOURCES];

	shape_read(suggest, SUGGEST_ALL, attack);
	attack->one_shape =
		attack->shape_share >= SHAPE_SHARE && sources->count >= SUGGEST_SOURCES_MIN &&
		(attack->shape_proto != PROTO_TCP || attack->shape_syn || are_single(sources));
	for (int i = SUGGEST_ALL + 1; i < SUGGEST_CLASSES && !attack->one_shape; i++) {
		struct suggest_attack found = *attack;

		shape_read(suggest, i, &found);
		found.one_shape = found.shape_share >= FORGED_SHARE && are_forged(suggest, i);
		if (found.one_shape)
			*attack = found;
	}
}

/* --- All ------------------------------------------------------------------------------------ */

int suggest_propose(struct suggest *suggest)
{
	int err = 0;

	for (int i = 0; i < SUGGEST_CLASSES && !err; i++)
		for (int scope = 0; scope < SUGGEST_SCOPES && !err; scope++)
			err = limit_propose(suggest, i, scope);
	if (err)
		return err;
	newcomers_propose(suggest);
	few_find(&suggest->population[SUGGEST_ALL][SUGGEST_SOURCES], &suggest->attack);
	shape_find(suggest, &suggest->attack);
	return 0;
}

/*
 * Charges packets to a member's state with the functions of the packet path. Returns whether they
 * pass.
 */
static bool trial_charge(struct proposal *proposal, const struct member *member, uint64_t now,
			 uint32_t packets)
{
	const struct sl_limit *limit = &proposal->charged;
	struct member_trial *trial = member ? member->trial : NULL;
	struct sl_slice slice = {0};

	if (!trial ||
	    credit_charge(limit, &trial->state, &slice, 0, credit_cost(limit, packets, 0), now, 0))
		return true;
	if (!trial->refused)
		proposal->refused_members += 1ULL << proposal->halvings;
	trial->refused += packets;
	proposal->refused_packets += (uint64_t)packets << proposal->halvings;
	return false;
}

bool suggest_must_try(const struct suggest *suggest)
{
	for (int i = 0; i < SUGGEST_CLASSES; i++)
		for (int scope = 0; scope < SUGGEST_SCOPES; scope++)
			if (suggest->population[i][scope].trials)
				return true;
	return false;
}

void suggest_try(struct suggest *suggest, const struct suggest_packet *packet)
{
	uint64_t now = suggest_ticks(suggest, packet);
	__u64 key[2];

	for (int i = 0; i < SUGGEST_CLASSES; i++)
		for (int scope = 0; scope < SUGGEST_SCOPES; scope++) {
			const struct population *population = &suggest->population[i][scope];
			bool is_all = i == SUGGEST_ALL && scope == SUGGEST_SOURCES;
			const struct member *member;

			if (!(population->trials || is_all) || !suggest_is_of(suggest, i, packet))
				continue;
			suggest_key(scope, packet, key);
			member = population_find(population, key, packet->ipv4);
			if (trial_charge(&suggest->proposal[i][scope], member, now,
					 packet->packets) &&
			    is_all)
				newcomers_try(suggest, member, now, packet->packets);
		}
}
