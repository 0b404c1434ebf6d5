// SPDX-License-Identifier: GPL-2.0
/* What the rig's gate holds of newcomers. */
#include "rig.h"

#include <bpf/bpf.h>

#include "identity.h"
#include "pool.h"

#define CPUS_MAX 1024 /* possible ones */

/* --- Admission ------------------------------------------------------------------------------ */

static void admissions_read(const struct rig *rig, struct sl_admission *cpus)
{
	uint32_t zero = 0;

	assert_in_range(rig->gate.machine.cpus, 1, CPUS_MAX);
	memset(cpus, 0,
	       rig->gate.machine.cpus *
		       sizeof(*cpus)); /* a gate may be made for more than there are */
	assert_int_equal(bpf_map_lookup_elem(rig->gate.map[MAP_ADMISSION], &zero, cpus), 0);
}

static unsigned int cpu_of(const struct rig *rig, unsigned int index)
{
	assert_in_range(rig->cpu[index], 0, CPUS_MAX - 1);
	return rig->cpu[index];
}

struct sl_admission rig_admission(const struct rig *rig, unsigned int index)
{
	struct sl_admission cpus[CPUS_MAX];

	admissions_read(rig, cpus);
	return cpus[cpu_of(rig, index)];
}

uint32_t rig_tokens(const struct rig *rig, unsigned int index)
{
	struct sl_admission here = rig_admission(rig, index);

	return here.tokens[SL_POOL_LEDGERS] + here.seen[SL_POOL_LEDGERS];
}

static uint64_t window_of(const struct rig *rig)
{
	return pool_window(&rig->gate.state->meeting, *rig->clock_jiffies);
}

static void pool_set(const struct rig *rig, uint32_t pool, uint32_t tokens)
{
	const struct sl_meeting *meeting = &rig->gate.state->meeting;
	struct sl_pool_word word = {.spent = pool_made(meeting, pool, window_of(rig)) -
					     ((uint64_t)tokens << SL_TOKEN_SHIFT)};

	assert_int_equal(bpf_map_update_elem(rig->gate.map[MAP_POOLS], &pool, &word, BPF_ANY), 0);
}

void rig_fill_pools(const struct rig *rig)
{
	for (uint32_t pool = 0; pool < SL_POOLS; pool++)
		pool_set(rig, pool, rig->gate.state->meeting.tokens[pool]);
}

void rig_set_tokens(struct rig *rig, uint32_t tokens, bool crowd)
{
	const struct sl_meeting *meeting = &rig->gate.state->meeting;
	uint64_t window = window_of(rig);
	uint32_t buckets = tokens ? meeting->tokens[SL_POOL_BUCKETS] : 0;
	struct sl_admission cpus[CPUS_MAX];
	uint32_t zero = 0;

	pool_set(rig, SL_POOL_LEDGERS, tokens);
	pool_set(rig, SL_POOL_BUCKETS, buckets);
	admissions_read(rig, cpus);
	for (unsigned int i = 0; i < rig->gate.machine.cpus; i++) {
		if (cpus[i].window != window)
			cpus[i].met = 0;
		cpus[i].window = window;
		memset(cpus[i].tokens, 0, sizeof(cpus[i].tokens));
		cpus[i].seen[SL_POOL_LEDGERS] = tokens;
		cpus[i].seen[SL_POOL_BUCKETS] = buckets;
		cpus[i].crowd_until = crowd ? (window + 1) << meeting->window_shift : 0;
	}
	assert_int_equal(bpf_map_update_elem(rig->gate.map[MAP_ADMISSION], &zero, cpus, BPF_ANY),
			 0);
}

void rig_admit_none(struct rig *rig)
{
	struct sl_meeting *meeting = &rig->gate.state->meeting;

	memset(meeting->tokens, 0, sizeof(meeting->tokens));
	memset(meeting->refill, 0, sizeof(meeting->refill));
	rig_set_tokens(rig, 0, true);
}

uint64_t rig_window(const struct rig *rig)
{
	return JIFFY << rig->gate.state->meeting.window_shift;
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
	return rig_events(rig, SL_EVENT_BUSY) + rig_events(rig, SL_EVENT_NO_MEMORY) +
	       rig_events(rig, SL_EVENT_FAILED);
}

/* --- Ledgers and buckets -------------------------------------------------------------------- */

bool rig_ledger(const struct rig *rig, const struct sl_prefix *address,
		const struct sl_limit *limit, struct sl_ledger *ret)
{
	struct sl_ledger_key4 key4 = {.limit = limit->id};
	struct sl_ledger_key6 key6 = {.limit = limit->id};
	__u64 addr[2], key[2];

	memcpy(addr, address->addr, sizeof(addr));
	if (prefix_is_ipv4(address)) {
		key4.addr = addr[0] & limit->mask[0];
		return !bpf_map_lookup_elem(rig->gate.map[MAP_LEDGERS4], &key4, ret);
	}
	identity_key(addr, limit->mask, key);
	memcpy(key6.addr, key, sizeof(key6.addr));
	return !bpf_map_lookup_elem(rig->gate.map[MAP_LEDGERS6], &key6, ret);
}

static int buckets_of(const struct rig *rig, const struct sl_prefix *address)
{
	return rig->gate.map[prefix_is_ipv4(address) ? MAP_BUCKETS4 : MAP_BUCKETS6];
}

bool rig_has_bucket(const struct rig *rig, const struct sl_prefix *address)
{
	struct sl_bucket cpus[CPUS_MAX];

	return !bpf_map_lookup_elem(buckets_of(rig, address), prefix_source(address).addr, cpus);
}

void rig_forget_bucket(struct rig *rig, const struct sl_prefix *address)
{
	assert_int_equal(bpf_map_delete_elem(buckets_of(rig, address), prefix_source(address).addr),
			 0);
}

/* --- Counts --------------------------------------------------------------------------------- */

uint64_t rig_reason(const struct rig *rig, enum sl_reason reason)
{
	return rig_counters(rig).reason[reason].packets;
}
