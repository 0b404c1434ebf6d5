// SPDX-License-Identifier: GPL-2.0
#include <bpf/bpf.h>

#include "gate_parts.h"
#include "object.h"

/* LRU maps hand nodes to CPUs 128 at a time: below this they evict while almost empty. */
#define LRU_ENTRIES_PER_CPU 256

/* Every policy has counters on every CPU: that much memory at most, unless it is asked for. */
#define COUNTERS_BYTES_MAX (64U << 20)
#define POLICIES_LEAST	   1024
#define POLICIES_USUAL	   12288

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
	uint32_t least = machine->cpus * LRU_ENTRIES_PER_CPU;
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

void gate_sizes_set(struct bpf_object *object, const struct gate_sizes *sizes)
{
	const uint32_t entries[GATE_MAPS] = {
		[MAP_GATE] = 1,
		[MAP_HOSTS4] = sizes->hosts,
		[MAP_HOSTS6] = sizes->hosts,
		[MAP_PREFIXES] = sizes->prefixes,
		[MAP_SPLITS] = larger(sizes->hosts, sizes->prefixes),
		[MAP_POLICIES] = SL_RECORD(sizes->policies),
		[MAP_COUNTERS] = sizes->policies,
		[MAP_LEDGERS4] = sizes->sources,
		[MAP_LEDGERS6] = sizes->sources,
		[MAP_BUCKETS4] = sizes->hot,
		[MAP_BUCKETS6] = sizes->hot,
	};

	for (int map = 0; map < GATE_MAPS; map++)
		bpf_map__set_max_entries(object_map(object, map), entries[map]);
}
