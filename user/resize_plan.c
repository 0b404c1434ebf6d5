// SPDX-License-Identifier: GPL-2.0
#include "resize_plan.h"

#include <errno.h>
#include <stdlib.h>

#include "change.h"
#include "old_schema.h"
#include "prefix.h"
#include "sizes.h"

/* --- Numbers -------------------------------------------------------------------------------- */

static bool number_is_used(const struct gate *gate, uint32_t number)
{
	return gate->policies[SL_RECORD(number)].since ||
	       gate->policies[SL_RECORD(number) + 1].since;
}

/* Policies keep their numbers, also deleted ones, under which something was counted. */
static void numbers_keep(const struct gate *gate, struct resize_plan *plan)
{
	uint32_t seen = gate->state->policies_seen;

	plan->seen = seen < plan->sizes.policies ? seen : plan->sizes.policies;
	for (uint32_t number = SL_POLICY_FIRST; number < plan->seen; number++)
		plan->number[number] = number;
}

/* Policies in force get the first numbers. */
static void numbers_pack(const struct gate *gate, struct resize_plan *plan)
{
	plan->seen = SL_POLICY_FIRST;
	for (uint32_t number = SL_POLICY_FIRST; number < gate->state->policies_seen; number++)
		if (number_is_used(gate, number))
			plan->number[number] = plan->seen++;
}

/* Policies keep their numbers if they can: then buckets and rules can stay as they are. */
static void numbers_assign(const struct gate *gate, struct resize_plan *plan)
{
	uint32_t last = 0;

	for (uint32_t number = SL_POLICY_FIRST; number < gate->state->policies_seen; number++) {
		if (!number_is_used(gate, number))
			continue;
		plan->in_force++;
		last = number;
	}
	for (uint32_t number = SL_POLICY_NONE; number < SL_POLICY_FIRST; number++)
		plan->number[number] = number;
	plan->is_renumbered = last >= plan->sizes.policies;
	if (plan->is_renumbered)
		numbers_pack(gate, plan);
	else
		numbers_keep(gate, plan);
}

static enum status plan_numbers(const struct gate *gate, struct resize_plan *plan)
{
	plan->number = calloc(gate->policies_max + SL_POLICY_FIRST, sizeof(*plan->number));
	if (!plan->number)
		return fail("cannot resize gate '%s': %s", gate->name, why(ENOMEM));
	numbers_assign(gate, plan);
	return OK;
}

/* --- Maps ----------------------------------------------------------------------------------- */

static void plan_maps(struct resize_plan *plan, const struct gate_sizes *old)
{
	const struct gate_sizes *new = &plan->sizes;
	bool policies = new->policies != old->policies;
	bool rules = new->hosts != old->hosts || new->prefixes != old->prefixes;

	plan->fresh[MAP_GATE] = true;
	plan->fresh[MAP_LEDGERS4] = plan->fresh[MAP_LEDGERS6] = new->sources != old->sources;
	plan->fresh[MAP_POLICIES] = plan->fresh[MAP_COUNTERS] = policies;
	plan->fresh[MAP_BUDGETS] = plan->fresh[MAP_ALLOWANCES] = policies;
	plan->fresh[MAP_SKETCH] = new->hot != old->hot;
	/* together: a CPU must not keep tokens of a larger pool */
	plan->fresh[MAP_ADMISSION] = plan->fresh[MAP_POOLS] =
		new->hot != old->hot || new->sources != old->sources;
	plan->fresh[MAP_KNOWN] = new->sources != old->sources;
	plan->fresh[MAP_BUCKETS4] = plan->fresh[MAP_BUCKETS6] =
		new->hot != old->hot || plan->is_renumbered;
	plan->fresh[MAP_HOSTS4] = plan->fresh[MAP_HOSTS6] = plan->fresh[MAP_PREFIXES] =
		plan->fresh[MAP_SPLITS] = plan->fresh[MAP_BLOCKS] = plan->fresh[MAP_SHORTCUTS] =
			rules || plan->is_renumbered;
}

static enum status refuse_small(const struct gate *gate, enum size size,
				const struct gate_sizes *sizes, const struct gate_sizes *in_use)
{
	return fail("gate '%s' cannot have `%s` %u: %u are in use", gate->name, size_names[size],
		    size_told(sizes, size), size_told(in_use, size));
}

/* What the rules take up, as far as the plan knows them: those in maps that stay as they are fit. */
static struct gate_sizes sizes_in_use(const struct resize_plan *plan)
{
	struct room room = {.policies = plan->in_force};

	for (unsigned int i = 0; i < plan->count; i++) {
		const struct sl_prefix *prefix = &plan->rules[i].prefix;

		if (prefix_is_host(prefix))
			room.hosts[prefix_is_ipv4(prefix) ? SL_IPV4 : SL_IPV6]++;
		else
			room.prefixes++;
	}
	return room_sizes(&room);
}

static enum status plan_check(const struct gate *gate, const struct resize_plan *plan)
{
	struct gate_sizes sizes = plan->sizes, in_use = sizes_in_use(plan);

	for (unsigned int i = 0; i < SIZES; i++)
		if (*size_of(&sizes, i) < *size_of(&in_use, i))
			return refuse_small(gate, i, &sizes, &in_use);
	if (sizes.policies <= SL_POLICY_FIRST) /* what deleted ones counted goes to the first */
		return refuse_small(gate, SIZE_POLICIES, &sizes, &in_use);
	return OK;
}

/* --- All ------------------------------------------------------------------------------------ */

/* What is cut off is undone, and what is over is removed: so rules say but one thing, and take no room in vain. */
static enum status rules_settle(struct gate *gate)
{
	enum status status = change_begin(gate);

	if (status)
		return status;
	change_end(gate);
	change_sweep(gate);
	return OK;
}

static enum status plan_rules(const struct gate *gate, struct resize_plan *plan)
{
	int err = 0;

	if (plan->fresh[MAP_PREFIXES])
		err = rulemap_read(gate, &plan->rules, &plan->count);
	return err ? fail("cannot read the rules of gate '%s': %s", gate->name, why(err)) : OK;
}

enum status resize_plan_make(struct gate *gate, const struct gate_sizes *old,
			     const struct gate_sizes *new, struct resize_plan *plan)
{
	enum status status = rules_settle(gate);

	plan->sizes = *new;
	if (!status)
		status = plan_numbers(gate, plan);
	if (status)
		return status;
	plan_maps(plan, old);
	status = plan_rules(gate, plan);
	return status ?: plan_check(gate, plan);
}

enum status resize_plan_upgrade(const struct gate *gate, struct resize_plan *plan)
{
	enum status status = gate_sizes_read(gate, &plan->sizes);

	if (!status)
		status = plan_numbers(gate, plan);
	for (int map = 0; map < GATE_MAPS; map++)
		plan->fresh[map] = !gate->old->shared[map];
	return status ?: plan_rules(gate, plan);
}

void resize_plan_free(struct resize_plan *plan)
{
	free(plan->number);
	free(plan->rules);
}
