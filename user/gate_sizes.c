// SPDX-License-Identifier: GPL-2.0
#include <string.h>
#include <bpf/bpf.h>

#include "block.h"
#include "gate_parts.h"
#include "object.h"
#include "sizes.h"

/* Every policy has counters on every CPU: that much memory at most, unless it is asked for. */
#define COUNTERS_BYTES_MAX (64U << 20)
#define POLICIES_LEAST	   1024
#define POLICIES_USUAL	   (12288 + SL_POLICY_FIRST)

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

struct gate_sizes gate_sizes_default(const struct machine *machine)
{
	uint32_t least = size_least(machine);
	uint32_t counted = COUNTERS_BYTES_MAX / sizeof(struct sl_counters) / machine->cpus;

	return (struct gate_sizes){
		.sources = larger(least, 1 << 18),
		.hot = larger(least, 1 << 14),
		.policies = smaller(larger(counted, POLICIES_LEAST), POLICIES_USUAL),
		.hosts = 1 << 20,
		.prefixes = 1 << 20,
	};
}

static void size_default(uint32_t *size, uint32_t fallback)
{
	if (!*size)
		*size = fallback;
}

struct gate_sizes gate_sizes_complete(const struct gate_sizes *wanted,
				      const struct machine *machine)
{
	struct gate_sizes usual = gate_sizes_default(machine), sizes = *wanted;

	size_default(&sizes.sources, usual.sources);
	size_default(&sizes.hot, usual.hot);
	size_default(&sizes.policies, usual.policies);
	size_default(&sizes.hosts, usual.hosts);
	size_default(&sizes.prefixes, usual.prefixes);
	return sizes;
}

enum status gate_map_size(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	int err = bpf_obj_get_info_by_fd(gate->map[map], &info, &size);

	if (err)
		return fail("cannot read map '%s' of gate '%s': %s", gate_map_names[map],
			    gate->name, why(err));
	*ret = info.max_entries;
	return OK;
}

enum status gate_sizes_read(const struct gate *gate, struct gate_sizes *ret)
{
	struct gate_sizes sizes = {.policies = gate->policies_max};
	enum status status = gate_map_size(gate, MAP_LEDGERS4, &sizes.sources);

	if (!status)
		status = gate_map_size(gate, MAP_BUCKETS4, &sizes.hot);
	if (!status)
		status = gate_map_size(gate, MAP_HOSTS4, &sizes.hosts);
	if (!status)
		status = gate_map_size(gate, MAP_PREFIXES, &sizes.prefixes);
	if (!status)
		*ret = sizes;
	return status;
}

/* --- Newcomers ------------------------------------------------------------------------------ */

/* A window is about so long: short enough to notice a flood before it has taken much. */
#define WINDOW_NS  (64 * 1000000U)
#define NS_PER_SEC 1000000000ULL

/* All batches of a pool's tokens together are such a part of them. */
#define BATCHES_PART 16

/* So many sources share one entry of `known`. */
#define SOURCES_PER_KNOWN 4

static uint32_t power_of_two(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

/* Eight slots for each hot source, of each pool: this is for how many newcomers a CPU remembers the last one. */
static uint32_t sketch_lines(const struct gate_sizes *sizes)
{
	return power_of_two(larger(8 * (sizes->hot / SL_SKETCH_SLOTS), 1));
}

static uint32_t known_entries(const struct gate_sizes *sizes)
{
	return power_of_two(larger(sizes->sources / SOURCES_PER_KNOWN, 1));
}

static uint32_t window_shift(const struct machine *machine)
{
	uint32_t shift = 0;

	while ((machine->tick_ns << (shift + 1)) <= WINDOW_NS)
		shift++;
	return shift;
}

/*
 * All CPUs together replace at most half of a map at once, and a thirty-second part of it each second: a source that is
 * heard every few seconds stays, if the map has room for twice as many as are. include/pool.h says what CPUs take.
 */
static void pool_set(struct sl_meeting *meeting, enum sl_pool pool, uint32_t entries,
		     const struct machine *machine)
{
	uint32_t batch = larger(entries / 2 / BATCHES_PART / machine->cpus, SL_LIMITS_MAX);
	uint64_t window_ns = (uint64_t)machine->tick_ns << meeting->window_shift;
	uint64_t refill = ((uint64_t)entries << SL_TOKEN_SHIFT) * window_ns / (32 * NS_PER_SEC);
	uint64_t apart = (uint64_t)machine->cpus * batch + (refill >> SL_TOKEN_SHIFT) + 1;

	meeting->batch[pool] = batch;
	meeting->tokens[pool] = entries / 2 > apart ? entries / 2 - apart : 1;
	meeting->refill[pool] = larger(refill, 1);
}

/*
 * Newcomers on one CPU that take so large a part of the smaller map in a window are a crowd. Not divided by CPUs: what a
 * crowd is for is to spare this CPU lookups, and to notice a flood on it; what all CPUs insert is the pools' concern.
 */
#define CROWD_PART 16

struct sl_meeting gate_meeting(const struct gate_sizes *sizes, const struct machine *machine,
			       const __u64 secret[SL_SECRETS])
{
	struct sl_meeting meeting = {
		.crowd = larger(smaller(sizes->hot, sizes->sources) / CROWD_PART, 1),
		.window_shift = window_shift(machine),
		.sketch_mask = sketch_lines(sizes) - 1,
		.known_mask = known_entries(sizes) - 1,
	};

	pool_set(&meeting, SL_POOL_LEDGERS, sizes->sources, machine);
	pool_set(&meeting, SL_POOL_BUCKETS, sizes->hot, machine);
	memcpy(meeting.secret, secret, sizeof(meeting.secret));
	return meeting;
}

/* --- The object ----------------------------------------------------------------------------- */

void gate_sizes_set(struct bpf_object *object, const struct gate_sizes *sizes,
		    const struct machine *machine)
{
	const uint32_t entries[GATE_MAPS] = {
		[MAP_GATE] = 1,
		[MAP_HOSTS4] = sizes->hosts,
		[MAP_HOSTS6] = sizes->hosts,
		[MAP_PREFIXES] = sizes->prefixes,
		[MAP_SPLITS] = larger(sizes->hosts, sizes->prefixes),
		[MAP_LISTS] = SL_LIST_PLACES,
		[MAP_POLICIES] = SL_RECORD(sizes->policies),
		[MAP_COUNTERS] = sizes->policies,
		[MAP_LEDGERS4] = sizes->sources,
		[MAP_LEDGERS6] = sizes->sources,
		[MAP_BUCKETS4] = sizes->hot,
		[MAP_BUCKETS6] = sizes->hot,
		[MAP_ADMISSION] = 1,
		[MAP_POOLS] = SL_POOLS,
		[MAP_SKETCH] = machine->cpu_ids * SL_POOLS * sketch_lines(sizes),
		[MAP_KNOWN] = known_entries(sizes),
		[MAP_SHORTCUTS] = machine->cpu_ids * SL_SHORTCUTS,
		[MAP_BLOCKS] = SL_BLOCKS,
		[MAP_BUDGETS] = sizes->policies,
		[MAP_ALLOWANCES] = sizes->policies,
	};

	for (int map = 0; map < GATE_MAPS; map++)
		bpf_map__set_max_entries(object_map(object, map), entries[map]);
}
