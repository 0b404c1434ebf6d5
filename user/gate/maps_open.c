// SPDX-License-Identifier: GPL-2.0
#include "gate/maps_open.h"

#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "gate/maps.h"
#include "gate/pins.h"
#include "gate/policy.h"

/* --- Checks --------------------------------------------------------------------------------- */

#define refuse_foreign(gate, id, format, ...)                                                      \
	gate_error(gate, EINVAL, id,                                                               \
		   format "; remove it with 'sluice -g %s detach all' and attach again",           \
		   ##__VA_ARGS__, (gate)->name)

/*
 * Returns an error if the type or a size of a map differs from this schema, because another map may
 * be pinned under its name.
 */
static int map_check(const struct gate *gate, const struct bpf_object *object, enum gate_map map)
{
	const struct bpf_map *want = object_map(object, map);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	if (gate->dir.reads_only && gate_map_is_private(map)) /* a reader cannot open it */
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

/* Largest value of map `gate` whose schema is checked, in bytes. */
#define ENTRY_MAX 4096

/*
 * Opens a view of map `gate`, which contains the ids of all maps. Returns an error if its schema
 * differs from this version's schema.
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
	memcpy(&schema, value, sizeof(schema)); /* the value of map `gate` begins with its schema */
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

/*
 * Pairs of maps with related indexes. Map `other` must have `each` times as many entries as map
 * `map`.
 */
static const struct {
	enum gate_map map, other;
	uint32_t each;
} sized_alike[] = {
	{MAP_COUNTERS, MAP_POLICIES, SL_POLICY_VERSION(1)},
	{MAP_COUNTERS, MAP_BUDGETS, 1},
	{MAP_SETS, MAP_STATES, SL_WAYS},
};

/*
 * Checks the sizes of the pairs in `sized_alike`. Commands check an index against one map of a
 * pair, and then use it in the other map.
 */
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

/* Reads the hash secret. Does nothing for a reader, because a reader cannot open map `secret`. */
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
 * Checks the types and sizes of the open maps, and opens views of the rules. If a map had larger
 * values than this schema, the kernel would write beyond a buffer. The ids in map `gate` do not
 * prevent this, because the gate's owner can write any ids.
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

/*
 * Opens the pin of a map in directory `dir`. Returns an fd. Returns -1 if the pin is missing, or if
 * its id is not the id in map `gate`.
 */
static int map_open_in(const struct gate *gate, enum gate_map map, const struct pins *dir)
{
	_cleanup_close_ int fd = pin_open(dir, gate_map_names[map]);

	return fd >= 0 && gate_map_id(fd) == gate->state->map_ids[map] ? steal_fd(&fd) : -1;
}

/*
 * Opens all maps except `gate`. For a reader, omits private maps. Returns the first map that cannot
 * be opened, or GATE_MAPS if all are open. A resize can move a pin from next/ to the gate's
 * directory at any time. So this looks for each pin in the gate's directory, then in next/, and
 * then in the gate's directory again.
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
 * Opens the pin of a map again, to find why maps_open() failed. Adds the error that the pin is
 * missing, refers to another map, or could not be opened only for a moment.
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

/*
 * Opens the gate whose map `gate` is in `pins`. If a resize replaces this map meanwhile, starts
 * again.
 */
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
