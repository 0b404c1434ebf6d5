// SPDX-License-Identifier: GPL-2.0
#include "state/pressure.h"

#include <errno.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#include "kinds.h"
#include "sketch.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/gate.h"
#include "gate/policy.h"
#include "gate/rules.h"
#include "rules/limit.h"
#include "rules/ruleset.h"
#include "state/source.h"
#include "ways.h"

const char *const cause_names[CAUSES] = {
	[SL_EVENT_BUSY - SL_EVENT_BUSY] = "busy",
	[SL_EVENT_NO_ROOM - SL_EVENT_BUSY] = "no-room",
};

_Static_assert(SL_EVENT_BUSY + CAUSES == SL_EVENT_NO_ROOM + 1, "each cause has a name");

int pressure_read(const struct gate *gate, struct pressure *ret)
{
	_cleanup_free_ struct sl_admission *cpus = calloc(gate->machine.cpus, sizeof(*cpus));
	const uint32_t zero = 0;
	struct pressure pressure = {0};
	uint64_t jiffy, evicted = 0;
	uint32_t second;
	int err = cpus ? bpf_map_lookup_elem(gate->map[MAP_ADMISSION], &zero, cpus) : -ENOMEM;

	if (err)
		return gate_map_unread(gate, MAP_ADMISSION, err);
	/* read the clocks last, because a counter must not be from a later interval */
	second = uptime_ns() >> SL_SECOND_SHIFT;
	jiffy = jiffies_now();
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++) {
		struct sl_admission *here = &cpus[cpu];

		/*
		 * update the copy's interval, because the CPU updates it only at its next new key
		 */
		flood_count_interval(here);
		flood_turn(here, second);
		for (int event = 0; event < SL_EVENTS; event++) {
			pressure.event[event].total += here->event[event].total;
			pressure.event[event].per_second += here->event[event].last;
		}
		evicted += here->evicted;
		pressure.crossings_lost += here->crossings_lost;
		pressure.flooded += flood_is_any(here, jiffy);
		for (int budgeted = 0; budgeted < 2; budgeted++)
			pressure.flooded_by[budgeted] += flood_is_on(here, budgeted, jiffy);
	}
	for (int event = 0; event < SL_EVENTS; event++) {
		uint64_t *count = &pressure.event[event].per_second;

		/*
		 * the interval of the rate is 2^SL_SECOND_SHIFT ns, about 1.07 s: convert it to a
		 * rate per second
		 */
		*count = (*count * NS_PER_SEC + (1ULL << (SL_SECOND_SHIFT - 1))) >> SL_SECOND_SHIFT;
	}
	pressure.bursts_lost = (double)evicted / EVICT_PARTS;
	*ret = pressure;
	return 0;
}

/* --- Policies without a budget -------------------------------------------------------------- */

/*
 * Reads the counters of a policy. Subtracts `base`, the counts of earlier policies with this
 * number.
 */
static int policy_counters(const struct gate *gate, const struct sl_policy *policy,
			   struct sl_counters *ret)
{
	int err = counters_read(gate, SL_POLICY(policy_version_index(gate, policy)), ret);

	if (!err)
		counters_take_from(ret, &policy->base);
	return err;
}

int policy_passed_by(const struct gate *gate, const struct sl_policy *policy, bool *ret)
{
	struct sl_counters counters = {0};
	int err = policy_lacks_budget(policy) ? policy_counters(gate, policy, &counters) : 0;

	*ret = counters.reason[SL_PASS_NEWCOMER].packets;
	return err;
}

int passing_read(const struct gate *gate, const struct pressure *pressure, struct passing *ret)
{
	_cleanup_free_ const struct sl_policy **policies = NULL;
	unsigned int count;
	int err;

	*ret = (struct passing){0};
	if (!pressure->flooded_by[false])
		return 0;
	err = rules_policies(gate, &policies, &count);
	for (unsigned int i = 0; !err && i < count; i++) {
		bool is_passed;

		err = policy_passed_by(gate, policies[i], &is_passed);
		if (!err && is_passed && !ret->policies++)
			ret->first = policies[i]->prefix;
	}
	return err;
}

/* --- Budgets -------------------------------------------------------------------------------- */

