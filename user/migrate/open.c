// SPDX-License-Identifier: GPL-2.0
/*
 * A remake gives a running gate maps of other sizes. It makes a second gate, the "next gate", which
 * shares every map whose size stays the same. The steps:
 *
 * 1. Make the maps whose sizes differ, and copy rules, policies and budgets into them.
 * 2. Pin these maps in GATE/next/, map `gate` last. If the command is killed before pin `gate`
 *    exists, the next command undoes the remake; otherwise the next command finishes it.
 * 3. Switch all devices to programs on the next gate, and wait until the old programs have ended.
 * 4. Add to the new `counters` and `budgets` the packets that the old maps counted meanwhile.
 * 5. Move the pins from next/ to the gate's directory, `gate` first. The next gate is now the gate.
 *
 * If a command was killed, the next command that changes the gate examines next/:
 *
 * - If next/gate exists, the next gate is complete, and the command repeats steps 3 to 5. Until
 *   then some devices use the gate and some use the next gate, with the same rules. Both gates have
 *   their own copy of each map whose size differs, so a source can use a limit (map `states`) or a
 *   budget (map `budgets`) twice.
 * - If next/gate does not exist, the command moves the pins of maps whose ids are in the gate's map
 *   `gate` (killed in step 5), and removes all other pins (killed in step 2).
 *
 * Both gates have the same generation and the same policy numbers, so the shared caches and buckets
 * are valid for both.
 */
#include "migrate/open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "attach/attach.h"
#include "attach/libxdp.h"
#include "base/clock.h"
#include "base/host.h"
#include "credit.h"
#include "gate/gate.h"
#include "gate/maps.h"
#include "gate/maps_open.h"
#include "gate/pins.h"
#include "gate/policy.h"
#include "gate/rulemap.h"
#include "gate/rules.h"
#include "gate/transaction.h"
#include "kinds.h"

/* Returns whether the next gate has its own map instead of sharing the gate's map. */
static bool map_is_new(const struct gate *gate, const struct gate *next, enum gate_map map)
{
	return gate->state->map_ids[map] != next->state->map_ids[map];
}

/* --- Step 1: making the next gate ----------------------------------------------------------- */

/* Fails if the rules in force do not fit into these sizes. */
static int refuse_small(const struct gate *gate, const struct gate_sizes *sizes,
			const struct room *room)
{
	struct gate_sizes asked = *sizes, needed = room_sizes(room);

	for (unsigned int i = 0; i < SIZES; i++)
		if (*size_of(&asked, i) < *size_of(&needed, i))
			return gate_error(gate, ENOSPC, "size-small",
					  "`%s` %u is too small; its rules need %u", size_names[i],
					  size_specified(sizes, i), size_specified(&needed, i));
	return 0;
}

/* Copies the rules in force into the maps of rules that are new. */
static int remake_copy_rules(const struct gate *gate, struct gate *next,
			     const struct gate_sizes *sizes)
{
	_cleanup_free_ struct rulemap_entry *rules = NULL;
	unsigned int count = 0;
	struct room room = {0};
	int err;

	if (!map_is_new(gate, next, MAP_HOSTS4) && !map_is_new(gate, next, MAP_PREFIXES))
		return 0;
	err = rulemap_read(gate, UINT_MAX, &rules, &count);
	if (err)
		return rules_unread(gate, err);
	for (unsigned int i = 0; i < count; i++)
		room_add(&room, NULL, &(struct rule){.prefix = rules[i].prefix});
	err = refuse_small(gate, sizes, &room);
	if (err)
		return err;
	if (map_is_new(gate, next, MAP_SPLITS))
		err = splits_set(next, rules, count);
	for (unsigned int i = 0; i < count; i++)
		if (!map_is_new(gate, next,
				prefix_is_host(&rules[i].prefix) ? MAP_HOSTS4 : MAP_PREFIXES))
			rules[i].action = ENTRY_KEEP;
	err = err ?: rulemap_write(next, rules, count);
	return err ? gate_error(gate, err, "remake-failed", "cannot copy its rules: %s", why(err))
		   : 0;
}

/*
 * Returns the state of a budget. For a full budget, sets `empty_at` as if the budget became full at
 * `now`. budgets_add() can then compute later charges from the change of `empty_at`.
 */
static struct sl_state remake_read_budget(const struct gate *gate, uint32_t number, uint64_t now)
{
	struct sl_state state = gate->budgets[number];

