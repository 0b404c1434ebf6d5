// SPDX-License-Identifier: GPL-2.0
#include "state/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/counters.h"
#include "gate/rules.h"
#include "rules/prefix.h"
#include "ways.h"

static int list_failed(const struct gate *gate)
{
	return error_add(ENOMEM, "no-memory", NULL, "cannot list the sources of gate '%s': %s",
			 gate->name, why(ENOMEM));
}

/* --- Sources with buckets ------------------------------------------------------------------- */

struct lister {
	const struct gate *gate;
	const struct sl_prefix *within;
	struct source_list list; /* in no order; a source may be there several times */
};

/* Adds a source within the prefix. count: of its buckets; 0: it only has states. */
static int source_add(void *data, const struct sl_prefix *source, const struct sl_bucket *buckets,
		      unsigned int count)
{
	struct lister *lister = data;
	struct source_list *list = &lister->list;
	struct listed_source *item;

	if (!prefix_covers(lister->within, source))
		return 0;
	if (!array_grow(list->items, list->count, list->room))
		return list_failed(lister->gate);
	item = &list->items[list->count++];
	*item = (struct listed_source){.prefix = *source, .is_counted = count};
	for (unsigned int i = 0; i < count; i++) {
		cell_add_to(&item->passed, &buckets[i].passed);
		cell_add_to(&item->dropped, &buckets[i].dropped);
		cell_add_to(&item->observed, &buckets[i].observed);
	}
	return 0;
}

/* Lists the sources with buckets. If the prefix is one source, the maps are not walked. */
static int buckets_list(struct lister *lister)
{
	const struct sl_prefix *within = lister->within;
	_cleanup_free_ struct sl_bucket *buckets = NULL;
	unsigned int count;
	uint32_t entries;
	__u64 addr[2];
	int err;

	memcpy(addr, within->addr, sizeof(addr));
	if (!prefix_is_host(within) && (!prefix_is_ipv6(within) || identity_is_whole(addr) ||
					within->bits != SL_FAMILY_BITS + 64))
		return buckets_walk(lister->gate, MAP_BUCKETS4, source_add, lister, &entries)
			       ?: buckets_walk(lister->gate, MAP_BUCKETS6, source_add, lister,
					       &entries);
	err = buckets_read(lister->gate, within, &buckets, &count);
	return err || !count ? err : source_add(lister, within, buckets, count);
}

/* --- Sources with states -------------------------------------------------------------------- */

/* A limit whose keys are sources, or addresses of a source. */
struct source_limit {
	__u32 limit;	 /* as in struct sl_entry */
	bool only_whole; /* only keys of sources that are whole addresses: identity_key() */
};

static int limit_order(const void *a, const void *b)
{
	const struct source_limit *left = a, *right = b;

	return left->limit < right->limit ? -1 : left->limit > right->limit;
}

/* Collects such limits of all policies, sorted. The caller frees them. */
static int limits_collect(const struct gate *gate, struct source_limit **ret,
			  unsigned int *ret_count)
{
	_cleanup_free_ const struct sl_policy **policies = NULL;
	_cleanup_free_ struct source_limit *limits = NULL;
	unsigned int policy_count, count = 0;
	const __u64 zero[2] = {0};
	int err = rules_policies(gate, &policies, &policy_count);

	if (err)
		return err;
	limits = calloc(policy_count + 1, SL_FAMILIES * SL_LIMITS_MAX * sizeof(*limits));
	if (!limits)
		return list_failed(gate);
	for (unsigned int i = 0; i < policy_count; i++)
		for (int family = 0; family < SL_FAMILIES; family++)
			for (unsigned int j = 0; j < policies[i]->limits[family]; j++) {
				const struct sl_limit *limit = &policies[i]->limit[family][j];
				bool ipv4 = family == SL_IPV4;

				if (limit->key_dst ||
				    (ipv4 ? (__u32)limit->mask[0] != ~0U : !limit->mask[0]))
					continue;
				limits[count++] = (struct source_limit){
					.limit = state_key_of(limit, zero, ipv4).limit,
					.only_whole = !ipv4 && ~limit->mask[0],
				};
			}
	qsort(limits, count, sizeof(*limits), limit_order);
	*ret = steal_pointer(&limits);
	*ret_count = count;
	return 0;
}

static int states_list(struct lister *lister, const struct table *table)
{
	_cleanup_free_ struct source_limit *limits = NULL;
	uint64_t now = uptime_ticks();
	unsigned int count = 0;
	int err = limits_collect(lister->gate, &limits, &count);

	for (uint32_t i = 0; !err && i < table->count; i++) {
		const struct source_limit wanted = {.limit = table_once(table->entries[i].limit)};
		const struct source_limit *limit;
		struct sl_prefix source;
		struct sl_entry entry;

		if (!wanted.limit)
			continue;
		limit = bsearch(&wanted, limits, count, sizeof(*limits), limit_order);
		entry = table->entries[i];
		if (!limit || entry.limit != wanted.limit ||
		    (limit->only_whole && !identity_is_whole(entry.addr)) ||
		    entry_evict_cost(&entry, entry_state(&entry), now, false) <= 0)
			continue;
		source = prefix_of_source(entry.addr, entry.limit & 1);
		err = source_add(lister, &source, NULL, 0);
	}
	return err;
}

/* --- Both ----------------------------------------------------------------------------------- */

/* By prefix; the item with counts is the first. */
static int source_order(const void *a, const void *b)
{
	const struct listed_source *left = a, *right = b;

	return prefix_compare(&left->prefix, &right->prefix)
		       ?: right->is_counted - left->is_counted;
}

int sources_list(const struct gate *gate, const struct table *table, const struct sl_prefix *within,
		 struct source_list *ret)
{
	struct lister lister = {.gate = gate, .within = within};
	struct source_list *list = &lister.list;
	int err = buckets_list(&lister) ?: states_list(&lister, table);
	unsigned int kept = 0;

	if (err) {
		free(list->items);
		return err;
	}
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), source_order);
	for (unsigned int i = 0; i < list->count; i++)
		if (!kept || !prefix_equal(&list->items[kept - 1].prefix, &list->items[i].prefix))
			list->items[kept++] = list->items[i];
	list->count = kept;
	*ret = *list;
	return 0;
}
