// SPDX-License-Identifier: GPL-2.0
#include "gate/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

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

/* --- Sums ----------------------------------------------------------------------------------- */

void cell_add_to(struct sl_cell *sum, const struct sl_cell *cell)
{
	sum->packets += cell->packets;
	sum->bytes += cell->bytes;
}

#define COUNTER_WORDS (sizeof(struct sl_counters) / sizeof(__u64)) /* it consists of them */

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

/* --- Reading -------------------------------------------------------------------------------- */

/* The entries of one call: on 64 CPUs the kernel returns 17 kB for each. */
#define BATCH 64

/* Memory for entries of `counters` with a copy for each CPU; the caller frees it. */
static struct sl_counters *cpus_alloc(const struct gate *gate, unsigned int entries)
{
	return calloc((size_t)entries * gate->machine.cpus, sizeof(struct sl_counters));
}

/* The sum of all CPUs' copies of the entry at this index. */
static struct sl_counters cpus_sum(const struct gate *gate, const struct sl_counters *cpus,
				   unsigned int index)
{
	struct sl_counters sum = {0};

	cpus += (size_t)index * gate->machine.cpus;
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++)
		counters_add_to(&sum, &cpus[cpu]);
	return sum;
}

int counters_read(const struct gate *gate, unsigned int number, struct sl_counters *ret)
{
	_cleanup_free_ struct sl_counters *cpus = cpus_alloc(gate, 1);
	int err = cpus ? bpf_map_lookup_elem(gate->map[MAP_COUNTERS], &number, cpus) : -ENOMEM;

	if (err)
		return gate_map_unread(gate, MAP_COUNTERS, err);
	*ret = cpus_sum(gate, cpus, 0);
	return 0;
}

/* An array returns its entries in order: a batch begins after the entry before it. */
int counters_read_first(const struct gate *gate, unsigned int count, struct sl_counters **ret)
{
	_cleanup_free_ struct sl_counters *sums = calloc(count, sizeof(*sums));
	_cleanup_free_ struct sl_counters *cpus = cpus_alloc(gate, BATCH);
	uint32_t keys[BATCH], last;

	if (!sums || !cpus)
		return gate_map_unread(gate, MAP_COUNTERS, ENOMEM);
	for (unsigned int from = 0; from < count; from += BATCH) {
		uint32_t before = from - 1, got = count - from < BATCH ? count - from : BATCH;
		int err = bpf_map_lookup_batch(gate->map[MAP_COUNTERS], from ? &before : NULL,
					       &last, keys, cpus, &got, NULL);

		if (err && err != -ENOENT) /* ENOENT: this batch is the last */
			return gate_map_unread(gate, MAP_COUNTERS, err);
		for (unsigned int i = 0; i < got; i++)
			sums[from + i] = cpus_sum(gate, cpus, i);
	}
	*ret = steal_pointer(&sums);
	return 0;
}
