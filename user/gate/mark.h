/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: what a gate was when it was looked at last, to tell whether it has changed since, and its
 * maps, to pin them again. A look opens no file in bpffs: that would be an event for a process that
 * waits for commands by inotify, and hold the mount.
 */
#ifndef SLUICE_MARK_H
#define SLUICE_MARK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/mounts.h"
#include "gate/gate.h"

struct gate_mark {
	bool is_there;	   /* it has a map that is pinned */
	unsigned int lost; /* maps of it that are not */
	bool has_next;	   /* next/ exists: a resize is in progress, or was interrupted */
	dev_t bpffs;	   /* the file system that it is in */
	ino_t gate;	   /* the pin `gate`: another one is another gate, or other maps */
	uint32_t generation, trial;
	bool on_trial;
	struct sl_gate *state; /* mapped; NULL: never opened */
	int map[GATE_MAPS];    /* fds; -1: not open */
};

#define GATE_UNMARKED                                                                              \
	(struct gate_mark)                                                                         \
	{                                                                                          \
		.map = { [0 ... GATE_MAPS - 1] = -1 }                                              \
	}

/* What has changed, as bits. */
enum gate_news {
	NEWS_GATE = 1,	/* it is gone, is there again, or has other maps */
	NEWS_RULES = 2, /* the generation */
	NEWS_TRIAL = 4, /* a trial has begun or ended */
};

/* The paths of a gate's directory, and of the directory of its attachments. */
const char *gate_path(const char *name, char path[PINS_PATH]);
const char *gate_links_path(const char *name, char path[PINS_PATH]);

/* Marks what an open gate is, and takes over its maps and its mapped state. */
void gate_mark_take(struct gate *gate, struct gate_mark *mark);

/* Whether an open gate is the marked one, perhaps with other maps by a resize. */
bool gate_mark_is_of(const struct gate_mark *mark, const struct gate *gate);

/*
 * Returns whether a mount hides the gate, so that its path leads to another bpffs or to none.
 * Stores the mount in `ret`.
 */
bool gate_mark_is_hidden(const char *name, const struct gate_mark *mark, struct mount *ret);

/* Returns what has changed, and marks it. */
unsigned int gate_mark_look(const char *name, struct gate_mark *mark);

/*
 * Pins the maps of which the pins are lost, and makes the directory of attachments if it is: the
 * maps are those that filter.
 */
int gate_repin(const char *name, struct gate_mark *mark);

void gate_mark_free(struct gate_mark *mark);

#endif