	for (uint32_t version = SL_POLICY_VERSION(number); version < SL_POLICY_VERSION(number + 1);
	     version++) {
		const struct sl_policy *policy = policy_version(gate, version);
		struct sl_state full = kind_full(&policy->newcomers, now);

		if (policy_has_budget(policy) && credit_span(state.empty_at, full.empty_at) > 0)
			state = full;
	}
	return state;
}

/* Copies policy versions and budgets, if the maps of policies are new. */
static void policies_copy(const struct gate *gate, struct gate *next)
{
	uint32_t count = MIN(gate->policies_max, next->policies_max);
	uint64_t now = uptime_ticks();

	if (!map_is_new(gate, next, MAP_POLICIES))
		return;
	for (uint32_t version = 0; version < SL_POLICY_VERSION(count); version++) {
		const struct sl_policy *policy = policy_version(gate, version);

		policy_version_write(next, version, policy, policy->since);
	}
	for (uint32_t number = 0; number < count; number++)
		next->budgets[number] = remake_read_budget(gate, number, now);
	next->state->policies_seen = MIN(gate_policies_seen(gate), next->policies_max);
	if (next->state->next_policy >= next->policies_max)
		next->state->next_policy = SL_POLICY_FIRST;
}

/*
 * Makes the next gate, and copies the rules to it. A new map of policies has room for the highest
 * policy number, because policies keep their numbers.
 */
static int next_make(const struct gate *gate, const struct gate_sizes *sizes, struct gate *next)
{
	uint32_t entries = SL_POLICY_FIRST + 1;
	struct gate_sizes made = *sizes;
	struct room room = {0};
	int err;

	for (uint32_t number = SL_POLICY_FIRST; number < gate_policies_seen(gate); number++) {
		if (!policy_version(gate, SL_POLICY_VERSION(number))->since &&
		    !policy_version(gate, SL_POLICY_VERSION(number) + 1)->since)
			continue;
		room.policies++;
		entries = number + 1;
	}
	if (made.policies < entries)
		made.policies = entries;
	err = refuse_small(gate, sizes, &room) ?: gate_make_next(gate, &made, next);
	if (err)
		return err;
	next->state->policies = sizes->policies;
	policies_copy(gate, next);
	return remake_copy_rules(gate, next, sizes);
}

/* --- Pins in next/: steps 2 and 5 ----------------------------------------------------------- */

static int next_pin(const struct gate *gate, const struct gate *next)
{
	_cleanup_(pins_close) struct pins pins = PINS_CLOSED;
	uint32_t new = 0;

	for (int map = 0; map < GATE_MAPS; map++)
		new |= (uint32_t)map_is_new(gate, next, map) << map;
	return pins_make(&gate->dir, GATE_NEXT, true)
		       ?: pins_open(&gate->dir, GATE_NEXT, &pins)
		       ?: pin_maps(&pins, next->map, new);
}

/*
 * Removes next/. Moves pins of maps that the gate uses to the gate's directory. Removes all other
 * pins. If a pin cannot be read, keeps the pin, and returns an error.
 */
static int next_end(const struct gate *gate)
{
	_cleanup_(pins_close) struct pins pins = PINS_CLOSED;
	int err = pins_open(&gate->dir, GATE_NEXT, &pins);

	if (err || pins.fd < 0)
		return err;
	for (int map = MAP_GATE; map < GATE_MAPS; map++) {
		const char *name = gate_map_names[map];
		_cleanup_close_ int fd = pin_open(&pins, name);
		uint32_t id = fd < 0 ? 0 : gate_map_id(fd);

		if (!id)
			err = fd < 0 ? fd : -EIO;
		else if (id == gate->state->map_ids[map])
			err = pin_rename(&pins, name, &gate->dir, name);
		else
			err = pin_remove(&pins, name);
		if (err && err != -ENOENT)
			return pin_failed("rename", &pins, name, err);
	}
	return pins_remove(&gate->dir, GATE_NEXT);
}

/* --- Steps 3 and 4: the switch -------------------------------------------------------------- */

/*
 * Adds to the budgets of `next` what packets charged to the old budgets after the copy. copied:
 * `empty_at` of each budget at the time of the copy. If the copying command was killed, `copied` is
 * NULL. Then each budget of `next` gets the later `empty_at` of the old and the new budget.
 */
static void budgets_add(const struct gate *gate, struct gate *next, const uint64_t *copied)
{
	uint32_t count = MIN(gate->policies_max, next->policies_max);

	for (uint32_t number = 0; number < count; number++) {
		uint64_t last = __atomic_load_n(&gate->budgets[number].empty_at, __ATOMIC_RELAXED);
		__u64 *empty_at = &next->budgets[number].empty_at;
		uint64_t first =
			copied ? copied[number] : __atomic_load_n(empty_at, __ATOMIC_RELAXED);

		if (credit_span(first, last) > 0)
			__atomic_fetch_add(empty_at, last - first, __ATOMIC_RELAXED);
	}
}

