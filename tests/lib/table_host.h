/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of states on the host. Arrays replace the maps gate, sets, states and sketches. Include
 * bpf/table.h before this file.
 *
 *   host_table_begin()   makes an empty table with a new secret
 *   host_table_find()    implements map_find() for these maps
 *   host_table_check()   fails if a key has two entries or cannot be found, or a count is wrong
 */
#ifndef SLUICE_TEST_TABLE_HOST_H
#define SLUICE_TEST_TABLE_HOST_H

#include "test.h"
#include "random.h"
#include "table_find.h"

#define HOST_SETS_MAX 1024
#define HOST_SKETCH   1024 /* number of struct sl_sketch per CPU */
#ifndef HOST_CPUS
#define HOST_CPUS 2
#endif

static struct {
	struct sl_gate gate;
	uint32_t sets;
	struct sl_set set[HOST_SETS_MAX];
	struct sl_entry entry[HOST_SETS_MAX * SL_WAYS];
	struct sl_sketch sketch[HOST_CPUS * HOST_SKETCH];
} host_table;

/* Makes an empty table of `sets` sets, a power of two. `state` is for random_next(). */
static inline void host_table_begin(uint32_t sets, uint64_t *state)
{
	memset(&host_table, 0, sizeof(host_table));
	host_table.sets = sets;
	host_table.gate.params.set_mask = sets - 1;
	host_table.gate.params.sketch_mask = HOST_SKETCH - 1;
	for (int i = 0; i < SL_SECRETS; i++)
		hash_secret[i] = random_next(state);
}

static inline void *host_table_find(const void *map, const void *key)
{
	if (map == &gate)
		return &host_table.gate;
	if (map == &sets)
		return array_entry(host_table.set, sizeof(*host_table.set), host_table.sets, key);
	if (map == &states)
		return array_entry(host_table.entry, sizeof(*host_table.entry),
				   host_table.sets * SL_WAYS, key);
	if (map == &sketches)
		return array_entry(host_table.sketch, sizeof(*host_table.sketch),
				   HOST_CPUS * HOST_SKETCH, key);
	return NULL;
}

static inline struct state_key host_entry_key(const struct sl_entry *entry)
{
	return (struct state_key){.addr = {entry->addr[0], entry->addr[1]}, .limit = entry->limit};
}

static inline void host_table_check(void)
{
	const struct sl_params *params = &host_table.gate.params;
	static uint32_t away[HOST_SETS_MAX];

	memset(away, 0, sizeof(away));
	for (uint32_t i = 0; i < host_table.sets * SL_WAYS; i++) {
		struct sl_entry *entry = &host_table.entry[i];
		struct state_key key = host_entry_key(entry);
		struct slot_ref ref = slot_ref_of(params, state_digest(hash_secret, &key));
		uint16_t tag = host_table.set[i / SL_WAYS].tag[i % SL_WAYS];

		if (!tag)
			continue;
		assert_true(entry->limit);
		assert_int_equal(tag & ~TAG_DISPLACED, ref.tag);
		assert_int_equal(i / SL_WAYS, tag & TAG_DISPLACED
						      ? set_alternate(params, ref.primary, tag)
						      : ref.primary);
		away[ref.primary] += tag & TAG_DISPLACED;
		/*
		 * The search finds only the first entry of a key. So this check fails if the key
		 * has a second entry.
		 */
		assert_ptr_equal(table_find_mapped(params, hash_secret, host_table.set,
						   host_table.entry, &key),
				 entry);
	}
	for (uint32_t i = 0; i < host_table.sets; i++)
		assert_int_equal(host_table.set[i].displaced, 2 * away[i]);
}

#endif
