// SPDX-License-Identifier: GPL-2.0
/*
 * A remake makes a second gate beside the running one. The next gate shares every map whose size
 * stays. The steps:
 *
 * 1. make the maps that differ, and copy rules, policies and budgets into them
 * 2. pin them in GATE/next/, `gate` last: from here on the remake is finished, not undone
 * 3. switch all devices to programs on the next gate, and wait for packets in the old ones
 * 4. add what the old `counters` and `budgets` were charged meanwhile
 * 5. move the pins from next/ to the gate's directory, `gate` first: the next gate is the gate
 *
 * After a kill the next command looks at next/:
 *
 * - next/gate exists: the next gate is complete. The next command does steps 3 to 5 again. Until
 *   then each device filters with either gate, by the same rules. A map that differs is charged by
 *   its devices alone, so a limit (`sources`) or a budget (`policies`) can be used twice.
 * - next/gate does not exist: pins of maps that `gate` has the ids of are moved (a kill in step 5),
 *   and others are removed (a kill in step 2).
 *
 * Both gates have one generation, and policies keep their numbers, so that caches and buckets that
 * both use are valid for both.
 */
#include "migrate/remake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/replace.h"
#include "base/clock.h"
#include "base/host.h"
#include "credit.h"
#include "gate/change.h"
#include "gate/counters.h"
#include "gate/pins.h"
#include "gate/gate_make.h"
#include "gate/gate_maps.h"
#include "gate/outwait.h"
#include "gate/records.h"
#include "gate/rulemap.h"
#include "kinds.h"
#include "rules/prefix.h"

