// SPDX-License-Identifier: GPL-2.0
#include "gate/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <bpf/bpf.h>

/* --- One entry ------------------------------------------------------------------------------ */

/* Copies one value of an open view, or if there is no table by a call of the kernel. */
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

/* Searches one set for a key, whose tag there is `tag`. */
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

static uint32_t reader_hash(const __u64 addr[2], uint32_t beside)
{
	static __u64 secret[SL_SECRETS];

	/* fails only at boot, before the kernel has random numbers: for so few bytes */
	while (!secret[0] && getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		continue;
	return digest_key(secret, addr, beside).place;
}

/* Returns the place of a key, or the free place where it belongs. */
static uint32_t *index_place(const struct table *table, const struct state_key *key)
{
	uint32_t at = reader_hash(key->addr, key->limit);

	while (table->places[at & table->places_mask] &&
	       !entry_is(&table->entries[table->places[at & table->places_mask] - 1], key))
		at++;
	return &table->places[at & table->places_mask];
}

/* Makes the index of a copy. */
static int index_make(struct table *table)
{
	uint32_t size = 1;

	while (size < 2 * table->count)
		size *= 2;
	table->places = calloc(size, sizeof(*table->places));
	table->places_mask = size - 1;
	if (!table->places)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct sl_entry *entry = &table->entries[i];
		struct state_key key = {{entry->addr[0], entry->addr[1]}, entry->limit};

		if (entry->limit)
			*index_place(table, &key) = i + 1;
	}
	return 0;
}

/* Searches a copy of the table. table: an open copy; NULL: a copy is made. */
static int table_search(const struct gate *gate, const struct table *table,
			const struct state_key *key, struct found_entry *ret)
{
	_cleanup_(table_close) struct table copy = TABLE_CLOSED;
	int err = table ? 0 : table_open(gate, &copy);
	uint32_t place;

	if (err)
		return err;
	if (!table)
		table = &copy;
	place = *index_place(table, key);
	*ret = (struct found_entry){.is_found = place};
	if (place) {
		ret->index = place - 1;
		ret->entry = table->entries[ret->index];
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

int table_open(const struct gate *gate, struct table *ret)
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
	if (!err && copy)
		err = index_make(&table);
	else if (!err)
		err = array_view_open(gate->map[MAP_SETS], sets, sizeof(struct sl_set), false,
				      &table.sets);
	if (err)
		return gate_map_unread(gate, MAP_STATES, err);
	*ret = table;
	table = TABLE_CLOSED;
	return 0;
}

void table_close(struct table *table)
{
	array_view_close(&table->sets);
	array_view_close(&table->states);
	free(table->places);
	*table = TABLE_CLOSED;
}
