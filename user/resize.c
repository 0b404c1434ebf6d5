// SPDX-License-Identifier: GPL-2.0
/*
 * A resize makes a second gate beside the running one, which shares the maps that keep their size, switches the devices
 * to it, carries over what packets did meanwhile, and then gives it the name. Its pins are in GATE/next/ until then, and
 * one rename, of `gate`, ends the old gate and begins the new one: it says which maps are meant. So a resize that
 * is cut off leaves, at every moment, one gate that commands find whole, and next/ tells the next one that changes
 * it what to do:
 *
 * - next/gate is there: the old gate is still the one. Devices that were switched already are switched back, what they
 *   charged is charged to the old ledgers, and next/ goes. Until somebody does so, both sets of maps judge, each
 *   for its own devices; what the new one counted is lost.
 * - next/gate is gone: the new gate is the one, all devices are on it, and only the other pins are to be renamed.
 */
#include "resize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "carry.h"
#include "change.h"
#include "grace.h"
#include "object.h"
#include "pins.h"
#include "prefix.h"
#include "rulemap.h"
#include "splits.h"
#include "switch.h"

/* What a resize comes to. */
struct plan {
	struct gate_sizes sizes;
	bool fresh[GATE_MAPS];
	uint32_t *number;   /* of each policy: what it will be called; 0: it is not in force */
	uint32_t seen;	    /* no number from here on will be in use */
	uint32_t in_use;    /* policies in force, and those that always are */
	bool is_renumbered; /* the records that rules and buckets name are others then */
	struct rulemap_entry *rules;
	unsigned int count;
};

/* --- Pins ----------------------------------------------------------------------------------- */

static const char *next_path(const char *gate, int map, char path[PINS_PATH])
{
	char below[PINS_PATH];

	snprintf(below, sizeof(below), PINS_NEXT "/%s", gate_map_names[map]);
	return pins_path(gate, below, path);
}

/* `gate` first and last: while it is there, the rest means nothing yet. */
static enum status next_pin(const struct gate *next, const bool fresh[GATE_MAPS])
{
	char path[PINS_PATH];

	if (mkdir(pins_path(next->name, PINS_NEXT, path), 0700))
		return fail("cannot make %s: %s", path, why(errno));
	for (int map = MAP_GATE; map < GATE_MAPS; map++)
		if ((map == MAP_GATE || fresh[map]) &&
		    bpf_obj_pin(next->map[map], next_path(next->name, map, path)))
			return fail("cannot pin %s: %s", path, why(errno));
	return OK;
}

static void next_remove(const char *gate)
{
	char path[PINS_PATH];

	for (int map = GATE_MAPS - 1; map >= MAP_GATE; map--)
		unlink(next_path(gate, map, path));
	rmdir(pins_path(gate, PINS_NEXT, path));
}

static bool next_exists(const char *gate)
{
	char path[PINS_PATH];

	return !access(pins_path(gate, PINS_NEXT, path), F_OK);
}

/* Whether the old gate is the one still. */
static bool next_is_prepared(const char *gate)
{
	char path[PINS_PATH];

	return !access(next_path(gate, MAP_GATE, path), F_OK);
}

/* Gives the pins in next/ their names; with that of `gate` the new gate begins. */
static enum status next_rename(const char *gate)
{
	char from[PINS_PATH], to[PINS_PATH];

	for (int map = MAP_GATE; map < GATE_MAPS; map++)
		if (rename(next_path(gate, map, from), pins_path(gate, gate_map_names[map], to)) &&
		    errno != ENOENT)
			return fail("cannot rename %s: %s", from, why(errno));
	rmdir(pins_path(gate, PINS_NEXT, to));
	return OK;
}

/* --- Back ----------------------------------------------------------------------------------- */

static void fds_close(int fds[SL_FAMILIES])
{
	for (int family = 0; family < SL_FAMILIES; family++)
		if (fds[family] >= 0)
			close(fds[family]);
}

