// SPDX-License-Identifier: GPL-2.0
#include "gate/rulemap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "aggregate.h"
#include "base/array.h"
#include "base/clock.h"
#include "list_ends.h"
#include "rules/prefix.h"

/* --- Contents of rules ---------------------------------------------------------------------- */

enum sl_access content_access(const struct sl_rule_content *content)
{
	return !content->until || until_left_ns(content->until) ? content->access : SL_ACCESS_NONE;
}

uint64_t content_lists(const struct gate *gate, const struct sl_rule_content *content)
{
	uint32_t now = uptime_ns() >> SL_UNTIL_SHIFT, end = 0;
	uint64_t lists = entries_in_force(content->list_mask, content->list_until, content->timed,
					  now, &end);

	return lists_in_force(gate->state, lists, now, &end);
}

bool content_has_ended(const struct gate *gate, const struct sl_rule_content *content)
{
	return !content->version && !content_access(content) && !content_lists(gate, content);
}

static bool content_is_sound(const struct gate *gate, const struct sl_rule_content *content)
{
	return content->version < SL_POLICY_VERSION(gate->policies_max) &&
	       content->access <= SL_ACCESS_DENY;
}

/*
 * Returns whether a command could have written this rule for a prefix of at most `most` bits. The
 * gate's owner can write any value to the map. A wrong policy version would be used as an array
 * index. A wrong length would make a walk to shorter rules endless.
 */
static bool rule_is_sound(const struct gate *gate, const struct sl_rule *rule, uint32_t most)
{
	return rule->bits <= most && (!rule->bits || rule->bits >= SL_FAMILY_BITS) &&
	       content_is_sound(gate, &rule->cur) && content_is_sound(gate, &rule->prev);
}

/* --- Looking up one rule -------------------------------------------------------------------- */

static enum gate_map map_of(const struct sl_prefix *prefix)
{
	if (!prefix_is_host(prefix))
		return MAP_PREFIXES;
	return prefix_is_ipv4(prefix) ? MAP_HOSTS4 : MAP_HOSTS6;
}

static const void *key_of(const struct sl_prefix *prefix)
{
	return prefix_is_host(prefix) ? (const void *)prefix->addr : prefix;
}

/*
 * Looks up a key in a map of rules. Returns 1 and stores a checked rule, or returns 0 if there is
 * no rule.
 */
static int rule_look_up(const struct gate *gate, enum gate_map map, const void *key, uint32_t most,
			struct sl_rule *ret)
{
	struct sl_rule rule;
	int err = bpf_map_lookup_elem(gate->map[map], key, &rule);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (!rule_is_sound(gate, &rule, most))
		return -EUCLEAN;
	*ret = rule;
	return 1;
}

int rulemap_get(const struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *ret)
{
	struct sl_rule rule;
	int found = rule_look_up(gate, map_of(prefix), key_of(prefix), prefix->bits, &rule);

	if (found <= 0)
		return found;
	if (rule.bits != prefix->bits) /* the trie returned the rule of a shorter prefix */
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
	return rule_look_up(gate, MAP_PREFIXES, &key, key.bits, ret);
}

/* --- Reading all rules ---------------------------------------------------------------------- */

struct entry_list {
	struct rulemap_entry *items;
	unsigned int count, room;
	unsigned int most; /* upper bound of `count` */
};

/* Appends a rule to a list. Returns -ECANCELED if the list already has `most` items. */
static int entry_add(struct entry_list *list, const struct rulemap_entry *entry)
{
	if (list->count == list->most)
		return -ECANCELED;
	if (!array_grow(list->items, list->count, list->room))
		return -ENOMEM;
	list->items[list->count++] = *entry;
	return 0;
}

/* Entries to process per system call. 4096 entries take about 1 ms. */
#define BATCH 4096

/*
 * Returns an upper bound of the steps of a walk over the keys of a map. Without a bound, the gate's
 * owner could make a walk endless, because the kernel restarts a walk if the current key was
 * deleted.
 */
static uint64_t steps_most(int fd)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : 4 * (uint64_t)info.max_entries + 4096;
}

/*
 * Reads all hosts of one family. Each system call returns whole buckets of the hash table. A bucket
 * has at most BATCH entries. Hosts that are added during the walk may be missing.
 */
