/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: lock files in /run/sluice. The process that keeps a gate locks GATE.keep until the process
 * ends. The process that shares the gate's limits locks GATE.share. Commands find the processes by
 * these locks.
 */
#ifndef SLUICE_LOCK_FILE_H
#define SLUICE_LOCK_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define RUN_DIR	       "/run/sluice"
#define LOCK_FILE_PATH 80

struct lock_file {
	int fd; /* fd of the lock file; -1 if the file is not locked */
	char path[LOCK_FILE_PATH];
};

enum lock_kind {
	LOCK_KEEP,
	LOCK_SHARE,
};

/*
 * Locks a gate for this process. Writes the pid and `path` to the lock file. `path` is the rules
 * file or the store. Returns -EBUSY if another process has the lock.
 */
int lock_file_take(enum lock_kind kind, const char *gate, const char *path, struct lock_file *ret);

void lock_file_release(struct lock_file *lock);

/*
 * Removes the lock file of a killed process. Removes nothing and returns false if a process still
 * has the lock, or if the caller may not read the file.
 */
bool lock_file_remove(enum lock_kind kind, const char *gate);

/* The process that has the lock. */
struct lock_holder {
	pid_t pid;	     /* pid of the process; 0 if it is in another pid namespace */
	char path[PATH_MAX]; /* rules file or store, as written in the lock file; "" if unknown */
};

enum lock_state {
	LOCK_FREE,
	LOCK_HELD,
	LOCK_UNKNOWN, /* the caller may not read the lock file */
};

/*
 * Finds the process that has the lock of a gate, and stores it in `ret`. If an untrusted user could
 * have written the lock file, the gate counts as not locked.
 */
enum lock_state lock_file_find(enum lock_kind kind, const char *gate, struct lock_holder *ret);

#endif