static bool map_is_new(const struct gate *gate, const struct gate *next, enum gate_map map)
{
	return gate->state->map_ids[map] != next->state->map_ids[map];
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* --- Rules ---------------------------------------------------------------------------------- */

static int refuse_small(const struct gate *gate, const struct gate_sizes *sizes,
			const struct room *room)
{
	struct gate_sizes asked = *sizes, needed = room_sizes(room);

	for (unsigned int i = 0; i < SIZES; i++)
		if (*size_of(&asked, i) < *size_of(&needed, i))
			return failure("gate '%s': `%s` cannot be %u: its rules need %u",
				       gate->name, size_names[i], size_told(sizes, i),
				       size_told(&needed, i));
	return OK;
}

/* Copies the rules into the maps of rules that are new. */
static int rules_copy(const struct gate *gate, struct gate *next, const struct gate_sizes *sizes)
{
	unsigned int count = 0, copied = 0;
	struct rulemap_entry *rules;
	struct room room = {0};
	int status;
	int err;

	if (!map_is_new(gate, next, MAP_HOSTS4) && !map_is_new(gate, next, MAP_PREFIXES))
		return OK;
	err = rulemap_read(gate, &rules, &count);
	if (err)
		return failure("cannot read the rules of gate '%s': %s", gate->name, why(err));
	for (unsigned int i = 0; i < count; i++)
		room_add(&room, NULL, &(struct rule){.prefix = rules[i].prefix});
	status = refuse_small(gate, sizes, &room);
	if (!status && map_is_new(gate, next, MAP_SPLITS))
		err = splits_set(next, rules, count);
	for (unsigned int i = 0; i < count; i++)
		if (map_is_new(gate, next,
			       prefix_is_host(&rules[i].prefix) ? MAP_HOSTS4 : MAP_PREFIXES))
			rules[copied++] = rules[i];
	if (!status && !err)
		err = rulemap_write(next, rules, copied);
	free(rules);
	return err ? failure("cannot copy the rules of gate '%s': %s", gate->name, why(err))
		   : status;
}

/* --- Policies, their counters and budgets --------------------------------------------------- */

/*
 * Counts the policies in force. Returns the entries that their maps need: policies keep their
 * numbers.
 */
static uint32_t policies_count(const struct gate *gate, struct room *room)
{
	uint32_t entries = SL_POLICY_FIRST + 1;

	for (uint32_t number = SL_POLICY_FIRST; number < gate_policies_seen(gate); number++) {
		if (!record_read(gate, SL_POLICY_VERSION(number))->since &&
		    !record_read(gate, SL_POLICY_VERSION(number) + 1)->since)
			continue;
		room->policies++;
		entries = number + 1;
	}
	return entries;
}

/*
 * Reads the state of a budget. A full one is returned as full since now, so that `empty_at` advances
 * from there by what is charged.
 */
static struct sl_state budget_read(const struct gate *gate, uint32_t number, uint64_t now)
{
	struct sl_state state = gate->budgets[number];

	for (uint32_t record = SL_POLICY_VERSION(number); record < SL_POLICY_VERSION(number + 1);
	     record++) {
		const struct sl_policy *policy = record_read(gate, record);
		struct sl_state full = kind_full(&policy->newcomers, now);

		if (policy->newcomers.burst && credit_span(state.empty_at, full.empty_at) > 0)
			state = full;
	}
	return state;
}

static void policies_copy(const struct gate *gate, struct gate *next)
{
	uint32_t count = smaller(gate->policies_max, next->policies_max);
	uint64_t now = uptime_ticks();

	if (!map_is_new(gate, next, MAP_POLICIES))
		return;
	for (uint32_t number = 0; number < count; number++) {
		for (uint32_t record = SL_POLICY_VERSION(number);
		     record < SL_POLICY_VERSION(number + 1); record++) {
			const struct sl_policy *policy = record_read(gate, record);

			record_write(next, record, policy, policy->since);
		}
		next->budgets[number] = budget_read(gate, number, now);
	}
	next->state->policies_seen = smaller(gate_policies_seen(gate), next->policies_max);
	if (next->state->next_policy >= next->policies_max)
		next->state->next_policy = SL_POLICY_FIRST;
}

/* Returns the `empty_at` of each budget of the next gate, before packets charge it. NULL: no memory. */
static uint64_t *budgets_note(const struct gate *next)
{
	uint64_t *zeros = calloc(next->policies_max, sizeof(*zeros));

	for (uint32_t number = 0; zeros && number < next->policies_max; number++)
		zeros[number] = next->budgets[number].empty_at;
	return zeros;
}

/*
 * Charges to the next budgets what the old budgets were charged since they were copied. zeros: from
 * budgets_note(). NULL: unknown, because the command that copied the budgets was killed; then each
 * budget gets the later `empty_at` of the two.
 */
static void budgets_add(const struct gate *gate, struct gate *next, const uint64_t *zeros)
{
	uint32_t count = smaller(gate->policies_max, next->policies_max);

	for (uint32_t number = 0; number < count; number++) {
		uint64_t last = __atomic_load_n(&gate->budgets[number].empty_at, __ATOMIC_RELAXED);
		__u64 *zero = &next->budgets[number].empty_at;
		uint64_t copied = zeros ? zeros[number] : __atomic_load_n(zero, __ATOMIC_RELAXED);

		if (credit_span(copied, last) > 0)
			__atomic_fetch_add(zero, last - copied, __ATOMIC_RELAXED);
	}
}

/*
 * Subtracts the final counts of the old `counters` from the bases of the next records. The next
 * counters began at 0, so a reader of the next gate sees the sum of both maps. Can be repeated.
 */
static int counters_add(const struct gate *gate, struct gate *next)
{
	uint32_t seen = gate_policies_seen(gate), first = SL_POLICY_FIRST;
	uint32_t count = seen > first ? seen : first;
	struct sl_counters *sums, *moved = &next->policies[SL_POLICY_VERSION_MOVED].base, total;
	int status = counters_read_first(gate, count, &sums);

	if (status)
		return status;
	total = gate->policies[SL_POLICY_VERSION_MOVED].base;
	for (uint32_t number = 0; number < count; number++) {
		counters_add_to(&total, &sums[number]);
		if (number >= next->policies_max)
			continue;
		for (uint32_t record = SL_POLICY_VERSION(number);
		     record < SL_POLICY_VERSION(number + 1); record++) {
			struct sl_counters base = gate->policies[record].base;

			counters_take_from(&base, &sums[number]);
			next->policies[record].base = base;
		}
	}
	*moved = total;
	free(sums);
	return OK;
}

/* --- Pins in next/ -------------------------------------------------------------------------- */

static int next_pin(const struct gate *gate, const struct gate *next)
{
	struct pins pins = PINS_CLOSED;
	int status = pins_make(&gate->dir, GATE_NEXT, true);

	if (!status)
		status = pins_open(&gate->dir, GATE_NEXT, &pins);
	for (int map = GATE_MAPS - 1; !status && map >= MAP_GATE; map--) {
		int err = 0;

		if (map_is_new(gate, next, map))
			err = pin_make(&pins, gate_map_names[map], next->map[map]);
		if (err)
			status = pin_failed("pin", &pins, gate_map_names[map], err);
	}
	pins_close(&pins);
	return status;
}

/*
 * Moves a pin to the gate's directory if its map is the gate's, and removes it otherwise. A pin
 * that cannot be read stays.
 */
static int pin_settle(const struct gate *gate, const struct pins *pins, enum gate_map map)
{
	const char *name = gate_map_names[map];
	int fd = pin_open(pins, name);
	uint32_t id;

	if (fd < 0)
		return fd;
	id = gate_map_id(fd);
	close(fd);
	if (!id)
		return -EIO;
	if (id == gate->state->map_ids[map])
		return pin_rename(pins, name, &gate->dir, name);
	return pin_remove(pins, name);
}

/* Empties and removes next/. Pins of maps of `gate` move to its directory. */
static int next_end(const struct gate *gate)
{
	struct pins pins;
	int status = pins_open(&gate->dir, GATE_NEXT, &pins);

	if (status || pins.fd < 0)
		return status;
	for (int map = MAP_GATE; !status && map < GATE_MAPS; map++) {
		int err = pin_settle(gate, &pins, map);

		if (err && err != -ENOENT)
			status = pin_failed("rename", &pins, gate_map_names[map], err);
	}
	pins_close(&pins);
	return status ?: pins_remove(&gate->dir, GATE_NEXT);
}

/* --- The switch ----------------------------------------------------------------------------- */

/* Replaces the open gate by the next one. */
static void gate_become(struct gate *gate, struct gate *next)
{
	next->dir = gate->dir;
	next->links = gate->links;
	next->made = gate->made;
	next->grow = gate->grow;
	gate->dir = gate->links = (struct pins)PINS_CLOSED;
	gate_close(gate);
	*gate = *next;
	*next = GATE_CLOSED;
}

static void lost_report(const struct gate *gate, const struct gate *next)
{
	if (map_is_new(gate, next, MAP_STATES))
		note("gate '%s': the state of all sources was reset; counters of policies stay",
		     gate->name);
	else if (map_is_new(gate, next, MAP_BUCKETS4))
		note("gate '%s': the counters of single sources were reset", gate->name);
}

/* Steps 4 and 5 of the head comment. No packet uses the old gate any more. */
static int next_begin(struct gate *gate, struct gate *next, const uint64_t *zeros)
{
	int status = OK, named = OK;
	struct pins pins = gate->dir;

	if (map_is_new(gate, next, MAP_BUDGETS))
		budgets_add(gate, next, zeros);
	if (map_is_new(gate, next, MAP_COUNTERS))
		status = counters_add(gate, next);
	next->dir = pins; /* borrowed */
	if (!status)
		named = next_end(next);
	next->dir = (struct pins)PINS_CLOSED;
	if (status || named)
		note("gate '%s': all devices filter by its new maps, which do not have their names "
		     "yet: the next command that changes the gate finishes that",
		     gate->name);
	if (status)
		return status;
	lost_report(gate, next);
	/* also if some pins stay in next/: remake_settle() moves the pins of the open gate */
	gate_become(gate, next);
	return named;
}

/* Steps 3 to 5. If not all devices can be switched, none is. */
static int gate_switch(struct gate *gate, struct gate *next, const uint64_t *zeros,
		       bool *ret_switched)
{
	struct replacements replacements = {.count = 0};
	int status = programs_replace(gate, next, &replacements);

	replacements_close(&replacements);
	*ret_switched = !status;
	if (status)
		return status;
	packets_outwait();
	return next_begin(gate, next, zeros);
}

/* --- The remake ----------------------------------------------------------------------------- */

/* Undoes an interrupted change of rules, and removes rules that have ended, which need no room. */
static int rules_clean(struct gate *gate)
{
	int status = change_begin(gate);

	if (status)
		return status;
	change_end(gate);
	change_sweep(gate);
	return OK;
}

static int next_make(const struct gate *gate, const struct gate_sizes *sizes, struct gate *next)
{
	struct gate_sizes made = *sizes;
	struct room room = {0};
	uint32_t entries = policies_count(gate, &room);
	int status = refuse_small(gate, sizes, &room);

	if (made.policies < entries)
		made.policies = entries;
	if (!status)
		status = gate_make_next(gate, &made, next);
	if (status)
		return status;
	next->state->policies = sizes->policies;
	policies_copy(gate, next);
	return rules_copy(gate, next, sizes);
}

static int next_take(struct gate *gate, struct gate *next)
{
	uint64_t *zeros = budgets_note(next);
	bool switched = false;
	int status = zeros ? next_pin(gate, next)
			   : failure("cannot remake gate '%s': %s", gate->name, why(ENOMEM));

	if (!status)
		status = gate_switch(gate, next, zeros, &switched);
	if (status && !switched)
		next_end(gate);
	free(zeros);
	return status;
}

int remake(struct gate *gate, const struct gate_sizes *sizes)
{
	struct gate next = GATE_CLOSED;
	struct gate_sizes has;
	int status = remake_settle(gate);

	if (!status)
		status = gate_sizes_read(gate, &has);
	if (status || !memcmp(sizes, &has, sizeof(has)))
		return status;
	status = rules_clean(gate);
	if (!status)
		status = next_make(gate, sizes, &next);
	if (!status)
		status = next_take(gate, &next);
	gate_close(&next);
	return status;
}

int remake_settle(struct gate *gate)
{
	struct gate next = GATE_CLOSED;
	bool switched, is_complete;
	struct pins pins;
	int status = pins_open(&gate->dir, GATE_NEXT, &pins);

	if (status || pins.fd < 0)
		return status;
	is_complete = pin_exists(&pins, gate_map_names[MAP_GATE]);
	pins_close(&pins);
	note("gate '%s': a resize was interrupted; %s", gate->name,
	     is_complete ? "finishing it" : "removing what it left");
	if (!is_complete)
		return next_end(gate);
	status = gate_maps_open_next(gate, &next);
	if (status)
		failure("gate '%s': the resize cannot be finished with the maps in %s/" GATE_NEXT,
			gate->name, gate->dir.path);
	else
		status = gate_switch(gate, &next, NULL, &switched);
	gate_close(&next);
	return status;
}

/* --- Growth --------------------------------------------------------------------------------- */

/* Room for all sizes, as "hosts 16k -> 1m, prefixes 16k -> 32k". */
#define GROWN_TEXT (SIZES * (2 * SIZE_TEXT + 16))

static const char *grown_format(const struct gate_sizes *has, const struct gate_sizes *sizes,
				char text[GROWN_TEXT])
{
	char from[SIZE_TEXT], to[SIZE_TEXT];
	size_t length = 0;

	*text = '\0';
	for (unsigned int i = 0; i < SIZES; i++)
		if (size_told(has, i) != size_told(sizes, i))
			length += snprintf(text + length, GROWN_TEXT - length, "%s%s %s -> %s",
					   length ? ", " : "", size_names[i],
					   size_format(size_told(has, i), from),
					   size_format(size_told(sizes, i), to));
	return text;
}

int remake_grow(struct gate *gate, const struct gate_sizes *sizes)
{
	const char *missing = caps_missing();
	char text[GROWN_TEXT];
	struct gate_sizes has;
	int status = gate_sizes_read(gate, &has);

	if (status)
		return status;
	grown_format(&has, sizes, text);
	if (missing)
		return failure("gate '%s' is full, and to grow it (%s) needs %s: run this as root, "
			       "or delete rules first",
			       gate->name, text, missing);
	status = remake(gate, sizes);
	if (status)
		note("gate '%s' was to grow (%s), and could not: while it cannot, delete rules "
		     "first",
		     gate->name, text);
	else
		note("gate '%s' grew: %s", gate->name, text);
	return status;
}
