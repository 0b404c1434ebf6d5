// SPDX-License-Identifier: GPL-2.0
#include "keep/task_gate.h"

#include <stdlib.h>
#include <string.h>

#include "migrate/open.h"
#include "gate/rules.h"
#include "keep/status_line.h"
#include "keep/task_devices.h"
#include "keep/task_rules.h"

/* How long it may take to remove a gate. */
#define LOST_WAIT_MS 200

/* --- Commands of others --------------------------------------------------------------------- */

/*
 * A gate with other pins: after a resize, or one that was removed and made again, to which the file
 * has to be applied.
 */
static int gate_adopt(struct keep *keep)
{
	struct gate gate = GATE_CLOSED;
	int status = gate_open(&gate, keep->args->gate, GATE_READ, NULL);
	bool same = false;

	if (!status) {
		same = gate_snapshot_is_of(&keep->mark, &gate);
		programs_match(keep, &gate);
		gate_snapshot_take(&gate, &keep->mark);
	}
	gate_close(&gate);
	watch_gate(&keep->watch, keep->args->gate);
	if (status)
		return status;
	task_soon(keep, TASK_LOAD, LOAD_WAIT_MS);
	/* the state that was mapped tells nothing of commands behind the resize */
	task_soon(keep, TASK_SAVE, SAVE_WAIT_MS);
	if (same)
		return OK;
	note("gate '%s' is another one: what %s said is applied to it", keep->args->gate,
	     keep->args->file);
	return rules_apply(keep, &keep->config, RENEW_ALL);
}

/* Makes the gate of what the file said when it was applied last: it may be bad by now. */
static int gate_make_again(struct keep *keep)
{
	warning("gate '%s' is gone: it is made again, as %s said", keep->args->gate,
		keep->args->file);
	gate_snapshot_free(&keep->mark); /* and its maps with it */
	programs_close(&keep->programs);
	keep->attached = 0;
	status_say(keep);
	return rules_apply(keep, &keep->config, RENEW_ALL);
}

/*
 * Pins again what has lost its pin. A command that removes the gate removes all pins, one after the
 * other: those are looked at again.
 */
static int pins_repair(struct keep *keep)
{
	unsigned int lost = keep->mark.lost;
	int status;

	if (!keep->lost_before) {
		keep->lost_before = true;
		task_at(keep, TASK_LOOK, now_ms() + LOST_WAIT_MS);
		return OK;
	}
	keep->lost_before = false;
	status = gate_repin(keep->args->gate, &keep->mark);
	if (status)
		return status;
	warning("gate '%s': %u of its pins were gone: its maps are pinned again", keep->args->gate,
		lost);
	watch_gate(&keep->watch, keep->args->gate);
	task_now(keep, TASK_ATTACH);
	return OK;
}

int look_run(struct keep *keep)
{
	unsigned int news = gate_snapshot_update(keep->args->gate, &keep->mark);
	struct mount mount;

	keep->is_hidden = gate_snapshot_is_hidden(keep->args->gate, &keep->mark, &mount);
	if (keep->is_hidden) {
		warning("gate '%s' is hidden by a mount of type %s on %s: it goes on filtering, "
			"but no command finds it; 'umount %s' shows it again",
			keep->args->gate, mount.type, mount.point, mount.point);
		return OK;
	}
	if (!keep->mark.exists)
		return keep->has_file ? gate_make_again(keep) : OK;
	if (keep->mark.lost && keep->mark.state)
		return pins_repair(keep);
	if (news & CHANGED_TRIAL && !keep->mark.on_trial)
		for (int i = 0; i < TASKS; i++)
			if (keep->tasks[i].retry_ms)
				task_now(keep, i);
	if (news & (CHANGED_RULES | CHANGED_TRIAL))
		task_soon(keep, TASK_SAVE, SAVE_WAIT_MS);
	/* finish an interrupted resize; after a failure, do so when the task is tried again */
	if (keep->mark.has_next && !keep->mark.on_trial && !keep->tasks[TASK_RENEW].retry_ms)
		task_soon(keep, TASK_RENEW, 0);
	return news & CHANGED_GATE ? gate_adopt(keep) : OK;
}

/* --- The state file ------------------------------------------------------------------------- */

/* Reads what commands gave. A rule that comes meanwhile has another generation, and is heard. */
static int bans_look(struct keep *keep)
{
	struct gate gate = GATE_CLOSED;
	struct ruleset in_force = {0};
	struct bans bans = {.file_is_known = true};
	uint32_t generation = 0;
	ino_t pin;
	int status = gate_open(&gate, keep->args->gate, GATE_READ, NULL);

	if (!status) {
		generation = gate.state->generation;
		status = rules_read(&gate, &in_force);
	}
	if (!status)
		status = rules_given(&in_force, &keep->config.rules, &bans.given);
	if (!status)
		status = rules_entries(&keep->config.rules, &bans.file);
	ruleset_free(&in_force);
	if (status) {
		gate_close(&gate);
		bans_free(&bans);
		return status;
	}
	memcpy(bans.boot, keep->boot, sizeof(bans.boot));
	bans_free(&keep->bans);
	keep->bans = bans;
	/* another gate, or a later rule, is news for the next look */
	pin = keep->mark.gate;
	gate_snapshot_take(&gate, &keep->mark);
	if (keep->mark.gate != pin || keep->mark.generation != generation)
		task_soon(keep, TASK_LOOK, 0);
	keep->mark.gate = pin;
	keep->mark.generation = generation;
	gate_close(&gate);
	return OK;
}

/* Saves the lists of the file as they were read last. */
static int copies_write(const struct keep *keep)
{
	struct bans copies = {0};
	char *path = bans_lists_path(keep->args->state);
	int status =
		path ? rules_lists(&keep->config.rules, &copies.given) : failure("out of memory");

	if (!status)
		status = bans_write(path, &copies);
	bans_free(&copies);
	free(path);
	return status;
}

int save_run(struct keep *keep)
{
	int status;

	if (!keep->has_file || !keep->mark.exists || keep->is_hidden || keep->mark.on_trial)
		return OK;
	status = bans_look(keep);
	if (!status && keep->args->state)
		status = bans_write(keep->args->state, &keep->bans);
	if (!status && keep->args->state && keep->lists_are_new) {
		status = copies_write(keep);
		keep->lists_are_new = status;
	}
	keep->state_is_bad = status;
	return status;
}