/* Puts all devices on the gate's own maps again, and drops the new ones. */
static enum status next_undo(const struct gate *gate)
{
	struct programs programs = PROGRAMS_CLOSED;
	struct switching switching;
	int ledgers[SL_FAMILIES];
	char path[PINS_PATH];
	enum status status;

	ledgers[SL_IPV4] = bpf_obj_get(next_path(gate->name, MAP_LEDGERS4, path));
	ledgers[SL_IPV6] = bpf_obj_get(next_path(gate->name, MAP_LEDGERS6, path));
	status = programs_load(gate, &programs);
	if (!status)
		status = programs_switch(gate, &programs, &switching);
	if (!status) {
		packets_outwait();
		status = carry_back(gate, ledgers);
	}
	if (!status)
		next_remove(gate->name);
	programs_close(&programs);
	fds_close(ledgers);
	return status;
}

enum status resize_settle(const struct gate *gate)
{
	if (!next_exists(gate->name))
		return OK;
	note("gate '%s': a resize was cut off, and is put in order", gate->name);
	return next_is_prepared(gate->name) ? next_undo(gate) : next_rename(gate->name);
}

/* --- Planning ------------------------------------------------------------------------------- */

static bool number_is_used(const struct gate *gate, uint32_t number)
{
	return gate->policies[SL_RECORD(number)].since ||
	       gate->policies[SL_RECORD(number) + 1].since;
}

/* Policies keep their numbers if they can; else those in force get the first ones. */
static void numbers_assign(const struct gate *gate, struct plan *plan)
{
	uint32_t seen = gate->state->policies_seen, next = SL_POLICY_FIRST, last = 0;

	for (uint32_t number = SL_POLICY_FIRST; number < seen; number++) {
		if (!number_is_used(gate, number))
			continue;
		plan->number[number] = next++;
		last = number;
	}
	for (uint32_t number = SL_POLICY_NONE; number < SL_POLICY_FIRST; number++)
		plan->number[number] = number;
	plan->in_use = next;
	plan->is_renumbered = last >= plan->sizes.policies;
	plan->seen = seen;
	if (plan->is_renumbered) {
		plan->seen = next > SL_POLICY_FIRST ? next : SL_POLICY_FIRST + 1;
		return;
	}
	if (plan->seen > plan->sizes.policies)
		plan->seen = plan->sizes.policies;
	for (uint32_t number = SL_POLICY_FIRST; number < seen; number++)
		plan->number[number] = number < plan->seen ? number : 0;
}

static enum status plan_numbers(const struct gate *gate, struct plan *plan)
{
	plan->number = calloc(gate->policies_max + SL_POLICY_FIRST, sizeof(*plan->number));
	if (!plan->number)
		return fail("cannot resize gate '%s': %s", gate->name, why(ENOMEM));
	numbers_assign(gate, plan);
	return OK;
}

static void plan_maps(struct plan *plan, const struct gate_sizes *old)
{
	const struct gate_sizes *new = &plan->sizes;
	bool policies = new->policies != old->policies;
	bool rules = new->hosts != old->hosts || new->prefixes != old->prefixes;

	plan->fresh[MAP_GATE] = true;
	plan->fresh[MAP_LEDGERS4] = plan->fresh[MAP_LEDGERS6] = new->sources != old->sources;
	plan->fresh[MAP_POLICIES] = plan->fresh[MAP_COUNTERS] = policies;
	plan->fresh[MAP_BUDGETS] = plan->fresh[MAP_ALLOWANCES] = policies;
	plan->fresh[MAP_ADMISSION] = plan->fresh[MAP_SKETCH] = new->hot != old->hot;
	plan->fresh[MAP_KNOWN] = new->sources != old->sources;
	plan->fresh[MAP_BUCKETS4] = plan->fresh[MAP_BUCKETS6] =
		new->hot != old->hot || plan->is_renumbered;
	plan->fresh[MAP_HOSTS4] = plan->fresh[MAP_HOSTS6] = plan->fresh[MAP_PREFIXES] =
		plan->fresh[MAP_SPLITS] = plan->fresh[MAP_BLOCKS] = plan->fresh[MAP_SHORTCUTS] =
			rules || plan->is_renumbered;
}

