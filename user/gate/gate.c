// SPDX-License-Identifier: GPL-2.0
#include "gate/gate.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "aggregate.h"
#include "credit.h"

const char *const gate_map_names[GATE_MAPS] = {
	[MAP_GATE] = "gate",
	[MAP_HOSTS4] = "hosts4",
	[MAP_HOSTS6] = "hosts6",
	[MAP_PREFIXES] = "prefixes",
	[MAP_SPLITS] = "splits",
	[MAP_LISTS] = "lists",
	[MAP_POLICIES] = "policies",
	[MAP_COUNTERS] = "counters",
	[MAP_SETS] = "sets",
	[MAP_STATES] = "states",
	[MAP_BUCKETS4] = "buckets4",
	[MAP_BUCKETS6] = "buckets6",
	[MAP_IN_USE] = "in_use",
	[MAP_ADMISSION] = "admission",
	[MAP_NEWCOMERS] = "newcomers",
	[MAP_SHORTCUTS] = "shortcuts",
	[MAP_HOST_SHORTCUTS] = "host_shortcuts",
	[MAP_BLOCKS] = "blocks",
	[MAP_BUDGETS] = "budgets",
	[MAP_BUDGET_SLICES] = "budget_slices",
	[MAP_SECRET] = "secret",
};

bool gate_map_is_private(enum gate_map map)
{
	return pin_is_private(gate_map_names[map]);
}

_Static_assert(GATE_MAPS <= sizeof(((struct sl_gate *)0)->map_ids) / sizeof(__u32),
	       "each map has an id in the gate");

bool gate_name_is_valid(const char *name)
{
	size_t length = strlen(name);

	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
			return false;
	return length && length <= GATE_NAME;
}

int gate_check_name(const char *name)
{
	if (!gate_name_is_valid(name))
		return misuse("'%s' is not a name of a gate: letters, digits, - and _, at most %d",
			      name, GATE_NAME);
	return OK;
}

int gate_begin(struct gate *gate, const char *name)
{
	int status = gate_check_name(name);

	*gate = GATE_CLOSED;
	if (status)
		return status;
	snprintf(gate->name, sizeof(gate->name), "%s", name);
	return machine_get(&gate->machine);
}

/* --- Facts of maps -------------------------------------------------------------------------- */

uint32_t gate_map_id(int fd)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

static struct bpf_map_info private_map_info(const struct gate *gate, enum gate_map map,
					    uint32_t states)
{
	switch (map) {
	case MAP_SETS:
		return (struct bpf_map_info){.type = BPF_MAP_TYPE_ARRAY,
					     .value_size = sizeof(struct sl_set),
					     .max_entries = states / SL_WAYS};
	case MAP_IN_USE:
		return (struct bpf_map_info){.type = BPF_MAP_TYPE_PERCPU_ARRAY,
					     .value_size = sizeof(struct sl_in_use),
					     .max_entries = 1};
	case MAP_NEWCOMERS:
		return (struct bpf_map_info){.type = BPF_MAP_TYPE_ARRAY,
					     .value_size = sizeof(struct sl_sketch),
					     .max_entries =
						     gate->machine.cpu_ids * SL_SKETCH_LINES};
	case MAP_HOST_SHORTCUTS:
		return (struct bpf_map_info){.type = BPF_MAP_TYPE_ARRAY,
					     .value_size = sizeof(struct sl_host_set),
					     .max_entries = gate->state->meeting.host_mask + 1};
	default:
		return (struct bpf_map_info){.type = BPF_MAP_TYPE_ARRAY,
					     .value_size = sizeof(gate->secret),
					     .max_entries = 1};
	}
}

int gate_map_info(const struct gate *gate, enum gate_map map, struct bpf_map_info *ret)
{
	bool is_closed = gate_map_is_private(map) && gate->map[map] < 0;
	int fd = gate->map[is_closed ? MAP_STATES : map];
	__u32 size = sizeof(*ret);

	*ret = (struct bpf_map_info){0};
	if (bpf_obj_get_info_by_fd(fd, ret, &size))
		return -errno;
	if (is_closed)
		*ret = private_map_info(gate, map, ret->max_entries);
	return 0;
}

