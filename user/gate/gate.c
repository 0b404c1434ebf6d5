// SPDX-License-Identifier: GPL-2.0
#include "gate/gate.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	[MAP_RULE_CACHE] = "rule_cache",
	[MAP_HOST_CACHE] = "host_cache",
	[MAP_SUBRULES] = "subrules",
	[MAP_BUDGETS] = "budgets",
	[MAP_BUDGET_SLICES] = "budget_slices",
	[MAP_SECRET] = "secret",
};

_Static_assert(GATE_MAPS <= sizeof(((struct sl_gate *)0)->map_ids) / sizeof(__u32),
	       "each map has an id in the gate");

/* --- Names ---------------------------------------------------------------------------------- */

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
	if (gate_name_is_valid(name))
		return 0;
	return error_misuse("gate-name", NULL,
			    "'%s' is not a name of a gate: letters, digits, - and _, at most %d",
			    name, GATE_NAME);
}

const char *gate_object(const char *name)
{
	static _Thread_local char text[GATE_NAME + sizeof("gate ''")];

	snprintf(text, sizeof(text), "gate '%s'", name);
	return text;
}

int gate_begin(struct gate *gate, const char *name)
{
	int err = gate_check_name(name);

	*gate = GATE_CLOSED;
	if (err)
		return err;
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

/* `in_use`, `newcomers` and `host_cache` contain hashes or parts of them, `sets` tags. */
bool gate_map_is_private(enum gate_map map)
{
	return map == MAP_SECRET || map == MAP_SETS || map == MAP_IN_USE || map == MAP_NEWCOMERS ||
	       map == MAP_HOST_CACHE;
}

int gate_map_info(const struct gate *gate, enum gate_map map, struct bpf_map_info *ret)
{
	bool is_closed = gate_map_is_private(map) && gate->map[map] < 0;
	__u32 size = sizeof(*ret), states;

	*ret = (struct bpf_map_info){0};
	if (bpf_obj_get_info_by_fd(gate->map[is_closed ? MAP_STATES : map], ret, &size))
		return -errno;
	if (!is_closed)
		return 0;
	states = ret->max_entries;
	*ret = (struct bpf_map_info){.type = BPF_MAP_TYPE_ARRAY, .max_entries = 1};
	switch (map) {
	case MAP_SETS:
		ret->value_size = sizeof(struct sl_set);
		ret->max_entries = states / SL_WAYS;
		break;
	case MAP_IN_USE:
		ret->type = BPF_MAP_TYPE_PERCPU_ARRAY;
		ret->value_size = sizeof(struct sl_in_use);
		break;
	case MAP_NEWCOMERS:
		ret->value_size = sizeof(struct sl_sketch);
		ret->max_entries = gate->machine.cpu_ids * SL_SKETCH_LINES;
		break;
	case MAP_HOST_CACHE:
		ret->value_size = sizeof(struct sl_host_cache_set);
		ret->max_entries = gate->state->params.host_mask + 1;
		break;
	default:
		ret->value_size = sizeof(gate->secret);
	}
	return 0;
}

int gate_map_unread(const struct gate *gate, enum gate_map map, int err)
{
	return gate_error(gate, err, "map-unread", "cannot read map '%s': %s", gate_map_names[map],
			  why(err));
}

int gate_map_size(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	struct bpf_map_info info;
	int err = gate_map_info(gate, map, &info);

	if (err)
		return gate_map_unread(gate, map, err);
	*ret = info.max_entries;
	return 0;
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

int gate_read_secret(struct gate *gate)
{
	__u32 first = 0;
	int err;

	if (gate->map[MAP_SECRET] < 0)
		return 0;
	err = bpf_map_lookup_elem(gate->map[MAP_SECRET], &first, gate->secret);
	if (err)
		return gate_map_unread(gate, MAP_SECRET, err);
	gate->has_secret = true;
	return 0;
}

/* --- Maps in memory ------------------------------------------------------------------------- */

/* The number of times that the copies are made again because a command changes the rules. */
#define COPY_TRIES 100

/* Copies the rules of one generation, with only those policy versions that were ever used. */
static int rules_copy(const struct gate *gate)
{
	uint32_t generation, seen;
	int err, tries = 0;

	do {
		generation = gate->state->generation;
		seen = gate_policies_seen(gate);
		if (seen < SL_POLICY_FIRST)
			seen = SL_POLICY_FIRST;
		err = array_view_refresh(&gate->view[VIEW_LISTS], SL_LIST_PLACES)
			      ?: array_view_refresh(&gate->view[VIEW_POLICIES],
						    SL_POLICY_VERSION(seen))
			      ?: array_view_refresh(&gate->view[VIEW_BUDGETS], seen)
			      ?: array_view_refresh(&gate->view[VIEW_STATE], 1);
	} while (!err && gate->state->generation != generation && tries++ < COPY_TRIES);
	return err;
}

/* A read of an array by an fd cannot fail: if it does, the copies stay as they were. */
void gate_copy(const struct gate *gate)
{
	uint32_t generation = gate->state->generation;

	if (!array_view_refresh(&gate->view[VIEW_STATE], 1) &&
	    gate->state->generation != generation)
		rules_copy(gate);
}

/* Opens an array, and stores where it is in memory. */
#define VIEW_OPEN(gate, which, from, entries, to)                                                  \
	({                                                                                         \
		int err_ = array_view_open((gate)->map[from], entries, sizeof(*(to)),              \
					   (gate)->dir.reads_only, &(gate)->view[which]);          \
		(to) = (gate)->view[which].values;                                                 \
		err_;                                                                              \
	})

int gate_map_state(struct gate *gate)
{
	int err = VIEW_OPEN(gate, VIEW_STATE, MAP_GATE, 1, gate->state)
			  ?: array_view_refresh(&gate->view[VIEW_STATE], 1);

	return err ? gate_map_unread(gate, MAP_GATE, err) : 0;
}

int gate_map_rules(struct gate *gate)
{
	int err = gate_map_size(gate, MAP_COUNTERS, &gate->policies_max);
	uint32_t policies = gate->policies_max, versions = SL_POLICY_VERSION(policies);

	if (err)
		return err;
	gate->checked = calloc(versions, sizeof(*gate->checked));
	err = gate->checked ? 0 : -ENOMEM;
	err = err
		      ?: VIEW_OPEN(gate, VIEW_LISTS, MAP_LISTS, SL_LIST_PLACES, gate->lists)
		      ?: VIEW_OPEN(gate, VIEW_POLICIES, MAP_POLICIES, versions, gate->policies)
		      ?: VIEW_OPEN(gate, VIEW_BUDGETS, MAP_BUDGETS, policies, gate->budgets);
	if (!err && gate->dir.reads_only)
		err = rules_copy(gate);
	else if (!err)
		err = VIEW_OPEN(gate, VIEW_SUBRULES, MAP_SUBRULES, SL_AGGREGATES, gate->subrules);
	return err ? gate_error(gate, err, "rules-unread", "cannot map its rules: %s", why(err))
		   : 0;
}

void gate_maps_close(struct gate *gate)
{
	for (int view = 0; view < GATE_VIEWS; view++)
		array_view_close(&gate->view[view]);
	free(gate->checked);
	gate->state = NULL;
	gate->lists = NULL;
	gate->policies = gate->checked = NULL;
	gate->budgets = NULL;
	gate->subrules = NULL;
	for (int map = 0; map < GATE_MAPS; map++) {
		close_fd(&gate->map[map]);
		gate->map[map] = -1;
	}
}

void gate_close(struct gate *gate)
{
	gate_maps_close(gate);
	close_fd(&gate->links.fd);
	close_fd(&gate->dir.fd);
	*gate = GATE_CLOSED;
}

/* --- Walking a map -------------------------------------------------------------------------- */

/* The entries of one call: the kernel needs about a millisecond for them. */
#define WALK_BATCH 4096

/* The kernel returns whole buckets of the hash table; none has more than WALK_BATCH entries. */
int map_walk(int fd, size_t key_size, size_t value_size, entry_call *call, void *data)
{
	_cleanup_free_ uint8_t *keys = malloc(WALK_BATCH * key_size);
	_cleanup_free_ uint8_t *values = malloc(WALK_BATCH * value_size);
	uint32_t token, *last = NULL;
	bool more = true;
	int err = 0;

	if (!keys || !values)
		return -ENOMEM;
	while (!err && more) {
		uint32_t count = WALK_BATCH;

		if (bpf_map_lookup_batch(fd, last, &token, keys, values, &count, NULL)) {
			err = errno == ENOENT ? 0 : -errno; /* ENOENT: this batch is the last */
			more = false;
		}
		last = &token;
		for (uint32_t i = 0; !err && i < count; i++)
			err = call(data, keys + i * key_size, values + i * value_size);
	}
	return err;
}
