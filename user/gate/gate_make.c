// SPDX-License-Identifier: GPL-2.0
#include "gate/gate_make.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <bpf/bpf.h>
#include <sys/random.h>

#include "aggregate.h"
#include "gate/object.h"
#include "gate/pins.h"

/* --- Sizes ---------------------------------------------------------------------------------- */

/*
 * Maps of rules are small at first, and grow with the rules: migrate/remake.h. Each policy needs
 * memory for its versions, and each host for a bucket of a hash table, whether it exists or not.
 */
#define RULES_USUAL    (1 << 14)
#define POLICIES_USUAL (1024 + SL_POLICY_FIRST)
#define POLICIES_LEAST 256

/* Each CPU has a copy of the counters of policies, which are at most this large together. */
#define COUNTERS_BYTES_MAX (16U << 20)

/*
 * Entries of `buckets4`, and of `buckets6`. An entry has a value for each CPU, so with many CPUs
 * there are fewer: 16 MB of both maps with 2 CPUs, 43 MB with 8, 82 MB with 128.
 */
#define BUCKETS_BY_CPUS (3U << 15)
#define BUCKETS_LEAST	1536
#define BUCKETS_USUAL	16384

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
	uint32_t counted = COUNTERS_BYTES_MAX / sizeof(struct sl_counters) / machine->cpus;

	return (struct gate_sizes){
		.sources = 1 << 18,
		.buckets = smaller(larger(BUCKETS_BY_CPUS / machine->cpus, BUCKETS_LEAST),
				   BUCKETS_USUAL),
		.policies = smaller(larger(counted, POLICIES_LEAST), POLICIES_USUAL),
		.hosts = RULES_USUAL,
		.prefixes = RULES_USUAL,
	};
}

struct gate_sizes gate_sizes_complete(const struct gate_sizes *wanted,
				      const struct machine *machine)
{
	struct gate_sizes usual = gate_sizes_default(machine), sizes = *wanted;

	for (int i = 0; i < SIZES; i++)
		if (!*size_of(&sizes, i))
			*size_of(&sizes, i) = *size_of(&usual, i);
	return sizes;
}

int gate_sizes_read(const struct gate *gate, struct gate_sizes *ret)
{
	uint32_t policies = gate->state->policies;
	struct gate_sizes sizes = {
		.sources = gate->state->params.sources,
		.buckets = gate->state->params.buckets,
		.policies = gate->policies_max,
	};
	int err = gate_map_size(gate, MAP_HOSTS4, &sizes.hosts)
			  ?: gate_map_size(gate, MAP_PREFIXES, &sizes.prefixes);

	/* the owner of the gate may have written any other number */
	if (policies > SL_POLICY_FIRST && policies < gate->policies_max)
		sizes.policies = policies;
	if (!err)
		*ret = sizes;
	return err;
}

int gate_sizes_read_stated(const struct gate *gate, struct gate_sizes *ret)
{
	int err = gate_sizes_read(gate, ret);

	for (unsigned int i = 0; !err && i < SIZES; i++)
		if (!(gate->state->sizes_stated & SIZE_BIT(i)))
			*size_of(ret, i) = 0;
	return err;
}

/* --- Parameters of admission ---------------------------------------------------------------- */

