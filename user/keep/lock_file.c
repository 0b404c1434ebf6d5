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

#define LOCK_FILE_TEXT (PATH_MAX + LOCK_FILE_MORE + 32)

static const char *const suffixes[] = {[LOCK_KEEP] = "keep", [LOCK_SHARE] = "share"};

/*
 * A lock of fcntl(2): the kernel names the process that holds it, whatever the file says. F_GETLK
 * takes no lock, so a reader cannot keep a process from it.
 */
static const struct flock whole_file = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

static void lock_file_close(struct lock_file *lock)
{
	close_fd(&lock->file);
	close_fd(&lock->dir);
	*lock = LOCK_FILE_NONE;
}

/* Opens RUN_DIR. Returns an fd, or -1 and errno. */
static int dir_open(struct stat *ret)
{
	_cleanup_close_ int fd = open(RUN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 || fstat(fd, ret) ? -1 : steal_fd(&fd);
}

/* Returns whether a process has the lock. ret_pid: its number; 0: it has none in this namespace. */
static bool is_locked(int fd, pid_t *ret_pid)
{
	struct flock lock = whole_file;

	*ret_pid = 0;
	if (fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK)
		return false;
	if (lock.l_pid > 0)
		*ret_pid = lock.l_pid;
	return true;
}

/*
 * Opens the file as the owner of the directory, who must be able to open it after root was killed.
 * Mode 0600: a user who may open the file may lock it. Returns an fd or a negative errno.
 */
static int file_open(const struct lock_file *lock)
{
	struct owner self;
	int fd, err = owner_become(lock->dir, &self);

	if (err)
		return err;
	fd = openat(lock->dir, lock->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		    0600);
	if (fd < 0)
		fd = -errno;
	owner_leave(&self);
	return fd;
}

/* Returns whether the name still leads to the open file: its last process may have removed it. */
static bool file_has_name(const struct lock_file *lock)
{
	struct stat file, named;

	return !fstat(lock->file, &file) &&
	       !fstatat(lock->dir, lock->name, &named, AT_SYMLINK_NOFOLLOW) &&
	       file.st_dev == named.st_dev && file.st_ino == named.st_ino;
}

static int file_lock(struct lock_file *lock, enum lock_kind kind, const char *gate)
{
	static const char *const done[] = {[LOCK_KEEP] = "kept", [LOCK_SHARE] = "shared"};
	char path[sizeof(RUN_DIR) + LOCK_FILE_NAME], object[LOCK_FILE_NAME];
	pid_t pid;
	int err;

	snprintf(path, sizeof(path), RUN_DIR "/%s", lock->name);
	do {
		close_fd(&lock->file);
		lock->file = file_open(lock);
		if (lock->file < 0)
			return error_add(lock->file, "lock-file", path, "cannot open: %s",
					 strerror(-lock->file));
		if (!fcntl(lock->file, F_SETLK, &whole_file))
			continue;
		err = errno;
		if (err != EAGAIN && err != EACCES)
			return error_add(err, "lock-file", path, "cannot lock: %s", strerror(err));
		snprintf(object, sizeof(object), "gate '%s'", gate);
		is_locked(lock->file, &pid);
		if (!pid)
			return error_add(EBUSY, "already-locked", object,
					 "it is %s by another process already", done[kind]);
		return error_add(EBUSY, "already-locked", object, "it is %s by process %d already",
				 done[kind], pid);
	} while (!file_has_name(lock));
	return 0;
}

int lock_file_take(enum lock_kind kind, const char *gate, const char *path, struct lock_file *ret)
{
	_cleanup_(lock_file_close) struct lock_file lock = LOCK_FILE_NONE;
	struct stat st;
	int err;

	if (!mkdir(RUN_DIR, 0755) || errno == EEXIST)
		lock.dir = dir_open(&st);
	if (lock.dir < 0)
		return error_add(errno, "lock-file", RUN_DIR, "cannot open: %s", strerror(errno));
	if (!owner_alone_writes(&st))
		return error_add(EPERM, "untrusted", RUN_DIR,
				 "belongs to %s, mode %04o: it has to be root's, the caller's or "
				 "of user '" OWNER_USER "', and only its owner's to write",
				 owner_name(st.st_uid), st.st_mode & 07777);
	snprintf(lock.name, sizeof(lock.name), "%s.%s", gate, suffixes[kind]);
	err = file_lock(&lock, kind, gate);
	if (err)
		return err;
	lock_file_write(&lock, path, "");
	*ret = lock;
	lock = LOCK_FILE_NONE;
	return 0;
}

void lock_file_write(const struct lock_file *lock, const char *path, const char *more)
{
	_cleanup_free_ char *full = *path == '/' ? NULL : realpath(path, NULL);
	char text[LOCK_FILE_TEXT];
	int length = snprintf(text, sizeof(text), "%d\n%s\n%s", getpid(), full ?: path, more);

	if (length >= (int)sizeof(text))
		length = sizeof(text) - 1;
	if (ftruncate(lock->file, 0) || pwrite(lock->file, text, length, 0) != length)
		error_notice("lock-file", lock->name, "cannot write in " RUN_DIR ": %s",
			     strerror(errno));
}

void lock_file_release(struct lock_file *lock)
{
	if (lock->file >= 0)
		unlinkat(lock->dir, lock->name, 0);
	lock_file_close(lock);
}

/* --- The process that has the lock ---------------------------------------------------------- */

/* Reads the path, which is the second line, and the lines after it. */
static void holder_read(int fd, struct lock_holder *holder)
{
	char text[LOCK_FILE_TEXT] = "", *path, *more;

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		return;
	path = strchr(text, '\n');
	if (!path)
		return;
	path++;
	more = path + strcspn(path, "\n");
	if (*more)
		*more++ = '\0';
	snprintf(holder->path, PATH_MAX, "%.*s", PATH_MAX - 1, path);
	snprintf(holder->more, LOCK_FILE_MORE, "%.*s", LOCK_FILE_MORE - 1, more);
}

enum lock_state lock_file_find(enum lock_kind kind, const char *gate, struct lock_holder *ret)
{
	_cleanup_close_ int dir = -1, fd = -1;
	char name[LOCK_FILE_NAME];
	struct stat st;

	*ret = (struct lock_holder){0};
	dir = dir_open(&st);
	if (dir < 0)
		return errno == EACCES ? LOCK_UNKNOWN : LOCK_FREE;
	if (!owner_alone_writes(&st))
		return LOCK_FREE;
	snprintf(name, sizeof(name), "%s.%s", gate, suffixes[kind]);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? LOCK_UNKNOWN : LOCK_FREE;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !owner_alone_writes(&st) ||
	    !is_locked(fd, &ret->pid))
		return LOCK_FREE;
	holder_read(fd, ret);
	return LOCK_HELD;
}

bool lock_file_remove(enum lock_kind kind, const char *gate)
{
	char path[sizeof(RUN_DIR) + LOCK_FILE_NAME];
	struct lock_holder holder;

	if (lock_file_find(kind, gate, &holder) != LOCK_FREE)
		return false;
	snprintf(path, sizeof(path), RUN_DIR "/%s.%s", gate, suffixes[kind]);
	unlink(path);
	return true;
}
