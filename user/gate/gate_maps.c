// SPDX-License-Identifier: GPL-2.0
#include "gate/gate_maps.h"

#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/array.h"
#include "gate/object.h"
#include "gate/pins.h"
#include "gate/policy.h"

#define refuse_foreign(gate, id, format, ...)                                                      \
	gate_error(gate, EINVAL, id,                                                               \
		   format "; remove it with 'sluice -g %s detach all' and attach again",           \
		   ##__VA_ARGS__, (gate)->name)

/* --- Checks --------------------------------------------------------------------------------- */

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

	if (map_is_closed(gate, map))
		return 0;
	if (bpf_obj_get_info_by_fd(gate->map[map], &info, &size))
		return gate_map_unread(gate, map, errno);
	if (info.type == bpf_map__type(want) && info.key_size == bpf_map__key_size(want) &&
	    info.value_size == bpf_map__value_size(want))
		return 0;
	return refuse_foreign(gate, "foreign-map",
			      "what is pinned as '%s' is not that map of schema %u",
			      gate_map_names[map], SL_SCHEMA);
}

/*
 * Opens the pin of a map again to report why it is refused: the pin is gone, or it is not the map
 * that the programs use.
 */
static int map_refuse(const struct gate *gate, enum gate_map map)
{
	const char *name = gate_map_names[map];
	_cleanup_close_ int fd = pin_open(&gate->dir, name);

	if (fd == -ENOENT)
		return refuse_foreign(gate, "lost-map", "the pin of its map '%s' is gone", name);
	if (fd < 0)
		return pin_failed("open", &gate->dir, name, fd);
	if (gate->state && gate_map_id(fd) != gate->state->map_ids[map])
		return refuse_foreign(gate, "foreign-map",
				      "what is pinned as '%s' is not the map that it filters with",
				      name);
	return gate_error(gate, EAGAIN, "map-unread",
			  "map '%s' could not be read at first; try again", name);
}

/* The bytes of the largest entry of `gate` that is read for its schema alone. */
#define ENTRY_MAX 4096

/* Maps the open map `gate`, which has the ids of the other maps. Refuses another schema. */
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
				      "what is pinned as 'gate' is not that map");
	if (bpf_map_lookup_elem(fd, &zero, value))
		return gate_map_unread(gate, MAP_GATE, errno);
	memcpy(&schema, value, sizeof(schema)); /* the entry begins with it in each schema */
	if (schema != SL_SCHEMA)
		return gate_error(
			gate, EINVAL, "other-schema",
			"another version of sluice made it (schema %u, this version has "
			"%d); save its rules with that version's 'sluice -g %s dump', then "
			"run 'sluice -g %s detach all', and attach and apply again",
			schema, SL_SCHEMA, gate->name, gate->name);
	err = map_check(gate, object, MAP_GATE);
	return err ?: gate_map_state(gate);
}

/* Maps that one number indexes: for each entry of the first the second has so many. */
static const struct {
	enum gate_map map, other;
	uint32_t each;
} sized_alike[] = {
	{MAP_COUNTERS, MAP_POLICIES, SL_POLICY_VERSION(1)},
	{MAP_COUNTERS, MAP_BUDGETS, 1},
	{MAP_SETS, MAP_STATES, SL_WAYS},
};

/* Checks the sizes of maps: in memory one is read as far as another one reaches. */
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
					      "its maps '%s' and '%s' do not fit each other",
					      gate_map_names[map], gate_map_names[other]);
	}
	return 0;
}

/*
 * Checks the open maps, and maps the rules. The shape of each map matters: the kernel writes values
 * of the map's size to memory of the schema's size. The ids in `gate` prove nothing, because the
 * owner of the gate can write them.
 */
static int maps_accept(struct gate *gate, const struct bpf_object *object)
{
	for (int map = 0; map < GATE_MAPS; map++) {
		int err = map_check(gate, object, map);

		if (err)
			return err;
	}
	return sizes_check(gate)
		       ?: gate_read_secret(gate) ?: gate_map_rules(gate) ?: policies_check(gate);
}

