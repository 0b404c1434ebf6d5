// SPDX-License-Identifier: GPL-2.0
#include "replay/tally.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "capture/capture.h"
#include "gate/policy.h"
#include "rules/limit.h"
#include "rules/prefix.h"

/* --- Fates ---------------------------------------------------------------------------------- */

enum fate fate_of(const struct sl_judged *judged)
{
	if (judged->reason >= SL_FIRST_DROP)
		return FATE_DROPPED;
	return judged->refused ? FATE_WOULD_DROP : FATE_PASSED;
}

void fates_add(struct fates *fates, enum fate fate, uint32_t bytes)
{
	fates->of[fate].packets++;
	fates->of[fate].bytes += bytes;
}

struct sl_cell fates_passed(const struct fates *fates)
{
	struct sl_cell passed = fates->of[FATE_PASSED];

	cell_add_to(&passed, &fates->of[FATE_WOULD_DROP]);
	return passed;
}

struct sl_cell fates_sum(const struct fates *fates)
{
	struct sl_cell sum = {0};

	for (int fate = 0; fate < FATES; fate++)
		cell_add_to(&sum, &fates->of[fate]);
	return sum;
}

/* --- Sources -------------------------------------------------------------------------------- */

#define SLOTS_FIRST 1024

static uint64_t prefix_hash(const struct sl_prefix *prefix)
{
	uint64_t words[2], hash;

	memcpy(words, prefix->addr, sizeof(words));
	hash = (words[0] ^ prefix->bits) * 0x9e3779b97f4a7c15ULL;
	hash = (hash ^ hash >> 32 ^ words[1]) * 0xd6e8feb86659fd93ULL;
	return hash ^ hash >> 32;
}

/* Returns the slot of a source. If the source has no slot, returns the free slot for it. */
static struct tally_source *slot_find(const struct tally_sources *sources,
				      const struct sl_prefix *prefix)
{
	uint32_t at = prefix_hash(prefix) & sources->mask;

	while (sources->slot[at].prefix.bits && !prefix_equal(&sources->slot[at].prefix, prefix))
		at = (at + 1) & sources->mask;
	return &sources->slot[at];
}

/* Doubles the number of slots. If there is no memory, changes nothing and returns false. */
static bool slots_grow(struct tally_sources *sources)
{
	uint32_t slots = sources->slot ? 2 * (sources->mask + 1) : SLOTS_FIRST;
	struct tally_sources grown = {
		.slot = calloc(slots, sizeof(*grown.slot)),
		.count = sources->count,
		.mask = slots - 1,
	};

	if (!grown.slot)
		return false;
	for (uint32_t i = 0; sources->slot && i <= sources->mask; i++)
		if (sources->slot[i].prefix.bits)
			*slot_find(&grown, &sources->slot[i].prefix) = sources->slot[i];
	free(sources->slot);
	*sources = grown;
	return true;
}

struct tally_source *tally_source(struct tally_sources *sources, const struct sl_prefix *prefix)
{
	struct tally_source *source;

	if (!sources->slot && !slots_grow(sources))
		return NULL;
	source = slot_find(sources, prefix);
	if (source->prefix.bits)
		return source;
	if (sources->count >= TALLY_SOURCES_MAX)
		return NULL;
	if (sources->count > sources->mask / 2) {
		if (!slots_grow(sources))
			return NULL;
		source = slot_find(sources, prefix);
	}
	sources->count++;
	source->prefix = *prefix;
	return source;
}

static int source_order(const void *a, const void *b)
{
	const struct tally_source *left = *(const struct tally_source *const *)a,
				  *right = *(const struct tally_source *const *)b;

	for (int fate = FATES - 1; fate >= 0; fate--) {
		uint64_t l = left->fates.of[fate].packets, r = right->fates.of[fate].packets;

		if (l != r)
			return l < r ? 1 : -1;
	}
	return prefix_compare(&left->prefix, &right->prefix);
}

