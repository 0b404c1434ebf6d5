// SPDX-License-Identifier: GPL-2.0
#include "gate/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "gate/rules.h"

/* --- One entry ------------------------------------------------------------------------------ */

/*
 * Copies the value at an index from an open view. If `view` is NULL, copies it from the kernel's
 * map.
 */
static int value_read(const struct gate *gate, enum gate_map map, const struct array_view *view,
		      uint32_t index, void *ret)
{
	if (!view)
		return bpf_map_lookup_elem(gate->map[map], &index, ret);
	if (index >= view->count)
		return -ENOENT;
	memcpy(ret, (const char *)view->values + (size_t)index * view->value_size,
	       view->value_size);
	return 0;
}

/*
 * Searches one set of map `states` for a key. tag: the part of the key's hash that this set stores.
 */
static int set_read(const struct gate *gate, const struct table *table, uint32_t set, uint16_t tag,
		    const struct state_key *key, struct found_entry *ret)
{
	struct sl_set ways;
	int err = value_read(gate, MAP_SETS, table ? &table->sets : NULL, set, &ways);

	for (uint32_t way = 0; !err && !ret->is_found && way < SL_WAYS; way++) {
		if (ways.tag[way] != tag)
			continue;
		ret->index = set * SL_WAYS + way;
		err = value_read(gate, MAP_STATES, table ? &table->states : NULL, ret->index,
				 &ret->entry);
		ret->is_found = !err && entry_is(&ret->entry, key);
	}
	return err;
}

static int by_key(const void *a, const void *b)
{
	const struct sl_entry *left = *(const struct sl_entry *const *)a;
	const struct sl_entry *right = *(const struct sl_entry *const *)b;

	return memcmp(left->addr, right->addr, sizeof(left->addr))
		       ?: (left->limit > right->limit) - (left->limit < right->limit);
}

/* Searches for a key in a sorted copy of map `states`. Makes a copy if `table` is NULL. */
static int table_search(const struct gate *gate, const struct table *table,
			const struct state_key *key, struct found_entry *ret)
{
	_cleanup_(table_close) struct table copy = TABLE_CLOSED;
	const struct sl_entry wanted = {.addr = {key->addr[0], key->addr[1]}, .limit = key->limit};
	const struct sl_entry *pointer = &wanted, **found;
	int err = table ? 0 : table_open(gate, &copy);

	if (err)
		return err;
	if (!table)
		table = &copy;
	found = bsearch(&pointer, table->index, table->index_count, sizeof(*table->index), by_key);
	*ret = (struct found_entry){.is_found = found};
	if (found) {
		ret->index = *found - table->entries;
		ret->entry = **found;
	}
	return 0;
}

int table_read(const struct gate *gate, const struct table *table, const struct state_key *key,
	       struct found_entry *ret)
{
	const struct sl_params params = gate->state->params;
	struct slot_ref ref = slot_ref_of(&params, state_digest(gate->secret, key));
	struct found_entry found = {0};
	int err;

	if (!gate->has_secret)
		return table_search(gate, table, key, ret);
	err = set_read(gate, table, ref.primary, ref.tag, key, &found);
	if (!err && !found.is_found)
		err = set_read(gate, table, set_alternate(&params, ref.primary, ref.tag),
			       ref.tag | TAG_DISPLACED, key, &found);
	if (err)
		return gate_map_unread(gate, MAP_STATES, err);
	*ret = found;
	return 0;
}

/* --- All entries ---------------------------------------------------------------------------- */

void table_index(struct table *table)
{
	table->index_count = 0;
	for (uint32_t i = 0; i < table->count; i++)
		if (table->entries[i].limit)
			table->index[table->index_count++] = &table->entries[i];
	if (table->index_count)
		qsort(table->index, table->index_count, sizeof(*table->index), by_key);
}

int table_open_all(const struct gate *gate, struct table *ret)
{
	_cleanup_(table_close) struct table table = {.id = gate_map_id(gate->map[MAP_STATES])};
	bool copy = !gate->has_secret;
	uint32_t sets;
	int err = gate_map_size(gate, MAP_STATES, &table.count)
			  ?: gate_map_size(gate, MAP_SETS, &sets);

	if (err)
		return err;
	err = array_view_open(gate->map[MAP_STATES], table.count, sizeof(struct sl_entry), copy,
			      &table.states)
		      ?: array_view_refresh(&table.states, table.count);
	table.entries = table.states.values;
	if (!err && !copy)
		err = array_view_open(gate->map[MAP_SETS], sets, sizeof(struct sl_set), false,
				      &table.sets);
	if (!err && copy) {
		table.index = calloc(table.count, sizeof(*table.index));
		err = table.index ? 0 : -ENOMEM;
	}
	if (err)
		return gate_map_unread(gate, MAP_STATES, err);
	*ret = table;
	table = TABLE_CLOSED;
	return 0;
}

int table_open(const struct gate *gate, struct table *ret)
{
	int err = table_open_all(gate, ret);

	if (!err && ret->index)
		table_index(ret);
	return err;
}

void table_close(struct table *table)
{
	array_view_close(&table->sets);
	array_view_close(&table->states);
	free(table->index);
	*table = TABLE_CLOSED;
}

/* --- Limits of entries ---------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const struct entry_limit *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

int entry_limits_list(const struct gate *gate, struct entry_limit **ret, unsigned int *ret_count)
{
	static const __u64 any[2];
	_cleanup_free_ const struct sl_policy **policies = NULL;
	struct entry_limit *list;
	unsigned int policy_count, count = 0;
	int err = rules_policies(gate, &policies, &policy_count);

	if (err)
		return err;
	list = calloc(policy_count + 1, SL_FAMILIES * SL_LIMITS_MAX * sizeof(*list));
	if (!list)
		return gate_map_unread(gate, MAP_STATES, -ENOMEM);
	for (unsigned int i = 0; i < policy_count * SL_FAMILIES; i++) {
		const struct sl_policy *policy = policies[i / SL_FAMILIES];
		enum sl_family family = i % SL_FAMILIES;

		for (int j = 0; j < policy->limits[family]; j++) {
			const struct sl_limit *limit = &policy->limit[family][j];

			list[count++] = (struct entry_limit){
				state_key_of(limit, any, family == SL_IPV4).limit, limit};
		}
	}
	qsort(list, count, sizeof(*list), by_number);
	*ret = list;
	*ret_count = count;
	return 0;
}

const struct sl_limit *entry_limit_find(const struct entry_limit *list, unsigned int count,
					uint32_t number)
{
	const struct entry_limit wanted = {.number = number};
	const struct entry_limit *found = bsearch(&wanted, list, count, sizeof(*list), by_number);

	return found ? found->limit : NULL;
}