static uint32_t power_of_two(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

/*
 * Returns the sets of the table. `sources` entries fill at most three quarters of it: with more,
 * entries that are not full are evicted, as some sets are full before others.
 */
static uint32_t table_sets(const struct gate_sizes *sizes)
{
	return power_of_two(larger((sizes->sources + 5) / (SL_WAYS * 3 / 4), 2));
}

/* Returns the sets of the host cache: half full, if all hosts of one family send. */
static uint32_t host_sets(const struct gate_sizes *sizes)
{
	return power_of_two(larger(2 * sizes->hosts / SL_HOST_WAYS, 1));
}

/* The length of an interval: short enough to notice a flood before it has filled many entries. */
#define INTERVAL_NS (64 * 1000000U)

/*
 * A flood is this part of `sources`, and at most so many: new sources that one CPU sees in an
 * interval. It is not divided by the CPUs: it detects a flood on this one.
 */
#define CROWD_PART 16
#define CROWD_MOST 1024

struct sl_params gate_params(const struct gate_sizes *sizes, const struct machine *machine)
{
	uint32_t shift = 0;

	while ((machine->jiffy_ns << (shift + 1)) <= INTERVAL_NS)
		shift++;
	return (struct sl_params){
		.flood_threshold = larger(smaller(sizes->sources / CROWD_PART, CROWD_MOST), 1),
		.interval_shift = shift,
		.set_mask = table_sets(sizes) - 1,
		.host_mask = host_sets(sizes) - 1,
		.sources = sizes->sources,
		.buckets = sizes->buckets,
		.sketch_mask = SL_SKETCH_LINES - 1,
	};
}

/* --- Making the maps ------------------------------------------------------------------------ */

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
		[MAP_POLICIES] = SL_POLICY_VERSION(sizes->policies),
		[MAP_COUNTERS] = sizes->policies,
		[MAP_SETS] = table_sets(sizes),
		[MAP_STATES] = table_sets(sizes) * SL_WAYS,
		[MAP_BUCKETS4] = sizes->buckets,
		[MAP_BUCKETS6] = sizes->buckets,
		[MAP_IN_USE] = 1,
		[MAP_ADMISSION] = 1,
		[MAP_NEWCOMERS] = machine->cpu_ids * SL_SKETCH_LINES,
		[MAP_RULE_CACHE] = machine->cpu_ids * SL_RULE_CACHE_SIZE,
		[MAP_HOST_CACHE] = host_sets(sizes),
		[MAP_SUBRULES] = SL_AGGREGATES,
		[MAP_BUDGETS] = sizes->policies,
		[MAP_BUDGET_SLICES] = sizes->policies,
		[MAP_SECRET] = 1,
	};

	for (int map = 0; map < GATE_MAPS; map++)
		bpf_map__set_max_entries(object_map(object, map), entries[map]);
}

/* Reads the memory that the kernel estimates it can provide without taking it from processes. */
static int memory_available(uint64_t *ret)
{
	static const char path[] = "/proc/meminfo";
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	unsigned long long kilobytes;
	char line[128];

	if (!file)
		return error_add(errno, "memory-unread", path, "cannot read it: %s", why(errno));
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) != 1)
			continue;
		*ret = kilobytes * 1024;
		return 0;
	}
	return error_add(EIO, "memory-unread", path,
			 "does not report how much memory is available");
}

/*
 * Refuses maps that are too large for the machine. The kernel would not: it would kill other
 * processes to make room. An eighth of the available memory stays free for these. Maps that are
 * shared with another gate do not count.
 */
static int memory_check(const struct gate *gate, const struct bpf_object *object)
{
	char need[MEMORY_TEXT], have[MEMORY_TEXT];
	uint64_t needed = 0, available = 0;
	const struct bpf_map *map;
	int err = memory_available(&available);

	if (err)
		return err;
	available -= available / 8;
	bpf_object__for_each_map(map, object)
	{
		const struct bpf_map_info info = {
			.type = bpf_map__type(map),
			.key_size = bpf_map__key_size(map),
			.value_size = bpf_map__value_size(map),
			.max_entries = bpf_map__max_entries(map),
			.map_flags = bpf_map__map_flags(map),
		};

		if (bpf_map__fd(map) < 0)
			needed += map_memory(&info, 0, gate->machine.cpus);
	}
	if (needed <= available)
		return 0;
	return gate_error(
		gate, ENOMEM, "memory-short",
		"its maps would need %s, and this machine has %s to spare; choose smaller "
		"sizes, `buckets` first",
		memory_format(needed, need), memory_format(available, have));
}

/* Makes the object's maps without its programs, except for shared maps, and keeps fds of all. */
static int maps_load(struct gate *gate, struct bpf_object *object)
{
	int err = memory_check(gate, object);
	struct bpf_program *program;

	if (err)
		return err;
	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program, false);
	err = bpf_object__load(object);
	if (err)
		return gate_error(gate, err, "maps-make", "cannot make its maps: %s", why(err));
	for (int map = 0; map < GATE_MAPS; map++) {
		gate->map[map] = fcntl(bpf_map__fd(object_map(object, map)), F_DUPFD_CLOEXEC, 0);
		if (gate->map[map] < 0)
			return gate_error(gate, errno, "maps-make", "cannot keep a map open: %s",
					  why(errno));
	}
	return 0;
}

/* Maps the memory of new maps, and writes the state with the ids of all maps. */
static int state_begin(struct gate *gate, const struct sl_gate *state)
{
	int err = gate_map_state(gate) ?: gate_map_rules(gate);

	if (err)
		return err;
	*gate->state = *state;
	memset(gate->state->map_ids, 0, sizeof(gate->state->map_ids));
	for (int map = 0; map < GATE_MAPS; map++) {
		gate->state->map_ids[map] = gate_map_id(gate->map[map]);
		if (!gate->state->map_ids[map])
			return gate_map_unread(gate, map, errno);
	}
	return 0;
}

