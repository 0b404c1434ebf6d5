// SPDX-License-Identifier: GPL-2.0
#include "rulemap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "map_walk.h"
#include "old_schema.h"
#include "prefix.h"
#include "uptime.h"

static const enum gate_map rule_maps[] = {MAP_HOSTS4, MAP_HOSTS6, MAP_PREFIXES};

#define RULE_MAPS (sizeof(rule_maps) / sizeof(rule_maps[0]))

uint32_t rulemap_generation(const struct gate *gate)
{
	return __atomic_load_n(&gate->state->generation, __ATOMIC_ACQUIRE);
}

const struct sl_face *rulemap_face(const struct sl_rule *rule, uint32_t generation)
{
	return (int32_t)(rule->since - generation) > 0 ? &rule->before : &rule->now;
}

enum sl_list face_word(const struct sl_face *face)
{
	return !face->until || until_left_ns(face->until) ? face->list : SL_LIST_NONE;
}

bool face_is_empty(const struct sl_face *face)
{
	return !face->record && !face->list && !face->lists;
}

static enum gate_map map_of(const struct sl_prefix *prefix)
{
	if (!prefix_is_host(prefix))
		return MAP_PREFIXES;
	return prefix_is_ipv4(prefix) ? MAP_HOSTS4 : MAP_HOSTS6;
}

static size_t key_size(enum gate_map map)
{
	switch (map) {
	case MAP_HOSTS4:
		return 4;
	case MAP_HOSTS6:
		return 16;
	default:
		return sizeof(struct sl_prefix);
	}
}

static const void *key_of(const struct sl_prefix *prefix)
{
	return prefix_is_host(prefix) ? (const void *)prefix->addr : prefix;
}

static struct sl_prefix prefix_of(enum gate_map map, const void *key)
{
	struct sl_prefix prefix = {0};

	if (map == MAP_PREFIXES)
		return *(const struct sl_prefix *)key;
	prefix.bits = SL_FAMILY_BITS + 8 * key_size(map);
	prefix.family = htonl(map == MAP_HOSTS4 ? SL_FAMILY_IPV4 : SL_FAMILY_IPV6);
	memcpy(prefix.addr, key, key_size(map));
	return prefix;
}

/* What a rule takes in the gate's maps, in bytes. */
static size_t rule_size(const struct gate *gate)
{
	return gate->old ? gate->old->map[MAP_PREFIXES].value_size : sizeof(struct sl_rule);
}

static struct sl_rule rule_of(const struct gate *gate, const void *value)
{
	struct sl_rule rule;

	if (gate->old)
		return gate->old->rule(value);
	memcpy(&rule, value, sizeof(rule));
	return rule;
}

/* --- One ------------------------------------------------------------------------------------ */

static bool rule_look_up(const struct gate *gate, enum gate_map map, const void *key,
			 struct sl_rule *ret)
{
	_Alignas(struct sl_rule) uint8_t value[OLD_VALUE_MAX];

	if (bpf_map_lookup_elem(gate->map[map], key, value))
		return false;
	*ret = rule_of(gate, value);
	return true;
}

bool rulemap_get(const struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *ret)
{
	struct sl_rule rule;

	if (!rule_look_up(gate, map_of(prefix), key_of(prefix), &rule) ||
	    rule.bits != prefix->bits) /* the trie answers with a shorter one, too */
		return false;
	*ret = rule;
	return true;
}

bool rulemap_cover(const struct gate *gate, const struct sl_prefix *prefix, uint32_t bits,
		   struct sl_rule *ret)
{
	struct sl_prefix key = *prefix;

	if (prefix_is_host(prefix) && bits >= prefix->bits && rulemap_get(gate, prefix, ret))
		return true;
	key.bits = bits < prefix->bits ? bits : prefix->bits;
	return rule_look_up(gate, MAP_PREFIXES, &key, ret);
}

/* --- All ------------------------------------------------------------------------------------ */

/* Where the rules of a map of hosts go. */
struct hosts {
	const struct gate *gate;
	enum gate_map map;
	rulemap_call *call;
	void *data;
};

static int host_call(void *data, const void *key, const void *value)
{
	const struct hosts *hosts = data;
	struct rulemap_entry entry = {prefix_of(hosts->map, key), rule_of(hosts->gate, value)};

	return hosts->call(hosts->data, &entry);
}

