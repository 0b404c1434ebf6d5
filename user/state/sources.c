// SPDX-License-Identifier: GPL-2.0
#include "state/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "gate/counters.h"
#include "gate/rules.h"
#include "rules/prefix.h"
#include "ways.h"

/* --- A list without duplicates -------------------------------------------------------------- */

/* Places of a hash table: the index of an item + 1; 0: free. At most half of them are used. */
struct index {
	uint32_t *places;
	uint32_t mask;
};

struct lister {
	const struct gate *gate;
	const struct table *table;
	const struct sl_prefix *within;
	struct source_list list;
	struct index index;
};

static int list_failed(const struct gate *gate)
{
	return failure("cannot list the sources of gate '%s': %s", gate->name, why(ENOMEM));
}

static uint32_t *index_place(const struct lister *lister, const struct sl_prefix *prefix)
{
	const struct index *index = &lister->index;
	__u64 addr[2];
	uint32_t at;

	memcpy(addr, prefix->addr, sizeof(addr));
	at = reader_hash(addr, 0);
	while (index->places[at & index->mask] &&
	       !prefix_equal(&lister->list.items[index->places[at & index->mask] - 1].prefix,
			     prefix))
		at++;
	return &index->places[at & index->mask];
}

/* Doubles the hash table once it is half full. False: out of memory. */
static bool index_grow(struct lister *lister)
{
	uint32_t size = 2 * (lister->index.mask + 1);

	if (lister->index.places && lister->list.count < size / 4)
		return true;
	if (!lister->index.places)
		size = 2 * ARRAY_ROOM_FIRST;
	free(lister->index.places);
	lister->index.places = calloc(size, sizeof(*lister->index.places));
	lister->index.mask = size - 1;
	for (uint32_t i = 0; lister->index.places && i < lister->list.count; i++)
		*index_place(lister, &lister->list.items[i].prefix) = i + 1;
	return lister->index.places;
}

/* The item of a source, which is added if it is missing. NULL: out of memory. */
static struct listed_source *list_item(struct lister *lister, const struct sl_prefix *prefix)
{
	struct source_list *list = &lister->list;
	uint32_t *place;

	if (!index_grow(lister))
		return NULL;
	place = index_place(lister, prefix);
	if (*place)
		return &list->items[*place - 1];
	if (!array_grow(list->items, list->count, list->room))
		return NULL;
	list->items[list->count] = (struct listed_source){.prefix = *prefix};
	*place = ++list->count;
	return &list->items[*place - 1];
}

/* --- Sources with buckets ------------------------------------------------------------------- */

static int bucket_list(void *data, const struct sl_prefix *source, const struct sl_bucket *buckets,
		       unsigned int count)
{
	struct lister *lister = data;
	struct listed_source *item;

	if (!prefix_covers(lister->within, source))
		return OK;
	item = list_item(lister, source);
	if (!item)
		return list_failed(lister->gate);
	item->is_counted = true;
	for (unsigned int i = 0; i < count; i++) {
		cell_add_to(&item->passed, &buckets[i].passed);
		cell_add_to(&item->dropped, &buckets[i].dropped);
		cell_add_to(&item->observed, &buckets[i].observed);
	}
	return OK;
}

/* Whether a prefix is one source, and no more. */
static bool prefix_is_source(const struct sl_prefix *prefix)
{
	__u64 addr[2];

	memcpy(addr, prefix->addr, sizeof(addr));
	return prefix_is_host(prefix) || (prefix_is_ipv6(prefix) && !identity_is_whole(addr) &&
					  prefix->bits == SL_FAMILY_BITS + 64);
}

static int buckets_list(struct lister *lister)
{
	struct sl_bucket *buckets;
	unsigned int count;
	int status;

	if (!prefix_is_source(lister->within))
		return buckets_walk(lister->gate, bucket_list, lister);
	status = buckets_read(lister->gate, lister->within, &buckets, &count);
	if (!status && count)
		status = bucket_list(lister, lister->within, buckets, count);
	free(buckets);
	return status;
}

