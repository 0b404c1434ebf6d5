// SPDX-License-Identifier: GPL-2.0
#include "gate/gate_make.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <bpf/bpf.h>
#include <sys/random.h>

#include "aggregate.h"
#include "base/clock.h"
#include "gate/gate_dir.h"
#include "gate/object.h"
#include "rules/sizes.h"

/* --- Sizes ---------------------------------------------------------------------------------- */

/*
 * Maps of rules are small at first, and grow with the rules: migrate/remake.h. Each policy takes
 * memory for its records, and each host for a bucket of a hash table, whether it is there or not.
 */
#define RULES_USUAL    (1 << 14)
#define POLICIES_USUAL (1024 + SL_POLICY_FIRST)
#define POLICIES_LEAST 256

/* The counters of policies, of which each CPU has a copy, take no more where CPUs are many. */
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
	size_default(&sizes.buckets, usual.buckets);
	size_default(&sizes.policies, usual.policies);
	size_default(&sizes.hosts, usual.hosts);
	size_default(&sizes.prefixes, usual.prefixes);
	return sizes;
}

/* The owner of the gate may have written any other number. */
static uint32_t policies_asked(const struct gate *gate)
{
	uint32_t policies = gate->state->policies;

	return policies > SL_POLICY_FIRST && policies < gate->policies_max ? policies
									   : gate->policies_max;
}

int gate_sizes_read(const struct gate *gate, struct gate_sizes *ret)
{
	struct gate_sizes sizes = {
		.sources = gate->state->meeting.sources,
		.buckets = gate->state->meeting.buckets,
		.policies = policies_asked(gate),
	};
	int status = gate_map_size(gate, MAP_HOSTS4, &sizes.hosts);

	if (!status)
		status = gate_map_size(gate, MAP_PREFIXES, &sizes.prefixes);
	if (!status)
		*ret = sizes;
	return status;
}

int gate_sizes_read_stated(const struct gate *gate, struct gate_sizes *ret)
{
	int status = gate_sizes_read(gate, ret);

	for (unsigned int i = 0; !status && i < SIZES; i++)
		if (!(gate->state->sizes_stated & SIZE_BIT(i)))
			*size_of(ret, i) = 0;
	return status;
}

/* --- Parameters of admission ---------------------------------------------------------------- */

/* The length of a window: short enough to notice a flood before it has taken many entries. */
#define WINDOW_NS (64 * 1000000U)

static uint32_t power_of_two(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

/*
 * The sets of the table. As many sources as its size says fill three quarters of it at most: of
 * more, states that are not whole are forgotten, as some sets are full before others.
 */
static uint32_t table_sets(const struct gate_sizes *sizes)
{
	return power_of_two(larger((sizes->sources + 5) / (SL_WAYS * 3 / 4), 2));
}

/* The sets of shortcuts to hosts: half full, if all hosts of one family send. */
static uint32_t host_sets(const struct gate_sizes *sizes)
{
	return power_of_two(larger(2 * sizes->hosts / SL_HOST_WAYS, 1));
}

static uint32_t window_shift(const struct machine *machine)
{
	uint32_t shift = 0;

	while ((machine->jiffy_ns << (shift + 1)) <= WINDOW_NS)
		shift++;
	return shift;
}

/*
 * A crowd is this part of `sources`, and no more than so many: newcomers that one CPU meets in a
 * window. It is not divided by the CPUs: it detects a flood on this one.
 */
#define CROWD_PART 16
#define CROWD_MOST 1024

struct sl_meeting gate_meeting(const struct gate_sizes *sizes, const struct machine *machine)
{
	return (struct sl_meeting){
		.crowd = larger(smaller(sizes->sources / CROWD_PART, CROWD_MOST), 1),
		.window_shift = window_shift(machine),
		.set_mask = table_sets(sizes) - 1,
		.host_mask = host_sets(sizes) - 1,
		.sources = sizes->sources,
		.buckets = sizes->buckets,
		.sketch_mask = SL_SKETCH_LINES - 1,
	};
}

/* --- Sizes of the object's maps ------------------------------------------------------------- */

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
		[MAP_SETS] = table_sets(sizes),
		[MAP_STATES] = table_sets(sizes) * SL_WAYS,
		[MAP_BUCKETS4] = sizes->buckets,
		[MAP_BUCKETS6] = sizes->buckets,
		[MAP_IN_USE] = 1,
		[MAP_ADMISSION] = 1,
		[MAP_NEWCOMERS] = machine->cpu_ids * SL_SKETCH_LINES,
		[MAP_SHORTCUTS] = machine->cpu_ids * SL_SHORTCUTS,
		[MAP_HOST_SHORTCUTS] = host_sets(sizes),
		[MAP_BLOCKS] = SL_AGGREGATES,
		[MAP_BUDGETS] = sizes->policies,
		[MAP_BUDGET_SLICES] = sizes->policies,
		[MAP_SECRET] = 1,
	};

	for (int map = 0; map < GATE_MAPS; map++)
		bpf_map__set_max_entries(object_map(object, map), entries[map]);
}

