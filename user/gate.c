// SPDX-License-Identifier: GPL-2.0
#include "gate.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "bpffs.h"
#include "caps.h"
#include "object.h"
#include "pins.h"

const char *const gate_map_names[GATE_MAPS] = {
	[MAP_GATE] = "gate",	     [MAP_PREFIXES] = "prefixes", [MAP_SPLITS] = "splits",
	[MAP_POLICIES] = "policies", [MAP_COUNTERS] = "counters", [MAP_LEDGERS4] = "ledgers4",
	[MAP_LEDGERS6] = "ledgers6", [MAP_BUCKETS4] = "buckets4", [MAP_BUCKETS6] = "buckets6",
};

/* LRU maps hand nodes to CPUs 128 at a time: below this they evict while almost empty. */
#define LRU_ENTRIES_PER_CPU 256

struct gate_sizes gate_sizes_default(const struct machine *machine)
{
	uint32_t least = machine->cpus * LRU_ENTRIES_PER_CPU;

	return (struct gate_sizes){
		.ledgers = least > 1 << 18 ? least : 1 << 18,
		.buckets = least > 1 << 14 ? least : 1 << 14,
	};
}

enum status gate_check_name(const char *name)
{
	size_t length = strlen(name);

	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
			length = 0;
	if (!length || length > GATE_NAME)
		return misuse("'%s' is not a name of a gate: letters, digits, - and _, at most %d",
			      name, GATE_NAME);
	return OK;
}

enum status no_such_gate(const char *name)
{
	return fail("there is no gate '%s': make it with 'sluice -g %s attach DEV'", name, name);
}

/* --- Opening -------------------------------------------------------------------------------- */

static enum status refuse_foreign(const struct gate *gate, const char *what)
{
	return fail("gate '%s': %s; remove it with 'sluice -g %s detach all' and attach again",
		    gate->name, what, gate->name);
}

/* 0: it is no map. */
static uint32_t map_id(int fd)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

/* A pin may be anything by now: checks that it is of the shape that this binary would have made. */
static enum status map_check(const struct gate *gate, const struct bpf_object *object,
			     enum gate_map map)
{
	const struct bpf_map *want = object_map(object, map);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	char what[128];

	if (!bpf_obj_get_info_by_fd(gate->map[map], &info, &size) &&
	    info.type == bpf_map__type(want) && info.key_size == bpf_map__key_size(want) &&
	    info.value_size == bpf_map__value_size(want))
		return OK;
	snprintf(what, sizeof(what), "what is pinned as '%s' is not that map of this version",
		 gate_map_names[map]);
	return refuse_foreign(gate, what);
}

/* And that it is the very map that the programs use, and not one of the same shape. */
static enum status maps_check_identity(const struct gate *gate)
{
	char what[128];

	for (int map = 0; map < GATE_MAPS; map++) {
		if (map_id(gate->map[map]) == gate->state->map_ids[map])
			continue;
		snprintf(what, sizeof(what),
			 "what is pinned as '%s' is not the map that it filters with",
			 gate_map_names[map]);
		return refuse_foreign(gate, what);
	}
	return OK;
}

static enum status map_open(struct gate *gate, const struct bpf_object *object, enum gate_map map)
{
	char path[PINS_PATH], what[128];

	gate->map[map] = bpf_obj_get(pins_path(gate->name, gate_map_names[map], path));
	if (gate->map[map] >= 0)
		return map_check(gate, object, map);
	if (errno != ENOENT)
		return fail("cannot open %s: %s", path, why(errno));
	snprintf(what, sizeof(what), "the pin of its map '%s' is gone", gate_map_names[map]);
	return refuse_foreign(gate, what);
}

