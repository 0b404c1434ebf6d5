// SPDX-License-Identifier: GPL-2.0
#include "gate/gate.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "aggregate.h"
#include "base/clock.h"
#include "base/text.h"
#include "credit.h"
#include "rules/value.h"

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
	[MAP_SKETCHES] = "sketches",
	[MAP_RULE_CACHE] = "rule_cache",
	[MAP_HOST_CACHE] = "host_cache",
	[MAP_SUBRULES] = "subrules",
	[MAP_BUDGETS] = "budgets",
	[MAP_BUDGET_SLICES] = "budget_slices",
	[MAP_DURATIONS] = "durations",
	[MAP_EVENTS] = "events",
	[MAP_OFFENDERS] = "offenders",
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
	return length && length <= GATE_NAME && *name != '-';
}

int gate_check_name(const char *name)
{
	if (gate_name_is_valid(name))
		return 0;
	return error_misuse("gate-name", object_of("gate", name),
			    "not a gate name; write at most %d letters, digits, - and _, but no - "
			    "first",
			    GATE_NAME);
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

/* --- Information on maps -------------------------------------------------------------------- */

int gate_map_unread(const struct gate *gate, enum gate_map map, int err)
{
	return gate_error(gate, err, "map-unread", "cannot read map '%s': %s", gate_map_names[map],
			  why(err));
}

uint32_t gate_map_id(int fd)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

/*
 * Types of the private maps, and sizes of their values in bytes. Both are 0 for other maps. Readers
 * may not open private maps. Private maps contain hashes, tags (parts of hashes), or packets
 * (`events`).
 */
static const struct {
	uint32_t type, value_size;
} private_maps[GATE_MAPS] = {
	[MAP_SETS] = {BPF_MAP_TYPE_ARRAY, sizeof(struct sl_set)},
	[MAP_IN_USE] = {BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(struct sl_in_use)},
	[MAP_SKETCHES] = {BPF_MAP_TYPE_ARRAY, sizeof(struct sl_sketch)},
	[MAP_HOST_CACHE] = {BPF_MAP_TYPE_ARRAY, sizeof(struct sl_host_cache_set)},
	[MAP_EVENTS] = {BPF_MAP_TYPE_RINGBUF, 0},
	[MAP_OFFENDERS] = {BPF_MAP_TYPE_ARRAY, sizeof(struct sl_offender_set)},
	[MAP_SECRET] = {BPF_MAP_TYPE_ARRAY, sizeof(((struct gate *)0)->secret)},
};

bool gate_map_is_private(enum gate_map map)
{
	return private_maps[map].type;
}

/* Returns the value of max_entries that a private map must have. Computes it from map `gate`. */
static uint32_t private_entries(const struct gate *gate, enum gate_map map)
{
	switch (map) {
	case MAP_SETS:
		return gate->state->params.set_mask + 1;
	case MAP_HOST_CACHE:
		return gate->state->params.host_mask + 1;
	case MAP_SKETCHES:
		return gate->machine.cpu_ids * SL_SKETCH_LINES;
	case MAP_EVENTS:
		return SL_EVENTS_BYTES;
	case MAP_OFFENDERS:
		return SL_OFFENDER_SETS;
	default:
		return 1;
	}
}

int gate_map_info(const struct gate *gate, enum gate_map map, struct bpf_map_info *ret)
{
	__u32 size = sizeof(*ret);

	*ret = (struct bpf_map_info){0};
	if (!gate_map_is_private(map) || gate->map[map] >= 0)
		return bpf_obj_get_info_by_fd(gate->map[map], ret, &size) ? -errno : 0;
	ret->type = private_maps[map].type;
	ret->value_size = private_maps[map].value_size;
	ret->max_entries = private_entries(gate, map);
	return 0;
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

/* Waits until all BPF programs that run now have ended, by an RCU grace period: membarrier(2). */
void synchronize_programs(void)
{
	/*
	 * membarrier(2) fails with nohz_full; 100 ms are enough, because programs run for
	 * microseconds
	 */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(100000);
}

/* --- State ---------------------------------------------------------------------------------- */

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

/* --- Trials --------------------------------------------------------------------------------- */

/*
 * A trial's number is its start time in units of 2^20 ns (about 1 ms), so a trial of a later gate
 * with the same name has another number. Two commands cannot begin a trial within 1 ms. Numbers
 * wrap after 52 days.
 */
#define NUMBER_SHIFT 20

uint32_t trial_begin(struct gate *gate, uint64_t ns)
{
	uint64_t now = uptime_ns();

	gate->state->trial = now >> NUMBER_SHIFT;
	__atomic_store_n(&gate->state->trial_until, now + ns, __ATOMIC_RELEASE);
	return gate->state->trial;
}

bool trial_goes_on(const struct sl_gate *state, uint32_t trial)
{
	return __atomic_load_n(&state->trial_until, __ATOMIC_ACQUIRE) && state->trial == trial;
}

uint64_t trial_left_ns(const struct sl_gate *state)
{
	uint64_t now = uptime_ns();

	return state->trial_until > now ? state->trial_until - now : 0;
}

bool trial_is_awaited(const struct sl_gate *state)
{
	return uptime_ns() < state->trial_until + TRIAL_GRACE_NS;
}

void trial_end(struct gate *gate)
{
	__atomic_store_n(&gate->state->trial_until, 0, __ATOMIC_RELEASE);
}

int trial_refuse(struct gate *gate)
{
	uint64_t left = trial_left_ns(gate->state);

	if (!gate->state->trial_until)
		return 0;
	if (trial_is_awaited(gate->state))
		return gate_error(
			gate, EBUSY, "on-trial",
			"nothing changed, because an earlier change is on trial for %llu s more; "
			"to keep that change: 'sluice %sconfirm'",
			(unsigned long long)(left / NS_PER_SEC + 1), gate_option(gate->name));
	error_notice("trial-over", gate_object(gate->name),
		     "its trial has ended, but the change was not undone; the rules stay");
	trial_end(gate);
	return 0;
}

/* --- Arrays in memory ----------------------------------------------------------------------- */

/* Number of values to read by one system call. The kernel copies 4096 values in about 1 ms. */
#define VIEW_BATCH 4096

int array_view_open(int fd, uint32_t count, uint32_t value_size, bool is_copied,
		    struct array_view *ret)
{
	void *values = is_copied ? calloc(count, value_size)
				 : mmap(NULL, (size_t)count * value_size, PROT_READ | PROT_WRITE,
					MAP_SHARED, fd, 0);

	*ret = ARRAY_VIEW_CLOSED;
	if (!values || values == MAP_FAILED)
		return -errno;
	*ret = (struct array_view){values, fd, count, value_size, is_copied};
	return 0;
}

/*
 * Reads a copied view again. bpf_map_lookup_batch() returns array values in the order of their
 * indexes.
 */
int array_view_refresh(const struct array_view *view, uint32_t count)
{
	uint32_t keys[VIEW_BATCH], token, *last = NULL;

	if (!view->is_copied)
		return 0;
	for (uint32_t done = 0, batch; done < count; done += batch) {
		char *to = (char *)view->values + (size_t)done * view->value_size;

		batch = count - done < VIEW_BATCH ? count - done : VIEW_BATCH;
		if (bpf_map_lookup_batch(view->fd, last, &token, keys, to, &batch, NULL) &&
		    errno != ENOENT)
			return -errno;
		if (!batch)
			return -EIO;
		last = &token;
	}
	return 0;
}

void array_view_close(struct array_view *view)
{
	if (view->is_copied)
		free(view->values);
	else if (view->values)
		munmap(view->values, (size_t)view->count * view->value_size);
	*view = ARRAY_VIEW_CLOSED;
}

/* Give up after 100 failed copies. A copy fails if a command changes the rules meanwhile. */
#define COPY_TRIES 100

/*
 * Copies the lists, policies and budgets of one generation. Skips policy versions that were never
 * used.
 */
static int views_refresh(const struct gate *gate)
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

/*
 * If the kernel cannot read the maps, a reader keeps its old copies. This failure is not expected.
 */
uint32_t gate_generation(const struct gate *gate)
{
	uint32_t generation = gate->state->generation;

	if (!array_view_refresh(&gate->view[VIEW_STATE], 1) &&
	    gate->state->generation != generation)
		views_refresh(gate);
	return __atomic_load_n(&gate->state->generation, __ATOMIC_ACQUIRE);
}

/*
 * Maps the values of an array map into memory, and stores their address in `to`. Returns 0 or
 * -errno.
 */
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
		err = views_refresh(gate);
	else if (!err)
		err = VIEW_OPEN(gate, VIEW_SUBRULES, MAP_SUBRULES, SL_AGGREGATES, gate->subrules);
	return err ? gate_error(gate, err, "rules-unread", "cannot map its rules: %s", why(err))
		   : 0;
}

/* --- Closing -------------------------------------------------------------------------------- */

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

/* --- Counters ------------------------------------------------------------------------------- */

const char *const reason_names[SL_REASONS] = {
	[SL_PASS_WITHIN] = "within-limit",
	[SL_PASS_NO_LIMIT] = "no-limit",
	[SL_PASS_NEWCOMER] = "newcomer",
	[SL_PASS_ALLOWED] = "allowed",
	[SL_PASS_NO_RULE] = "no-rule",
	[SL_PASS_NOT_IP] = "not-ip",
	[SL_PASS_SHORT] = "short",
	[SL_PASS_BAD_HEADER] = "bad-header",
	[SL_DROP_UNREADABLE] = "unreadable",
	[SL_DROP_VLAN_DEPTH] = "vlan-depth",
	[SL_DROP_OVER_LIMIT] = "over-limit",
	[SL_DROP_OVERSIZE] = "oversize",
	[SL_DROP_OVER_HORIZON] = "over-horizon",
	[SL_DROP_BLOCKED] = "blocked",
	[SL_DROP_OVER_BUDGET] = "over-budget",
	[SL_DROP_DENIED] = "denied",
	[SL_DROP_CONTENDED] = "contended",
};

_Static_assert(SL_REASONS == 17, "each reason has a name");

void cell_add_to(struct sl_cell *sum, const struct sl_cell *cell)
{
	sum->packets += cell->packets;
	sum->bytes += cell->bytes;
}

#define COUNTER_WORDS (sizeof(struct sl_counters) / sizeof(__u64)) /* all members have 64 bits */

void counters_add_to(struct sl_counters *sum, const struct sl_counters *counters)
{
	for (size_t i = 0; i < COUNTER_WORDS; i++)
		((__u64 *)sum)[i] += ((const __u64 *)counters)[i];
}

void counters_take_from(struct sl_counters *sum, const struct sl_counters *counters)
{
	for (size_t i = 0; i < COUNTER_WORDS; i++)
		((__u64 *)sum)[i] -= ((const __u64 *)counters)[i];
}

static struct sl_cell reasons_sum(const struct sl_counters *counters, int from, int to)
{
	struct sl_cell sum = {0};

	for (int reason = from; reason < to; reason++)
		cell_add_to(&sum, &counters->reason[reason]);
	return sum;
}

struct sl_cell counters_passed(const struct sl_counters *counters)
{
	return reasons_sum(counters, 0, SL_FIRST_DROP);
}

struct sl_cell counters_dropped(const struct sl_counters *counters)
{
	return reasons_sum(counters, SL_FIRST_DROP, SL_REASONS);
}

/* Entries of map `counters` to read per system call. An entry has 34 kB with 64 CPUs. */
#define COUNTERS_BATCH 64

/*
 * Reads the counters of `count` policies, starting with number `first`. An array map returns its
 * entries in order, so each batch starts after the last index of the previous batch.
 */
static int counters_read_range(const struct gate *gate, unsigned int first, unsigned int count,
			       struct sl_counters *ret)
{
	unsigned int cpus = gate->machine.cpus,
		     room = count < COUNTERS_BATCH ? count : COUNTERS_BATCH;
	_cleanup_free_ struct sl_counters *copies = calloc((size_t)room * cpus, sizeof(*copies));
	uint32_t keys[COUNTERS_BATCH], last;

	if (!copies)
		return gate_map_unread(gate, MAP_COUNTERS, ENOMEM);
	memset(ret, 0, count * sizeof(*ret)); /* policies that are not in the map have no counts */
	for (unsigned int done = 0; done < count; done += room) {
		uint32_t before = first + done - 1, got = count - done < room ? count - done : room;
		int err =
			bpf_map_lookup_batch(gate->map[MAP_COUNTERS], first + done ? &before : NULL,
					     &last, keys, copies, &got, NULL);

		if (err && err != -ENOENT) /* ENOENT marks the last batch */
			return gate_map_unread(gate, MAP_COUNTERS, err);
		for (unsigned int i = 0; i < got; i++)
			for (unsigned int cpu = 0; cpu < cpus; cpu++)
				counters_add_to(&ret[done + i], &copies[(size_t)i * cpus + cpu]);
	}
	return 0;
}

int counters_read(const struct gate *gate, unsigned int number, struct sl_counters *ret)
{
	return counters_read_range(gate, number, 1, ret);
}

int counters_read_first(const struct gate *gate, unsigned int count, struct sl_counters **ret)
{
	_cleanup_free_ struct sl_counters *sums = calloc(count, sizeof(*sums));
	int err = sums ? counters_read_range(gate, 0, count, sums)
		       : gate_map_unread(gate, MAP_COUNTERS, ENOMEM);

	if (!err)
		*ret = steal_pointer(&sums);
	return err;
}
