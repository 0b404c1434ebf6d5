// SPDX-License-Identifier: GPL-2.0
#include "gate/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>
#include <sys/param.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include "aggregate.h"
#include "gate/pins.h"
#include "sluice.skel.h"

/*
 * The program array of modes chain and array, and its slots. Each attachment has its own, so they
 * are not maps of a gate.
 */
#define MAP_CHAIN	"chain"
#define MAP_CHAIN_SLOTS ".rodata.chain"

struct bpf_object *object_open(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "sluice");
	size_t size;
	const void *bytes = sluice__elf_bytes(&size);
	struct bpf_object *object = bpf_object__open_mem(bytes, size, &opts);

	if (!object) {
		error_add(errno, "object-unread", NULL,
			  "cannot read the BPF programs in this binary: %s", why(errno));
		return NULL;
	}
	bpf_map__set_autocreate(bpf_object__find_map_by_name(object, MAP_CHAIN), false);
	bpf_map__set_autocreate(bpf_object__find_map_by_name(object, MAP_CHAIN_SLOTS), false);
	return object;
}

void object_close(struct bpf_object **object)
{
	bpf_object__close(*object);
}

struct bpf_map *object_map(const struct bpf_object *object, enum gate_map map)
{
	return bpf_object__find_map_by_name(object, map == MAP_SECRET ? ".data.secret"
								      : gate_map_names[map]);
}

/* --- Programs ------------------------------------------------------------------------------- */

/* Lets the programs of an object use the gate's maps. */
static int maps_reuse(const struct gate *gate, struct bpf_object *object)
{
	int err = 0;

	for (int map = 0; !err && map < GATE_MAPS; map++)
		err = bpf_map__reuse_fd(object_map(object, map), gate->map[map]);
	return err;
}

/* Loads the chosen programs of an object, which use the gate's maps. */
static int object_load(const struct gate *gate, struct bpf_object *object)
{
	return maps_reuse(gate, object) ?: bpf_object__load(object);
}

/* ENOTSUPP of the kernel: its JIT compiler cannot compile a program, and it has no interpreter. */
#define NOT_COMPILED 524

static int load_failed(int err)
{
	struct utsname kernel;

	if (err == -NOT_COMPILED && !uname(&kernel))
		return error_add(ENOTSUP, "jit-lacks", NULL,
				 "the JIT compiler of Linux %s on %s lacks an instruction of the "
				 "BPF programs; boot a newer kernel",
				 kernel.release, kernel.machine);
	return error_add(err, "programs-load", NULL,
			 "cannot load the BPF programs: %s (-v shows the kernel's log)", why(err));
}

int programs_load(const struct gate *gate, unsigned int hooks, struct programs *programs)
{
	static const char *const names[HOOKS] = {
		[HOOK_XDP] = "sluice_xdp",
		[HOOK_INGRESS] = "sluice_ingress",
		[HOOK_EGRESS] = "sluice_egress",
	};
	_cleanup_object_ struct bpf_object *object = NULL;
	_cleanup_(programs_close) struct programs loaded = PROGRAMS_CLOSED;
	struct bpf_program *program[HOOKS];
	int err = 0;

	for (int hook = 0; hook < HOOKS; hook++)
		if (programs->fd[hook] >= 0)
			hooks &= ~HOOK_BIT(hook);
	if (!hooks)
		return 0;
	object = object_open();
	if (!object)
		return -EIO;
	for (int hook = 0; hook < HOOKS; hook++) {
		program[hook] = bpf_object__find_program_by_name(object, names[hook]);
		bpf_program__set_autoload(program[hook], hooks & HOOK_BIT(hook));
	}
	err = object_load(gate, object);
	for (int hook = 0; !err && hook < HOOKS; hook++) {
		if (!(hooks & HOOK_BIT(hook)))
			continue;
		loaded.fd[hook] = fcntl(bpf_program__fd(program[hook]), F_DUPFD_CLOEXEC, 0);
		err = loaded.fd[hook] < 0 ? -errno : 0;
	}
	if (err)
		return load_failed(err);
	for (int hook = 0; hook < HOOKS; hook++)
		if (hooks & HOOK_BIT(hook))
			programs->fd[hook] = steal_fd(&loaded.fd[hook]);
	return 0;
}

