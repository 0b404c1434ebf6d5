// SPDX-License-Identifier: GPL-2.0
#include "state/source.h"

#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "gate/counters.h"
#include "gate/records.h"
#include "rules/prefix.h"

/* Whether rules divide the /64 of a source, as source_is_split() in bpf/rules.h decides. */
static bool source_is_split(const struct gate *gate, const struct sl_prefix *source)
{
	uint32_t rules;

	return prefix_is_ipv6(source) && source->bits == SL_FAMILY_BITS + 64 &&
	       gate->state->split_rules &&
	       !bpf_map_lookup_elem(gate->map[MAP_SPLITS], source->addr, &rules);
}

/*
 * Sums the buckets, and empties the slices that the next packet would find void. A split /64 has no
 * slices.
 */
static void source_sum(const struct gate *gate, struct source *source)
{
	uint32_t owner = SL_POLICY(source->rule.record);

	for (unsigned int i = 0; i < source->count; i++) {
		struct sl_bucket *bucket = &source->buckets[i];

		cell_add_to(&source->passed, &bucket->passed);
		cell_add_to(&source->dropped, &bucket->dropped);
		cell_add_to(&source->observed, &bucket->observed);
		if (source->split || owner < SL_POLICY_FIRST)
			memset(bucket->slice, 0, sizeof(bucket->slice));
		else
			slices_fit(bucket, record_read(gate, source->rule.record), owner);
	}
}

int source_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
		struct source *ret)
{
	struct source source = {.prefix = prefix_source(address), .table = table};
	int status = rules_judge(gate, address, &source.rule);

	if (!status)
		status = buckets_read(gate, &source.prefix, &source.buckets, &source.count);
	if (status)
		return status;
	source.split = source_is_split(gate, &source.prefix);
	if (source.rule.record)
		source.policy = record_read(gate, source.rule.record);
	source_sum(gate, &source);
	*ret = source;
	return OK;
}

void source_free(struct source *source)
{
	free(source->buckets);
	source->buckets = NULL;
	source->count = 0;
}