/* --- Making the maps ------------------------------------------------------------------------ */

/* The bytes that the object's maps take when they are made, without shared maps. */
static uint64_t maps_memory(const struct bpf_object *object, const struct machine *machine)
{
	const struct bpf_map *map;
	uint64_t bytes = 0;

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
			bytes += map_memory(&info, 0, machine->cpus);
	}
	return bytes;
}

/*
 * Refuses maps that are too large for the machine. The kernel would not: it would kill other
 * processes to make room. An eighth of the available memory stays free for these.
 */
static int memory_check(const struct gate *gate, const struct bpf_object *object)
{
	uint64_t needed = maps_memory(object, &gate->machine), available;
	int status = memory_available(&available);
	char need[MEMORY_TEXT], have[MEMORY_TEXT];

	if (!status && needed > available - available / 8)
		status = failure("the maps of gate '%s' would take %s, and this machine has %s to "
				 "spare: choose smaller sizes, `buckets` first",
				 gate->name, memory_format(needed, need),
				 memory_format(available - available / 8, have));
	return status;
}

/* Makes the object's maps without its programs, except for shared maps, and keeps fds of all. */
static int gate_load_maps(struct gate *gate, struct bpf_object *object)
{
	int status = memory_check(gate, object);
	struct bpf_program *program;
	int err;

	if (status)
		return status;
	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program, false);
	err = bpf_object__load(object);
	if (err)
		return failure("cannot make the maps of gate '%s': %s", gate->name, why(err));
	for (int map = 0; map < GATE_MAPS; map++) {
		gate->map[map] = fcntl(bpf_map__fd(object_map(object, map)), F_DUPFD_CLOEXEC, 0);
		if (gate->map[map] < 0)
			return failure("cannot keep a map open: %s", why(errno));
	}
	return OK;
}

/* Maps the memory of new maps, and writes the state with the ids of all maps. */
static int gate_begin_state(struct gate *gate, const struct sl_gate *state)
{
	int status = gate_map_state(gate);

	if (!status)
		status = gate_map_rules(gate);
	if (status)
		return status;
	*gate->state = *state;
	memset(gate->state->map_ids, 0, sizeof(gate->state->map_ids));
	for (int map = 0; map < GATE_MAPS; map++) {
		gate->state->map_ids[map] = gate_map_id(gate->map[map]);
		if (!gate->state->map_ids[map])
			return failure("cannot read the id of a new map: %s", why(errno));
	}
	return OK;
}

static int gate_make_secret(struct gate *gate)
{
	__u32 first = 0;
	int err;

	if (getrandom(gate->secret, sizeof(gate->secret), 0) != sizeof(gate->secret))
		return failure("cannot get random numbers: %s", why(errno));
	err = bpf_map_update_elem(gate->map[MAP_SECRET], &first, gate->secret, 0);
	if (err)
		return failure("cannot write map 'secret' of gate '%s': %s", gate->name, why(err));
	gate->has_secret = true;
	return OK;
}

