// SPDX-License-Identifier: GPL-2.0
#include "limit_index.h"

#include <errno.h>
#include <stdlib.h>

static int id_compare(const void *a, const void *b)
{
	const struct sl_limit *const *left = a, *const *right = b;

	return (*left)->id < (*right)->id ? -1 : (*left)->id > (*right)->id;
}

static void limits_add(struct limit_index *index, const struct sl_policy *policy)
{
	for (int i = 0; i < policy->limits[index->family]; i++)
		index->limits[index->count++] = &policy->limit[index->family][i];
}

int limit_index_make(const struct gate *gate, enum sl_family family, struct limit_index *ret)
{
	uint32_t records = SL_RECORD(gate->policies_max);
	struct limit_index index = {
		.limits = calloc((size_t)records * SL_LIMITS_MAX, sizeof(*index.limits)),
		.family = family,
	};

	if (!index.limits)
		return -ENOMEM;
	for (uint32_t record = SL_RECORD(SL_POLICY_FIRST); record < records; record++)
		if (gate->policies[record].since)
			limits_add(&index, &gate->policies[record]);
	qsort(index.limits, index.count, sizeof(*index.limits), id_compare);
	*ret = index;
	return 0;
}

void limit_index_free(struct limit_index *index)
{
	free(index->limits);
}

static uint32_t key_limit(enum sl_family family, const struct sl_carry_key *key)
{
	if (family == SL_IPV4)
		return ((const struct sl_ledger_key4 *)key)->limit;
	return ((const struct sl_ledger_key6 *)key)->limit;
}

const struct sl_limit *limit_of_key(const struct limit_index *index, const struct sl_carry_key *key)
{
	const struct sl_limit wanted = {.id = key_limit(index->family, key)}, *one = &wanted;
	const struct sl_limit **found =
		bsearch(&one, index->limits, index->count, sizeof(*index->limits), id_compare);

	return found ? *found : NULL;
}
