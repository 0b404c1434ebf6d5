/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: a snapshot of a gate. A service uses it to detect changes of the gate. The snapshot keeps
 * the gate's maps open, so the service can pin them again. An update opens no file in bpffs. An
 * open file would prevent unmounting, and opening it would send inotify events to processes that
 * watch bpffs.
 */
#ifndef SLUICE_SNAPSHOT_H
#define SLUICE_SNAPSHOT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/host.h"
#include "gate/gate.h"

struct gate_snapshot {
	bool exists;	   /* whether any map of the gate is pinned */
	unsigned int lost; /* number of maps that are not pinned */
	bool has_next;	   /* next/ exists: a resize is in progress or was interrupted */
	dev_t bpffs;	   /* device number of the bpffs that contains the gate */
	ino_t gate;	   /* inode of pin `gate`; a new gate or a resize changes it */
	uint32_t generation, trial;
	bool on_trial;
	struct array_view view; /* the value of map `gate` in memory */
	struct sl_gate *state;	/* the value in `view`; NULL before gate_snapshot_take() */
	int map[GATE_MAPS];	/* fds of the maps; -1 if a map is not open */
};

#define GATE_SNAPSHOT_NONE                                                                         \
	(struct gate_snapshot)                                                                     \
	{                                                                                          \
		.map = { [0 ... GATE_MAPS - 1] = -1 }                                              \
	}

/* Changes since the last update, as bits. */
enum gate_changed {
	CHANGED_GATE = 1,  /* the gate was removed or replaced, or its maps were replaced */
	CHANGED_RULES = 2, /* the generation has changed */
	CHANGED_TRIAL = 4, /* a trial has begun or ended */
};

/*
 * Formats the path of a file in a gate's directory. If `below` is "", formats the path of the
 * directory.
 */
const char *gate_path(const char *name, const char *below, char path[PINS_PATH]);

/* Takes a snapshot of an open gate. Moves the gate's maps and its mapped state to the snapshot. */
void gate_snapshot_take(struct gate *gate, struct gate_snapshot *snapshot);

/* Returns whether a snapshot is of this gate. A gate remains the same gate after a resize. */
bool gate_snapshot_is_of(const struct gate_snapshot *snapshot, const struct gate *gate);

/* Returns whether another mount hides the path of the gate. Stores this mount. */
bool gate_snapshot_is_hidden(const char *name, const struct gate_snapshot *snapshot,
			     struct mount *ret);

/* Updates the snapshot. Returns the changes, as bits of enum gate_changed. */
unsigned int gate_snapshot_update(const char *name, struct gate_snapshot *snapshot);

/* Restores the removed pins of the gate's maps, and creates a missing directory of attachments. */
int gate_repin(const char *name, struct gate_snapshot *snapshot);

void gate_snapshot_free(struct gate_snapshot *snapshot);

#endif