int gate_map_size(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	struct bpf_map_info info;
	int err = gate_map_info(gate, map, &info);

	if (err)
		return failure("cannot read map '%s' of gate '%s': %s", gate_map_names[map],
			       gate->name, why(err));
	*ret = info.max_entries;
	return OK;
}

uint32_t gate_policies_seen(const struct gate *gate)
{
	uint32_t seen = __atomic_load_n(&gate->state->policies_seen, __ATOMIC_RELAXED);

	return seen < gate->policies_max ? seen : gate->policies_max;
}

unsigned int gate_divided_by(const struct gate *gate, uint64_t now)
{
	const struct sl_gate *state = gate->state;

	return credit_times(__atomic_load_n(&state->divide_at, __ATOMIC_RELAXED),
			    __atomic_load_n(&state->nodes, __ATOMIC_RELAXED), now);
}

bool gate_note_first(const struct gate *gate, enum gate_note note)
{
	bool first = !(gate->state->noted & note);

	gate->state->noted |= note;
	return first;
}

/* --- Maps in memory ------------------------------------------------------------------------- */

static void *memory_map(int fd, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void memory_unmap(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}

static int memory_failed(const struct gate *gate)
{
	return failure("cannot map the rules of gate '%s': %s", gate->name, why(errno));
}

static size_t policies_bytes(const struct gate *gate)
{
	return SL_RECORD(gate->policies_max) * sizeof(*gate->policies);
}

static size_t budgets_bytes(const struct gate *gate)
{
	return gate->policies_max * sizeof(*gate->budgets);
}

#define BLOCKS_BYTES (SL_AGGREGATES * sizeof(uint64_t))
#define LISTS_BYTES  (SL_LIST_PLACES * sizeof(struct sl_list_info))

int gate_read_secret(struct gate *gate)
{
	__u32 first = 0;
	int err;

	if (gate->map[MAP_SECRET] < 0)
		return OK;
	err = bpf_map_lookup_elem(gate->map[MAP_SECRET], &first, gate->secret);
	if (err)
		return failure("cannot read map 'secret' of gate '%s': %s", gate->name, why(err));
	gate->has_secret = true;
	return OK;
}

/* --- Copies --------------------------------------------------------------------------------- */

/* Copies the first entries of an array. */
static int array_copy(int fd, void *to, size_t value_size, uint32_t count)
{
	uint8_t *value = to;
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++, value += value_size)
		err = bpf_map_lookup_elem(fd, &i, value);
	return err;
}

static int state_copy(const struct gate *gate)
{
	return array_copy(gate->map[MAP_GATE], gate->state, sizeof(*gate->state), 1);
}

/* The number of times that the copies are made anew because a command changes the rules. */
#define COPY_TRIES 100

/* Copies the rules of one generation, with those records only that were ever used. */
static int rules_copy(const struct gate *gate)
{
	uint32_t generation, seen;
	int err = 0, tries = 0;

	do {
		generation = gate->state->generation;
		seen = gate_policies_seen(gate);
		if (seen < SL_POLICY_FIRST)
			seen = SL_POLICY_FIRST;
		err = array_copy(gate->map[MAP_LISTS], gate->lists, sizeof(*gate->lists),
				 SL_LIST_PLACES);
		if (!err)
			err = array_copy(gate->map[MAP_POLICIES], gate->policies,
					 sizeof(*gate->policies), SL_RECORD(seen));
		if (!err)
			err = array_copy(gate->map[MAP_BUDGETS], gate->budgets,
					 sizeof(*gate->budgets), seen);
		if (!err)
			err = state_copy(gate);
	} while (!err && gate->state->generation != generation && tries++ < COPY_TRIES);
	return err;
}

/* A read of an array by an fd cannot fail: if it does, the copies stay as they were. */
void gate_copy(const struct gate *gate)
{
	uint32_t generation = gate->state->generation;

	if (gate->copied && !state_copy(gate) && gate->state->generation != generation)
		rules_copy(gate);
}

static int rules_begin_copy(struct gate *gate)
{
	gate->budgets = calloc(gate->policies_max, sizeof(*gate->budgets));
	gate->lists = calloc(SL_LIST_PLACES, sizeof(*gate->lists));
	gate->policies = calloc(SL_RECORD(gate->policies_max), sizeof(*gate->policies));
	if (gate->budgets && gate->lists && gate->policies && !rules_copy(gate))
		return OK;
	return failure("cannot read the rules of gate '%s': %s", gate->name, why(errno));
}