/*
 * Subtracts the final counts of the old `counters` from the base counts of the next policy
 * versions, because the new counters began at 0. A reader of the next gate then gets the sum of the
 * old and the new counters. A repeated call does not change the result.
 */
static int counters_add(const struct gate *gate, struct gate *next)
{
	uint32_t seen = gate_policies_seen(gate), first = SL_POLICY_FIRST;
	uint32_t count = seen > first ? seen : first;
	struct sl_counters total = gate->policies[SL_POLICY_VERSION_MOVED].base;
	_cleanup_free_ struct sl_counters *sums = NULL;
	int err = counters_read_first(gate, count, &sums);

	if (err)
		return err;
	for (uint32_t number = 0; number < count; number++) {
		counters_add_to(&total, &sums[number]);
		if (number >= next->policies_max)
			continue;
		for (uint32_t version = SL_POLICY_VERSION(number);
		     version < SL_POLICY_VERSION(number + 1); version++) {
			struct sl_counters base = gate->policies[version].base;

			counters_take_from(&base, &sums[number]);
			next->policies[version].base = base;
		}
	}
	next->policies[SL_POLICY_VERSION_MOVED].base = total;
	return 0;
}

/*
 * Does steps 3 to 5 of a remake. Switches all devices to `next`, or none, and stores in
 * `ret_switched` whether it did. On success, or if only step 5 fails, `gate` then refers to the
 * next gate, and `next` is closed. If step 4 or 5 fails, the next remake_recover() repeats it.
 */
static int gate_switch(struct gate *gate, struct gate *next, const uint64_t *copied,
		       bool *ret_switched)
{
	struct replacements replacements = {.count = 0};
	int err = programs_replace(gate, next, &replacements), named = 0;

	replacements_close(&replacements);
	*ret_switched = !err;
	if (err)
		return err;
	synchronize_programs();
	if (map_is_new(gate, next, MAP_BUDGETS))
		budgets_add(gate, next, copied);
	if (map_is_new(gate, next, MAP_COUNTERS))
		err = counters_add(gate, next);
	next->dir = gate->dir; /* borrowed */
	if (!err)
		named = next_end(next);
	next->dir = (struct pins)PINS_CLOSED;
	if (err || named)
		error_notice("remake-unfinished", gate_object(gate->name),
			     "all devices use its new maps, but not all pins of these maps are "
			     "moved; the next command that changes the gate moves them");
	if (err)
		return err;
	if (map_is_new(gate, next, MAP_STATES))
		error_notice("state-reset", gate_object(gate->name),
			     "the state of all sources was reset; policies keep their counters");
	else if (map_is_new(gate, next, MAP_BUCKETS4))
		error_notice("state-reset", gate_object(gate->name),
			     "the counters of each source were reset");
	next->dir = gate->dir;
	next->links = gate->links;
	next->made = gate->made;
	next->grow = gate->grow;
	gate->dir = gate->links = (struct pins)PINS_CLOSED;
	gate_close(gate);
	*gate = *next;
	*next = GATE_CLOSED;
	return named;
}

/* --- The remake ----------------------------------------------------------------------------- */

/* If next/gate exists, finishes an interrupted remake; otherwise undoes it. */
static int remake_recover(struct gate *gate)
{
	_cleanup_(gate_close) struct gate next = GATE_CLOSED;
	_cleanup_(pins_close) struct pins pins = PINS_CLOSED;
	bool switched, is_complete;
	int err = pins_open(&gate->dir, GATE_NEXT, &pins);

	if (err || pins.fd < 0)
		return err;
	is_complete = pin_exists(&pins, gate_map_names[MAP_GATE]);
	error_notice("remake-interrupted", gate_object(gate->name), "a resize was interrupted; %s",
		     is_complete ? "finishing it" : "removing what it left");
	if (!is_complete)
		return next_end(gate);
	err = gate_maps_open_next(gate, &next);
	if (err)
		return gate_error(gate, err, "remake-failed",
				  "the resize cannot be finished with the maps in %s/" GATE_NEXT,
				  gate->dir.path);
	return gate_switch(gate, &next, NULL, &switched);
}