/* --- Sources with states ------------------------------------------------------------------- */

/* A limit whose keys tell the source: each is one, or some addresses of one. */
struct source_limit {
	__u32 limit;	 /* as in struct sl_entry */
	bool only_whole; /* only those of sources that are whole addresses: identity_key() */
};

struct source_limits {
	struct source_limit *items;
	unsigned int count;
	unsigned int room;
};

static bool limit_tells_source(const struct sl_limit *limit, bool ipv4)
{
	if (limit->key_dst)
		return false;
	return ipv4 ? (__u32)limit->mask[0] == ~0U : limit->mask[0];
}

static bool limits_add(struct source_limits *limits, const struct sl_policy *policy,
		       enum sl_family family)
{
	const __u64 zero[2] = {0};

	for (unsigned int i = 0; i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];

		if (!limit_tells_source(limit, family == SL_IPV4))
			continue;
		if (!array_grow(limits->items, limits->count, limits->room))
			return false;
		limits->items[limits->count++] = (struct source_limit){
			.limit = state_key_of(limit, zero, family == SL_IPV4).limit,
			.only_whole = family == SL_IPV6 && ~limit->mask[0],
		};
	}
	return true;
}

static int limit_order(const void *a, const void *b)
{
	const struct source_limit *left = a, *right = b;

	return left->limit < right->limit ? -1 : left->limit > right->limit;
}

static int limits_collect(const struct gate *gate, struct source_limits *ret)
{
	struct source_limits limits = {0};
	const struct sl_policy **policies;
	unsigned int count;
	int status = rules_policies(gate, &policies, &count);
	bool is_whole = true;

	if (status)
		return status;
	for (unsigned int i = 0; is_whole && i < count; i++)
		is_whole = limits_add(&limits, policies[i], SL_IPV4) &&
			   limits_add(&limits, policies[i], SL_IPV6);
	free(policies);
	if (!is_whole) {
		free(limits.items);
		return list_failed(gate);
	}
	if (limits.count)
		qsort(limits.items, limits.count, sizeof(*limits.items), limit_order);
	*ret = limits;
	return OK;
}

/* Whether a entry tells something of a source; ret: which. */
static bool entry_source(const struct sl_entry *entry, const struct source_limits *limits,
			 uint64_t now, struct sl_prefix *ret)
{
	const struct source_limit wanted = {.limit = entry->limit}, *limit;
	struct sl_entry copy = *entry;

	limit = limits->count ? bsearch(&wanted, limits->items, limits->count,
					sizeof(*limits->items), limit_order)
			      : NULL;
	if (!limit || (limit->only_whole && !identity_is_whole(entry->addr)) ||
	    entry_evict_cost(entry, entry_state(&copy), now, false) <= 0)
		return false;
	*ret = prefix_of_source(entry->addr, entry->limit & 1);
	return true;
}

static int entries_walk(struct lister *lister)
{
	const struct table *table = lister->table;
	struct source_limits limits = {0};
	uint64_t now = uptime_ticks();
	int status = limits_collect(lister->gate, &limits);

	if (status)
		return status;
	for (uint32_t i = 0; !status && i < table->count; i++) {
		struct sl_entry entry = {0};
		struct sl_prefix source;

		if (table_once(table->entries[i].limit))
			entry = table->entries[i];
		if (entry.limit && entry_source(&entry, &limits, now, &source) &&
		    prefix_covers(lister->within, &source) && !list_item(lister, &source))
			status = list_failed(lister->gate);
	}
	free(limits.items);
	return status;
}

/* --- Both ----------------------------------------------------------------------------------- */

int sources_list(const struct gate *gate, const struct table *table, const struct sl_prefix *within,
		 struct source_list *ret)
{
	struct lister lister = {.gate = gate, .table = table, .within = within};
	int status = buckets_list(&lister);

	if (!status)
		status = entries_walk(&lister);
	free(lister.index.places);
	if (status)
		free(lister.list.items);
	else
		*ret = lister.list;
	return status;
}
