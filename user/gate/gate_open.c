// SPDX-License-Identifier: GPL-2.0
#include "gate/gate_open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "base/array.h"
#include "gate/gate_dir.h"
#include "gate/object.h"
#include "gate/records.h"

static int refuse_foreign(const struct gate *gate, const char *what)
{
	return failure("gate '%s': %s; remove it with 'sluice -g %s detach all' and attach again",
		       gate->name, what, gate->name);
}

static int map_unread(const struct gate *gate, enum gate_map map, int err)
{
	return failure("cannot read map '%s' of gate '%s': %s", gate_map_names[map], gate->name,
		       why(err));
}

/* Whether the map is private, and the gate is open for a reader. */
static bool map_is_closed(const struct gate *gate, enum gate_map map)
{
	return gate->dir.reads_only && gate_map_is_private(map);
}

/* Checks that a pin is a map of the shape that the object's has: the pin may have been replaced. */
static int map_check(const struct gate *gate, const struct bpf_object *object, enum gate_map map)
{
	const struct bpf_map *want = object_map(object, map);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	char what[128];

	if (map_is_closed(gate, map))
		return OK;
	if (bpf_obj_get_info_by_fd(gate->map[map], &info, &size))
		return map_unread(gate, map, errno);
	if (info.type == bpf_map__type(want) && info.key_size == bpf_map__key_size(want) &&
	    info.value_size == bpf_map__value_size(want))
		return OK;
	snprintf(what, sizeof(what), "what is pinned as '%s' is not that map of schema %u",
		 gate_map_names[map], SL_SCHEMA);
	return refuse_foreign(gate, what);
}

/*
 * Opens the pin of a map again to report why it is refused: the pin is gone, the map has another
 * shape, or it is not the map that the programs use.
 */
static int map_refuse(struct gate *gate, const struct bpf_object *object, enum gate_map map)
{
	char what[128];
	int status;

	if (gate->map[map] >= 0)
		close(gate->map[map]);
	gate->map[map] = pin_open(&gate->dir, gate_map_names[map]);
	if (gate->map[map] < 0 && gate->map[map] != -ENOENT)
		return pin_failed("open", &gate->dir, gate_map_names[map], gate->map[map]);
	if (gate->map[map] < 0) {
		snprintf(what, sizeof(what), "the pin of its map '%s' is gone",
			 gate_map_names[map]);
		return refuse_foreign(gate, what);
	}
	status = map_check(gate, object, map);
	if (status)
		return status;
	if (!gate->state || gate_map_id(gate->map[map]) == gate->state->map_ids[map])
		return failure("map '%s' of gate '%s' could not be read at first: try again",
			       gate_map_names[map], gate->name);
	snprintf(what, sizeof(what), "what is pinned as '%s' is not the map that it filters with",
		 gate_map_names[map]);
	return refuse_foreign(gate, what);
}

/* The bytes of the largest entry of `gate` that is read for its schema alone. */
#define ENTRY_MAX 4096

/*
 * Reads the number of the schema, with which the entry of `gate` begins in each schema. Refuses a
 * map of another kind.
 */
static int schema_read(const struct gate *gate, uint32_t *ret)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info), zero = 0;
	uint8_t value[ENTRY_MAX];
	int fd = gate->map[MAP_GATE];

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return map_unread(gate, MAP_GATE, errno);
	if (info.type != BPF_MAP_TYPE_ARRAY || info.key_size != sizeof(zero) ||
	    info.value_size < sizeof(*ret) || info.value_size > ENTRY_MAX)
		return refuse_foreign(gate, "what is pinned as 'gate' is not that map");
	if (bpf_map_lookup_elem(fd, &zero, value))
		return map_unread(gate, MAP_GATE, errno);
	memcpy(ret, value, sizeof(*ret));
	return OK;
}

static int refuse_schema(const struct gate *gate, uint32_t schema)
{
	const char *name = gate->name;

	return failure("gate '%s': another version of sluice made it (schema %u, this version has "
		       "%d); save its rules with that version's 'sluice -g %s dump', then run "
		       "'sluice -g %s detach all', and attach and apply again",
		       name, schema, SL_SCHEMA, name, name);
}

/* Maps the open map `gate`, which has the ids of the other maps. */
static int state_open(struct gate *gate, const struct bpf_object *object)
{
	uint32_t schema;
	int status = schema_read(gate, &schema);

	if (!status && schema != SL_SCHEMA)
		status = refuse_schema(gate, schema);
	if (!status)
		status = map_check(gate, object, MAP_GATE);
	return status ?: gate_map_state(gate);
}

