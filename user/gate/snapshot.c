// SPDX-License-Identifier: GPL-2.0
#include "gate/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "gate/pins.h"

const char *gate_path(const char *name, const char *below, char path[PINS_PATH])
{
	snprintf(path, PINS_PATH, BPFFS "/" PINS_ROOT "/%s%s%s", name, *below ? "/" : "", below);
	return path;
}

/* Returns the status of the file at gate_path(), or zeros if the file does not exist. */
static struct stat file_of(const char *name, const char *below)
{
	char path[PINS_PATH];
	struct stat st;

	return lstat(gate_path(name, below, path), &st) ? (struct stat){0} : st;
}

static void pins_read(const char *name, struct gate_snapshot *snapshot)
{
	snapshot->lost = 0;
	for (int map = 0; map < GATE_MAPS; map++)
		snapshot->lost += !file_of(name, gate_map_names[map]).st_ino;
	snapshot->gate = file_of(name, gate_map_names[MAP_GATE]).st_ino;
	snapshot->exists = snapshot->lost < GATE_MAPS;
	snapshot->has_next = file_of(name, GATE_NEXT).st_ino;
}

void gate_snapshot_take(struct gate *gate, struct gate_snapshot *snapshot)
{
	gate_snapshot_free(snapshot);
	snapshot->view = gate->view[VIEW_STATE];
	gate->view[VIEW_STATE] = ARRAY_VIEW_CLOSED;
	snapshot->state = steal_pointer(&gate->state);
	for (int map = 0; map < GATE_MAPS; map++)
		snapshot->map[map] = steal_fd(&gate->map[map]);
	snapshot->bpffs = file_of(gate->name, "").st_dev;
	gate_snapshot_update(gate->name, snapshot);
}

bool gate_snapshot_is_of(const struct gate_snapshot *snapshot, const struct gate *gate)
{
	/* map `secret` identifies the gate, because a resize never replaces this map */
	return snapshot->state &&
	       snapshot->state->map_ids[MAP_SECRET] == gate->state->map_ids[MAP_SECRET];
}

bool gate_snapshot_is_hidden(const char *name, const struct gate_snapshot *snapshot,
			     struct mount *ret)
{
	char path[PINS_PATH];

	return snapshot->state && file_of(name, "").st_dev != snapshot->bpffs &&
	       mount_hides(gate_path(name, "", path), snapshot->bpffs, ret);
}

unsigned int gate_snapshot_update(const char *name, struct gate_snapshot *snapshot)
{
	const struct gate_snapshot before = *snapshot;
	const struct sl_gate *state = snapshot->state;
	unsigned int changed = 0;

	pins_read(name, snapshot);
	if (state) {
		snapshot->generation = __atomic_load_n(&state->generation, __ATOMIC_ACQUIRE);
		snapshot->on_trial = __atomic_load_n(&state->trial_until, __ATOMIC_ACQUIRE);
		snapshot->trial = state->trial;
	}
	if (snapshot->exists != before.exists || snapshot->gate != before.gate)
		changed |= CHANGED_GATE;
	if (snapshot->generation != before.generation)
		changed |= CHANGED_RULES;
	if (snapshot->on_trial != before.on_trial || snapshot->trial != before.trial)
		changed |= CHANGED_TRIAL;
	return changed;
}

int gate_repin(const char *name, struct gate_snapshot *snapshot)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_close_ int fd = -1;
	uint32_t lost = 0;
	int err = gate_begin(&gate, name) ?: gate_dir_lock(&gate, false);

	if (err)
		return err;
	fd = pin_open(&gate.dir, gate_map_names[MAP_GATE]);
	if (fd >= 0 && gate_map_id(fd) != gate_map_id(snapshot->map[MAP_GATE]))
		return gate_error(&gate, EEXIST, "other-gate",
				  "pins are lost, and another gate has this name now");
	for (int map = 0; map < GATE_MAPS; map++)
		lost |= (uint32_t)!pin_exists(&gate.dir, gate_map_names[map]) << map;
	err = pins_make(&gate.dir, GATE_LINKS, false) ?: pin_maps(&gate.dir, snapshot->map, lost);
	pins_read(name, snapshot);
	return err;
}

void gate_snapshot_free(struct gate_snapshot *snapshot)
{
	array_view_close(&snapshot->view);
	for (int map = 0; map < GATE_MAPS; map++)
		close_fd(&snapshot->map[map]);
	*snapshot = GATE_SNAPSHOT_NONE;
}
