// SPDX-License-Identifier: GPL-2.0
#include "gate/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "gate/pins.h"

const char *gate_path(const char *name, char path[PINS_PATH])
{
	snprintf(path, PINS_PATH, BPFFS "/" PINS_ROOT "/%s", name);
	return path;
}

const char *gate_links_path(const char *name, char path[PINS_PATH])
{
	snprintf(path, PINS_PATH, BPFFS "/" PINS_ROOT "/%s/" GATE_LINKS, name);
	return path;
}

/* Returns the inode of a file below a gate's directory, or 0 if there is none. */
static ino_t inode_of(const char *name, const char *below)
{
	char path[PINS_PATH];
	struct stat st;

	snprintf(path, sizeof(path), BPFFS "/" PINS_ROOT "/%s/%s", name, below);
	return lstat(path, &st) ? 0 : st.st_ino;
}

/* Returns the file system to which the path of a gate leads, or 0 if it leads nowhere. */
static dev_t device_of(const char *name)
{
	char path[PINS_PATH];
	struct stat st;

	return lstat(gate_path(name, path), &st) ? 0 : st.st_dev;
}

static void files_read(const char *name, struct gate_snapshot *snapshot)
{
	snapshot->lost = 0;
	for (int map = 0; map < GATE_MAPS; map++)
		snapshot->lost += !inode_of(name, gate_map_names[map]);
	snapshot->gate = inode_of(name, gate_map_names[MAP_GATE]);
	snapshot->exists = snapshot->lost < GATE_MAPS;
	snapshot->has_next = inode_of(name, GATE_NEXT);
}

static void state_read(struct gate_snapshot *snapshot)
{
	if (!snapshot->state)
		return;
	snapshot->generation = __atomic_load_n(&snapshot->state->generation, __ATOMIC_ACQUIRE);
	snapshot->on_trial = __atomic_load_n(&snapshot->state->trial_until, __ATOMIC_ACQUIRE);
	snapshot->trial = snapshot->state->trial;
}

void gate_snapshot_take(struct gate *gate, struct gate_snapshot *snapshot)
{
	gate_snapshot_free(snapshot);
	snapshot->view = gate->view[VIEW_STATE];
	gate->view[VIEW_STATE] = ARRAY_VIEW_CLOSED;
	snapshot->state = steal_pointer(&gate->state);
	for (int map = 0; map < GATE_MAPS; map++)
		snapshot->map[map] = steal_fd(&gate->map[map]);
	files_read(gate->name, snapshot);
	snapshot->bpffs = device_of(gate->name);
	state_read(snapshot);
}

bool gate_snapshot_is_of(const struct gate_snapshot *snapshot, const struct gate *gate)
{
	/* every remake shares this map */
	return snapshot->state &&
	       snapshot->state->map_ids[MAP_SECRET] == gate->state->map_ids[MAP_SECRET];
}

bool gate_snapshot_is_hidden(const char *name, const struct gate_snapshot *snapshot,
			     struct mount *ret)
{
	char path[PINS_PATH];

	return snapshot->state && device_of(name) != snapshot->bpffs &&
	       mount_hides(gate_path(name, path), snapshot->bpffs, ret);
}

unsigned int gate_snapshot_update(const char *name, struct gate_snapshot *snapshot)
{
	struct gate_snapshot before = *snapshot;
	unsigned int changed = 0;

	files_read(name, snapshot);
	state_read(snapshot);
	if (snapshot->exists != before.exists || snapshot->gate != before.gate)
		changed |= CHANGED_GATE;
	if (snapshot->generation != before.generation)
		changed |= CHANGED_RULES;
	if (snapshot->on_trial != before.on_trial || snapshot->trial != before.trial)
		changed |= CHANGED_TRIAL;
	return changed;
}

static int lost_pin(const struct gate *gate, const struct gate_snapshot *snapshot)
{
	_cleanup_close_ int fd = pin_open(&gate->dir, gate_map_names[MAP_GATE]);
	uint32_t lost = 0;

	if (fd >= 0 && gate_map_id(fd) != gate_map_id(snapshot->map[MAP_GATE]))
		return gate_error(gate, EEXIST, "other-gate",
				  "it has lost pins, and is another gate");
	for (int map = 0; map < GATE_MAPS; map++)
		lost |= (uint32_t)!pin_exists(&gate->dir, gate_map_names[map]) << map;
	return pins_make(&gate->dir, GATE_LINKS, false)
		       ?: pin_maps(&gate->dir, snapshot->map, lost);
}

int gate_repin(const char *name, struct gate_snapshot *snapshot)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err = gate_begin(&gate, name)
			  ?: gate_dir_lock(&gate, false) ?: lost_pin(&gate, snapshot);

	files_read(name, snapshot);
	return err;
}

void gate_snapshot_free(struct gate_snapshot *snapshot)
{
	array_view_close(&snapshot->view);
	for (int map = 0; map < GATE_MAPS; map++)
		close_fd(&snapshot->map[map]);
	*snapshot = GATE_SNAPSHOT_NONE;
}