/* Opens the map with the gate's id for it, if that is pinned in this directory; -1: it is not. */
static int map_open_in(const struct gate *gate, enum gate_map map, const struct pins *dir)
{
	int fd = pin_open(dir, gate_map_names[map]);

	if (fd >= 0 && gate_map_id(fd) == gate->state->map_ids[map])
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * Opens the map with the gate's id for it. A remake that is in progress may still have it in next/,
 * and may rename it during this call. -1: it is not pinned.
 */
static int map_open(const struct gate *gate, enum gate_map map)
{
	int fd = map_open_in(gate, map, &gate->dir);
	struct pins next;

	if (fd >= 0 || pins_open(&gate->dir, GATE_NEXT, &next))
		return fd;
	fd = map_open_in(gate, map, &next);
	pins_close(&next);
	return fd >= 0 ? fd : map_open_in(gate, map, &gate->dir);
}

/* Whether another `gate` is pinned now, because a remake has just finished. */
static bool state_is_replaced(const struct gate *gate)
{
	int fd = pin_open(&gate->dir, gate_map_names[MAP_GATE]);
	bool replaced = fd >= 0 && gate_map_id(fd) != gate_map_id(gate->map[MAP_GATE]);

	if (fd >= 0)
		close(fd);
	return replaced;
}

/*
 * Opens all maps except `gate` and, for a reader, private maps. Returns the first map that cannot
 * be opened, or GATE_MAPS if all are open.
 */
static enum gate_map maps_open(struct gate *gate)
{
	int map;

	for (map = MAP_GATE + 1; map < GATE_MAPS; map++) {
		if (map_is_closed(gate, map))
			continue;
		gate->map[map] = map_open(gate, map);
		if (gate->map[map] < 0)
			break;
	}
	return map;
}

/*
 * Checks the shapes of all maps: the kernel writes values of the map's size to where there is room
 * for the schema's. The ids in `gate` tell nothing of that, as the owner of the gate writes them.
 */
static int maps_check(const struct gate *gate, const struct bpf_object *object)
{
	int status = OK;

	for (int map = 0; !status && map < GATE_MAPS; map++)
		status = map_check(gate, object, map);
	return status;
}

/* Maps that one number indexes: for each entry of the first the second has so many. */
static const struct {
	enum gate_map map, other;
	uint32_t each;
} sized_alike[] = {
	{MAP_COUNTERS, MAP_POLICIES, SL_RECORD(1)},
	{MAP_COUNTERS, MAP_BUDGETS, 1},
	{MAP_SETS, MAP_STATES, SL_WAYS},
};

static int maps_refuse(const struct gate *gate, enum gate_map map, enum gate_map other)
{
	char what[128];

	snprintf(what, sizeof(what), "its maps '%s' and '%s' do not fit each other",
		 gate_map_names[map], gate_map_names[other]);
	return refuse_foreign(gate, what);
}

/* Checks the sizes of maps: in memory one is read as far as another one goes. */
static int sizes_check(const struct gate *gate)
{
	uint32_t entries, others;
	int status = gate_map_size(gate, MAP_COUNTERS, &entries);

	if (!status && entries <= SL_POLICY_FIRST)
		status = maps_refuse(gate, MAP_COUNTERS, MAP_POLICIES);
	for (size_t i = 0; !status && i < ARRAY_SIZE(sized_alike); i++) {
		enum gate_map map = sized_alike[i].map, other = sized_alike[i].other;

		status = gate_map_size(gate, map, &entries);
		if (!status)
			status = gate_map_size(gate, other, &others);
		if (!status && others != (uint64_t)entries * sized_alike[i].each)
			status = maps_refuse(gate, map, other);
	}
	return status;
}

/* Checks the open maps, and maps the rules. */
static int maps_take(struct gate *gate, const struct bpf_object *object)
{
	int status = maps_check(gate, object);

	if (!status)
		status = sizes_check(gate);
	if (!status)
		status = gate_read_secret(gate);
	if (!status)
		status = gate_map_rules(gate);
	return status ?: records_check(gate);
}

static int gate_open_maps(struct gate *gate, const struct bpf_object *object)
{
	enum gate_map missing;
	int status;

	gate->map[MAP_GATE] = pin_open(&gate->dir, gate_map_names[MAP_GATE]);
	if (gate->map[MAP_GATE] < 0)
		return map_refuse(gate, object, MAP_GATE);
	status = state_open(gate, object);
	if (status)
		return status;
	if (gate_map_id(gate->map[MAP_GATE]) != gate->state->map_ids[MAP_GATE])
		return map_refuse(gate, object, MAP_GATE);
	missing = maps_open(gate);
	if (missing < GATE_MAPS) {
		if (!state_is_replaced(gate))
			return map_refuse(gate, object, missing);
		gate_maps_close(gate);
		return gate_open_maps(gate, object);
	}
	return maps_take(gate, object);
}

static int next_open_maps(struct gate *next, const struct pins *pins,
			  const struct bpf_object *object)
{
	int fd = pin_open(pins, gate_map_names[MAP_GATE]);
	int status;

	if (fd < 0)
		return pin_failed("open", pins, gate_map_names[MAP_GATE], fd);
	next->map[MAP_GATE] = fd;
	status = state_open(next, object);
	if (status)
		return status;
	if (gate_map_id(fd) != next->state->map_ids[MAP_GATE] || maps_open(next) < GATE_MAPS)
		return refuse_foreign(next, "its next maps are not all pinned");
	return maps_take(next, object);
}

int gate_open_next(const struct gate *gate, struct gate *ret)
{
	struct bpf_object *object = object_open();
	struct pins pins = PINS_CLOSED;
	int status = object ? pins_open(&gate->dir, GATE_NEXT, &pins) : FAILED;

	*ret = GATE_CLOSED;
	memcpy(ret->name, gate->name, sizeof(ret->name));
	ret->machine = gate->machine;
	ret->dir = gate->dir; /* borrowed */
	if (!status)
		status = next_open_maps(ret, &pins, object);
	ret->dir = (struct pins)PINS_CLOSED;
	pins_close(&pins);
	bpf_object__close(object);
	return status;
}

int gate_open_pins(struct gate *gate)
{
	struct bpf_object *object;
	bool exists;
	int status = gate_dir_holds_gate(gate, &exists);

	if (status)
		return status;
	if (!exists)
		return no_such_gate(gate->name);
	object = object_open();
	status = object ? gate_open_maps(gate, object) : FAILED;
	bpf_object__close(object);
	return status;
}

int gate_open(struct gate *gate, const char *name)
{
	int status = gate_begin(gate, name);

	if (!status)
		status = gate_dir_open(gate);
	return status ?: gate_open_pins(gate);
}

int gate_lock_only(struct gate *gate, const char *name)
{
	int status = gate_begin(gate, name);

	return status ?: gate_dir_lock(gate, false);
}