static int hosts_read(const struct gate *gate, enum gate_map map, struct entry_list *list)
{
	const size_t size = map == MAP_HOSTS4 ? 4 : 16;
	_cleanup_free_ uint8_t *keys = malloc(BATCH * size);
	_cleanup_free_ struct sl_rule *rules = malloc(BATCH * sizeof(*rules));
	struct rulemap_entry entry = {
		.prefix = {.bits = SL_FAMILY_BITS + 8 * size,
			   .family = htonl(map == MAP_HOSTS4 ? SL_FAMILY_IPV4 : SL_FAMILY_IPV6)},
	};
	uint32_t token, *last = NULL;
	bool more = true;

	if (!keys || !rules)
		return -ENOMEM;
	while (more) {
		uint32_t count = BATCH;

		if (bpf_map_lookup_batch(gate->map[map], last, &token, keys, rules, &count, NULL)) {
			if (errno != ENOENT) /* ENOENT marks the last batch */
				return -errno;
			more = false;
		}
		last = &token;
		for (uint32_t i = 0; i < count; i++) {
			int err;

			memcpy(entry.prefix.addr, keys + i * size, size);
			entry.rule = rules[i];
			if (!rule_is_sound(gate, &entry.rule, entry.prefix.bits) ||
			    entry.rule.bits != entry.prefix.bits)
				return -EUCLEAN;
			err = entry_add(list, &entry);
			if (err)
				return err;
		}
	}
	return 0;
}

static int prefixes_read(const struct gate *gate, struct entry_list *list)
{
	uint64_t left = steps_most(gate->map[MAP_PREFIXES]);
	struct sl_prefix next, *last = NULL;
	struct rulemap_entry entry = {.action = ENTRY_WRITE};

	for (;;) {
		int err = bpf_map_get_next_key(gate->map[MAP_PREFIXES], last, &next);

		if (err)
			return err == -ENOENT ? 0 : err;
		if (!left--)
			return -EBUSY;
		if (!prefix_is_sound(&next))
			return -EUCLEAN;
		entry.prefix = next;
		last = &entry.prefix;
		err = rulemap_get(gate, &entry.prefix, &entry.rule);
		if (err > 0)
			err = entry_add(list, &entry);
		if (err < 0)
			return err;
	}
}

int rulemap_read(const struct gate *gate, unsigned int most, struct rulemap_entry **ret,
		 unsigned int *ret_count)
{
	struct entry_list list = {.most = most};
	int err = 0;

	if (gate->state->hosts || gate->state->changing)
		err = hosts_read(gate, MAP_HOSTS4, &list) ?: hosts_read(gate, MAP_HOSTS6, &list);
	err = err ?: prefixes_read(gate, &list);
	if (err && err != -ECANCELED) {
		free(list.items);
		return err;
	}
	*ret = list.items;
	*ret_count = list.count;
	return 0;
}

/* --- Writing and removing in batches -------------------------------------------------------- */

/* Writes or removes all `entries` that belong to map `map` and have this action. */
static int batches_run(const struct gate *gate, const struct rulemap_entry *entries,
		       unsigned int count, enum rulemap_action action, enum gate_map map)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts, .elem_flags = 0);
	size_t size = map == MAP_HOSTS4 ? 4 : map == MAP_HOSTS6 ? 16 : sizeof(struct sl_prefix);
	_cleanup_free_ uint8_t *keys = malloc(BATCH * size);
	_cleanup_free_ struct sl_rule *rules = malloc(BATCH * sizeof(*rules));
	uint32_t filled = 0;

	if (!keys || !rules)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++) {
		const struct rulemap_entry *entry = &entries[i];

		if (entry->action == action && map_of(&entry->prefix) == map) {
			memcpy(keys + filled * size, key_of(&entry->prefix), size);
			rules[filled++] = entry->rule;
		}
		if (!filled || (filled < BATCH && i + 1 < count))
			continue;
		if (action == ENTRY_REMOVE
			    ? bpf_map_delete_batch(gate->map[map], keys, &filled, &opts)
			    : bpf_map_update_batch(gate->map[map], keys, rules, &filled, &opts))
			return -errno;
		filled = 0;
	}
	return 0;
}

int rulemap_write(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count)
{
	static const enum gate_map maps[] = {MAP_HOSTS4, MAP_HOSTS6, MAP_PREFIXES};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(maps); i++)
		err = batches_run(gate, entries, count, ENTRY_WRITE, maps[i]);
	for (size_t i = 0; !err && i < ARRAY_SIZE(maps); i++)
		err = batches_run(gate, entries, count, ENTRY_REMOVE, maps[i]);
	return err;
}

/* --- Counts of split /64s and of aggregates ------------------------------------------------- */

static bool prefix_splits(const struct sl_prefix *prefix)
{
	return prefix->bits > SL_FAMILY_BITS + 64;
}

/*
 * Adds `change` to the rule counts of the aggregates (include/aggregate.h) that contain the prefix.
 * Does not count hosts, because packets look up hosts before `prefixes`.
 */