static enum status refuse_small(const struct gate *gate, const char *name, uint32_t size,
				uint32_t in_use)
{
	return fail("gate '%s' cannot have `%s` %u: %u are in use", gate->name, name, size, in_use);
}

static enum status plan_check(const struct gate *gate, const struct plan *plan)
{
	uint32_t hosts4 = 0, hosts6 = 0, prefixes = 0;

	for (unsigned int i = 0; i < plan->count; i++) {
		const struct sl_prefix *prefix = &plan->rules[i].prefix;

		if (!prefix_is_host(prefix))
			prefixes++;
		else if (prefix_is_ipv4(prefix))
			hosts4++;
		else
			hosts6++;
	}
	if (hosts4 > plan->sizes.hosts || hosts6 > plan->sizes.hosts)
		return refuse_small(gate, "hosts", plan->sizes.hosts,
				    hosts4 > hosts6 ? hosts4 : hosts6);
	if (prefixes > plan->sizes.prefixes)
		return refuse_small(gate, "prefixes", plan->sizes.prefixes, prefixes);
	if (plan->in_use > plan->sizes.policies || plan->sizes.policies <= SL_POLICY_FIRST)
		return refuse_small(gate, "policies", plan->sizes.policies, plan->in_use);
	return OK;
}

static uint32_t size_or(uint32_t wanted, uint32_t old)
{
	return wanted ? wanted : old;
}

/* Settles the rules, and plans. Sizes that are what they were: OK, and `ret_none`. */
static enum status plan_make(struct gate *gate, const struct gate_sizes *wanted, struct plan *plan,
			     bool *ret_none)
{
	struct gate_sizes old;
	enum status status = gate_sizes_read(gate, &old);
	int err;

	if (status)
		return status;
	plan->sizes = (struct gate_sizes){
		.sources = size_or(wanted->sources, old.sources),
		.hot = size_or(wanted->hot, old.hot),
		.policies = size_or(wanted->policies, old.policies),
		.hosts = size_or(wanted->hosts, old.hosts),
		.prefixes = size_or(wanted->prefixes, old.prefixes),
	};
	*ret_none = !memcmp(&plan->sizes, &old, sizeof(old));
	if (*ret_none)
		return OK;
	status = change_begin(gate);
	if (status)
		return status;
	change_end(gate);
	change_sweep(gate);
	status = plan_numbers(gate, plan);
	if (status)
		return status;
	plan_maps(plan, &old);
	err = plan->fresh[MAP_PREFIXES] ? rulemap_read(gate, &plan->rules, &plan->count) : 0;
	if (err)
		return fail("cannot read the rules of gate '%s': %s", gate->name, why(err));
	return plan_check(gate, plan);
}

static void plan_free(struct plan *plan)
{
	free(plan->number);
	free(plan->rules);
}

/* --- The new gate --------------------------------------------------------------------------- */

/* What the rules are settled on; what they said before means nothing any more. */
static void rules_renumber(struct plan *plan)
{
	for (unsigned int i = 0; i < plan->count; i++) {
		struct sl_rule *rule = &plan->rules[i].rule;
		uint32_t record = rule->now.record;

		rule->now.record = SL_RECORD(plan->number[SL_POLICY(record)]) | (record & 1);
		rule->before = rule->now;
	}
}

static int rules_copy(struct gate *next, struct plan *plan)
{
	int err;

	if (!plan->fresh[MAP_PREFIXES])
		return 0;
	rules_renumber(plan);
	err = rulemap_write(next, plan->rules, plan->count);
	return err ?: splits_set(next, plan->rules, plan->count);
}

