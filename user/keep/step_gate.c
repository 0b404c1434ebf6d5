// SPDX-License-Identifier: GPL-2.0
/* Detects changes that commands made to the gate, and writes the state file. */
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "gate/rules.h"
#include "keep/keep.h"
#include "migrate/open.h"

/* A command that removes a gate removes all its pins within this time, in ms. */
#define LOST_WAIT_MS 200

bool gate_is_hidden(const struct keep *keep, struct mount *ret)
{
	char path[PINS_PATH];

	if (keep->snapshot.state)
		return gate_snapshot_is_hidden(keep->args->gate, &keep->snapshot, ret);
	/*
	 * before the first reload, the device number of the bpffs is known only from the state file
	 */
	return !keep->has_config && keep->runtime.bpffs && keep->runtime.is_of_boot &&
	       mount_hides(gate_path(keep->args->gate, "", path), keep->runtime.bpffs, ret);
}

/* --- Commands ------------------------------------------------------------------------------- */

/*
 * Handles a gate that was removed or replaced. If a resize has replaced only its maps, applies
 * nothing. Otherwise applies the last valid config, because the rules file may now be invalid.
 */
static int gate_follow(struct keep *keep)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	bool same = false;
	int err;

	if (keep->snapshot.exists) {
		err = gate_open(&gate, keep->args->gate, GATE_READ, NULL);
		if (!err) {
			same = gate_snapshot_is_of(&keep->snapshot, &gate);
			gate_snapshot_take(&gate, &keep->snapshot);
		}
		watch_gate(keep);
		step_soon(keep, STEP_ATTACH, GATE_WAIT_MS); /* load programs for the new maps */
		/* save now, because earlier changes in the new maps caused no event */
		step_soon(keep, STEP_SAVE, SAVE_WAIT_MS);
		if (err)
			return err;
	}
	if (same || !keep->has_config)
		return 0;
	if (!keep->snapshot.exists) {
		gate_snapshot_free(&keep->snapshot);
		programs_close(&keep->programs);
		keep->attached = 0;
		status_update(keep);
	}
	error_warn("gate-replaced", keep->object, "%s; the last applied config of %s is applied",
		   keep->snapshot.exists ? "replaced by another gate"
					 : "removed, so it is made again",
		   keep->args->file);
	gate_close(&gate);
	return rules_apply(keep, &keep->config, RENEW_ALL);
}

/*
 * Pins maps again if their pins were removed. The first call only schedules STEP_LOOK in
 * LOST_WAIT_MS, because a command that removes the gate removes its pins one by one.
 */
static int pins_repair(struct keep *keep)
{
	unsigned int lost = keep->snapshot.lost;
	int err;

	keep->lost_pins = !keep->lost_pins;
	if (keep->lost_pins) {
		step_at(keep, STEP_LOOK, now_ms() + LOST_WAIT_MS);
		return 0;
	}
	err = gate_repin(keep->args->gate, &keep->snapshot);
	if (err)
		return err;
	error_warn("pins-lost", keep->object, "%u of its pins were removed, and are pinned again",
		   lost);
	watch_gate(keep);
	step_at(keep, STEP_ATTACH, now_ms());
	/* save now, because changes were not handled while pins were missing */
	step_soon(keep, STEP_SAVE, SAVE_WAIT_MS);
	return 0;
}

int look_run(struct keep *keep)
{
	unsigned int changed = gate_snapshot_update(keep->args->gate, &keep->snapshot);
	struct mount mount;

	keep->is_hidden = gate_is_hidden(keep, &mount);
	if (keep->is_hidden) {
		error_warn("gate-hidden", keep->object,
			   "hidden by a mount of type %s on %s: it still filters, but no command "
			   "finds it; first 'umount %s'",
			   mount.type, mount.point, mount.point);
		return 0;
	}
	if (!keep->snapshot.exists)
		return gate_follow(keep);
	if (keep->snapshot.lost && keep->snapshot.state)
		return pins_repair(keep);
	keep->lost_pins = false;
	for (int i = 0; i < STEPS && changed & CHANGED_TRIAL && !keep->snapshot.on_trial; i++)
		if (keep->steps[i].retry_ms)
			step_at(keep, i, now_ms());
	if (changed & (CHANGED_RULES | CHANGED_TRIAL))
		step_soon(keep, STEP_SAVE, SAVE_WAIT_MS);
	/* finish an interrupted resize now, unless STEP_RENEW is already scheduled to retry it */
	if (keep->snapshot.has_next && !keep->snapshot.on_trial &&
	    !keep->steps[STEP_RENEW].retry_ms)
		step_soon(keep, STEP_RENEW, 0);
	return changed & CHANGED_GATE ? gate_follow(keep) : 0;
}

/* --- The state file ------------------------------------------------------------------------- */

/*
 * Writes the state file. Does nothing during a trial, because the end of the trial may undo the
 * rules.
 */
int save_run(struct keep *keep)
{
	const struct ruleset *file = &keep->config.rules, none = {0};
	_cleanup_(state_file_free) struct state_file runtime = {.bpffs = keep->snapshot.bpffs,
								.is_of_boot = true};
	_cleanup_(state_file_free) struct state_file lists = {.bpffs = keep->snapshot.bpffs};
	_cleanup_(ruleset_free) struct ruleset in_force = {0};
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err;

	if (!keep->has_config || !keep->snapshot.exists || keep->is_hidden ||
	    keep->snapshot.on_trial)
		return 0;
	err = gate_open(&gate, keep->args->gate, GATE_READ, NULL)
		      ?: rules_read(&gate, &in_force)
		      ?: rules_runtime(&in_force, file, file, &runtime.entries);
	if (err)
		return err;
	state_file_free(&keep->runtime);
	keep->runtime = runtime;
	runtime = (struct state_file){0};
	err = keep->args->state ? state_file_write(keep->args->state, &keep->runtime) : 0;
	if (err || !keep->args->state || !keep->lists_are_new)
		return err;
	err = rules_runtime(file, &none, &none, &lists.entries);
	/* save lists without their ends, because the next apply of the file starts `for` again */
	for (int place = 0; !err && place < SL_LIST_PLACES; place++)
		lists.entries.lists[place].until = 0;
	err = err ?: state_file_write(keep->lists_path, &lists);
	keep->lists_are_new = err;
	return err;
}
