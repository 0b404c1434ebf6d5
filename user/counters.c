// SPDX-License-Identifier: GPL-2.0
#include "counters.h"

#include <errno.h>
#include <stdlib.h>
#include <bpf/bpf.h>

const char *const reason_names[SL_REASONS] = {
	[SL_PASS_WITHIN] = "within-limit",   [SL_PASS_NO_RULE] = "no-rule",
	[SL_PASS_NOT_IP] = "not-ip",	     [SL_PASS_SHORT] = "short",
	[SL_PASS_BAD_HEADER] = "bad-header", [SL_PASS_VLAN_DEPTH] = "vlan-depth",
	[SL_DROP_OVER_LIMIT] = "over-limit", [SL_DROP_OVERSIZE] = "oversize",
	[SL_DROP_CONTENDED] = "contended",   [SL_DROP_NO_MEMORY] = "no-memory",
};

_Static_assert(SL_REASONS == 10, "each reason has a name");

void cell_add_to(struct sl_cell *sum, const struct sl_cell *cell)
{
	sum->packets += cell->packets;
	sum->bytes += cell->bytes;
}

void counters_add_to(struct sl_counters *sum, const struct sl_counters *counters)
{
	for (int reason = 0; reason < SL_REASONS; reason++)
		cell_add_to(&sum->reason[reason], &counters->reason[reason]);
}

void counters_take_from(struct sl_counters *sum, const struct sl_counters *counters)
{
	for (int reason = 0; reason < SL_REASONS; reason++) {
		sum->reason[reason].packets -= counters->reason[reason].packets;
		sum->reason[reason].bytes -= counters->reason[reason].bytes;
	}
}

/* Room for one entry of `counters` on every CPU; the caller frees it. */
static struct sl_counters *cpus_alloc(const struct gate *gate)
{
	return calloc(gate->machine.cpus, sizeof(struct sl_counters));
}

int counters_get(const struct gate *gate, unsigned int number, struct sl_counters *ret)
{
	struct sl_counters *cpus = cpus_alloc(gate), sum = {0};
	int err = -ENOMEM;

	if (cpus)
		err = bpf_map_lookup_elem(gate->map[MAP_COUNTERS], &number, cpus);
	for (unsigned int cpu = 0; !err && cpu < gate->machine.cpus; cpu++)
		counters_add_to(&sum, &cpus[cpu]);
	free(cpus);
	if (!err)
		*ret = sum;
	return err;
}

enum status counters_read(const struct gate *gate, unsigned int number, struct sl_counters *ret)
{
	int err = counters_get(gate, number, ret);

	return err ? fail("cannot read the counters of gate '%s': %s", gate->name, why(err)) : OK;
}

static struct sl_cell counters_sum(const struct sl_counters *counters, int from, int to)
{
	struct sl_cell sum = {0};

	for (int reason = from; reason < to; reason++)
		cell_add_to(&sum, &counters->reason[reason]);
	return sum;
}

struct sl_cell counters_passed(const struct sl_counters *counters)
{
	return counters_sum(counters, 0, SL_FIRST_DROP);
}

struct sl_cell counters_dropped(const struct sl_counters *counters)
{
	return counters_sum(counters, SL_FIRST_DROP, SL_REASONS);
}
