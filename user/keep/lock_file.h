/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: lock files in /run/sluice. One process keeps a gate, and one shares its limits: each locks
 * GATE.keep or GATE.share until it ends. Other commands find the process by its lock.
 */
#ifndef SLUICE_LOCK_FILE_H
#define SLUICE_LOCK_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define RUN_DIR	       "/run/sluice"
#define LOCK_FILE_PATH 80
#define LOCK_FILE_MORE 4096 /* bytes of the lines after the path */

/*
 * Each line after the path names a list with a bad file: "old NAME" if the entries of the last good
 * file are in force, "missing NAME" if the list is left out.
 */
#define LIST_IS_OLD	"old"
#define LIST_IS_MISSING "missing"

struct lock_file {
	int fd; /* -1: not locked */
	char path[LOCK_FILE_PATH];
};

enum lock_kind {
	LOCK_KEEP,
	LOCK_SHARE,
};

/*
 * Locks a gate for this process. path: the rules file, or the store. Fails with the number of the
 * process that has the lock.
 */
int lock_file_take(enum lock_kind kind, const char *gate, const char *path, struct lock_file *ret);

/* Writes the number of this process, the path, and more lines. Cuts what is too long. */
void lock_file_write(const struct lock_file *lock, const char *path, const char *more);

/* Removes the file and unlocks it. */
void lock_file_release(struct lock_file *lock);

/*
 * Removes the file of a process that was killed. Returns false if a process has the lock, or if the
 * caller may not read it.
 */
bool lock_file_remove(enum lock_kind kind, const char *gate);

/* The process that has a lock. */
struct lock_holder {
	pid_t pid;	     /* 0: it has no number in this namespace, as in a container */
	char path[PATH_MAX]; /* any bytes; "": not known */
	char more[LOCK_FILE_MORE];
};

enum lock_state {
	LOCK_FREE,
	LOCK_HELD,
	LOCK_UNKNOWN, /* the caller may not read the file */
};

/*
 * Finds the process that has the lock of a gate, and fills `ret` if the lock is held. A file that
 * an untrusted user could have written counts as free.
 */
enum lock_state lock_file_find(enum lock_kind kind, const char *gate, struct lock_holder *ret);

#endif
