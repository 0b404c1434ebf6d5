// SPDX-License-Identifier: GPL-2.0
#include "state/source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/array.h"
#include "gate/counters.h"
#include "gate/rulemap.h"
#include "purses.h"
#include "rules/prefix.h"

/* --- Reading one source --------------------------------------------------------------------- */

static int buckets_fd(const struct gate *gate, const struct sl_prefix *source)
{
	return gate->map[prefix_is_ipv4(source) ? MAP_BUCKETS4 : MAP_BUCKETS6];
}

/* Whether rules divide the /64 of a source, as source_is_split() in bpf/lookup.h decides. */
static bool source_is_split(const struct gate *gate, const struct sl_prefix *source)
{
	uint32_t rules;

	return prefix_is_ipv6(source) && source->bits == SL_FAMILY_BITS + 64 &&
	       gate->state->split_rules &&
	       !bpf_map_lookup_elem(gate->map[MAP_SPLITS], source->addr, &rules);
}

static enum status buckets_read(const struct gate *gate, struct source *source)
{
	int err;

	source->cpus = calloc(gate->machine.cpus, sizeof(*source->cpus));
	if (!source->cpus)
		return failure("cannot read a source: %s", why(ENOMEM));
	err = bpf_map_lookup_elem(buckets_fd(gate, &source->prefix), source->prefix.addr,
				  source->cpus);
	if (err && err != -ENOENT)
		return failure("cannot read a source of gate '%s': %s", gate->name, why(err));
	source->remembered = !err;
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++) {
		cell_add_to(&source->passed, &source->cpus[cpu].passed);
		cell_add_to(&source->dropped, &source->cpus[cpu].dropped);
		cell_add_to(&source->observed, &source->cpus[cpu].observed);
	}
	return OK;
}

static void purses_clear(struct sl_bucket *bucket)
{
	memset(bucket->purse, 0, sizeof(bucket->purse));
}

/* Empties the purses that the next packet would find void. A split /64 has no purses. */
static void purses_judge(const struct gate *gate, const struct source *source,
			 struct sl_bucket *bucket)
{
	uint32_t owner = SL_POLICY(source->rule.record);

	if (source->split || owner < SL_POLICY_FIRST)
		purses_clear(bucket);
	else
		purses_fit(bucket, &gate->policies[source->rule.record], owner);
}

enum status source_read(const struct gate *gate, const struct sl_prefix *address,
			struct source *ret)
{
	struct source source = {.prefix = prefix_source(address)};
	enum status status = rules_judge(gate, address, &source.rule);

	if (!status)
		status = buckets_read(gate, &source);
	if (status) {
		source_free(&source);
		return status;
	}
	source.split = source_is_split(gate, &source.prefix);
	if (source.rule.record)
		source.policy = &gate->policies[source.rule.record];
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++)
		purses_judge(gate, &source, &source.cpus[cpu]);
	*ret = source;
	return OK;
}

void source_free(struct source *source)
{
	free(source->cpus);
	source->cpus = NULL;
}

void sources_free(struct source *sources, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		source_free(&sources[i]);
	free(sources);
}

/*
 * Counts of packets between the two calls are lost. BPF_EXIST: without it an update takes a free
 * node first, and so could evict another source.
 */
enum status source_empty_purses(const struct gate *gate, const struct source *source)
{
	int fd = buckets_fd(gate, &source->prefix);
	struct sl_bucket *cpus = calloc(gate->machine.cpus, sizeof(*cpus));
	int err = -ENOMEM;

	if (cpus)
		err = bpf_map_lookup_elem(fd, source->prefix.addr, cpus);
	for (unsigned int cpu = 0; !err && cpu < gate->machine.cpus; cpu++)
		purses_clear(&cpus[cpu]);
	if (!err)
		err = bpf_map_update_elem(fd, source->prefix.addr, cpus, BPF_EXIST);
	free(cpus);
	if (err && err != -ENOENT)
		return failure("cannot empty the purses of a source of gate '%s': %s", gate->name,
			       why(err));
	return OK;
}

/* --- Reading all sources -------------------------------------------------------------------- */

struct source_list {
	struct source *items;
	unsigned int count;
	unsigned int room;
};

/*
 * Walks one map of bucket entries. A key that is deleted during the walk sends it back to the
 * start, so the walk ends after twice as many steps as the map has entries.
 */
static enum status sources_walk(const struct gate *gate, const struct sl_prefix *first,
				const struct sl_prefix *within, struct source_list *list)
{
	int fd = buckets_fd(gate, first);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	struct sl_bucket_key6 key, next; /* the longer key */
	enum status status = OK;
	void *last = NULL;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return failure("cannot read the sources of gate '%s': %s", gate->name, why(errno));
	for (uint64_t steps = 0; !status && steps < 2ULL * info.max_entries; steps++) {
		struct sl_prefix address = *first;
		struct source source;

		if (bpf_map_get_next_key(fd, last, &next))
			break;
		key = next;
		last = &key;
		memcpy(address.addr, &key, info.key_size);
		address = prefix_source(&address);
		if (!prefix_covers(within, &address))
			continue;
		status = source_read(gate, &address, &source);
		if (status)
			break;
		if (array_grow(list->items, list->count, list->room)) {
			list->items[list->count++] = source;
		} else {
			source_free(&source);
			status = failure("cannot read the sources: %s", why(ENOMEM));
		}
	}
	return status;
}

static int prefix_order(const void *a, const void *b)
{
	const struct source *left = a, *right = b;

	return prefix_compare(&left->prefix, &right->prefix);
}

/* Removes sources that a walk has met twice. */
static void list_unique(struct source_list *list)
{
	unsigned int kept = 0;

	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), prefix_order);
	for (unsigned int i = 0; i < list->count; i++) {
		if (kept && !prefix_order(&list->items[kept - 1], &list->items[i]))
			source_free(&list->items[i]);
		else
			list->items[kept++] = list->items[i];
	}
	list->count = kept;
}

static uint64_t source_packets(const struct source *source)
{
	return source->passed.packets + source->dropped.packets;
}

static int busiest_order(const void *a, const void *b)
{
	const struct source *left = a, *right = b;
	uint64_t packets_left = source_packets(left), packets_right = source_packets(right);

	if (packets_left != packets_right)
		return packets_left < packets_right ? 1 : -1;
	return prefix_compare(&left->prefix, &right->prefix);
}

enum status sources_read(const struct gate *gate, const struct sl_prefix *within,
			 struct source **ret, unsigned int *ret_count)
{
	struct sl_prefix ipv4 = {.bits = SL_FAMILY_BITS + 32, .family = htonl(SL_FAMILY_IPV4)};
	struct sl_prefix ipv6 = {.bits = SL_FAMILY_BITS + 128, .family = htonl(SL_FAMILY_IPV6)};
	struct source_list list = {0};
	enum status status = sources_walk(gate, &ipv4, within, &list);

	if (!status)
		status = sources_walk(gate, &ipv6, within, &list);
	if (status) {
		sources_free(list.items, list.count);
		return status;
	}
	list_unique(&list);
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), busiest_order);
	*ret = list.items;
	*ret_count = list.count;
	return OK;
}