void programs_close(struct programs *programs)
{
	for (int hook = 0; hook < HOOKS; hook++)
		close_fd(&programs->fd[hook]);
	*programs = PROGRAMS_CLOSED;
}

struct bpf_object *object_open_for(const struct gate *gate, const char *program)
{
	struct bpf_object *object = object_open();
	struct bpf_program *each;
	int err = object ? maps_reuse(gate, object) : 0;

	if (err) {
		load_failed(err);
		object_close(&object);
		return NULL;
	}
	bpf_object__for_each_program (each, object)
		bpf_program__set_autoload(each, !strcmp(bpf_program__name(each), program));
	return object;
}

int program_load_chain(const struct gate *gate, int array_fd, struct sl_chain slots, bool has_frags)
{
	_cleanup_object_ struct bpf_object *object = object_open();
	struct bpf_program *program, *each;
	struct bpf_map *array, *constants;
	int err, fd;

	if (!object)
		return -EIO;
	program = bpf_object__find_program_by_name(object, "sluice_chain");
	bpf_object__for_each_program (each, object)
		bpf_program__set_autoload(each, each == program);
	if (has_frags)
		bpf_program__set_flags(program, BPF_F_XDP_HAS_FRAGS);
	array = bpf_object__find_map_by_name(object, MAP_CHAIN);
	constants = bpf_object__find_map_by_name(object, MAP_CHAIN_SLOTS);
	err = bpf_map__set_autocreate(constants, true)
		      ?: bpf_map__set_initial_value(constants, &slots, sizeof(slots))
		      ?: bpf_map__set_autocreate(array, true)
		      ?: bpf_map__reuse_fd(array, array_fd) ?: object_load(gate, object);
	if (err)
		return load_failed(err);
	fd = fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? load_failed(-errno) : fd;
}

/* --- Memory --------------------------------------------------------------------------------- */

/* Sizes of structures in a 64-bit kernel, in bytes. */
#define ELEMENT_BYTES 48 /* size of an element of a hash map, without key and value */
#define BUCKET_BYTES  16 /* size of a bucket of a hash map */
#define NODE_BYTES    24 /* size of a node of a trie, without key and value */
#define LENGTH_BYTES  4	 /* size of the prefix length, which NODE_BYTES and the key both include */

uint64_t map_memory(const struct bpf_map_info *info, uint32_t entries, unsigned int cpus)
{
	uint64_t each = roundup((uint64_t)info->value_size, 8), slots = 1;

	/* an entry of a per-CPU map has a value for each CPU, and a pointer */
	if (info->type == BPF_MAP_TYPE_PERCPU_ARRAY || info->type == BPF_MAP_TYPE_LRU_PERCPU_HASH)
		each = sizeof(void *) + cpus * each;
	switch (info->type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		return info->max_entries * each;
	case BPF_MAP_TYPE_RINGBUF: /* max_entries is a number of bytes */
		return info->max_entries;
	case BPF_MAP_TYPE_LPM_TRIE:
		/* ignore the inner nodes of a trie, because they are fewer than its entries */
		each = NODE_BYTES + (uint64_t)info->key_size - LENGTH_BYTES + info->value_size;
		return entries * each;
	default:
		each += ELEMENT_BYTES + roundup((uint64_t)info->key_size, 8);
		if (!(info->map_flags & BPF_F_NO_PREALLOC))
			entries = info->max_entries;
		while (slots < info->max_entries)
			slots *= 2;
		return slots * BUCKET_BYTES + entries * each;
	}
}

int gate_map_memory(const struct gate *gate, enum gate_map map, uint32_t entries, uint64_t *ret)
{
	struct bpf_map_info info;
	int err = gate_map_info(gate, map, &info);

	if (err)
		return gate_map_unread(gate, map, err);
	*ret = map_memory(&info, entries, gate->machine.cpus);
	return 0;
}

const char *memory_format(uint64_t bytes, char text[MEMORY_TEXT])
{
	if (bytes < 1000000)
		snprintf(text, MEMORY_TEXT, "%.1f kB", bytes / 1e3);
	else if (bytes < 10000000000)
		snprintf(text, MEMORY_TEXT, "%.1f MB", bytes / 1e6);
	else
		snprintf(text, MEMORY_TEXT, "%.1f GB", bytes / 1e9);
	return text;
}