static int hosts_walk(const struct gate *gate, enum gate_map map, rulemap_call *call, void *data)
{
	struct hosts hosts = {gate, map, call, data};

	return map_walk(gate->map[map], key_size(map), rule_size(gate), host_call, &hosts);
}

static int prefixes_walk(const struct gate *gate, rulemap_call *call, void *data)
{
	struct sl_prefix next, *last = NULL;
	struct rulemap_entry entry;
	int err = 0;

	while (!err && !bpf_map_get_next_key(gate->map[MAP_PREFIXES], last, &next)) {
		entry.prefix = next;
		last = &entry.prefix;
		if (rulemap_get(gate, &entry.prefix, &entry.rule))
			err = call(data, &entry);
	}
	return err;
}

int rulemap_walk(const struct gate *gate, rulemap_call *call, void *data)
{
	int err = 0;

	if (gate->state->hosts || gate->state->changing)
		err = hosts_walk(gate, MAP_HOSTS4, call, data);
	if (!err && (gate->state->hosts || gate->state->changing))
		err = hosts_walk(gate, MAP_HOSTS6, call, data);
	return err ?: prefixes_walk(gate, call, data);
}

struct entries {
	struct rulemap_entry *items;
	unsigned int count;
	unsigned int room;
};

static int entries_add(void *data, const struct rulemap_entry *entry)
{
	struct entries *entries = data;
	struct rulemap_entry *items;
	unsigned int room;

	if (entries->count == entries->room) {
		room = entries->room ? 2 * entries->room : 256;
		items = reallocarray(entries->items, room, sizeof(*items));
		if (!items)
			return -ENOMEM;
		entries->items = items;
		entries->room = room;
	}
	entries->items[entries->count++] = *entry;
	return 0;
}

int rulemap_read(const struct gate *gate, struct rulemap_entry **ret, unsigned int *ret_count)
{
	struct entries entries = {0};
	int err = rulemap_walk(gate, entries_add, &entries);

	if (err) {
		free(entries.items);
		return err;
	}
	*ret = entries.items;
	*ret_count = entries.count;
	return 0;
}

/* --- Many ----------------------------------------------------------------------------------- */

/* So many entries a call: each holds the kernel's attention for about a millisecond. */
#define BATCH 4096

/* Entries of one map, as its batch calls want them. */
struct batch {
	const struct gate *gate;
	enum gate_map map;
	uint32_t count;
	uint8_t *keys;
	struct sl_rule *rules;
	int (*flush)(const struct batch *batch);
};

static int batch_write(const struct batch *batch)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts, .elem_flags = BPF_ANY);
	uint32_t count = batch->count;

	if (bpf_map_update_batch(batch->gate->map[batch->map], batch->keys, batch->rules, &count,
				 &opts))
		return -errno;
	return 0;
}

static int batch_remove(const struct batch *batch)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t count = batch->count;

	if (bpf_map_delete_batch(batch->gate->map[batch->map], batch->keys, &count, &opts))
		return -errno;
	return 0;
}

static int batch_run(struct batch *batch, const struct rulemap_entry *entries, unsigned int count)
{
	size_t size = key_size(batch->map);
	int err = 0;

	batch->count = 0;
	for (unsigned int i = 0; !err && i < count; i++) {
		if (map_of(&entries[i].prefix) != batch->map)
			continue;
		memcpy(batch->keys + batch->count * size, key_of(&entries[i].prefix), size);
		batch->rules[batch->count++] = entries[i].rule;
		if (batch->count == BATCH) {
			err = batch->flush(batch);
			batch->count = 0;
		}
	}
	return !err && batch->count ? batch->flush(batch) : err;
}

static int batches_run(const struct gate *gate, const struct rulemap_entry *entries,
		       unsigned int count, int (*flush)(const struct batch *batch))
{
	struct batch batch = {.gate = gate, .flush = flush};
	int err;

	batch.keys = malloc(BATCH * sizeof(struct sl_prefix));
	batch.rules = malloc(BATCH * sizeof(*batch.rules));
	err = batch.keys && batch.rules ? 0 : -ENOMEM;
	for (size_t i = 0; !err && i < RULE_MAPS; i++) {
		batch.map = rule_maps[i];
		err = batch_run(&batch, entries, count);
	}
	free(batch.keys);
	free(batch.rules);
	return err;
}

int rulemap_write(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count)
{
	return batches_run(gate, entries, count, batch_write);
}

int rulemap_remove(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count)
{
	return batches_run(gate, entries, count, batch_remove);
}
