// SPDX-License-Identifier: GPL-2.0
#include "state/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/gate.h"
#include "gate/rules.h"
#include "identity.h"
#include "rules/prefix.h"
#include "ways.h"

/*
 * Reads a source's buckets on all CPUs. Stores their map and key in *ret_map and ret_key. Sets *ret
 * to NULL if the map has no entry for the source. The caller frees *ret.
 */
static int buckets_lookup(const struct gate *gate, const struct sl_prefix *address,
			  enum gate_map *ret_map, __u64 ret_key[2], struct sl_bucket **ret)
{
	_cleanup_free_ struct sl_bucket *buckets = calloc(gate->machine.cpus, sizeof(*buckets));
	bool ipv4 = prefix_is_ipv4(address);
	__u64 addr[2];
	int err;

	memcpy(addr, address->addr, sizeof(addr));
	bucket_key(addr, ipv4, ret_key);
	*ret_map = ipv4 ? MAP_BUCKETS4 : MAP_BUCKETS6;
	*ret = NULL;
	err = buckets ? bpf_map_lookup_elem(gate->map[*ret_map], ret_key, buckets) : -ENOMEM;
	if (!err)
		*ret = steal_pointer(&buckets);
	return err && err != -ENOENT ? gate_map_unread(gate, *ret_map, err) : 0;
}

/* Moves buckets that have counted packets to the front of the array. Returns their number. */
static unsigned int buckets_used(const struct gate *gate, struct sl_bucket *buckets,
				 const __u64 key[2])
{
	unsigned int count = 0;

	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++)
		if (bucket_is_of(&buckets[cpu], key) &&
		    (buckets[cpu].passed.packets || buckets[cpu].dropped.packets))
			buckets[count++] = buckets[cpu];
	return count;
}

int buckets_read(const struct gate *gate, const struct sl_prefix *address, struct sl_bucket **ret,
		 unsigned int *ret_count)
{
	_cleanup_free_ struct sl_bucket *buckets = NULL;
	enum gate_map map;
	__u64 key[2];
	int err = buckets_lookup(gate, address, &map, key, &buckets);

	*ret_count = buckets ? buckets_used(gate, buckets, key) : 0;
	*ret = *ret_count ? steal_pointer(&buckets) : NULL;
	return err;
}

int buckets_forgive(const struct gate *gate, const struct sl_prefix *address)
{
	_cleanup_free_ struct sl_bucket *buckets = NULL;
	enum gate_map map;
	__u64 key[2];
	int err = buckets_lookup(gate, address, &map, key, &buckets);

	if (err || !buckets)
		return err;
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++) {
		buckets[cpu].generation = 0;
		memset(buckets[cpu].slice, 0, sizeof(buckets[cpu].slice));
	}
	/*
	 * BPF_EXIST: fail if the entry was evicted, because an insertion would evict another entry
	 */
	err = bpf_map_update_elem(gate->map[map], key, buckets, BPF_EXIST);
	if (err && err != -ENOENT)
		return error_add(err, "map-write", NULL, "cannot write map '%s' of gate '%s': %s",
				 gate_map_names[map], gate->name, why(err));
	return 0;
}

/* --- A walk --------------------------------------------------------------------------------- */

/*
 * A page has at most PAGE_ENTRIES entries and PAGE_BYTES bytes, but always room for PAGE_LEAST
 * entries. PAGE_LEAST is far more than the entries of one hash bucket, which the kernel returns as
 * a whole.
 */
#define PAGE_ENTRIES 1024U
#define PAGE_BYTES   (512U << 10)
#define PAGE_LEAST   64U

static size_t key_size_of(enum gate_map map)
{
	return map == MAP_BUCKETS4 ? sizeof(__u32) : 2 * sizeof(__u64);
}

int buckets_cursor_open(const struct gate *gate, struct buckets_cursor *ret)
{
	uint32_t fit = PAGE_BYTES / (gate->machine.cpus * sizeof(struct sl_bucket));
	_cleanup_(buckets_cursor_close) struct buckets_cursor cursor = {0};

	cursor.room = fit < PAGE_LEAST ? PAGE_LEAST : fit > PAGE_ENTRIES ? PAGE_ENTRIES : fit;
	cursor.keys = calloc(cursor.room, key_size_of(MAP_BUCKETS6));
	cursor.values = calloc((size_t)cursor.room * gate->machine.cpus, sizeof(*cursor.values));
	if (!cursor.keys || !cursor.values)
		return gate_map_unread(gate, MAP_BUCKETS4, -ENOMEM);
	*ret = cursor;
	cursor = BUCKETS_CURSOR_CLOSED;
	return 0;
}

