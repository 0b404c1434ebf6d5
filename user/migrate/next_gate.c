// SPDX-License-Identifier: GPL-2.0
#include "migrate/next_gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "gate/change.h"
#include "gate/gate_dir.h"
#include "gate/gate_make.h"
#include "gate/records.h"
#include "gate/rulemap.h"
#include "rules/prefix.h"
#include "rules/sizes.h"

/* --- Numbers of policies -------------------------------------------------------------------- */

static bool number_is_used(const struct gate *gate, uint32_t number)
{
	return record_read(gate, SL_RECORD(number))->since ||
	       record_read(gate, SL_RECORD(number) + 1)->since;
}

/*
 * Assigns numbers. If all fit, policies keep theirs, and bucket entries and rules can stay; so do
 * deleted ones, under which something was counted. Otherwise those in force get the first numbers.
 */
static void numbers_assign(const struct gate *gate, struct resize_plan *plan)
{
	uint32_t seen = gate_policies_seen(gate), last = 0;

	for (uint32_t number = SL_POLICY_NONE; number < SL_POLICY_FIRST; number++)
		plan->number[number] = number;
	for (uint32_t number = SL_POLICY_FIRST; number < seen; number++) {
		if (!number_is_used(gate, number))
			continue;
		plan->number[number] = SL_POLICY_FIRST + plan->in_force++;
		last = number;
	}
	plan->is_renumbered = last >= plan->sizes.policies;
	plan->seen = SL_POLICY_FIRST + plan->in_force;
	if (plan->is_renumbered)
		return;
	plan->seen = seen < plan->sizes.policies ? seen : plan->sizes.policies;
	for (uint32_t number = SL_POLICY_FIRST; number < plan->seen; number++)
		plan->number[number] = number;
}

static enum status plan_numbers(const struct gate *gate, struct resize_plan *plan)
{
	plan->number = calloc(gate->policies_max + SL_POLICY_FIRST, sizeof(*plan->number));
	if (!plan->number)
		return failure("cannot resize gate '%s': %s", gate->name, why(ENOMEM));
	numbers_assign(gate, plan);
	return OK;
}

/* --- Fresh maps, and sizes ------------------------------------------------------------------ */

/*
 * Sizes that give the table, or the buckets, as many sets as before leave them as they are. Rules
 * and what is indexed by their numbers are parted by their own sizes.
 */
static void plan_maps(const struct gate *gate, struct resize_plan *plan,
		      const struct gate_sizes *old)
{
	const struct gate_sizes *new = &plan->sizes;
	const struct sl_meeting *now = &gate->state->meeting;
	const struct sl_meeting next = gate_meeting(new, &gate->machine, now->secret);
	bool policies = new->policies != old->policies;
	bool rules = new->hosts != old->hosts || new->prefixes != old->prefixes;

	plan->fresh[MAP_GATE] = true;
	plan->fresh[MAP_SETS] = plan->fresh[MAP_LEDGERS] = next.set_mask != now->set_mask;
	plan->fresh[MAP_HOT] = plan->fresh[MAP_BUCKETS] =
		next.hot_mask != now->hot_mask || plan->is_renumbered;
	plan->fresh[MAP_POLICIES] = plan->fresh[MAP_COUNTERS] = policies;
	plan->fresh[MAP_BUDGETS] = plan->fresh[MAP_ALLOWANCES] = policies;
	plan->fresh[MAP_HOSTS4] = plan->fresh[MAP_HOSTS6] = plan->fresh[MAP_PREFIXES] =
		plan->fresh[MAP_SPLITS] = plan->fresh[MAP_BLOCKS] = plan->fresh[MAP_SHORTCUTS] =
			plan->fresh[MAP_HOST_SHORTCUTS] = rules || plan->is_renumbered;
}

static enum status refuse_small(const struct gate *gate, enum size size,
				const struct gate_sizes *sizes, const struct gate_sizes *in_use)
{
	return failure("gate '%s' cannot have `%s` %u: %u are in use", gate->name, size_names[size],
		       size_told(sizes, size), size_told(in_use, size));
}

/*
 * The sizes that the rules need, as far as the plan has them: rules in maps that stay fit anyway.
 */
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
	if (sizes.policies <= SL_POLICY_FIRST) /* the first takes the counts of deleted ones */
		return refuse_small(gate, SIZE_POLICIES, &sizes, &in_use);
	return OK;
}

/* --- The plan ------------------------------------------------------------------------------- */

/*
 * Undoes an interrupted change, and removes rules that have ended. Then both faces of each rule
 * agree, and no rule takes space without effect.
 */
static enum status rules_clean(struct gate *gate)
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
	return err ? failure("cannot read the rules of gate '%s': %s", gate->name, why(err)) : OK;
}

enum status resize_plan_make(struct gate *gate, const struct gate_sizes *old,
			     const struct gate_sizes *new, struct resize_plan *plan)
{
	enum status status = rules_clean(gate);

	plan->sizes = *new;
	if (!status)
		status = plan_numbers(gate, plan);
	if (status)
		return status;
	plan_maps(gate, plan, old);
	status = plan_rules(gate, plan);
	return status ?: plan_check(gate, plan);
}

void resize_plan_free(struct resize_plan *plan)
{
	free(plan->number);
	free(plan->rules);
}

/* --- Copying rules and policies ------------------------------------------------------------- */