int budgets_read(const struct gate *gate, struct budget_use **ret, unsigned int *ret_count)
{
	_cleanup_free_ const struct sl_policy **policies = NULL;
	_cleanup_free_ struct budget_use *uses = NULL;
	unsigned int policy_count, count = 0;
	int err = rules_policies(gate, &policies, &policy_count);

	if (err)
		return err;
	uses = calloc(policy_count + 1, sizeof(*uses));
	if (!uses)
		return error_add(ENOMEM, "no-memory", NULL,
				 "cannot read the budgets of gate '%s': %s", gate->name,
				 why(ENOMEM));
	/*
	 * a policy precedes the policies that inherit its budget, because they are sorted by prefix
	 */
	for (unsigned int i = 0; i < policy_count; i++) {
		uint32_t own = SL_POLICY(policy_version_index(gate, policies[i]));
		uint32_t home = policies[i]->newcomers_origin ?: own;
		struct sl_counters counters;
		struct limit_state state;

		if (!policies[i]->newcomers.burst)
			continue;
		err = policy_counters(gate, policies[i], &counters);
		if (!err && home == own)
			err = budget_state_read(gate, policies[i], 1, uptime_ticks(), false,
						&state);
		if (err)
			return err;
		if (home == own)
			uses[count++] = (struct budget_use){policies[i], .left = state.remaining};
		for (unsigned int j = 0; j < count; j++) {
			if (SL_POLICY(policy_version_index(gate, uses[j].policy)) != home)
				continue;
			uses[j].passed += counters.reason[SL_PASS_NEWCOMER].packets;
			uses[j].dropped += counters.reason[SL_DROP_OVER_BUDGET].packets;
		}
	}
	*ret = steal_pointer(&uses);
	*ret_count = count;
	return 0;
}

/* --- The table ------------------------------------------------------------------------------ */

void table_fill_judge(struct table_fill *fill, const struct pressure *pressure)
{
	uint64_t table = (uint64_t)fill->entries * sizeof(struct sl_entry) +
			 fill->entries / SL_WAYS * sizeof(struct sl_set);
	/* smallest number of sources whose table is larger than the current table */
	uint64_t above = (uint64_t)fill->entries * 3 / 4 + 1;

	fill->bytes = fill->sources ? (table + fill->sources - 1) / fill->sources : 0;
	fill->sources_short = 0;
	if (pressure->event[SL_EVENT_NO_ROOM].per_second ||
	    pressure->event[SL_EVENT_EVICTED].per_second)
		fill->sources_short = above < SIZE_MAX_ENTRIES ? above : SIZE_MAX_ENTRIES;
}

/*
 * If a state refuses the next packet under its limit, increments fill->limited. If the state is
 * blocked, also increments fill->blocked.
 */
static void limited_count(struct table_fill *fill, const struct sl_state *state,
			  const struct sl_limit *limit, uint64_t now)
{
	if (kind_decide(limit, state, 0, credit_cost(limit, 1, FRAME_USUAL), now).allowed)
		return;
	fill->limited++;
	fill->blocked += block_holds(limit, state, kind_now(limit->kind, state, now));
}

int table_fill_read(const struct gate *gate, const struct pressure *pressure,
		    struct table_fill *ret)
{
	struct table_fill fill = {.sources = gate->state->params.sources};
	struct table table = TABLE_CLOSED;
	_cleanup_free_ struct entry_limit *limits = NULL;
	unsigned int limit_count = 0;
	int err = entry_limits_list(gate, &limits, &limit_count) ?: table_open_all(gate, &table);
	uint64_t now = uptime_ticks();

	if (err)
		return err;
	fill.entries = table.count;
	for (uint32_t i = 0; i < table.count; i++) {
		const struct sl_limit *limit;
		struct sl_entry entry;
		int64_t cost;

		if (!table_once(table.entries[i].limit))
			continue;
		entry = table.entries[i];
		cost = entry_evict_cost(&entry, entry_state(&entry), now, false);
		fill.in_use++;
		fill.partial += cost > 0;
		fill.protected += evict_is_protected(cost);
		limit = cost > 0 ? entry_limit_find(limits, limit_count, entry.limit) : NULL;
		if (limit && !limit->observe)
			limited_count(&fill, entry_state(&entry), limit, now);
	}
	table_close(&table);
	table_fill_judge(&fill, pressure);
	*ret = fill;
	return 0;
}
