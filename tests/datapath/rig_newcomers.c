// SPDX-License-Identifier: GPL-2.0
/* Reads and evicts states and buckets of the rig's gate, and begins floods of new sources. */
#include "rig.h"

#include <bpf/bpf.h>

#include "gate/gate.h"
#include "gate/table.h"
#include "sketch.h"
#include "state/buckets.h"

#define CPUS_MAX 1024 /* largest number of possible CPUs that the rig supports */

/* --- Admission ------------------------------------------------------------------------------ */

static void admissions_read(const struct rig *rig, struct sl_admission *cpus)
{
	uint32_t zero = 0;

	assert_in_range(rig->gate.machine.cpus, 1, CPUS_MAX);
	memset(cpus, 0, rig->gate.machine.cpus * sizeof(*cpus));
	assert_int_equal(bpf_map_lookup_elem(rig->gate.map[MAP_ADMISSION], &zero, cpus), 0);
}

void rig_flood(struct rig *rig, bool on)
{
	const struct sl_params *params = &rig->gate.state->params;
	uint64_t interval = flood_interval(params, *rig->clock_jiffies);
	struct sl_admission cpus[CPUS_MAX];
	uint32_t zero = 0;

	admissions_read(rig, cpus);
	for (unsigned int i = 0; i < rig->gate.machine.cpus; i++) {
		if (cpus[i].interval != interval)
			memset(cpus[i].new_keys, 0, sizeof(cpus[i].new_keys));
		cpus[i].interval = interval;
		for (int budgeted = 0; budgeted < 2; budgeted++)
			cpus[i].flood_until[budgeted] =
				on ? (interval + 1) << params->interval_shift : 0;
	}
	assert_int_equal(bpf_map_update_elem(rig->gate.map[MAP_ADMISSION], &zero, cpus, BPF_ANY),
			 0);
}

void rig_admit(struct rig *rig, bool admit)
{
	struct array_view view;
	struct sl_set *sets;
	uint32_t count;

	assert_int_equal(gate_map_size(&rig->gate, MAP_SETS, &count), 0);
	assert_int_equal(
		array_view_open(rig->gate.map[MAP_SETS], count, sizeof(*sets), false, &view), 0);
	sets = view.values;
	for (uint32_t i = 0; i < view.count; i++)
		sets[i].displaced = (sets[i].displaced & ~1U) | !admit;
	array_view_close(&view);
}

uint64_t rig_interval(const struct rig *rig)
{
	return JIFFY << rig->gate.state->params.interval_shift;
}

uint64_t rig_events(const struct rig *rig, enum sl_event event)
{
	struct sl_admission cpus[CPUS_MAX];
	uint64_t total = 0;

	admissions_read(rig, cpus);
	for (unsigned int i = 0; i < rig->gate.machine.cpus; i++)
		total += cpus[i].event[event].total;
	return total;
}

uint64_t rig_refusals(const struct rig *rig)
{
	return rig_events(rig, SL_EVENT_BUSY) + rig_events(rig, SL_EVENT_NO_ROOM);
}

/* --- States and buckets ---------------------------------------------------------------------- */

static struct state_key key_of(const struct sl_limit *limit, const struct sl_prefix *address)
{
	__u64 addr[2];

	memcpy(addr, address->addr, sizeof(addr));
	return state_key_of(limit, addr, prefix_is_ipv4(address));
}

bool rig_state(const struct rig *rig, const struct sl_prefix *address, const struct sl_limit *limit,
	       struct sl_state *ret)
{
	struct state_key key = key_of(limit, address);
	struct found_entry found;

	assert_int_equal(table_read(&rig->gate, NULL, &key, &found), 0);
	if (found.is_found)
		memcpy(ret, &found.entry.state, sizeof(*ret));
	return found.is_found;
}

void rig_forget_state(const struct rig *rig, const struct sl_prefix *address,
		      const struct sl_limit *limit)
{
	const struct sl_params *params = &rig->gate.state->params;
	struct state_key key = key_of(limit, address);
	struct found_entry found;
	struct table table;
	struct sl_set *sets;
	uint16_t *tag;

	assert_int_equal(table_open(&rig->gate, &table), 0);
	assert_int_equal(table_read(&rig->gate, &table, &key, &found), 0);
	assert_true(found.is_found);
	sets = table.sets.values;
	tag = &sets[found.index / SL_WAYS].tag[found.index % SL_WAYS];
	if (*tag & TAG_DISPLACED)
		sets[set_alternate(params, found.index / SL_WAYS, *tag)].displaced -= 2;
	*tag = 0;
	table.entries[found.index] = (struct sl_entry){0};
	table_close(&table);
}

uint32_t rig_states_of(const struct rig *rig, enum sl_family family)
{
	const struct sl_set *sets;
	struct table table;
	uint32_t count = 0;

	assert_int_equal(table_open(&rig->gate, &table), 0);
	sets = table.sets.values;
	for (uint32_t i = 0; i < table.count; i++)
		count += sets[i / SL_WAYS].tag[i % SL_WAYS] &&
			 (table.entries[i].limit & 1) == (family == SL_IPV4);
	table_close(&table);
	return count;
}

uint32_t rig_states(const struct rig *rig)
{
	return rig_states_of(rig, SL_IPV4) + rig_states_of(rig, SL_IPV6);
}

uint32_t rig_buckets_of(const struct rig *rig, enum sl_family family)
{
	uint32_t count;

	assert_int_equal(buckets_walk(&rig->gate, family == SL_IPV4 ? MAP_BUCKETS4 : MAP_BUCKETS6,
				      NULL, NULL, &count),
			 0);
	return count;
}

uint32_t rig_buckets(const struct rig *rig)
{
	return rig_buckets_of(rig, SL_IPV4) + rig_buckets_of(rig, SL_IPV6);
}

bool rig_has_bucket(const struct rig *rig, const struct sl_prefix *address)
{
	struct sl_bucket *buckets;
	unsigned int count;

	assert_int_equal(buckets_read(&rig->gate, address, &buckets, &count), 0);
	free(buckets);
	return count > 0;
}

void rig_end_first_buckets(const struct rig *rig)
{
	struct sl_in_use *cpus = calloc(rig->gate.machine.cpus, sizeof(*cpus));
	const uint32_t zero = 0;

	assert_non_null(cpus);
	for (unsigned int cpu = 0; cpu < rig->gate.machine.cpus; cpu++)
		cpus[cpu].first = UINT64_MAX;
	assert_int_equal(bpf_map_update_elem(rig->gate.map[MAP_IN_USE], &zero, cpus, 0), 0);
	free(cpus);
}

void rig_forget_bucket(struct rig *rig, const struct sl_prefix *address)
{
	const struct sl_prefix source = prefix_source(address);
	enum gate_map map = prefix_is_ipv4(address) ? MAP_BUCKETS4 : MAP_BUCKETS6;

	/* Delete the bucket. The effect is the same as if the kernel evicts it. */
	assert_true(rig_has_bucket(rig, address));
	assert_int_equal(bpf_map_delete_elem(rig->gate.map[map], source.addr), 0);
}

/* --- Counts --------------------------------------------------------------------------------- */

uint64_t rig_reason(const struct rig *rig, enum sl_reason reason)
{
	return rig_counters(rig).reason[reason].packets;
}
