// SPDX-License-Identifier: GPL-2.0
#include "splits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "block.h"
#include "prefix.h"

#define BITS_OF_64 (SL_FAMILY_BITS + 64)

static bool prefix_splits(const struct sl_prefix *prefix)
{
	return prefix->bits > BITS_OF_64;
}

/* --- Blocks --------------------------------------------------------------------------------- */

static void block_add(uint64_t *count, int change)
{
	__atomic_add_fetch(count, change, __ATOMIC_RELEASE);
}

/* Adds `change` to the counts, in `blocks`, of the blocks that the prefix divides. Hosts are not in `prefixes`. */
static void blocks_add(uint64_t *blocks, const struct sl_prefix *prefix, int change)
{
	bool ipv4 = prefix_is_ipv4(prefix);
	enum sl_block_kind wide = ipv4 ? SL_BLOCK_IPV4 : SL_BLOCK_IPV6_WIDE;
	uint64_t head = block_head(prefix, ipv4);

	if (prefix_is_host(prefix))
		return;
	if (prefix->bits > SL_FAMILY_BITS + SL_BLOCK_WIDE_BITS)
		block_add(&blocks[block_place(head, wide)], change);
	if (!ipv4 && prefix->bits > SL_FAMILY_BITS + SL_BLOCK_NARROW_BITS)
		block_add(&blocks[block_place(head, SL_BLOCK_IPV6_NARROW)], change);
}

static int blocks_set(struct gate *gate, const struct rulemap_entry *entries, unsigned int count)
{
	uint64_t *blocks = calloc(SL_BLOCKS, sizeof(*blocks));

	if (!blocks)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++)
		blocks_add(blocks, &entries[i].prefix, 1);
	for (unsigned int i = 0; i < SL_BLOCKS; i++)
		__atomic_store_n(&gate->blocks[i], blocks[i], __ATOMIC_RELEASE);
	free(blocks);
	return 0;
}

/* --- /64s ----------------------------------------------------------------------------------- */

int split_add(struct gate *gate, const struct sl_prefix *prefix, int change)
{
	uint32_t count = 0;
	int err = 0;

	if (!prefix_splits(prefix)) {
		blocks_add(gate->blocks, prefix, change);
		return 0;
	}
	bpf_map_lookup_elem(gate->map[MAP_SPLITS], prefix->addr, &count);
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

/* Sets the count of each /64 that the sorted entries divide. Returns how many rules do, or an errno. */
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

	/* the first entry that is not before the net's first address with more than 64 bits */
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

int splits_set(struct gate *gate, struct rulemap_entry *entries, unsigned int count)
{
	uint64_t key, next, *last = NULL;
	int rules, err;

	if (count)
		qsort(entries, count, sizeof(*entries), entry_compare);
	/* what is missing first: at no moment may a bucket speak for a /64 that a rule in force divides */
	err = blocks_set(gate, entries, count);
	if (err)
		return err;
	rules = counts_set(gate, entries, count);
	if (rules < 0)
		return rules;
	__atomic_store_n(&gate->state->split_rules, rules, __ATOMIC_RELEASE);
	while (!err && !bpf_map_get_next_key(gate->map[MAP_SPLITS], last, &next)) {
		key = next;
		last = &key;
		if (net_is_split(entries, count, key))
			continue;
		err = bpf_map_delete_elem(gate->map[MAP_SPLITS], &key);
		last = NULL; /* its place in the walk went with it */
	}
	return err;
}
