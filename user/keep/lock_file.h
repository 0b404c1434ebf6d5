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

struct lock_file {
	int fd; /* -1: not locked */
	char path[LOCK_FILE_PATH];
};

enum lock_kind {
	LOCK_KEEP,
	LOCK_SHARE,
};

/*
 * Locks a gate for this process, and writes its number and a path to the file. path: the rules
 * file, or the store. Fails with the number of the process that has the lock.
 */
int lock_file_take(enum lock_kind kind, const char *gate, const char *path, struct lock_file *ret);

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
