// SPDX-License-Identifier: GPL-2.0
#include "state/pressure.h"

#include <errno.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#include "base/clock.h"
#include "gate/counters.h"
#include "gate/policy.h"
#include "gate/records.h"
#include "gate/rules.h"
#include "admission.h"
#include "ways.h"

const char *const cause_names[CAUSES] = {
	[SL_EVENT_BUSY - SL_EVENT_BUSY] = "busy",
	[SL_EVENT_NO_ROOM - SL_EVENT_BUSY] = "no-room",
};

_Static_assert(SL_EVENT_BUSY + CAUSES == SL_EVENT_NO_ROOM + 1, "each cause has a name");

/* The present moment: the packet path counts seconds by the clock, and windows in jiffies. */
struct moment {
	uint32_t second;
	uint64_t jiffy;
};

/* --- Pressure on all CPUs ------------------------------------------------------------------- */

static void pressure_add(struct pressure *pressure, struct sl_admission *here,
			 const struct moment *now)
{
	/* what the CPU would do at its next newcomer */
	flood_count_interval(here);
	flood_turn(here, now->second);
	for (int event = 0; event < SL_EVENTS; event++) {
		pressure->event[event].total += here->event[event].total;
		pressure->event[event].per_second += here->event[event].last;
	}
	pressure->lost += here->evicted;
	pressure->flooded += flood_is_any(here, now->jiffy);
	for (int budgeted = 0; budgeted < 2; budgeted++)
		pressure->crowded[budgeted] += flood_is_on(here, budgeted, now->jiffy);
}

static int refuse_unread(const struct gate *gate, int err)
{
	return failure("cannot read map '%s' of gate '%s': %s", gate_map_names[MAP_ADMISSION],
		       gate->name, why(err));
}

/* Reads the counts before the clock, so that no count is of a later moment. */
static int cpus_read(const struct gate *gate, struct sl_admission *cpus, struct moment *ret_now)
{
	uint32_t zero = 0;
	int err = bpf_map_lookup_elem(gate->map[MAP_ADMISSION], &zero, cpus);

	if (err)
		return refuse_unread(gate, err);
	ret_now->second = uptime_ns() >> SL_SECOND_SHIFT;
	return jiffies_read(&ret_now->jiffy);
}

int pressure_read(const struct gate *gate, struct pressure *ret)
{
	struct sl_admission *cpus = calloc(gate->machine.cpus, sizeof(*cpus));
	struct pressure pressure = {0};
	struct moment now;
	int status = cpus ? cpus_read(gate, cpus, &now) : refuse_unread(gate, ENOMEM);

	for (unsigned int cpu = 0; !status && cpu < gate->machine.cpus; cpu++)
		pressure_add(&pressure, &cpus[cpu], &now);
	free(cpus);
	if (status)
		return status;
	for (int event = 0; event < SL_EVENTS; event++) {
		uint64_t *count = &pressure.event[event].per_second;

		/* counted in 2^SL_SECOND_SHIFT ns, which is a little more than a second; rounded */
		*count = (*count * NS_PER_SEC + (1ULL << (SL_SECOND_SHIFT - 1))) >> SL_SECOND_SHIFT;
	}
	*ret = pressure;
	return OK;
}

double pressure_bursts_lost(const struct pressure *pressure)
{
	return (double)pressure->lost / EVICT_PARTS;
}

/* --- Policies that newcomers pass without a budget ------------------------------------------ */

/* Counts from before this policy are in its base, and are subtracted. */
int policy_passed_by(const struct gate *gate, const struct sl_policy *policy, bool *ret)
{
	struct sl_counters counters;
	int status;

	*ret = false;
	if (!policy_lacks_budget(policy))
		return OK;
	status = counters_read(gate, SL_POLICY(record_number(gate, policy)), &counters);
	if (status)
		return status;
	counters_take_from(&counters, &policy->base);
	*ret = counters.reason[SL_PASS_NEWCOMER].packets;
	return OK;
}

int passing_read(const struct gate *gate, const struct pressure *pressure, struct passing *ret)
{
	const struct sl_policy **policies;
	struct passing passing = {0};
	unsigned int count;
	int status;

	*ret = passing;
	if (!pressure->crowded[false])
		return OK;
	status = rules_policies(gate, &policies, &count);
	if (status)
		return status;
	for (unsigned int i = 0; !status && i < count; i++) {
		bool is_passed;

		status = policy_passed_by(gate, policies[i], &is_passed);
		if (!status && is_passed && !passing.policies++)
			passing.first = policies[i]->prefix;
	}
	free(policies);
	if (!status)
		*ret = passing;
	return status;
}
