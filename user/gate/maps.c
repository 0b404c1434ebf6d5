// SPDX-License-Identifier: GPL-2.0
#include "gate/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>
#include <sys/param.h>
#include <sys/random.h>

#include "aggregate.h"
#include "base/array.h"
#include "gate/pins.h"
#include "gate/policy.h"
#include "sluice.skel.h"

struct bpf_object *object_open(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "sluice");
	size_t size;
	const void *bytes = sluice__elf_bytes(&size);
	struct bpf_object *object = bpf_object__open_mem(bytes, size, &opts);

	if (!object)
		error_add(errno, "object-unread", NULL,
			  "cannot read the BPF programs in this binary: %s", why(errno));
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
	for (int map = 0; !err && map < GATE_MAPS; map++)
		err = bpf_map__reuse_fd(object_map(object, map), gate->map[map]);
	err = err ?: bpf_object__load(object);
	for (int hook = 0; !err && hook < HOOKS; hook++) {
		if (!(hooks & HOOK_BIT(hook)))
			continue;
		loaded.fd[hook] = fcntl(bpf_program__fd(program[hook]), F_DUPFD_CLOEXEC, 0);
		err = loaded.fd[hook] < 0 ? -errno : 0;
	}
	if (err)
		return error_add(err, "programs-load", NULL,
				 "cannot load the BPF programs: %s (-v shows the kernel's log)",
				 why(err));
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

/* --- Memory --------------------------------------------------------------------------------- */

/* Sizes in a 64-bit kernel, in bytes. */
#define ELEMENT_BYTES 48 /* size of an element of a hash map, without key and value */
#define BUCKET_BYTES  16 /* size of a bucket of a hash map */
#define NODE_BYTES    24 /* size of a node of a trie, without key and value */
#define LENGTH_BYTES  4	 /* size of the prefix length in a trie's key, which the node includes */

