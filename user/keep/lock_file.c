// SPDX-License-Identifier: GPL-2.0
#include "keep/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/owner.h"
#include "gate/gate.h"

#define LOCK_FILE_TEXT (PATH_MAX + 32)

/*
 * A lock of fcntl(2). The kernel reports the pid of the process that has the lock. The pid in the
 * file is not reliable. A reader tests the lock by F_GETLK, so it never blocks a process that
 * requests the lock.
 */
static const struct flock whole_file = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

static const char *path_format(enum lock_kind kind, const char *gate, char path[LOCK_FILE_PATH])
{
	snprintf(path, LOCK_FILE_PATH, RUN_DIR "/%s.%s", gate,
		 kind == LOCK_KEEP ? "keep" : "share");
	return path;
}

/*
 * Returns whether a process has the lock. Stores its pid, or 0 if it is in another pid namespace.
 */
static bool is_locked(int fd, pid_t *ret_pid)
{
	struct flock lock = whole_file;

	if (fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK)
		return false;
	*ret_pid = lock.l_pid > 0 ? lock.l_pid : 0;
	return true;
}

/* --- Locking -------------------------------------------------------------------------------- */

/*
 * Opens the lock file. Root opens it as the owner of its directory. Otherwise a killed process of
 * root would leave a file that this owner cannot open. The mode is 0600, so that other users cannot
 * lock the file. Returns an fd or a negative errno.
 */
static int file_open(int dir, const char *path)
{
	struct owner self;
	int fd, err = owner_become(dir, &self);

	if (err)
		return err;
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		fd = -errno;
	owner_leave(&self);
	return fd;
}

int lock_file_take(enum lock_kind kind, const char *gate, const char *path, struct lock_file *ret)
{
	_cleanup_free_ char *full = *path == '/' ? NULL : realpath(path, NULL);
	_cleanup_close_ int dir = -1, fd = -1;
	char text[LOCK_FILE_TEXT], object[GATE_NAME + 8], holder[32] = "another process";
	struct stat st, named;
	pid_t pid;
	int length;

	if (!mkdir(RUN_DIR, 0755) || errno == EEXIST)
		dir = open(RUN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st))
		return error_add(errno, "lock-file", RUN_DIR, "cannot open: %s", strerror(errno));
	if (!owner_alone_writes(&st))
		return error_add(EPERM, "untrusted", RUN_DIR,
				 "belongs to %s, mode %04o; it must belong to root, the caller or "
				 "user '" OWNER_USER "', and only its owner may write",
				 owner_name(st.st_uid), st.st_mode & 07777);
	path_format(kind, gate, ret->path);
	do {
		close_fd(&fd);
		fd = file_open(dir, ret->path);
		if (fd < 0)
			return error_add(fd, "lock-file", ret->path, "cannot open: %s",
					 strerror(-fd));
		if (fcntl(fd, F_SETLK, &whole_file)) {
			if (errno != EAGAIN && errno != EACCES)
				return error_add(errno, "lock-file", ret->path, "cannot lock: %s",
						 strerror(errno));
			snprintf(object, sizeof(object), "gate '%s'", gate);
			if (is_locked(fd, &pid) && pid)
				snprintf(holder, sizeof(holder), "process %d", pid);
			return error_add(EBUSY, "already-locked", object, "%s already %s it",
					 holder, kind == LOCK_KEEP ? "keeps" : "shares");
		}
		/* try again if this process opened a file that the previous holder has deleted */
	} while (fstat(fd, &st) || lstat(ret->path, &named) || st.st_dev != named.st_dev ||
		 st.st_ino != named.st_ino);
	length = snprintf(text, sizeof(text), "%d\n%.*s\n", getpid(), PATH_MAX, full ?: path);
	if (ftruncate(fd, 0) || pwrite(fd, text, length, 0) != length)
		error_notice("lock-file", ret->path, "cannot write: %s", strerror(errno));
	ret->fd = steal_fd(&fd);
	return 0;
}

void lock_file_release(struct lock_file *lock)
{
	if (lock->fd >= 0)
		unlink(lock->path);
	close_fd(&lock->fd);
	lock->fd = -1;
}

/* --- The process that has the lock ---------------------------------------------------------- */

enum lock_state lock_file_find(enum lock_kind kind, const char *gate, struct lock_holder *ret)
{
	_cleanup_close_ int fd = -1;
	char path[LOCK_FILE_PATH], text[LOCK_FILE_TEXT] = "", *line;
	struct stat st;

	*ret = (struct lock_holder){0};
	if (lstat(RUN_DIR, &st))
		return errno == EACCES ? LOCK_UNKNOWN : LOCK_FREE;
	if (!owner_alone_writes(&st))
		return LOCK_FREE;
	fd = open(path_format(kind, gate, path),
		  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? LOCK_UNKNOWN : LOCK_FREE;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !owner_alone_writes(&st) ||
	    !is_locked(fd, &ret->pid))
		return LOCK_FREE;
	if (pread(fd, text, sizeof(text) - 1, 0) > 0 && (line = strchr(text, '\n'))) {
		line[1 + strcspn(line + 1, "\n")] = '\0';
		snprintf(ret->path, PATH_MAX, "%.*s", PATH_MAX - 1, line + 1);
	}
	return LOCK_HELD;
}

bool lock_file_remove(enum lock_kind kind, const char *gate)
{
	char path[LOCK_FILE_PATH];
	struct lock_holder holder;

	if (lock_file_find(kind, gate, &holder) != LOCK_FREE)
		return false;
	unlink(path_format(kind, gate, path));
	return true;
}