const struct tally_source **tally_top(const struct tally_sources *sources, unsigned int top,
				      unsigned int *ret_count)
{
	const struct tally_source **all = calloc(sources->count + 1, sizeof(*all));
	unsigned int count = 0;

	if (!all)
		return NULL;
	for (uint32_t i = 0; sources->slot && i <= sources->mask; i++)
		if (sources->slot[i].prefix.bits)
			all[count++] = &sources->slot[i];
	qsort(all, count, sizeof(*all), source_order);
	*ret_count = top && top < count ? top : count;
	return all;
}

/* --- Time ----------------------------------------------------------------------------------- */

uint64_t tally_length(unsigned int scale, unsigned int *ret_merged)
{
	/* each length is a multiple of the previous length */
	static const uint32_t lengths_ms[] = {1,     2,	     10,     20,      100,
					      200,   1000,   2000,   10000,   20000,
					      60000, 120000, 600000, 1200000, 3600000};
	const unsigned int last = ARRAY_SIZE(lengths_ms) - 1;

	if (scale >= last) {
		*ret_merged = 2;
		return (lengths_ms[last] * NS_PER_MS) << (scale - last);
	}
	*ret_merged = lengths_ms[scale + 1] / lengths_ms[scale];
	return lengths_ms[scale] * NS_PER_MS;
}

/* Merges intervals, so they have the next length of tally_length(). */
static void times_merge(struct tally_times *times)
{
	struct fates merged[TALLY_INTERVALS] = {0};
	unsigned int each;

	tally_length(times->scale++, &each);
	for (unsigned int i = 0; i < times->count; i++)
		for (int fate = 0; fate < FATES; fate++)
			cell_add_to(&merged[i / each].of[fate], &times->interval[i].of[fate]);
	memcpy(times->interval, merged, sizeof(merged));
	times->count = (times->count + each - 1) / each;
}

void tally_shorten(struct tally_times *times, unsigned int most)
{
	while (times->count > most)
		times_merge(times);
}

void times_add(struct tally_times *times, uint64_t ns, enum fate fate, uint32_t bytes)
{
	unsigned int each;
	uint64_t at;

	if (!times->count)
		times->begin_ns = ns;
	while ((at = (ns - times->begin_ns) / tally_length(times->scale, &each)) >= TALLY_INTERVALS)
		times_merge(times);
	if (at >= times->count)
		times->count = at + 1;
	fates_add(&times->interval[at], fate, bytes);
}

/* --- Limits --------------------------------------------------------------------------------- */

uint32_t limit_home(const struct sl_policy *policy, uint32_t version, unsigned int slot,
		    unsigned int *ret_slot)
{
	uint32_t origin = policy->origin[slot];

	*ret_slot = origin ? SL_ORIGIN_SLOT(origin) : slot;
	return origin ? SL_ORIGIN_POLICY(origin) : SL_POLICY(version);
}

static void limit_add(struct tally_limit *limit, enum fate fate,
		      const struct capture_packet *packet, const struct sl_judged *judged)
{
	fates_add(&limit->fates, fate, packet->length);
	if (fate == FATE_PASSED || limit->first_number)
		return;
	limit->first_number = packet->number;
	limit->first_ns = packet->ns;
	limit->first_source = judged->source;
}

/*
 * Counts a packet in each limit that refused it or passed it. An inherited limit is counted in the
 * policy that specifies it.
 */
