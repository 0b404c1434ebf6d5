/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: what a gate was when a service looked at it last, so that the service sees what changed,
 * and the gate's maps, so that it can pin them again. A look opens no file in bpffs: that would be
 * an inotify event for a process that waits for commands, and would keep the mount busy.
 */
#ifndef SLUICE_SNAPSHOT_H
#define SLUICE_SNAPSHOT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/host.h"
#include "gate/gate.h"

struct gate_snapshot {
	bool exists;	   /* one of its maps is pinned */
	unsigned int lost; /* its maps that are not pinned */
	bool has_next;	   /* next/ exists: a resize is in progress, or was interrupted */
	dev_t bpffs;	   /* the file system that it is in */
	ino_t gate;	   /* the pin `gate`: another inode is another gate, or other maps */
	uint32_t generation, trial;
	bool on_trial;
	struct array_view view; /* the state in memory */
	struct sl_gate *state;	/* NULL: never opened */
	int map[GATE_MAPS];	/* fds; -1: not open */
};

#define GATE_SNAPSHOT_NONE                                                                         \
	(struct gate_snapshot)                                                                     \
	{                                                                                          \
		.map = { [0 ... GATE_MAPS - 1] = -1 }                                              \
	}

/* Changes, as bits. */
enum gate_changed {
	CHANGED_GATE = 1,  /* it was removed, exists again, or has other maps */
	CHANGED_RULES = 2, /* the generation */
	CHANGED_TRIAL = 4, /* a trial has begun or ended */
};

/* Formats the path of a file in a gate's directory, or with `below` "" of the directory. */
const char *gate_path(const char *name, const char *below, char path[PINS_PATH]);

/* Stores what an open gate is, and moves its maps and its mapped state to the snapshot. */
void gate_snapshot_take(struct gate *gate, struct gate_snapshot *snapshot);

/* Whether the snapshot is of an open gate, perhaps with other maps because of a resize. */
bool gate_snapshot_is_of(const struct gate_snapshot *snapshot, const struct gate *gate);

/*
 * Whether a mount hides the gate, so that its path leads to another bpffs or to none. Stores the
 * mount in `ret`.
 */
bool gate_snapshot_is_hidden(const char *name, const struct gate_snapshot *snapshot,
			     struct mount *ret);

/* Returns what has changed, and stores it. */
unsigned int gate_snapshot_update(const char *name, struct gate_snapshot *snapshot);

/*
 * Pins the maps that have lost their pins, which still filter, and makes a missing directory of
 * attachments.
 */
int gate_repin(const char *name, struct gate_snapshot *snapshot);

void gate_snapshot_free(struct gate_snapshot *snapshot);

#endif