static int gate_make_maps(struct gate *gate, struct bpf_object *object,
			  const struct gate_sizes *sizes)
{
	struct sl_gate state = {
		.schema = SL_SCHEMA,
		.generation = 1,
		.jiffy_ns = gate->machine.jiffy_ns,
		.next_limit = 1,
		.next_policy = SL_POLICY_FIRST,
		.policies = sizes->policies,
	};
	int status;

	state.meeting = gate_meeting(sizes, &gate->machine);
	gate_sizes_set(object, sizes, &gate->machine);
	status = gate_load_maps(gate, object);
	if (!status)
		status = gate_make_secret(gate);
	return status ?: gate_begin_state(gate, &state);
}

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

/* Shares the maps whose number of entries stays. */
static int maps_share(const struct gate *gate, struct bpf_object *object)
{
	int status = OK;

	for (int map = 0; !status && map < GATE_MAPS; map++) {
		struct bpf_map *next = object_map(object, map);
		uint32_t entries;
		int err = 0;

		status = gate_map_size(gate, map, &entries);
		if (!status && entries == bpf_map__max_entries(next) && map_may_stay(object, map))
			err = bpf_map__reuse_fd(next, gate->map[map]);
		if (err)
			status = failure("cannot share the maps of gate '%s': %s", gate->name,
					 why(err));
	}
	return status;
}

int gate_make_next(const struct gate *gate, const struct gate_sizes *sizes, struct gate *ret)
{
	struct bpf_object *object = object_open();
	struct gate next = GATE_CLOSED;
	struct sl_gate state = *gate->state;
	int status;

	if (!object)
		return FAILED;
	memcpy(next.name, gate->name, sizeof(next.name));
	next.machine = gate->machine;
	state.meeting = gate_meeting(sizes, &gate->machine);
	gate_sizes_set(object, sizes, &gate->machine);
	status = maps_share(gate, object);
	if (!status)
		status = gate_load_maps(&next, object);
	if (!status)
		status = gate_begin_state(&next, &state);
	if (!status)
		status = gate_read_secret(&next);
	bpf_object__close(object);
	if (status)
		gate_close(&next);
	else
		*ret = next;
	return status;
}

static int gate_pin(struct gate *gate)
{
	int status = pins_make(&gate->dir, GATE_LINKS, false);

	if (!status)
		status = pins_open(&gate->dir, GATE_LINKS, &gate->links);
	for (int map = GATE_MAPS - 1; !status && map >= 0; map--) {
		int err = pin_make(&gate->dir, gate_map_names[map], gate->map[map]);

		if (err)
			status = pin_failed("pin", &gate->dir, gate_map_names[map], err);
	}
	return status;
}

void gate_undo(struct gate *gate)
{
	if (gate->made)
		gate_dir_remove(gate);
	gate->made = false;
}

int gate_make(struct gate *gate, const struct gate_sizes *wanted)
{
	struct gate_sizes sizes = gate_sizes_complete(wanted, &gate->machine);
	int status = gate_dir_clear(gate); /* a killed command may have left pins */
	struct bpf_object *object;

	if (status)
		return status;
	object = object_open();
	if (!object)
		return FAILED;
	gate->made = true;
	status = gate_make_maps(gate, object, &sizes);
	bpf_object__close(object);
	if (status)
		return status;
	gate->state->sizes_stated = sizes_bits(wanted);
	return gate_pin(gate);
}

int gate_make_unpinned(struct gate *gate, const struct gate_sizes *sizes,
		       const struct machine *machine)
{
	int status = gate_begin(gate, "unpinned");
	struct bpf_object *object;

	if (status)
		return status;
	gate->machine = *machine;
	object = object_open();
	status = object ? gate_make_maps(gate, object, sizes) : FAILED;
	bpf_object__close(object);
	return status;
}