static void limits_add(struct tally *tally, const struct capture_packet *packet,
		       const struct sl_judged *judged)
{
	const struct sl_policy *policy = &tally->gate->policies[judged->version];
	enum sl_family family = source_is_ipv4(&judged->source) ? SL_IPV4 : SL_IPV6;
	struct sl_facts facts = judged->facts;
	bool has_passed = judged->reason < SL_FIRST_DROP;

	if (!facts.facts) /* the policy has no limit that reads more than the source */
		facts.facts = SL_FACT_ANY;
	for (unsigned int i = 0; i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		unsigned int slot;
		uint32_t number = limit_home(policy, judged->version, limit->slot, &slot);
		struct tally_limit *counted = &tally->policy[number].limit[slot];

		if (judged->refused & limit->mark)
			limit_add(counted, limit->observe ? FATE_WOULD_DROP : FATE_DROPPED, packet,
				  judged);
		else if (has_passed &&
			 match_limit(limit, &policy->match[limit->slot], &facts,
				     (const __be32 *)judged->destination, tally->is_egress))
			limit_add(counted, FATE_PASSED, packet, judged);
	}
	if (judged->reason == SL_DROP_OVER_BUDGET || judged->reason == SL_PASS_NEWCOMER) {
		uint32_t number = policy->newcomers_origin ?: SL_POLICY(judged->version);

		limit_add(&tally->policy[number].limit[TALLY_BUDGET],
			  has_passed ? FATE_PASSED : FATE_DROPPED, packet, judged);
	}
}

const char *verdict_format(const struct gate *gate, const struct sl_judged *judged,
			   char text[VERDICT_TEXT])
{
	bool is_dropped = judged->reason >= SL_FIRST_DROP;
	size_t length = snprintf(text, VERDICT_TEXT, "%s %s",
				 is_dropped	   ? "drop"
				 : judged->refused ? "would-drop"
						   : "pass",
				 reason_names[judged->reason]);
	const struct sl_policy *policy;
	enum sl_family family = source_is_ipv4(&judged->source) ? SL_IPV4 : SL_IPV6;

	if (!judged->refused || SL_POLICY(judged->version) < SL_POLICY_FIRST)
		return text;
	policy = &gate->policies[judged->version];
	for (unsigned int i = 0; i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		char label[LIMIT_LABEL], prefix[PREFIX_TEXT];
		unsigned int slot;
		uint32_t home;

		if (!(judged->refused & limit->mark) || (is_dropped && limit->observe))
			continue;
		home = limit_home(policy, judged->version, limit->slot, &slot);
		length += snprintf(text + length, VERDICT_TEXT - length, ", limit '%s' of %s",
				   limit_label(&policy->spec[limit->slot], label),
				   prefix_format(&policy_in_force(gate, home)->prefix, prefix));
		if (length >= VERDICT_TEXT)
			break;
	}
	return text;
}

/* --- All ------------------------------------------------------------------------------------ */

int tally_open(const struct gate *gate, bool is_egress, struct tally *ret)
{
	*ret = (struct tally){
		.gate = gate,
		.is_egress = is_egress,
		.policies = gate->policies_max,
		.policy = calloc(gate->policies_max, sizeof(*ret->policy)),
	};
	return ret->policy ? 0 : error_add(ENOMEM, "no-memory", NULL, "out of memory");
}

void tally_close(struct tally *tally)
{
	free(tally->policy);
	free(tally->sources.slot);
	*tally = (struct tally){0};
}

enum fate tally_add(struct tally *tally, const struct capture_packet *packet,
		    const struct sl_judged *judged)
{
	enum fate fate = fate_of(judged);
	struct tally_source *source;
	struct sl_prefix prefix;

	fates_add(&tally->total, fate, packet->length);
	tally->reason[judged->reason].packets++;
	tally->reason[judged->reason].bytes += packet->length;
	times_add(&tally->times, packet->ns, fate, packet->length);
	fates_add(&tally->policy[SL_POLICY(judged->version)].fates, fate, packet->length);
	if (!judged->source.bits)
		return fate;
	if (SL_POLICY(judged->version) >= SL_POLICY_FIRST) {
		limits_add(tally, packet, judged);
		tally->unread += packet->is_cut && judged->facts.facts & SL_FACT_UNREAD;
	}
	prefix = prefix_source(&judged->source);
	source = tally_source(&tally->sources, &prefix);
	if (source)
		fates_add(&source->fates, fate, packet->length);
	return fate;
}
