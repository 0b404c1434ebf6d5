/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: one process keeps a gate, and one shares its limits. Each holds a lock on a file in
 * /run/sluice until it ends, by which other commands find it: GATE.keep, or GATE.share.
 */
#ifndef SLUICE_HOLD_H
#define SLUICE_HOLD_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/log.h"

#define HOLD_DIR  "/run/sluice"
#define HOLD_NAME 64
#define HOLD_MORE 4096			      /* room for what follows the path in the file */
#define HOLD_TEXT (PATH_MAX + HOLD_MORE + 32) /* and for all of it */

/*
 * Lines after the path name the lists with a bad file: "old NAME" if the entries of the last good
 * file are in force, "missing NAME" if the list is left out.
 */
#define KEEP_LIST_OLD	  "old"
#define KEEP_LIST_MISSING "missing"

struct hold {
	int dir, file;	      /* fds; -1: not held */
	char name[HOLD_NAME]; /* of the file */
};

#define HOLD_NONE                                                                                  \
	(struct hold)                                                                              \
	{                                                                                          \
		.dir = -1, .file = -1                                                              \
	}

enum hold_kind {
	HOLD_KEEP,
	HOLD_SHARE,
};

/*
 * Fails with the number of the process that holds the gate already. path: the rules file as which
 * it is kept, or the store.
 */
int hold_gate(enum hold_kind kind, const char *gate, const char *path, struct hold *ret);

/*
 * Writes the number of this process, for people, and the path and more lines, for holder_find().
 * The text is cut at HOLD_TEXT.
 */
void hold_write(const struct hold *hold, const char *path, const char *more);

/* Removes the file, and gives the lock back. */
void hold_release(struct hold *hold);

/*
 * Removes the file that a process left that was killed. False: a process has the lock, or the
 * caller cannot tell.
 */
bool hold_forget(enum hold_kind kind, const char *gate);

/* The process that holds a gate. */
struct holder {
	pid_t pid;	      /* 0: it has no number here, as in a container */
	char path[PATH_MAX];  /* of the rules file, or the store, in any bytes; "": not known */
	char more[HOLD_MORE]; /* the lines after it */
};

enum held {
	HELD_NOT,
	HELD,
	HELD_UNKNOWN, /* the caller may not read the lock */
};

/*
 * Finds the process that keeps a gate, or shares its limits; ret is set where it is HELD. What the
 * file says counts only while the lock is held, and if only a trusted user can have written it.
 */
enum held holder_find(enum hold_kind kind, const char *gate, struct holder *ret);

#endif