void buckets_cursor_close(struct buckets_cursor *cursor)
{
	free(cursor->keys);
	free(cursor->values);
	*cursor = BUCKETS_CURSOR_CLOSED;
}

int buckets_page(const struct gate *gate, enum gate_map map, struct buckets_cursor *cursor,
		 buckets_call *call, void *data, uint32_t *ret_count, bool *ret_ended)
{
	size_t key_size = key_size_of(map);
	uint32_t count = cursor->room, *last = cursor->is_begun ? &cursor->token : NULL;
	int err = bpf_map_lookup_batch(gate->map[map], last, &cursor->token, cursor->keys,
				       cursor->values, &count, NULL);

	*ret_ended = err;
	cursor->is_begun = !err;
	*ret_count = count;
	if (err && err != -ENOENT)
		return gate_map_unread(gate, map, err);
	err = 0;
	for (uint32_t i = 0; call && !err && i < count; i++) {
		struct sl_bucket *buckets = cursor->values + (size_t)i * gate->machine.cpus;
		__u64 key[2] = {0};
		struct sl_prefix source;
		unsigned int used;

		memcpy(key, cursor->keys + i * key_size, key_size);
		used = buckets_used(gate, buckets, key);
		source = prefix_of_source(key, map == MAP_BUCKETS4);
		err = used ? call(data, &source, buckets, used) : 0;
	}
	return err;
}

int buckets_walk(const struct gate *gate, enum gate_map map, buckets_call *call, void *data,
		 uint32_t *ret_count)
{
	_cleanup_(buckets_cursor_close) struct buckets_cursor cursor = BUCKETS_CURSOR_CLOSED;
	int err = buckets_cursor_open(gate, &cursor);
	bool ended = false;

	for (*ret_count = 0; !err && !ended;) {
		uint32_t count = 0;

		err = buckets_page(gate, map, &cursor, call, data, &count, &ended);
		*ret_count += count;
	}
	return err;
}

/* --- All sources ---------------------------------------------------------------------------- */

struct lister {
	const struct gate *gate;
	const struct sl_prefix *within;
	struct source_list list; /* sources found so far; not sorted, and perhaps with duplicates */
};

/* Adds a source to the list if it is in the prefix. count: number of its buckets, or 0. */
static int source_add(void *data, const struct sl_prefix *source, const struct sl_bucket *buckets,
		      unsigned int count)
{
	struct lister *lister = data;
	struct source_list *list = &lister->list;
	struct listed_source *item;

	if (!prefix_covers(lister->within, source))
		return 0;
	if (!array_grow(list->items, list->count, list->room))
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for %u sources",
				 list->count + 1);
	item = &list->items[list->count++];
	*item = (struct listed_source){.prefix = *source, .is_counted = count};
	for (unsigned int i = 0; i < count; i++) {
		cell_add_to(&item->passed, &buckets[i].passed);
		cell_add_to(&item->dropped, &buckets[i].dropped);
		cell_add_to(&item->observed, &buckets[i].observed);
	}
	return 0;
}

/* Lists the sources in a prefix that have buckets. */
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

/*
 * Returns whether the key of a limit's entry is a source, or a part of a source. A key shorter than
 * an IPv6 /64 is a source only if the source is a single address: identity_key().
 */
static bool limit_has_source(const struct sl_limit *limit, const struct sl_entry *entry)
{
	if (limit->key_dst)
		return false;
	if (entry->limit & 1) /* IPv4 */
		return (__u32)limit->mask[0] == ~0U;
	return limit->mask[0] && (!~limit->mask[0] || identity_is_whole(entry->addr));
}

/* Adds the sources that have a state that is not full. They may have no buckets. */
static int states_list(struct lister *lister, const struct table *table)
{
	_cleanup_free_ struct entry_limit *limits = NULL;
	uint64_t now = uptime_ticks();
	unsigned int count = 0;
	int err = entry_limits_list(lister->gate, &limits, &count);

	for (uint32_t i = 0; !err && i < table->count; i++) {
		const struct sl_limit *limit;
		struct sl_prefix source;
		struct sl_entry entry;

		if (!table_once(table->entries[i].limit))
			continue;
		entry = table->entries[i];
		limit = entry_limit_find(limits, count, entry.limit);
		if (!limit || !limit_has_source(limit, &entry) ||
		    entry_evict_cost(&entry, entry_state(&entry), now, false) <= 0)
			continue;
		source = prefix_of_source(entry.addr, entry.limit & 1);
		err = source_add(lister, &source, NULL, 0);
	}
	return err;
}

/* Sorts by prefix. Of two items with the same prefix, the item with counts comes first. */
static int source_order(const void *a, const void *b)
{
	const struct listed_source *x = a, *y = b;

	return prefix_compare(&x->prefix, &y->prefix) ?: y->is_counted - x->is_counted;
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