uint64_t map_memory(const struct bpf_map_info *info, uint32_t entries, unsigned int cpus)
{
	uint64_t each = roundup((uint64_t)info->value_size, 8), slots = 1;

	/* the map has a value for each CPU, and a pointer to these values */
	if (info->type == BPF_MAP_TYPE_PERCPU_ARRAY || info->type == BPF_MAP_TYPE_LRU_PERCPU_HASH)
		each = sizeof(void *) + cpus * each;
	switch (info->type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		return info->max_entries * each;
	case BPF_MAP_TYPE_LPM_TRIE:
		/* inner nodes, fewer than entries, are ignored */
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
 * Maps of rules are small at first, and grow with the rules, because their memory does not depend
 * on use: an array has an entry for each possible policy, a hash table a bucket for each possible
 * host.
 */
#define RULES_USUAL    (1 << 14)
#define POLICIES_USUAL (1024 + SL_POLICY_FIRST)
#define POLICIES_LEAST 256

/* Largest default size of map `counters`, in bytes: it has a copy for each CPU. */
#define COUNTERS_BYTES_MAX (16U << 20)

/*
 * Default number of entries of `buckets4` and of `buckets6`. An entry has a value for each CPU, so
 * the number falls with the CPUs: both maps have 16 MB with 2 CPUs, 43 MB with 8, 82 MB with 128.
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
		/* the owner of the gate can write any number to its map */
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
 * Returns the number of sets of the table. `sources` entries fill at most three quarters of it.
 * With more entries some sets are full before others, and evict states that are not full.
 */
static uint32_t table_sets(const struct gate_sizes *sizes)
{
	return power_of_two(MAX((sizes->sources + 5) / (SL_WAYS * 3 / 4), 2));
}

/* Returns the number of sets of the host cache, for twice as many hosts as one family has. */
static uint32_t host_sets(const struct gate_sizes *sizes)
{
	return power_of_two(MAX(2 * sizes->hosts / SL_HOST_WAYS, 1));
}

/* Length of an interval of the flood detector: a flood is noticed before it fills many entries. */
#define INTERVAL_NS (64 * 1000000U)

/*
 * `flood_threshold`, the number of new sources that a CPU may see in an interval: `sources` / 16,
 * at most 1024. It does not depend on the number of CPUs, because each CPU detects floods
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
		[MAP_SECRET] = 1,
	};

	for (int map = 0; map < GATE_MAPS; map++)
		bpf_map__set_max_entries(object_map(object, map), entries[map]);
}

/* --- Making --------------------------------------------------------------------------------- */

/* Reads the memory that the kernel can provide without swapping, as it estimates, in bytes. */
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
 * Returns an error if the new maps need more than seven eighths of the available memory, because
 * the kernel might kill other processes. Maps that are shared with another gate do not count.
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

/* Makes the maps that are not shared, opens all maps, and writes map `gate` with their ids. */
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
	int err = gate_dir_clear(gate); /* remove pins that a killed command may have left */

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

/* Reads the hash secret if its map is open. It is closed for a reader. */
static int secret_read(struct gate *gate)
{
	__u32 first = 0;
	int err;

	if (gate->map[MAP_SECRET] < 0)
		return 0;
	err = bpf_map_lookup_elem(gate->map[MAP_SECRET], &first, gate->secret);
	gate->has_secret = !err;
	return err ? gate_map_unread(gate, MAP_SECRET, err) : 0;
}

/*
 * Returns whether the next gate may share a map; maps of lower numbers are decided already. `gate`
 * is always new. If `states` is new, the buckets are new, because they hold credit of states. If
 * the buckets are new, `in_use` is new, because it marks buckets.
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
	err = maps_load(&next, object, &state) ?: secret_read(&next);
	if (err)
		return err;
	*ret = next;
	next = GATE_CLOSED;
	return 0;
}

/* --- Opening: checks ------------------------------------------------------------------------ */

#define refuse_foreign(gate, id, format, ...)                                                      \
	gate_error(gate, EINVAL, id,                                                               \
		   format "; remove it with 'sluice -g %s detach all' and attach again",           \
		   ##__VA_ARGS__, (gate)->name)

/* Checks that a map has the type and sizes of this schema, as its pin may have been replaced. */
static int map_check(const struct gate *gate, const struct bpf_object *object, enum gate_map map)
{
	const struct bpf_map *want = object_map(object, map);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	if (gate->dir.reads_only && gate_map_is_private(map)) /* closed for a reader */
		return 0;
	if (bpf_obj_get_info_by_fd(gate->map[map], &info, &size))
		return gate_map_unread(gate, map, errno);
	if (info.type == bpf_map__type(want) && info.key_size == bpf_map__key_size(want) &&
	    info.value_size == bpf_map__value_size(want))
		return 0;
	return refuse_foreign(gate, "foreign-map",
			      "pin '%s' is not the map of that name in schema %u",
			      gate_map_names[map], SL_SCHEMA);
}

/* Bytes of the largest value of map `gate` in which a schema is looked for. */
#define ENTRY_MAX 4096

/*
 * Opens a view of map `gate`, which has the ids of all maps. Returns an error for another schema.
 */
static int state_open(struct gate *gate, const struct bpf_object *object)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info), zero = 0, schema;
	uint8_t value[ENTRY_MAX];
	int fd = gate->map[MAP_GATE], err;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return gate_map_unread(gate, MAP_GATE, errno);
	if (info.type != BPF_MAP_TYPE_ARRAY || info.key_size != sizeof(zero) ||
	    info.value_size < sizeof(schema) || info.value_size > ENTRY_MAX)
		return refuse_foreign(gate, "foreign-map",
				      "pin 'gate' is not the map of that name");
	if (bpf_map_lookup_elem(fd, &zero, value))
		return gate_map_unread(gate, MAP_GATE, errno);
	memcpy(&schema, value, sizeof(schema)); /* the first word of the value in each schema */
	if (schema != SL_SCHEMA)
		return gate_error(
			gate, EINVAL, "other-schema",
			"another version of sluice made it (schema %u, this version has %d); save "
			"its rules with the 'sluice -g %s dump' of that version, then run 'sluice "
			"-g %s detach all', and attach and apply again",
			schema, SL_SCHEMA, gate->name, gate->name);
	err = map_check(gate, object, MAP_GATE);
	return err ?: gate_map_state(gate);
}

/* Pairs of maps with a common index: `other` has `each` times as many entries as `map`. */
static const struct {
	enum gate_map map, other;
	uint32_t each;
} sized_alike[] = {
	{MAP_COUNTERS, MAP_POLICIES, SL_POLICY_VERSION(1)},
	{MAP_COUNTERS, MAP_BUDGETS, 1},
	{MAP_SETS, MAP_STATES, SL_WAYS},
};

/* Checks the sizes of these maps, because one size bounds reads of both maps in memory. */
static int sizes_check(const struct gate *gate)
{
	for (size_t i = 0; i < ARRAY_SIZE(sized_alike); i++) {
		enum gate_map map = sized_alike[i].map, other = sized_alike[i].other;
		uint32_t entries, others;
		int err = gate_map_size(gate, map, &entries) ?: gate_map_size(gate, other, &others);

		if (err)
			return err;
		if ((map == MAP_COUNTERS && entries <= SL_POLICY_FIRST) ||
		    others != (uint64_t)entries * sized_alike[i].each)
			return refuse_foreign(gate, "foreign-map",
					      "the sizes of its maps '%s' and '%s' do not match",
					      gate_map_names[map], gate_map_names[other]);
	}
	return 0;
}

/*
 * Checks the open maps, and opens views of the rules. The types and sizes must be checked: if the
 * values of a map are larger than in this schema, the kernel would write beyond the memory for a
 * value. The ids in map `gate` prove nothing, because the owner of the gate can write them.
 */
static int maps_accept(struct gate *gate, const struct bpf_object *object)
{
	for (int map = 0; map < GATE_MAPS; map++) {
		int err = map_check(gate, object, map);

		if (err)
			return err;
	}
	return sizes_check(gate)
		       ?: secret_read(gate) ?: gate_map_rules(gate) ?: policies_check(gate);
}

/* --- Opening -------------------------------------------------------------------------------- */

/* Opens a map if its pin in this directory has the id in map `gate`. Returns an fd, or -1. */
static int map_open_in(const struct gate *gate, enum gate_map map, const struct pins *dir)
{
	_cleanup_close_ int fd = pin_open(dir, gate_map_names[map]);

	return fd >= 0 && gate_map_id(fd) == gate->state->map_ids[map] ? steal_fd(&fd) : -1;
}

/*
 * Opens all maps except `gate` and, for a reader, private maps. If a remake is in progress, a map
 * may still be in next/, and may be renamed during this call. So it is looked for in next/, and
 * then in the gate's directory again. Returns the first map that cannot be opened, or GATE_MAPS if
 * all are open.
 */
static enum gate_map maps_open(struct gate *gate)
{
	int map;

	for (map = MAP_GATE + 1; map < GATE_MAPS; map++) {
		_cleanup_(pins_close) struct pins next = PINS_CLOSED;
		int *fd = &gate->map[map];

		if (gate->dir.reads_only && gate_map_is_private(map))
			continue;
		*fd = map_open_in(gate, map, &gate->dir);
		if (*fd < 0 && !pins_open(&gate->dir, GATE_NEXT, &next)) {
			*fd = map_open_in(gate, map, &next);
			if (*fd < 0)
				*fd = map_open_in(gate, map, &gate->dir);
		}
		if (*fd < 0)
			break;
	}
	return map;
}

/*
 * Opens the pin of a map again to add an error that has the reason: it is missing, or another map.
 */
static int map_refuse(const struct gate *gate, const struct pins *pins, enum gate_map map)
{
	const char *name = gate_map_names[map];
	_cleanup_close_ int fd = pin_open(pins, name);

	if (fd == -ENOENT)
		return refuse_foreign(gate, "lost-map", "the pin of its map '%s' is missing", name);
	if (fd < 0)
		return pin_failed("open", pins, name, fd);
	if (gate->state && gate_map_id(fd) != gate->state->map_ids[map])
		return refuse_foreign(gate, "foreign-map",
				      "pin '%s' is not the map that its programs use", name);
	return gate_error(gate, EAGAIN, "map-unread",
			  "its map '%s' could not be read once; try again", name);
}

/* Opens the gate whose map `gate` is in `pins`. Starts again if a remake replaces it meanwhile. */
static int maps_open_by(struct gate *gate, const struct pins *pins)
{
	const char *state = gate_map_names[MAP_GATE];
	_cleanup_object_ struct bpf_object *object = object_open();

	if (!object)
		return -EIO;
	for (;;) {
		_cleanup_close_ int now = -1;
		enum gate_map missing;
		uint32_t id;
		int err;

		gate->map[MAP_GATE] = pin_open(pins, state);
		if (gate->map[MAP_GATE] < 0)
			return map_refuse(gate, pins, MAP_GATE);
		err = state_open(gate, object);
		if (err)
			return err;
		id = gate_map_id(gate->map[MAP_GATE]);
		missing = id == gate->state->map_ids[MAP_GATE] ? maps_open(gate) : MAP_GATE;
		if (missing == GATE_MAPS)
			return maps_accept(gate, object);
		now = pin_open(pins, state);
		if (now < 0 || gate_map_id(now) == id)
			return map_refuse(gate, pins, missing);
		gate_maps_close(gate);
	}
}

int gate_maps_open(struct gate *gate)
{
	bool exists;
	int err = gate_dir_holds_gate(gate, &exists);

	if (err)
		return err;
	return exists ? maps_open_by(gate, &gate->dir) : gate_refuse_missing(gate->name);
}

int gate_maps_open_next(const struct gate *gate, struct gate *ret)
{
	_cleanup_(pins_close) struct pins pins = PINS_CLOSED;
	int err = pins_open(&gate->dir, GATE_NEXT, &pins);

	*ret = GATE_CLOSED;
	memcpy(ret->name, gate->name, sizeof(ret->name));
	ret->machine = gate->machine;
	ret->dir = gate->dir; /* borrowed */
	err = err ?: maps_open_by(ret, &pins);
	ret->dir = (struct pins)PINS_CLOSED;
	return err;
}