/* Renumbers the records of settled rules, whose earlier face is no longer used. */
static void rules_renumber(struct resize_plan *plan)
{
	for (unsigned int i = 0; i < plan->count; i++) {
		struct sl_rule *rule = &plan->rules[i].rule;
		uint32_t record = rule->now.record;

		rule->now.record = SL_RECORD(plan->number[SL_POLICY(record)]) | (record & 1);
		rule->before = rule->now;
	}
}

static int rules_copy(struct gate *next, struct resize_plan *plan)
{
	uint32_t generation = rulemap_generation(next), allows = 0;
	int err;

	if (!plan->fresh[MAP_PREFIXES])
		return 0;
	if (plan->is_renumbered)
		rules_renumber(plan);
	/* counted here, as a gate of schema 4 has no count */
	for (unsigned int i = 0; i < plan->count; i++)
		allows += rulemap_face(&plan->rules[i].rule, generation)->list == SL_LIST_ALLOW;
	next->state->hand_allows = allows;
	err = rulemap_write(next, plan->rules, plan->count);
	return err ?: splits_set(next, plan->rules, plan->count);
}

/* Renumbers what an heir has from other policies. */
static void heir_renumber(struct sl_policy *policy, const struct resize_plan *plan)
{
	uint32_t parent = policy->parent;

	policy->parent = SL_RECORD(plan->number[SL_POLICY(parent)]) | (parent & 1);
	policy->newcomers_home = plan->number[policy->newcomers_home];
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		uint32_t home = policy->home[slot];

		policy->home[slot] =
			SL_HOME(plan->number[SL_HOME_POLICY(home)], SL_HOME_SLOT(home));
	}
}

/*
 * Copies both records of each policy, and the level of its budget unless the gates share that map.
 * What packets draw from the old budget before the devices are switched is not charged to the new
 * one.
 */
static void policies_copy(const struct gate *gate, struct gate *next,
			  const struct resize_plan *plan)
{
	if (!plan->fresh[MAP_POLICIES])
		return;
	for (uint32_t number = 0; number < gate->policies_max; number++) {
		uint32_t to = plan->number[number];

		if (number >= SL_POLICY_FIRST && !to)
			continue;
		for (uint32_t i = 0; i < 2; i++) {
			struct sl_policy policy = *record_read(gate, SL_RECORD(number) + i);

			if (plan->is_renumbered)
				heir_renumber(&policy, plan);
			record_write(next, SL_RECORD(to) + i, &policy, policy.since);
		}
		if (plan->fresh[MAP_BUDGETS])
			next->budgets[to] = gate->budgets[number];
	}
	next->state->policies_seen = plan->seen;
	if (plan->is_renumbered || next->state->next_policy >= plan->sizes.policies)
		next->state->next_policy = plan->seen;
}

enum status next_gate_make(const struct gate *gate, struct resize_plan *plan, struct gate *next)
{
	int shared[GATE_MAPS], err;
	enum status status;

	for (int map = 0; map < GATE_MAPS; map++)
		shared[map] = plan->fresh[map] ? -1 : gate->map[map];
	status = gate_make_next(gate, &plan->sizes, shared, next);
	if (status)
		return status;
	policies_copy(gate, next, plan);
	err = rules_copy(next, plan);
	if (err)
		return failure("cannot copy the rules of gate '%s': %s", gate->name, why(err));
	return OK;
}

/* --- Pins in next/ -------------------------------------------------------------------------- */

/*
 * Pins `gate` first; next_remove() removes it last. While next/gate exists, the old gate is in
 * force.
 */
enum status next_pin(const struct gate *gate, const struct gate *next, const bool fresh[GATE_MAPS])
{
	struct pins pins = PINS_CLOSED;
	enum status status = pins_make(&gate->dir, GATE_NEXT, true);

	if (!status)
		status = next_open(gate, &pins);
	for (int map = MAP_GATE; !status && map < GATE_MAPS; map++) {
		int err = 0;

		if (map == MAP_GATE || fresh[map])
			err = pin_make(&pins, gate_map_names[map], next->map[map]);
		if (err)
			status = pin_failed("pin", &pins, gate_map_names[map], err);
	}
	pins_close(&pins);
	return status;
}

enum status next_open(const struct gate *gate, struct pins *ret)
{
	return pins_open(&gate->dir, GATE_NEXT, ret);
}

enum status next_remove(const struct gate *gate)
{
	struct pins pins;
	enum status status = next_open(gate, &pins);

	for (int map = GATE_MAPS - 1; !status && map >= MAP_GATE; map--)
		pin_remove(&pins, gate_map_names[map]);
	pins_close(&pins);
	return status ?: pins_remove(&gate->dir, GATE_NEXT);
}

bool next_is_prepared(const struct pins *pins)
{
	return pin_exists(pins, gate_map_names[MAP_GATE]);
}

static enum status name_move(const struct pins *pins, const struct gate *gate, const char *name)
{
	int err = pin_rename(pins, name, &gate->dir, name);

	return err && err != -ENOENT ? pin_failed("rename", pins, name, err) : OK;
}

enum status next_rename(const struct gate *gate)
{
	struct pins pins;
	enum status status = next_open(gate, &pins);

	for (int map = MAP_GATE; !status && map < GATE_MAPS; map++)
		status = name_move(&pins, gate, gate_map_names[map]);
	pins_close(&pins);
	return status ?: pins_remove(&gate->dir, GATE_NEXT);
}
