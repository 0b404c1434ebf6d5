// SPDX-License-Identifier: GPL-2.0
#include "peek.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <bpf/bpf.h>

#include "counters.h"
#include "credit.h"
#include "prefix.h"
#include "rules.h"

#define TICKS_PER_MS (SL_TICKS_PER_SEC / 1000)

uint64_t now_ticks(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec * 1000000000ULL + now.tv_nsec) * SL_TICKS_PER_NS;
}

/* --- Sources -------------------------------------------------------------------------------- */

static int buckets_fd(const struct gate *gate, const struct sl_prefix *source)
{
	return gate->map[prefix_is_ipv4(source) ? MAP_BUCKETS4 : MAP_BUCKETS6];
}

static void source_sum(const struct gate *gate, struct source *source)
{
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++) {
		cell_add_to(&source->passed, &source->cpus[cpu].passed);
		cell_add_to(&source->dropped, &source->cpus[cpu].dropped);
		source->split |= source->cpus[cpu].policy == SL_BUCKET_SPLIT;
	}
}

enum status source_read(const struct gate *gate, const struct sl_prefix *address,
			struct source *ret)
{
	struct source source = {.prefix = prefix_source(address)};

	source.cpus = calloc(gate->machine.cpus, sizeof(*source.cpus));
	if (!source.cpus)
		return fail("cannot read a source: %s", why(ENOMEM));
	if (bpf_map_lookup_elem(buckets_fd(gate, &source.prefix), source.prefix.addr,
				source.cpus) &&
	    errno != ENOENT) {
		source_free(&source);
		return fail("cannot read a source of gate '%s': %s", gate->name, why(errno));
	}
	source_sum(gate, &source);
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

struct source_list {
	struct source *items;
	unsigned int count;
	unsigned int room;
};

static enum status list_add(struct source_list *list, const struct source *source)
{
	if (list->count == list->room) {
		unsigned int room = list->room ? 2 * list->room : 256;
		struct source *items = reallocarray(list->items, room, sizeof(*items));

		if (!items)
			return fail("cannot read the sources: %s", why(ENOMEM));
		list->items = items;
		list->room = room;
	}
	list->items[list->count++] = *source;
	return OK;
}

/*
 * Walks one map of buckets. A key that vanishes under the walk sends it back to the start; so it
 * ends after as many steps as the map has entries, twice over.
 */
static enum status sources_walk(const struct gate *gate, const struct sl_prefix *first,
				const struct sl_prefix *within, struct source_list *list)
{
	int fd = buckets_fd(gate, first);
	struct sl_prefix address = *first;
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	uint64_t key, next;
	enum status status = OK;
	void *last = NULL;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return fail("cannot read the sources of gate '%s': %s", gate->name, why(errno));
	for (uint64_t steps = 0; !status && steps < 2ULL * info.max_entries; steps++) {
		struct source source;

		if (bpf_map_get_next_key(fd, last, &next))
			break;
		key = next;
		last = &key;
		memcpy(address.addr, &key, info.key_size);
		if (!prefix_covers(within, &address))
			continue;
		status = source_read(gate, &address, &source);
		if (!status)
			status = list_add(list, &source);
	}
	return status;
}

static uint64_t source_packets(const struct source *source)
{
	return source->passed.packets + source->dropped.packets;
}

static int source_compare(const void *a, const void *b)
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
	struct sl_prefix ipv6 = {.bits = SL_FAMILY_BITS + 64, .family = htonl(SL_FAMILY_IPV6)};
	struct source_list list = {0};
	enum status status = sources_walk(gate, &ipv4, within, &list);

	if (!status)
		status = sources_walk(gate, &ipv6, within, &list);
	if (status) {
		sources_free(list.items, list.count);
		return status;
	}
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), source_compare);
	*ret = list.items;
	*ret_count = list.count;
	return OK;
}

/* --- Standing ------------------------------------------------------------------------------- */

/* A source without a ledger has its whole burst to come. */
static enum status ledger_read(const struct gate *gate, const struct sl_prefix *source,
			       const struct sl_limit *limit, uint64_t now, struct sl_ledger *ret)
{
	struct sl_ledger_key4 key4 = {.limit = limit->id};
	struct sl_ledger_key6 key6 = {.limit = limit->id};
	int err;

	*ret = credit_birth(limit, now);
	if (prefix_is_ipv4(source)) {
		memcpy(key4.addr, source->addr, sizeof(key4.addr));
		err = bpf_map_lookup_elem(gate->map[MAP_LEDGERS4], &key4, ret);
	} else {
		memcpy(key6.addr, source->addr, sizeof(key6.addr));
		err = bpf_map_lookup_elem(gate->map[MAP_LEDGERS6], &key6, ret);
	}
	if (err && errno != ENOENT)
		return fail("cannot read a ledger of gate '%s': %s", gate->name, why(errno));
	return OK;
}

/* What a CPU could spend without asking the ledger. */
static int64_t purse_credit(const struct sl_bucket *bucket, uint32_t record,
			    const struct sl_limit *limit, const struct sl_ledger *ledger,
			    uint64_t now)
{
	const struct sl_purse *purse = &bucket->purse;

	if (bucket->policy != record || purse->credit <= 0 ||
	    credit_span(ledger->born, purse->at) < 0 ||
	    credit_span(purse->at, now) > (int64_t)credit_purses(limit))
		return 0;
	return purse->credit;
}

/* Ticks to what the limit counts, rounded down. */
static uint64_t units_of(const struct sl_limit *limit, uint64_t ticks)
{
	if (!limit->by_bytes)
		return ticks / limit->cost;
	return ((unsigned __int128)ticks << SL_BYTE_COST_SHIFT) / limit->cost;
}

uint64_t burst_units(const struct sl_limit *limit)
{
	return units_of(limit, limit->burst);
}

/* Rounded up, so that a packet at that time passes. */
static uint64_t wait_ms(const struct sl_limit *limit, const struct sl_ledger *ledger, uint64_t cost,
			uint64_t now)
{
	int64_t ticks = credit_span(now, credit_ready_at(limit, ledger, cost));

	return ticks <= 0 ? 1 : (ticks + TICKS_PER_MS - 1) / TICKS_PER_MS;
}

enum status standing_read(const struct gate *gate, const struct source *source,
			  const struct sl_policy *policy, unsigned int frame_bytes, uint64_t now,
			  struct standing *ret)
{
	const struct sl_limit *limit = &policy->limit;
	uint64_t cost = credit_cost(limit, 1, frame_bytes);
	struct sl_ledger ledger;
	enum status status = ledger_read(gate, &source->prefix, limit, now, &ledger);
	int64_t level, total;
	bool allowed;

	if (status)
		return status;
	level = total = credit_level(limit, &ledger, now);
	allowed = level >= (int64_t)cost;
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++) {
		int64_t credit = purse_credit(&source->cpus[cpu], rules_record(gate, policy), limit,
					      &ledger, now);

		allowed |= credit >= (int64_t)cost;
		total += credit;
	}
	*ret = (struct standing){
		.allowed = allowed,
		.remaining = total > 0 ? units_of(limit, credit_min(total, limit->burst)) : 0,
	};
	if (cost > limit->burst)
		ret->retry_after_ms = UINT64_MAX;
	else if (!allowed)
		ret->retry_after_ms = wait_ms(limit, &ledger, cost, now);
	return OK;
}