static void subrules_add(uint64_t *subrules, const struct sl_prefix *prefix, int change)
{
	bool ipv4 = prefix_is_ipv4(prefix);
	enum sl_aggregate_kind wide = ipv4 ? SL_AGGREGATE_IPV4 : SL_AGGREGATE_IPV6_WIDE;
	uint64_t head = aggregate_head(prefix, ipv4);

	if (prefix_is_host(prefix))
		return;
	if (prefix->bits > SL_FAMILY_BITS + SL_AGGREGATE_WIDE_BITS)
		__atomic_add_fetch(&subrules[aggregate_place(head, wide)], change,
				   __ATOMIC_RELEASE);
	if (!ipv4 && prefix->bits > SL_FAMILY_BITS + SL_AGGREGATE_NARROW_BITS)
		__atomic_add_fetch(&subrules[aggregate_place(head, SL_AGGREGATE_IPV6_NARROW)],
				   change, __ATOMIC_RELEASE);
}

int rule_count_add(struct gate *gate, const struct sl_prefix *prefix, int change)
{
	int fd = gate->map[MAP_SPLITS], err;
	uint32_t count = 0;

	if (prefix_splits(prefix)) {
		err = bpf_map_lookup_elem(fd, prefix->addr, &count);
		if (err && err != -ENOENT)
			return err;
		count += change;
		err = count ? bpf_map_update_elem(fd, prefix->addr, &count, BPF_ANY) : 0;
		if (err)
			return err;
		if (!count)
			bpf_map_delete_elem(fd, prefix->addr);
		__atomic_add_fetch(&gate->state->split_rules, change, __ATOMIC_RELEASE);
	}
	subrules_add(gate->subrules, prefix, change);
	if (prefix_is_host(prefix))
		__atomic_add_fetch(&gate->state->hosts, change, __ATOMIC_RELEASE);
	else
		gate->state->prefixes += change;
	return 0;
}

static int entry_compare(const void *a, const void *b)
{
	const struct rulemap_entry *left = a, *right = b;

	return prefix_compare(&left->prefix, &right->prefix);
}

static int net_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(uint64_t));
}

/*
 * Deletes each entry of map `splits` whose key is not in the sorted array `nets`. Reads the next
 * key before each deletion, because the kernel restarts a walk at a deleted key.
 */
static int splits_clear(const struct gate *gate, const uint64_t *nets, unsigned int count)
{
	int fd = gate->map[MAP_SPLITS], err = 0, end;
	uint64_t left = steps_most(fd), net, next;

	end = bpf_map_get_next_key(fd, NULL, &net);
	while (!err && !end) {
		if (!left--)
			return -EBUSY;
		end = bpf_map_get_next_key(fd, &net, &next);
		if (!bsearch(&net, nets, count, sizeof(net), net_compare))
			err = bpf_map_delete_elem(fd, &net);
		net = next;
	}
	return err ?: end == -ENOENT ? 0 : end;
}

/*
 * First adds missing counts of rules per /64, and then removes unneeded counts. In the reverse
 * order, a bucket could serve a whole /64 that a rule in force divides. Sorts the entries, so that
 * entries of a /64 are adjacent.
 */
int splits_set(struct gate *gate, struct rulemap_entry *entries, unsigned int count)
{
	_cleanup_free_ uint64_t *subrules = calloc(SL_AGGREGATES, sizeof(*subrules));
	_cleanup_free_ uint64_t *nets = calloc(count + 1, sizeof(*nets));
	uint32_t rules = 0, split = 0, in_net = 0;

	if (!subrules || !nets)
		return -ENOMEM;
	if (count)
		qsort(entries, count, sizeof(*entries), entry_compare);
	for (unsigned int i = 0; i < count; i++)
		if (entries[i].action != ENTRY_REMOVE)
			subrules_add(subrules, &entries[i].prefix, 1);
	for (unsigned int i = 0; i < SL_AGGREGATES; i++)
		__atomic_store_n(&gate->subrules[i], subrules[i], __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < count; i++) {
		uint64_t net;
		int err;

		if (entries[i].action == ENTRY_REMOVE || !prefix_splits(&entries[i].prefix))
			continue;
		memcpy(&net, entries[i].prefix.addr, sizeof(net));
		in_net = split && net == nets[split - 1] ? in_net + 1 : 1;
		if (in_net == 1)
			nets[split++] = net;
		rules++;
		err = bpf_map_update_elem(gate->map[MAP_SPLITS], &net, &in_net, BPF_ANY);
		if (err)
			return err;
	}
	__atomic_store_n(&gate->state->split_rules, rules, __ATOMIC_RELEASE);
	return splits_clear(gate, nets, split);
}
