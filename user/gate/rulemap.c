// SPDX-License-Identifier: GPL-2.0
#include "gate/rulemap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/array.h"
#include "base/clock.h"
#include "aggregate.h"
#include "rules/prefix.h"

static const enum gate_map rule_maps[] = {MAP_HOSTS4, MAP_HOSTS6, MAP_PREFIXES};

#define RULE_MAPS ARRAY_SIZE(rule_maps)

uint32_t rulemap_generation(const struct gate *gate)
{
	gate_copy(gate);
	return __atomic_load_n(&gate->state->generation, __ATOMIC_ACQUIRE);
}

const struct sl_rule_content *rulemap_content(const struct sl_rule *rule, uint32_t generation)
{
	return (int32_t)(rule->since - generation) > 0 ? &rule->prev : &rule->cur;
}

enum sl_access content_access(const struct sl_rule_content *content)
{
	return !content->until || until_left_ns(content->until) ? content->access : SL_ACCESS_NONE;
}

bool content_is_empty(const struct sl_rule_content *content)
{
	return !content->version && !content->access && !content->list_mask;
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

static const void *key_of(enum gate_map map, const struct sl_prefix *prefix)
{
	return map == MAP_PREFIXES ? (const void *)prefix : prefix->addr;
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

static bool content_is_sound(const struct gate *gate, const struct sl_rule_content *content)
{
	return content->version < SL_POLICY_VERSION(gate->policies_max) &&
	       content->access <= SL_ACCESS_DENY && content->timed < SL_LIST_PLACES;
}

/*
 * Reads a value of a map. Returns whether it is one that a command writes for a prefix of at most
 * `most` bits: the owner of the gate may have written any other. Records are places in memory, and
 * a walk to ever shorter rules ends because each is as short as it says.
 */
static bool rule_read(const struct gate *gate, const void *value, uint32_t most,
		      struct sl_rule *ret)
{
	memcpy(ret, value, sizeof(*ret));
	return ret->bits <= most && (!ret->bits || ret->bits >= SL_FAMILY_BITS) &&
	       content_is_sound(gate, &ret->cur) && content_is_sound(gate, &ret->prev);
}

/*
 * The steps after which a walk over the keys of a map gives up. A key that is deleted under the
 * walk sends it back to the start; the owner of the gate could do that for ever.
 */
static uint64_t steps_most(int fd)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : 4 * (uint64_t)info.max_entries + 4096;
}

/* --- Looking up one rule -------------------------------------------------------------------- */

static int rule_look_up(const struct gate *gate, enum gate_map map, const struct sl_prefix *prefix,
			struct sl_rule *ret)
{
	struct sl_rule value;
	int err = bpf_map_lookup_elem(gate->map[map], key_of(map, prefix), &value);

	if (err)
		return err == -ENOENT ? 0 : err;
	return rule_read(gate, &value, prefix->bits, ret) ? 1 : -EUCLEAN;
}

int rulemap_get(const struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *ret)
{
	struct sl_rule rule;
	int found = rule_look_up(gate, map_of(prefix), prefix, &rule);

	if (found <= 0)
		return found;
	if (rule.bits != prefix->bits) /* the trie also returns shorter prefixes */
		return 0;
	*ret = rule;
	return 1;
}

int rulemap_cover(const struct gate *gate, const struct sl_prefix *prefix, uint32_t bits,
		  struct sl_rule *ret)
{
	struct sl_prefix key = *prefix;
	int found = 0;

	if (prefix_is_host(prefix) && bits >= prefix->bits)
		found = rulemap_get(gate, prefix, ret);
	if (found)
		return found;
	key.bits = bits < prefix->bits ? bits : prefix->bits;
	return rule_look_up(gate, MAP_PREFIXES, &key, ret);
}

/* --- Walking all rules ---------------------------------------------------------------------- */

/* The argument of host_call(). */
struct hosts {
	const struct gate *gate;
	enum gate_map map;
	rulemap_call *call;
	void *data;
};

static int host_call(void *data, const void *key, const void *value)
{
	const struct hosts *hosts = data;
	struct rulemap_entry entry = {.prefix = prefix_of(hosts->map, key)};

	if (!rule_read(hosts->gate, value, entry.prefix.bits, &entry.rule) ||
	    entry.rule.bits != entry.prefix.bits)
		return -EUCLEAN;
	return hosts->call(hosts->data, &entry);
}

static int hosts_walk(const struct gate *gate, enum gate_map map, rulemap_call *call, void *data)
{
	struct hosts hosts = {gate, map, call, data};

	return map_walk(gate->map[map], key_size(map), sizeof(struct sl_rule), host_call, &hosts);
}

static int prefixes_walk(const struct gate *gate, rulemap_call *call, void *data)
{
	struct sl_prefix next, *last = NULL;
	uint64_t left = steps_most(gate->map[MAP_PREFIXES]);
	struct rulemap_entry entry;
	int err = 0, found;

	while (!err) {
		err = bpf_map_get_next_key(gate->map[MAP_PREFIXES], last, &next);
		if (err)
			return err == -ENOENT ? 0 : err;
		if (!left--)
			return -EBUSY;
		if (!prefix_is_sound(&next))
			return -EUCLEAN;
		entry.prefix = next;
		last = &entry.prefix;
		found = rulemap_get(gate, &entry.prefix, &entry.rule);
		err = found > 0 ? call(data, &entry) : found;
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

	if (!array_grow(entries->items, entries->count, entries->room))
		return -ENOMEM;
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

/* --- Writing and removing in batches -------------------------------------------------------- */

/* The entries of one call: the kernel takes about a millisecond for them. */
#define BATCH 4096

/* Entries of one map, in the form of its batch calls. */
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
		memcpy(batch->keys + batch->count * size, key_of(batch->map, &entries[i].prefix),
		       size);
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

/* --- Divided aggregates --------------------------------------------------------------------- */

#define BITS_OF_64 (SL_FAMILY_BITS + 64)

static bool prefix_splits(const struct sl_prefix *prefix)
{
	return prefix->bits > BITS_OF_64;
}

static void block_add(uint64_t *count, int change)
{
	__atomic_add_fetch(count, change, __ATOMIC_RELEASE);
}

/*
 * Adds `change` to the counts of the aggregates that the prefix divides. Hosts are not counted:
 * packets look them up before `prefixes`.
 */
static void blocks_add(uint64_t *blocks, const struct sl_prefix *prefix, int change)
{
	bool ipv4 = prefix_is_ipv4(prefix);
	enum sl_aggregate_kind wide = ipv4 ? SL_AGGREGATE_IPV4 : SL_AGGREGATE_IPV6_WIDE;
	uint64_t head = aggregate_head(prefix, ipv4);

	if (prefix_is_host(prefix))
		return;
	if (prefix->bits > SL_FAMILY_BITS + SL_AGGREGATE_WIDE_BITS)
		block_add(&blocks[aggregate_place(head, wide)], change);
	if (!ipv4 && prefix->bits > SL_FAMILY_BITS + SL_AGGREGATE_NARROW_BITS)
		block_add(&blocks[aggregate_place(head, SL_AGGREGATE_IPV6_NARROW)], change);
}

static int blocks_set(struct gate *gate, const struct rulemap_entry *entries, unsigned int count)
{
	uint64_t *blocks = calloc(SL_AGGREGATES, sizeof(*blocks));

	if (!blocks)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++)
		blocks_add(blocks, &entries[i].prefix, 1);
	for (unsigned int i = 0; i < SL_AGGREGATES; i++)
		__atomic_store_n(&gate->blocks[i], blocks[i], __ATOMIC_RELEASE);
	free(blocks);
	return 0;
}

/* --- Counts of split /64s ------------------------------------------------------------------- */

int split_add(struct gate *gate, const struct sl_prefix *prefix, int change)
{
	uint32_t count = 0;
	int err = 0;

	if (!prefix_splits(prefix)) {
		blocks_add(gate->blocks, prefix, change);
		return 0;
	}
	err = bpf_map_lookup_elem(gate->map[MAP_SPLITS], prefix->addr, &count);
	if (err && err != -ENOENT)
		return err;
	err = 0;
	count += change;
	if (count)
		err = bpf_map_update_elem(gate->map[MAP_SPLITS], prefix->addr, &count, BPF_ANY);
	else
		bpf_map_delete_elem(gate->map[MAP_SPLITS], prefix->addr);
	if (err)
		return err;
	__atomic_add_fetch(&gate->state->split_rules, change, __ATOMIC_RELEASE);
	blocks_add(gate->blocks, prefix, change);
	return 0;
}

static int entry_compare(const void *a, const void *b)
{
	const struct rulemap_entry *left = a, *right = b;

	return prefix_compare(&left->prefix, &right->prefix);
}

/*
 * Sets the count of each /64 that the sorted entries divide. Returns the number of rules that
 * divide one, or a negative errno.
 */
static int counts_set(struct gate *gate, const struct rulemap_entry *entries, unsigned int count)
{
	uint64_t net = 0, last = 0;
	uint32_t in_net = 0;
	int rules = 0, err;

	for (unsigned int i = 0; i < count; i++) {
		if (!prefix_splits(&entries[i].prefix))
			continue;
		memcpy(&net, entries[i].prefix.addr, sizeof(net));
		in_net = rules && net == last ? in_net + 1 : 1;
		last = net;
		rules++;
		err = bpf_map_update_elem(gate->map[MAP_SPLITS], &net, &in_net, BPF_ANY);
		if (err)
			return err;
	}
	return rules;
}

static bool net_is_split(const struct rulemap_entry *entries, unsigned int count, uint64_t net)
{
	unsigned int low = 0, high = count;

	/* binary search for the first entry of IPv6 that is not before the net's first address */
	while (low < high) {
		unsigned int middle = low + (high - low) / 2;
		const struct sl_prefix *prefix = &entries[middle].prefix;

		if (prefix->bits > SL_FAMILY_BITS && !prefix_is_ipv4(prefix) &&
		    memcmp(prefix->addr, &net, sizeof(net)) >= 0)
			high = middle;
		else
			low = middle + 1;
	}
	for (; low < count && !memcmp(entries[low].prefix.addr, &net, sizeof(net)); low++)
		if (prefix_splits(&entries[low].prefix))
			return true;
	return false;
}

/* Removes the /64s that no entry divides. The next key is read before one is deleted. */
static int splits_clear(const struct gate *gate, const struct rulemap_entry *entries,
			unsigned int count)
{
	int fd = gate->map[MAP_SPLITS], err = 0, end;
	uint64_t left = steps_most(fd), net, next;

	end = bpf_map_get_next_key(fd, NULL, &net);
	while (!err && !end) {
		if (!left--)
			return -EBUSY;
		end = bpf_map_get_next_key(fd, &net, &next);
		if (!net_is_split(entries, count, net))
			err = bpf_map_delete_elem(fd, &net);
		net = next;
	}
	return err ?: end == -ENOENT ? 0 : end;
}

int splits_set(struct gate *gate, struct rulemap_entry *entries, unsigned int count)
{
	int rules, err;

	if (count)
		qsort(entries, count, sizeof(*entries), entry_compare);
	/*
	 * missing counts first: no bucket entry may ever stand for a /64 that a rule in force
	 * divides
	 */
	err = blocks_set(gate, entries, count);
	if (err)
		return err;
	rules = counts_set(gate, entries, count);
	if (rules < 0)
		return rules;
	__atomic_store_n(&gate->state->split_rules, rules, __ATOMIC_RELEASE);
	return splits_clear(gate, entries, count);
}