/* --- Mapped or copied ----------------------------------------------------------------------- */

int gate_map_state(struct gate *gate)
{
	gate->copied = gate->dir.reads_only;
	if (!gate->copied) {
		gate->state = memory_map(gate->map[MAP_GATE], sizeof(*gate->state));
		return gate->state ? OK : memory_failed(gate);
	}
	gate->state = malloc(sizeof(*gate->state));
	if (gate->state && !state_copy(gate))
		return OK;
	return failure("cannot read gate '%s': %s", gate->name, why(errno));
}

int gate_map_rules(struct gate *gate)
{
	int status = gate_map_size(gate, MAP_COUNTERS, &gate->policies_max);

	if (status)
		return status;
	gate->checked = calloc(SL_RECORD(gate->policies_max), sizeof(*gate->checked));
	if (!gate->checked)
		return failure("cannot read the rules of gate '%s': %s", gate->name, why(ENOMEM));
	if (gate->copied)
		return rules_begin_copy(gate);
	gate->budgets = memory_map(gate->map[MAP_BUDGETS], budgets_bytes(gate));
	gate->lists = memory_map(gate->map[MAP_LISTS], LISTS_BYTES);
	gate->policies = memory_map(gate->map[MAP_POLICIES], policies_bytes(gate));
	gate->blocks = memory_map(gate->map[MAP_BLOCKS], BLOCKS_BYTES);
	return gate->lists && gate->policies && gate->budgets && gate->blocks ? OK
									      : memory_failed(gate);
}

void gate_maps_close(struct gate *gate)
{
	if (gate->copied) {
		free(gate->state);
		free(gate->lists);
		free(gate->policies);
		free(gate->budgets);
	} else {
		memory_unmap(gate->state, sizeof(*gate->state));
		memory_unmap(gate->lists, LISTS_BYTES);
		memory_unmap(gate->policies, policies_bytes(gate));
		memory_unmap(gate->budgets, budgets_bytes(gate));
	}
	memory_unmap(gate->blocks, BLOCKS_BYTES);
	free(gate->checked);
	gate->state = NULL;
	gate->lists = NULL;
	gate->policies = NULL;
	gate->checked = NULL;
	gate->budgets = NULL;
	gate->blocks = NULL;
	gate->copied = false;
	for (int map = 0; map < GATE_MAPS; map++) {
		if (gate->map[map] >= 0)
			close(gate->map[map]);
		gate->map[map] = -1;
	}
}

void gate_close(struct gate *gate)
{
	gate_maps_close(gate);
	pins_close(&gate->links);
	pins_close(&gate->dir);
	*gate = GATE_CLOSED;
}

/* --- Walking a map -------------------------------------------------------------------------- */

/* The entries of one call: the kernel takes about a millisecond for them. */
#define WALK_BATCH 4096

struct walk {
	size_t key_size;
	size_t value_size;
	uint8_t *keys;
	uint8_t *values;
	uint32_t count;
};

/* The kernel returns whole buckets of the hash table; none has more than WALK_BATCH entries. */
static int walk_run(int fd, struct walk *walk, entry_call *call, void *data)
{
	uint32_t token, *last = NULL;
	bool more = true;
	int err = 0;

	while (!err && more) {
		walk->count = WALK_BATCH;
		if (bpf_map_lookup_batch(fd, last, &token, walk->keys, walk->values, &walk->count,
					 NULL)) {
			err = errno == ENOENT ? 0 : -errno; /* ENOENT: this batch is the last */
			more = false;
		}
		last = &token;
		for (uint32_t i = 0; !err && i < walk->count; i++)
			err = call(data, walk->keys + i * walk->key_size,
				   walk->values + i * walk->value_size);
	}
	return err;
}

int map_walk(int fd, size_t key_size, size_t value_size, entry_call *call, void *data)
{
	struct walk walk = {
		.key_size = key_size,
		.value_size = value_size,
		.keys = malloc(WALK_BATCH * key_size),
		.values = malloc(WALK_BATCH * value_size),
	};
	int err = -ENOMEM;

	if (walk.keys && walk.values)
		err = walk_run(fd, &walk, call, data);
	free(walk.keys);
	free(walk.values);
	return err;
}