static int maps_make(struct gate *gate, struct bpf_object *object, const struct gate_sizes *sizes)
{
	struct sl_gate state = {
		.schema = SL_SCHEMA,
		.generation = 1,
		.jiffy_ns = gate->machine.jiffy_ns,
		.next_limit = 1,
		.next_policy = SL_POLICY_FIRST,
		.policies = sizes->policies,
		.params = gate_params(sizes, &gate->machine),
	};
	__u32 first = 0;
	int err;

	gate_sizes_set(object, sizes, &gate->machine);
	err = maps_load(gate, object);
	if (err)
		return err;
	if (getrandom(gate->secret, sizeof(gate->secret), 0) != sizeof(gate->secret))
		return gate_error(gate, errno, "no-random", "cannot get random numbers: %s",
				  why(errno));
	err = bpf_map_update_elem(gate->map[MAP_SECRET], &first, gate->secret, 0);
	if (err)
		return gate_error(gate, err, "map-write", "cannot write map 'secret': %s",
				  why(err));
	gate->has_secret = true;
	return state_begin(gate, &state);
}

int gate_make(struct gate *gate, const struct gate_sizes *wanted)
{
	struct gate_sizes sizes = gate_sizes_complete(wanted, &gate->machine);
	_cleanup_object_ struct bpf_object *object = NULL;
	int err = gate_dir_clear(gate); /* a killed command may have left pins */

	if (err)
		return err;
	object = object_open();
	if (!object)
		return -EIO;
	gate->made = true;
	err = maps_make(gate, object, &sizes);
	if (err)
		return err;
	gate->state->sizes_stated = sizes_bits(wanted);
	return pins_make(&gate->dir, GATE_LINKS, false)
		       ?: pins_open(&gate->dir, GATE_LINKS, &gate->links)
		       ?: pin_maps(&gate->dir, gate->map, UINT32_MAX);
}

int gate_make_unpinned(struct gate *gate, const struct gate_sizes *sizes,
		       const struct machine *machine)
{
	_cleanup_object_ struct bpf_object *object = object_open();
	int err = object ? gate_begin(gate, "unpinned") : -EIO;

	if (err)
		return err;
	gate->machine = *machine;
	return maps_make(gate, object, sizes);
}

void gate_undo(struct gate *gate)
{
	if (gate->made)
		gate_dir_remove(gate);
	gate->made = false;
}

/* --- The next gate of a remake -------------------------------------------------------------- */

/*
 * Whether the next gate may share a map; the maps before it are decided. `gate` is always new.
 * Buckets are new if the table is, because they hold credit from it, and their marks are new if
 * they are.
 */
static bool map_may_stay(const struct bpf_object *object, enum gate_map map)
{
	if (map == MAP_BUCKETS4 || map == MAP_BUCKETS6)
		return bpf_map__fd(object_map(object, MAP_STATES)) >= 0;
	if (map == MAP_IN_USE)
		return bpf_map__fd(object_map(object, MAP_BUCKETS4)) >= 0;
	return map != MAP_GATE;
}

int gate_make_next(const struct gate *gate, const struct gate_sizes *sizes, struct gate *ret)
{
	_cleanup_object_ struct bpf_object *object = object_open();
	_cleanup_(gate_close) struct gate next = GATE_CLOSED;
	struct sl_gate state = *gate->state;
	int err;

	if (!object)
		return -EIO;
	memcpy(next.name, gate->name, sizeof(next.name));
	next.machine = gate->machine;
	state.params = gate_params(sizes, &gate->machine);
	gate_sizes_set(object, sizes, &gate->machine);
	for (int map = 0; map < GATE_MAPS; map++) {
		struct bpf_map *shared = object_map(object, map);
		uint32_t entries;

		err = gate_map_size(gate, map, &entries);
		if (err)
			return err;
		if (entries != bpf_map__max_entries(shared) || !map_may_stay(object, map))
			continue;
		err = bpf_map__reuse_fd(shared, gate->map[map]);
		if (err)
			return gate_error(gate, err, "maps-make", "cannot share its maps: %s",
					  why(err));
	}
	err = maps_load(&next, object) ?: state_begin(&next, &state) ?: gate_read_secret(&next);
	if (err)
		return err;
	*ret = next;
	next = GATE_CLOSED;
	return 0;
}