/* With the level of its budget; what packets draw from the old one until the devices are switched is lost. */
static void policy_copy(const struct gate *gate, uint32_t number, struct gate *next,
			uint32_t next_number)
{
	memcpy(&next->policies[SL_RECORD(next_number)], &gate->policies[SL_RECORD(number)],
	       2 * sizeof(*gate->policies));
	next->budgets[next_number] = gate->budgets[number];
}

static void policies_copy(const struct gate *gate, struct gate *next, const struct plan *plan)
{
	if (!plan->fresh[MAP_POLICIES])
		return;
	for (uint32_t number = 0; number < gate->policies_max; number++) {
		if (number < SL_POLICY_FIRST || plan->number[number])
			policy_copy(gate, number, next, plan->number[number]);
	}
	next->state->policies_seen = plan->seen;
	if (plan->is_renumbered || next->state->next_policy >= plan->sizes.policies)
		next->state->next_policy = plan->seen;
}

static enum status next_make(const struct gate *gate, struct plan *plan, struct gate *next)
{
	enum status status = gate_make_successor(gate, &plan->sizes, plan->fresh, next);
	int err;

	if (status)
		return status;
	policies_copy(gate, next, plan);
	err = rules_copy(next, plan);
	return err ? fail("cannot copy the rules of gate '%s': %s", gate->name, why(err)) : OK;
}

/* --- The steps ------------------------------------------------------------------------------ */

static enum status next_switch(const struct gate *gate, const struct gate *next,
			       struct switching *ret)
{
	struct programs programs = PROGRAMS_CLOSED;
	enum status status = programs_load(next, &programs);

	if (!status)
		status = programs_switch(gate, &programs, ret);
	programs_close(&programs);
	return status;
}

/* Lets packets use the new maps, carries over what they did to the old ones, and makes the new ones the gate's. */
static enum status next_begin(const struct gate *gate, const struct gate *next,
			      const struct plan *plan, struct carry *carry)
{
	enum status status = next_pin(next, plan->fresh);
	struct switching switching;

	if (!status)
		status = next_switch(gate, next, &switching);
	if (status) {
		next_remove(gate->name);
		return status;
	}
	packets_outwait();
	status = carry_end(carry, switching.began);
	if (!status)
		status = next_rename(gate->name);
	if (status && next_is_prepared(gate->name))
		next_undo(gate);
	return status;
}

/* The gate that is open is the new one from now on. */
static void gate_become(struct gate *gate, struct gate *next)
{
	next->lock = gate->lock;
	next->made = gate->made;
	gate->lock = -1;
	gate_close(gate);
	*gate = *next;
	*next = GATE_CLOSED;
}

static void lost_say(const struct gate *gate, const struct plan *plan, unsigned int lost)
{
	if (plan->fresh[MAP_BUCKETS4])
		note("gate '%s': the counters of single sources start anew, and what CPUs held of "
		     "their "
		     "bursts, a sixteenth at most, is dropped",
		     gate->name);
	if (lost)
		note("gate '%s': %u sources, those not heard for longest, did not fit and are "
		     "forgotten: they come back with a full bucket",
		     gate->name, lost);
}

static enum status plan_carry_out(struct gate *gate, struct plan *plan)
{
	struct gate next = GATE_CLOSED;
	struct carry *carry = NULL;
	enum status status = next_make(gate, plan, &next);

	if (!status)
		status = carry_begin(gate, &next, plan->number, &carry);
	if (!status)
		status = next_begin(gate, &next, plan, carry);
	if (!status) {
		lost_say(gate, plan, carry_lost(carry));
		gate_become(gate, &next);
	}
	carry_free(carry);
	gate_close(&next);
	return status;
}

enum status resize(struct gate *gate, const struct gate_sizes *sizes)
{
	struct plan plan = {0};
	bool none = false;
	enum status status = plan_make(gate, sizes, &plan, &none);

	if (!status && !none)
		status = plan_carry_out(gate, &plan);
	plan_free(&plan);
	return status;
}