/* --- Opening -------------------------------------------------------------------------------- */

/* Opens the map with the gate's id for it, if that is pinned in this directory; -1: it is not. */
static int map_open_in(const struct gate *gate, enum gate_map map, const struct pins *dir)
{
	_cleanup_close_ int fd = pin_open(dir, gate_map_names[map]);

	return fd >= 0 && gate_map_id(fd) == gate->state->map_ids[map] ? steal_fd(&fd) : -1;
}

/*
 * Opens all maps except `gate` and, for a reader, private maps. A remake that is in progress may
 * still have a map in next/, and may rename it during this call. Returns the first map that cannot
 * be opened, or GATE_MAPS if all are open.
 */
static enum gate_map maps_open(struct gate *gate)
{
	int map;

	for (map = MAP_GATE + 1; map < GATE_MAPS; map++) {
		_cleanup_(pins_close) struct pins next = PINS_CLOSED;
		int *fd = &gate->map[map];

		if (map_is_closed(gate, map))
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

/* Whether another `gate` is pinned now, because a remake has just finished. */
static bool state_is_replaced(const struct gate *gate)
{
	_cleanup_close_ int fd = pin_open(&gate->dir, gate_map_names[MAP_GATE]);

	return fd >= 0 && gate_map_id(fd) != gate_map_id(gate->map[MAP_GATE]);
}

int gate_maps_open(struct gate *gate)
{
	_cleanup_object_ struct bpf_object *object = NULL;
	enum gate_map missing;
	bool exists;
	int err = gate_dir_holds_gate(gate, &exists);

	if (err)
		return err;
	if (!exists)
		return gate_refuse_missing(gate->name);
	object = object_open();
	if (!object)
		return -EIO;
	for (;;) {
		gate->map[MAP_GATE] = pin_open(&gate->dir, gate_map_names[MAP_GATE]);
		if (gate->map[MAP_GATE] < 0)
			return map_refuse(gate, MAP_GATE);
		err = state_open(gate, object);
		if (err)
			return err;
		if (gate_map_id(gate->map[MAP_GATE]) != gate->state->map_ids[MAP_GATE])
			return map_refuse(gate, MAP_GATE);
		missing = maps_open(gate);
		if (missing == GATE_MAPS)
			return maps_accept(gate, object);
		if (!state_is_replaced(gate))
			return map_refuse(gate, missing);
		gate_maps_close(gate);
	}
}

/* Opens the next gate, whose `dir` is that of the gate. */
static int next_open(struct gate *next, const struct pins *pins, const struct bpf_object *object)
{
	int err;

	next->map[MAP_GATE] = pin_open(pins, gate_map_names[MAP_GATE]);
	if (next->map[MAP_GATE] < 0)
		return pin_failed("open", pins, gate_map_names[MAP_GATE], next->map[MAP_GATE]);
	err = state_open(next, object);
	if (err)
		return err;
	if (gate_map_id(next->map[MAP_GATE]) != next->state->map_ids[MAP_GATE] ||
	    maps_open(next) < GATE_MAPS)
		return refuse_foreign(next, "lost-map", "its next maps are not all pinned");
	return maps_accept(next, object);
}

int gate_maps_open_next(const struct gate *gate, struct gate *ret)
{
	_cleanup_object_ struct bpf_object *object = object_open();
	_cleanup_(pins_close) struct pins pins = PINS_CLOSED;
	int err = object ? pins_open(&gate->dir, GATE_NEXT, &pins) : -EIO;

	*ret = GATE_CLOSED;
	memcpy(ret->name, gate->name, sizeof(ret->name));
	ret->machine = gate->machine;
	ret->dir = gate->dir; /* borrowed */
	if (!err)
		err = next_open(ret, &pins, object);
	ret->dir = (struct pins)PINS_CLOSED;
	return err;
}
