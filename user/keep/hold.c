// SPDX-License-Identifier: GPL-2.0
#include "keep/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "base/owner.h"

static const struct {
	const char *suffix; /* of the file */
	const char *held;   /* what the gate is, in messages */
} kinds[] = {
	[HOLD_KEEP] = {"keep", "kept"},
	[HOLD_SHARE] = {"share", "shared"},
};

/* Opens HOLD_DIR. -1: errno tells why. */
static int dir_open(struct stat *ret)
{
	int fd = open(HOLD_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && fstat(fd, ret)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Opens HOLD_DIR, and makes it if it is missing. */
static int dir_make(int *ret)
{
	struct stat st;
	int fd = mkdir(HOLD_DIR, 0755) && errno != EEXIST ? -1 : dir_open(&st);
	int status = OK;

	if (fd < 0)
		status = failure("cannot open " HOLD_DIR ": %s", strerror(errno));
	else if (!owner_alone_writes(&st))
		status = failure(HOLD_DIR
				 " belongs to %s, mode %04o: it has to be root's, the caller's or "
				 "of user '" OWNER_USER "', and only its owner's to write",
				 owner_name(st.st_uid), st.st_mode & 07777);
	if (status && fd >= 0)
		close(fd);
	else
		*ret = fd;
	return status;
}

/*
 * The lock is one of fcntl(2), for which the kernel names the process that holds it, whatever is
 * written in the file. To look takes no lock, and so keeps no other process from it.
 */
static const struct flock whole_file = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

/* Whether a process has the lock. ret_pid: its number; 0: it has none in this namespace of them. */
static bool lock_is_held(int fd, pid_t *ret_pid)
{
	struct flock lock = whole_file;

	if (fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK)
		return false;
	*ret_pid = lock.l_pid > 0 ? lock.l_pid : 0;
	return true;
}

static int refuse_second(int fd, enum hold_kind kind, const char *gate)
{
	pid_t pid = 0;

	lock_is_held(fd, &pid);
	if (!pid)
		return failure("gate '%s' is %s by another process already", gate,
			       kinds[kind].held);
	return failure("gate '%s' is %s by process %d already", gate, kinds[kind].held, pid);
}

/* Whether the name still is that of the open file: the process that held it may have removed it. */
static bool file_is_named(const struct hold *hold)
{
	struct stat open_file, named;

	return !fstat(hold->file, &open_file) &&
	       !fstatat(hold->dir, hold->name, &named, AT_SYMLINK_NOFOLLOW) &&
	       open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/*
 * Opens the file as the owner of the directory, who has to be able to open it after root was
 * killed. Mode 0600: who may open it may lock it.
 */
static int file_open(const struct hold *hold)
{
	struct owner self;
	int err = owner_become(hold->dir, &self), fd;

	if (err)
		return err;
	fd = openat(hold->dir, hold->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		    0600);
	err = fd < 0 ? -errno : fd;
	owner_leave(&self);
	return err;
}

static int file_lock(struct hold *hold, enum hold_kind kind, const char *gate)
{
	do {
		if (hold->file >= 0)
			close(hold->file);
		hold->file = file_open(hold);
		if (hold->file < 0)
			return failure("cannot open " HOLD_DIR "/%s: %s", hold->name,
				       strerror(-hold->file));
		if (fcntl(hold->file, F_SETLK, &whole_file))
			return errno == EAGAIN || errno == EACCES
				       ? refuse_second(hold->file, kind, gate)
				       : failure("cannot lock " HOLD_DIR "/%s: %s", hold->name,
						 strerror(errno));
	} while (!file_is_named(hold));
	return OK;
}

void hold_write(const struct hold *hold, const char *path, const char *more)
{
	char *full = *path == '/' ? NULL : realpath(path, NULL), text[HOLD_TEXT];
	int length = snprintf(text, sizeof(text), "%d\n%s\n%s", getpid(), full ?: path, more);

	free(full);
	if (length >= (int)sizeof(text))
		length = sizeof(text) - 1;
	if (ftruncate(hold->file, 0) || pwrite(hold->file, text, length, 0) != length)
		note("cannot write to " HOLD_DIR "/%s: %s", hold->name, strerror(errno));
}

static void hold_close(struct hold *hold)
{
	if (hold->file >= 0)
		close(hold->file);
	if (hold->dir >= 0)
		close(hold->dir);
	*hold = HOLD_NONE;
}

int hold_gate(enum hold_kind kind, const char *gate, const char *path, struct hold *ret)
{
	struct hold hold = HOLD_NONE;
	int status = dir_make(&hold.dir);

	snprintf(hold.name, sizeof(hold.name), "%s.%s", gate, kinds[kind].suffix);
	if (!status)
		status = file_lock(&hold, kind, gate);
	if (status) {
		hold_close(&hold);
		return status;
	}
	hold_write(&hold, path, "");
	*ret = hold;
	return OK;
}

void hold_release(struct hold *hold)
{
	if (hold->file >= 0)
		unlinkat(hold->dir, hold->name, 0);
	hold_close(hold);
}

/* --- The process that holds it -------------------------------------------------------------- */

/* Opens the lock of a gate to look at it. -1: there is none, or it is not to be believed; errno. */
static int lock_open(enum hold_kind kind, const char *gate)
{
	char name[HOLD_NAME];
	struct stat st;
	int dir = dir_open(&st), fd = -1;

	errno = 0;
	snprintf(name, sizeof(name), "%s.%s", gate, kinds[kind].suffix);
	if (dir >= 0 && owner_alone_writes(&st))
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (dir >= 0)
		close(dir);
	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode) && owner_alone_writes(&st)))
		return fd;
	close(fd);
	errno = 0;
	return -1;
}

/* Reads the path, which is the second line, and what follows it. */
static void holder_read(int fd, struct holder *holder)
{
	char text[HOLD_TEXT] = "", *line, *more;

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		return;
	line = strchr(text, '\n');
	if (!line)
		return;
	more = line + 1 + strcspn(line + 1, "\n");
	if (*more)
		*more++ = '\0';
	snprintf(holder->path, PATH_MAX, "%.*s", PATH_MAX - 1, line + 1);
	snprintf(holder->more, sizeof(holder->more), "%.*s", HOLD_MORE - 1, more);
}

enum held holder_find(enum hold_kind kind, const char *gate, struct holder *ret)
{
	int fd = lock_open(kind, gate);
	bool is_held;

	if (fd < 0)
		return errno == EACCES ? HELD_UNKNOWN : HELD_NOT;
	*ret = (struct holder){0};
	is_held = lock_is_held(fd, &ret->pid);
	if (is_held)
		holder_read(fd, ret);
	close(fd);
	return is_held ? HELD : HELD_NOT;
}

/* One who begins now finds no gate. */
bool hold_forget(enum hold_kind kind, const char *gate)
{
	char path[sizeof(HOLD_DIR) + HOLD_NAME];
	struct holder holder;

	if (holder_find(kind, gate, &holder) != HELD_NOT)
		return false;
	snprintf(path, sizeof(path), HOLD_DIR "/%s.%s", gate, kinds[kind].suffix);
	unlink(path);
	return true;
}