/* --- Sizes ---------------------------------------------------------------------------------- */

/*
 * Default numbers of rules and policies. New maps are small and grow with the rules, because the
 * kernel allocates all entries of a new array, and all buckets of a new hash table.
 */
#define RULES_USUAL    (1 << 14)
#define POLICIES_USUAL (768 + SL_POLICY_FIRST)
#define POLICIES_LEAST 256

/* Largest default size of map `counters`, in bytes. The map has a value for each CPU. */
#define COUNTERS_BYTES_MAX (16U << 20)

/*
 * Default number of entries of `buckets4` and of `buckets6`. It falls with the number of CPUs,
 * because an entry has a value for each CPU. Both maps use 17 MB with 2 CPUs, 46 MB with 8 CPUs,
 * and 88 MB with 128 CPUs.
 */
#define BUCKETS_BY_CPUS (3U << 15)
#define BUCKETS_LEAST	1536
#define BUCKETS_USUAL	16384

struct gate_sizes gate_sizes_default(const struct machine *machine)
{
	uint32_t counted = COUNTERS_BYTES_MAX / sizeof(struct sl_counters) / machine->cpus;

	return (struct gate_sizes){
		.sources = 1 << 18,
		.buckets = MIN(MAX(BUCKETS_BY_CPUS / machine->cpus, BUCKETS_LEAST), BUCKETS_USUAL),
		.policies = MIN(MAX(counted, POLICIES_LEAST), POLICIES_USUAL),
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

	*ret = (struct gate_sizes){
		.sources = gate->state->params.sources,
		.buckets = gate->state->params.buckets,
		/* do not trust the number in map `gate`, which the gate's owner can write */
		.policies = policies > SL_POLICY_FIRST ? MIN(policies, gate->policies_max)
						       : gate->policies_max,
	};
	return gate_map_size(gate, MAP_HOSTS4, &ret->hosts)
		       ?: gate_map_size(gate, MAP_PREFIXES, &ret->prefixes);
}

int gate_sizes_read_stated(const struct gate *gate, struct gate_sizes *ret)
{
	int err = gate_sizes_read(gate, ret);

	for (unsigned int i = 0; !err && i < SIZES; i++)
		if (!(gate->state->sizes_stated & SIZE_BIT(i)))
			*size_of(ret, i) = 0;
	return err;
}

static uint32_t power_of_two(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

/*
 * Returns the number of sets of map `states`. `sources` entries fill at most three quarters of the
 * map. In a fuller map, full sets would evict states although other sets have room.
 */
static uint32_t table_sets(const struct gate_sizes *sizes)
{
	return power_of_two(MAX((sizes->sources + 5) / (SL_WAYS * 3 / 4), 2));
}

/*
 * Returns the number of sets of the host cache. The cache has room for twice as many hosts as
 * `hosts4`.
 */
static uint32_t host_sets(const struct gate_sizes *sizes)
{
	return power_of_two(MAX(2 * sizes->hosts / SL_HOST_WAYS, 1));
}

/*
 * Longest interval of the flood detector. A CPU detects a flood after `flood_threshold` new sources
 * in an interval.
 */
#define INTERVAL_NS (64 * 1000000U)

/*
 * Bounds of `flood_threshold`, the number of new sources that a CPU may see in an interval. It is
 * `sources` / 16, at most 1024. The number of CPUs does not matter, because each CPU detects floods
 * separately.
 */
#define FLOOD_PART 16
#define FLOOD_MOST 1024

struct sl_params gate_params(const struct gate_sizes *sizes, const struct machine *machine)
{
	uint32_t shift = 0;

	while ((machine->jiffy_ns << (shift + 1)) <= INTERVAL_NS)
		shift++;
	return (struct sl_params){
		.flood_threshold = MAX(MIN(sizes->sources / FLOOD_PART, FLOOD_MOST), 1),
		.interval_shift = shift,
		.set_mask = table_sets(sizes) - 1,
		.host_mask = host_sets(sizes) - 1,
		.sources = sizes->sources,
		.buckets = sizes->buckets,
		.sketch_mask = SL_SKETCH_LINES - 1,
	};
}

void gate_sizes_set(struct bpf_object *object, const struct gate_sizes *sizes,
		    const struct machine *machine)
{
	const uint32_t entries[GATE_MAPS] = {
		[MAP_GATE] = 1,
		[MAP_HOSTS4] = sizes->hosts,
		[MAP_HOSTS6] = sizes->hosts,
		[MAP_PREFIXES] = sizes->prefixes,
		[MAP_SPLITS] = MAX(sizes->hosts, sizes->prefixes),
		[MAP_LISTS] = SL_LIST_PLACES,
		[MAP_POLICIES] = SL_POLICY_VERSION(sizes->policies),
		[MAP_COUNTERS] = sizes->policies,
		[MAP_SETS] = table_sets(sizes),
		[MAP_STATES] = table_sets(sizes) * SL_WAYS,
		[MAP_BUCKETS4] = sizes->buckets,
		[MAP_BUCKETS6] = sizes->buckets,
		[MAP_IN_USE] = 1,
		[MAP_ADMISSION] = 1,
		[MAP_SKETCHES] = machine->cpu_ids * SL_SKETCH_LINES,
		[MAP_RULE_CACHE] = machine->cpu_ids * SL_RULE_CACHE_SIZE,
		[MAP_HOST_CACHE] = host_sets(sizes),
		[MAP_SUBRULES] = SL_AGGREGATES,
		[MAP_BUDGETS] = sizes->policies,
		[MAP_BUDGET_SLICES] = sizes->policies,
		[MAP_DURATIONS] = 1,
		[MAP_EVENTS] = SL_EVENTS_BYTES,
		[MAP_OFFENDERS] = SL_OFFENDER_SETS,
		[MAP_SECRET] = 1,
	};

	for (int map = 0; map < GATE_MAPS; map++)
		bpf_map__set_max_entries(object_map(object, map), entries[map]);
}

/* --- Making --------------------------------------------------------------------------------- */

/* Stores the kernel's estimate of the memory that is available without swapping, in bytes. */
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
 * Returns an error if the new maps need more than 7/8 of the available memory, because the kernel
 * might kill other processes. Maps that are shared with another gate do not count.
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
	return gate_error(gate, ENOMEM, "memory-short",
			  "its maps would need %s, and this machine can provide %s; choose smaller "
			  "sizes, `buckets` first",
			  memory_format(needed, need), memory_format(available, have));
}

/*
 * Creates the maps, except those that the object shares with another gate. Opens all maps, and
 * stores their ids in map `gate`.
 */
static int maps_load(struct gate *gate, struct bpf_object *object, const struct sl_gate *state)
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
			return gate_error(gate, errno, "maps-make",
					  "cannot open one of its maps: %s", why(errno));
	}
	err = gate_map_state(gate) ?: gate_map_rules(gate);
	if (err)
		return err;
	*gate->state = *state;
	for (int map = 0; map < GATE_MAPS; map++) {
		gate->state->map_ids[map] = gate_map_id(gate->map[map]);
		if (!gate->state->map_ids[map])
			return gate_map_unread(gate, map, errno);
	}
	return 0;
}

static int maps_make(struct gate *gate, struct bpf_object *object, const struct gate_sizes *sizes)
{
	const struct sl_gate state = {
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
	err = maps_load(gate, object, &state);
	if (err)
		return err;
	if (getrandom(gate->secret, sizeof(gate->secret), 0) != sizeof(gate->secret))
		return gate_error(gate, errno, "no-random", "cannot get random numbers: %s",
				  why(errno));
	gate->has_secret = true;
	err = bpf_map_update_elem(gate->map[MAP_SECRET], &first, gate->secret, 0);
	return err ? gate_error(gate, err, "map-write", "cannot write map 'secret': %s", why(err))
		   : 0;
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

/*
 * Returns whether a resized gate can reuse a map of the old gate. Map `gate` is never reused.
 * Buckets contain credit of states, so they are reused only with map `states`. Map `in_use` refers
 * to buckets, so it is reused only with the maps of buckets. Must be called in the order of map
 * numbers.
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
	memcpy(next.secret, gate->secret, sizeof(next.secret));
	next.has_secret = gate->has_secret;
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
	err = maps_load(&next, object, &state);
	if (err)
		return err;
	*ret = next;
	next = GATE_CLOSED;
	return 0;
}