int remake(struct gate *gate, const struct gate_sizes *sizes)
{
	_cleanup_(gate_close) struct gate next = GATE_CLOSED;
	_cleanup_free_ uint64_t *copied = NULL;
	bool switched = false;
	struct gate_sizes has;
	int err = remake_recover(gate) ?: gate_sizes_read(gate, &has);

	if (err || !memcmp(sizes, &has, sizeof(has)))
		return err;
	if (gate->state->changing)
		err = rules_recover(gate, NULL);
	if (err)
		return err;
	rules_expire(gate); /* do not copy expired rules */
	err = next_make(gate, sizes, &next);
	if (err)
		return err;
	/* read `empty_at` of the copies before packets charge them */
	copied = calloc(next.policies_max, sizeof(*copied));
	if (!copied)
		return gate_error(gate, ENOMEM, "remake-failed", "cannot remake it: %s",
				  why(ENOMEM));
	for (uint32_t number = 0; number < next.policies_max; number++)
		copied[number] = next.budgets[number].empty_at;
	err = next_pin(gate, &next) ?: gate_switch(gate, &next, copied, &switched);
	if (err && !switched)
		next_end(gate);
	return err;
}

/* --- Growth --------------------------------------------------------------------------------- */

/* Buffer size for the old and new sizes, such as "hosts 16k -> 1m, prefixes 16k -> 32k". */
#define GROWN_TEXT (SIZES * (2 * SIZE_TEXT + 16))

/*
 * A gate_grow_fn: remakes the gate with larger sizes, and adds a notice that names the sizes that
 * grew. Fails if the process lacks a capability for this.
 */
static int remake_grow(struct gate *gate, const struct gate_sizes *sizes)
{
	char text[GROWN_TEXT] = "", from[SIZE_TEXT], to[SIZE_TEXT];
	const char *missing = caps_missing();
	struct gate_sizes has;
	size_t length = 0;
	int err = gate_sizes_read(gate, &has);

	if (err)
		return err;
	for (unsigned int i = 0; i < SIZES; i++)
		if (size_specified(&has, i) != size_specified(sizes, i))
			length += snprintf(text + length, GROWN_TEXT - length, "%s%s %s -> %s",
					   length ? ", " : "", size_names[i],
					   size_format(size_specified(&has, i), from),
					   size_format(size_specified(sizes, i), to));
	if (missing)
		return gate_error(
			gate, EPERM, "grow-rights",
			"is full, and enlarging it (%s) requires %s; run this as root, or "
			"delete rules first",
			text, missing);
	err = remake(gate, sizes);
	if (err)
		error_notice("grow-failed", gate_object(gate->name),
			     "could not be enlarged (%s); to change it now, delete rules first",
			     text);
	else
		error_notice("grown", gate_object(gate->name), "grew: %s", text);
	return err;
}

/* --- Opening -------------------------------------------------------------------------------- */

/*
 * Recovers from killed commands: first from a remake, then from a change of attachments, then from
 * a change of rules. Then removes rules that have ended, which would slow down lookups. Sets
 * gate->grow, so that the gate can grow with its rules.
 */
static int gate_recover(struct gate *gate)
{
	int err = remake_recover(gate);

	gate->grow = remake_grow;
	if (!err)
		err = attachments_expire(gate) ?: libxdp_expire(gate);
	if (!err && gate->state->changing)
		err = rules_recover(gate, NULL);
	if (!err)
		rules_expire_some(gate);
	return err;
}

static int gate_open_or_make(struct gate *gate, const struct gate_sizes *sizes)
{
	bool exists = false;
	int err = kernel_require() ?: caps_require() ?: bpffs_mount() ?: gate_dir_lock(gate, true);

	err = err ?: gate_dir_holds_gate(gate, &exists);
	if (err)
		return err;
	err = exists ? gate_maps_open(gate) : gate_make(gate, sizes);
	err = err ?: trial_refuse(gate) ?: gate_recover(gate);
	if (err)
		gate_undo(gate);
	return err;
}

int gate_open(struct gate *gate, const char *name, enum gate_access access,
	      const struct gate_sizes *sizes)
{
	int err = gate_begin(gate, name);

	if (err)
		return err;
	if (access == GATE_MAKE)
		return gate_open_or_make(gate, sizes);
	if (access == GATE_READ || access == GATE_NO_MAPS)
		err = gate_dir_open(gate);
	else
		err = gate_dir_lock(gate, false);
	if (err || access == GATE_NO_MAPS || access == GATE_LOCK_ONLY)
		return err;
	err = gate_maps_open(gate);
	if (!err && access == GATE_CHANGE)
		err = trial_refuse(gate);
	return err || access == GATE_READ ? err : gate_recover(gate);
}
