// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <bpf/bpf.h>

#include "gate_dir.h"
#include "gate_parts.h"
#include "memory.h"
#include "object.h"

/* What the object's maps take when they are made, but for those that it shares. */
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
 * The kernel would not refuse maps that are too large for the machine: it would kill other processes to make room.
 * An eighth of what is available stays for these.
 */
static enum status memory_check(const struct gate *gate, const struct bpf_object *object)
{
	uint64_t needed = maps_memory(object, &gate->machine), available;
	enum status status = memory_available(&available);
	char need[MEMORY_TEXT], have[MEMORY_TEXT];

	if (!status && needed > available - available / 8)
		status = fail("the maps of gate '%s' would take %s, and this machine has %s to "
			      "spare: choose smaller sizes, `hot` first",
			      gate->name, memory_format(needed, need),
			      memory_format(available - available / 8, have));
	return status;
}

/* Makes the object's maps that it does not share, without its programs, and takes all over. */
static enum status gate_load_maps(struct gate *gate, struct bpf_object *object)
{
	enum status status = memory_check(gate, object);
	struct bpf_program *program;
	int err;

	if (status)
		return status;
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
	return OK;
}

/* Maps the memory of new maps, and says in `gate` what it is and which maps they are. */
static enum status gate_begin_state(struct gate *gate, const struct sl_gate *state)
{
	enum status status = gate_map_state(gate);

	if (!status)
		status = gate_map_rules(gate);
	if (status)
		return status;
	*gate->state = *state;
	for (int map = 0; map < GATE_MAPS; map++)
		gate->state->map_ids[map] = gate_map_id(gate->map[map]);
	return OK;
}

static enum status gate_make_maps(struct gate *gate, struct bpf_object *object,
				  const struct gate_sizes *sizes)
{
	struct sl_gate state = {
		.schema = SL_SCHEMA,
		.generation = 1,
		.tick_ns = gate->machine.tick_ns,
		.next_limit = 1,
		.next_policy = SL_POLICY_FIRST,
	};
	__u64 secret[SL_SECRETS];
	enum status status;

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return fail("cannot get random numbers: %s", why(errno));
	state.meeting = gate_meeting(sizes, &gate->machine, secret);
	gate_sizes_set(object, sizes, &gate->machine);
	status = gate_load_maps(gate, object);
	return status ? status : gate_begin_state(gate, &state);
}

/* Lets the object use the gate's maps, but for those that are to be new. */
static enum status object_share(struct bpf_object *object, const struct gate *gate,
				const bool fresh[GATE_MAPS])
{
	int err = 0;

	for (int map = 0; !err && map < GATE_MAPS; map++)
		if (map != MAP_GATE && !fresh[map])
			err = bpf_map__reuse_fd(object_map(object, map), gate->map[map]);
	return err ? fail("cannot share the maps of gate '%s': %s", gate->name, why(err)) : OK;
}

enum status gate_make_successor(const struct gate *gate, const struct gate_sizes *sizes,
				const bool fresh[GATE_MAPS], struct gate *ret)
{
	struct bpf_object *object = object_open();
	struct gate next = GATE_CLOSED;
	struct sl_gate state = *gate->state;
	enum status status;

	if (!object)
		return FAILED;
	memcpy(next.name, gate->name, sizeof(next.name));
	next.machine = gate->machine;
	state.meeting = gate_meeting(sizes, &gate->machine, gate->state->meeting.secret);
	gate_sizes_set(object, sizes, &gate->machine);
	status = object_share(object, gate, fresh);
	if (!status)
		status = gate_load_maps(&next, object);
	if (!status)
		status = gate_begin_state(&next, &state);
	bpf_object__close(object);
	if (status)
		gate_close(&next);
	else
		*ret = next;
	return status;
}

static enum status gate_pin(struct gate *gate)
{
	enum status status = pins_make(&gate->dir, GATE_LINKS);

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

enum status gate_make(struct gate *gate, struct bpf_object *object, const struct gate_sizes *wanted)
{
	struct gate_sizes sizes = gate_sizes_complete(wanted, &gate->machine);
	enum status status;

	status = gate_dir_clear(gate); /* what a killed command left half made */
	if (status)
		return status;
	gate->made = true;
	status = gate_make_maps(gate, object, &sizes);
	if (!status)
		status = gate_pin(gate);
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