static void *map_memory(int fd, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static enum status gate_map_memory(struct gate *gate)
{
	gate->state = map_memory(gate->map[MAP_GATE], sizeof(*gate->state));
	gate->policies =
		map_memory(gate->map[MAP_POLICIES], SL_RECORDS_MAX * sizeof(*gate->policies));
	if (!gate->state || !gate->policies)
		return fail("cannot map the rules of gate '%s': %s", gate->name, why(errno));
	return OK;
}

static enum status gate_open_maps(struct gate *gate, const struct bpf_object *object)
{
	enum status status = map_open(gate, object, MAP_GATE);
	char what[128];

	for (int map = MAP_GATE + 1; !status && map < GATE_MAPS; map++)
		status = map_open(gate, object, map);
	if (!status)
		status = gate_map_memory(gate);
	if (!status && gate->state->schema != SL_SCHEMA) {
		snprintf(what, sizeof(what),
			 "it was made by a version with schema %u, this one has %d",
			 gate->state->schema, SL_SCHEMA);
		return refuse_foreign(gate, what);
	}
	return status ? status : maps_check_identity(gate);
}

static enum status gate_open_pins(struct gate *gate)
{
	struct bpf_object *object;
	enum status status;

	if (!pins_exist(gate->name))
		return no_such_gate(gate->name);
	object = object_open();
	status = object ? gate_open_maps(gate, object) : FAILED;
	bpf_object__close(object);
	return status;
}

static enum status gate_begin(struct gate *gate, const char *name)
{
	enum status status = gate_check_name(name);

	*gate = GATE_CLOSED;
	if (status)
		return status;
	snprintf(gate->name, sizeof(gate->name), "%s", name);
	return machine_get(&gate->machine);
}

enum status gate_open(struct gate *gate, const char *name)
{
	enum status status = gate_begin(gate, name);
	char path[PINS_PATH];

	if (status)
		return status;
	if (access(pins_path(name, "", path), R_OK | X_OK) && errno == EACCES)
		return fail("cannot read %s: %s", path, why(errno));
	return gate_open_pins(gate);
}

enum status gate_lock_only(struct gate *gate, const char *name)
{
	enum status status = gate_begin(gate, name);

	return status ? status : pins_lock(gate->name, false, &gate->lock);
}

enum status gate_open_to_change(struct gate *gate, const char *name)
{
	enum status status = gate_lock_only(gate, name);

	return status ? status : gate_open_pins(gate);
}

/* --- Making --------------------------------------------------------------------------------- */

static void object_set_sizes(struct bpf_object *object, const struct gate_sizes *sizes)
{
	bpf_map__set_max_entries(object_map(object, MAP_LEDGERS4), sizes->ledgers);
	bpf_map__set_max_entries(object_map(object, MAP_LEDGERS6), sizes->ledgers);
	bpf_map__set_max_entries(object_map(object, MAP_BUCKETS4), sizes->buckets);
	bpf_map__set_max_entries(object_map(object, MAP_BUCKETS6), sizes->buckets);
}

/* Makes the object's maps, without its programs, and takes them over. */
static enum status gate_make_maps(struct gate *gate, struct bpf_object *object,
				  const struct gate_sizes *sizes)
{
	struct bpf_program *program;
	enum status status;
	int err;

	object_set_sizes(object, sizes);
	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program, false);
	err = bpf_object__load(object);
	if (err)
		return fail("cannot make the maps of gate '%s': %s", gate->name, why(err));
	for (int map = 0; map < GATE_MAPS; map++) {
		gate->map[map] = fcntl(bpf_map__fd(object_map(object, map)), F_DUPFD_CLOEXEC, 0);
		if (gate->map[map] < 0)
			return fail("cannot keep a map open: %s", why(errno));
	}
	status = gate_map_memory(gate);
	if (status)
		return status;
	*gate->state = (struct sl_gate){
		.schema = SL_SCHEMA,
		.generation = 1,
		.next_limit = 1,
		.next_policy = SL_POLICY_FIRST,
	};
	for (int map = 0; map < GATE_MAPS; map++)
		gate->state->map_ids[map] = map_id(gate->map[map]);
	return OK;
}

static enum status gate_pin(struct gate *gate)
{
	char path[PINS_PATH];

	if (mkdir(pins_path(gate->name, PINS_LINKS, path), 0700))
		return fail("cannot make %s: %s", path, why(errno));
	for (int map = GATE_MAPS - 1; map >= 0; map--)
		if (bpf_obj_pin(gate->map[map], pins_path(gate->name, gate_map_names[map], path)))
			return fail("cannot pin %s: %s", path, why(errno));
	return OK;
}

void gate_undo(struct gate *gate)
{
	if (gate->made)
		pins_remove(gate->name);
	gate->made = false;
}

static enum status gate_make(struct gate *gate, struct bpf_object *object)
{
	struct gate_sizes sizes = gate_sizes_default(&gate->machine);
	enum status status;

	gate->made = true;
	status = pins_clear(gate->name); /* what a killed command left half made */
	if (!status)
		status = gate_make_maps(gate, object, &sizes);
	if (!status)
		status = gate_pin(gate);
	return status;
}

enum status gate_open_or_make(struct gate *gate, const char *name)
{
	enum status status = gate_begin(gate, name);
	struct bpf_object *object;

	if (!status)
		status = caps_require();
	if (!status)
		status = bpffs_mount();
	if (!status)
		status = pins_lock(gate->name, true, &gate->lock);
	if (status)
		return status;
	object = object_open();
	if (!object)
		status = FAILED;
	else if (pins_exist(gate->name))
		status = gate_open_maps(gate, object);
	else
		status = gate_make(gate, object);
	bpf_object__close(object);
	if (status)
		gate_undo(gate);
	return status;
}

enum status gate_make_unpinned(struct gate *gate, const struct gate_sizes *sizes,
			       const struct machine *machine)
{
	enum status status = gate_begin(gate, "unpinned");
	struct bpf_object *object;

	if (status)
		return status;
	gate->machine = *machine;
	object = object_open();
	status = object ? gate_make_maps(gate, object, sizes) : FAILED;
	bpf_object__close(object);
	return status;
}

static void memory_unmap(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}

void gate_close(struct gate *gate)
{
	memory_unmap(gate->state, sizeof(*gate->state));
	memory_unmap(gate->policies, SL_RECORDS_MAX * sizeof(*gate->policies));
	for (int map = 0; map < GATE_MAPS; map++)
		if (gate->map[map] >= 0)
			close(gate->map[map]);
	if (gate->lock >= 0)
		close(gate->lock);
	*gate = GATE_CLOSED;
}
