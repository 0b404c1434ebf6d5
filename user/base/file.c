// SPDX-License-Identifier: GPL-2.0
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/owner.h"

/* Read a file only if its mtime is older than this time, in ms. */
#define STILL_MS 100

/* Largest rounding of an mtime: ext4 with 128-byte inodes rounds down to 1 s, FAT to 2 s. */
#define ROUNDED_MS 2000

static int call_failed(const char *id, const char *what, const char *name)
{
	return error_add(errno, id, NULL, "cannot %s %s: %s", what, name,
			 errno == ELOOP ? "it is a symbolic link, which is not followed"
					: strerror(errno));
}

static int refuse_size(const char *name)
{
	return error_misuse(
		"file-too-large", NULL,
		"%s is larger than %d MiB, the most that a file of rules or prefixes may be", name,
		FILE_MAX >> 20);
}

/*
 * Fails unless the file is a regular file. For a pipe, such as `deny -f <(COMMAND)`, the error
 * suggests `deny -f -`.
 */
static int kind_check(const char *path, mode_t mode)
{
	bool is_pipe = S_ISFIFO(mode) || S_ISSOCK(mode);

	if (S_ISREG(mode))
		return 0;
	return error_misuse("not-a-file", NULL, "%s is %s, and not a regular file%s", path,
			    S_ISDIR(mode)    ? "a directory"
			    : S_ISFIFO(mode) ? "a FIFO"
			    : S_ISSOCK(mode) ? "a socket"
			    : S_ISLNK(mode)  ? "a symbolic link"
					     : "a device",
			    is_pipe ? "; write the output of a command to a file, or pipe it to "
				      "'deny -f -' or 'apply -'"
				    : "");
}

/*
 * Opens a regular file of at most FILE_MAX bytes. Returns an error for a FIFO or a device. Uses
 * O_NONBLOCK, because open(2) of a FIFO would wait for a writer.
 */
static int file_open(const char *path, int flags, int *ret_fd, struct stat *ret_stat)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
	int err;

	if (fd < 0)
		return call_failed("file-open", "open", path);
	if (fstat(fd, ret_stat))
		return call_failed("file-read", "read", path);
	err = kind_check(path, ret_stat->st_mode);
	if (err)
		return err;
	if (ret_stat->st_size > FILE_MAX)
		return refuse_size(path);
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* Reads from fd to its end, and appends a NUL. Fails if the content contains a NUL. */
static int file_fill(int fd, const char *name, struct file *file)
{
	size_t room = 0;
	ssize_t got = 0;
	char *text;

	do {
		if (got < 0 && errno != EINTR)
			return call_failed("file-read", "read", name);
		if (got > 0)
			file->size += got;
		if (file->size > FILE_MAX)
			return refuse_size(name);
		if (room - file->size < 2) {
			room = room ? 2 * room : 1 << 16;
			text = realloc(file->text, room);
			if (!text)
				return error_add(ENOMEM, "no-memory", NULL,
						 "cannot read %s: out of memory", name);
			file->text = text;
		}
		got = read(fd, file->text + file->size, room - file->size - 1);
	} while (got);
	file->text[file->size] = '\0';
	if (memchr(file->text, '\0', file->size))
		return error_misuse("nul-byte", NULL, "%s has a NUL byte, so it is not a text file",
				    name);
	return 0;
}

/* Waits until the file's mtime is STILL_MS old, because a process may still write data. */
static void file_settle(const struct stat *st)
{
	int64_t age, wait;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (now.tv_sec - st->st_mtim.tv_sec) * 1000LL +
	      (now.tv_nsec - st->st_mtim.tv_nsec) / 1000000;
	wait = STILL_MS + (st->st_mtim.tv_nsec ? 0 : ROUNDED_MS) - age;
	/* the mtime is in the future, after a change of the clock or from another host */
	if (age <= 0)
		wait = STILL_MS;
	if (wait > 0)
		nanosleep(&(struct timespec){wait / 1000, wait % 1000 * 1000000}, NULL);
}

static bool time_equal(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/*
 * Reads a file. Returns an error if a writer changes the file during the reading. If another file
 * replaces it, fd still reads the old file.
 */
static int file_read_path(const char *path, struct file *file)
{
	struct stat before, after;
	_cleanup_close_ int fd = -1;
	int err = file_open(path, 0, &fd, &before);

	if (err)
		return err;
	file_settle(&before);
	err = file_fill(fd, path, file);
	if (err)
		return err;
	if (fstat(fd, &after))
		return call_failed("file-read", "read", path);
	if (after.st_size == before.st_size && (size_t)after.st_size == file->size &&
	    time_equal(&after.st_mtim, &before.st_mtim))
		return 0;
	return error_misuse("file-changing", NULL,
			    "%s changed while it was read; try again when it is complete", path);
}

int file_read(const char *path, struct file *ret)
{
	struct file file = {0};
	int err = strcmp(path, "-") ? file_read_path(path, &file)
				    : file_fill(STDIN_FILENO, "standard input", &file);

	if (err) {
		file_free(&file);
		return err;
	}
	if (file.size >= 3 && !memcmp(file.text, "\xef\xbb\xbf", 3)) { /* skip a byte order mark */
		file.size -= 3;
		memmove(file.text, file.text + 3, file.size + 1);
	}
	*ret = file;
	return 0;
}

/* --- Stamps --------------------------------------------------------------------------------- */

struct stamp stamp_of(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return (struct stamp){0};
	return (struct stamp){st.st_dev, st.st_ino, st.st_size, st.st_ctim, st.st_mtim};
}

uint64_t stamp_written(const struct stamp *stamp)
{
	time_t now = time(NULL), written = stamp->modified.tv_sec;

	return written < 0 ? 0 : written < now ? written : now;
}

bool stamp_equal(const struct stamp *a, const struct stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       time_equal(&a->changed, &b->changed) && time_equal(&a->modified, &b->modified);
}

bool stamp_same_file(const struct stamp *a, const struct stamp *b)
{
	return a->inode && a->device == b->device && a->inode == b->inode;
}

/* --- Files of Sluice ------------------------------------------------------------------------ */

int file_read_own(const char *path, struct file *ret, bool *ret_is_there)
{
	_cleanup_close_ int fd = -1;
	struct file file = {0};
	unsigned int mark;
	struct stat st;
	int err;

	*ret_is_there = !lstat(path, &st) || errno != ENOENT;
	if (!*ret_is_there)
		return 0;
	mark = error_count();
	err = file_open(path, O_NOFOLLOW, &fd, &st);
	*ret_is_there = err != -ENOENT;
	if (!*ret_is_there) /* the file was removed after lstat(2) */
		error_drop(mark);
	if (err)
		return *ret_is_there ? err : 0;
	if (!owner_alone_writes(&st))
		return error_add(
			EPERM, "untrusted-file", NULL,
			"%s belongs to %s, with mode %04o, so it is not trusted; it must belong to "
			"root, the caller or user '" OWNER_USER "', and only its owner may write "
			"to it",
			path, owner_name(st.st_uid), st.st_mode & 07777);
	file.owner = st.st_uid;
	file.mode = st.st_mode & 07777;
	err = file_fill(fd, path, &file);
	if (err)
		file_free(&file);
	else
		*ret = file;
	return err;
}

int file_begin(const char *path, char *text, size_t room, size_t *ret_size)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	ssize_t got;
	int err;

	*ret_size = 0;
	/* check the type before open(2), because opening a device may have side effects */
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : call_failed("file-open", "open", path);
	err = kind_check(path, st.st_mode) ?: file_open(path, O_NOFOLLOW, &fd, &st);
	if (err)
		return err;
	got = read(fd, text, room);
	if (got < 0)
		return call_failed("file-read", "read", path);
	*ret_size = got;
	return 0;
}

/* Writes a text to fd, and waits until it is on disk. Returns 0 or a negative errno. */
static int fd_write(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t written = write(fd, text, size);

		if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			text += written;
			size -= written;
		}
	}
	return fsync(fd) ? -errno : 0;
}

/* Writes NAME.new, and renames it to NAME. Returns 0 or a negative errno. */
static int file_put(int directory, const char *name, const struct file *file, mode_t mode,
		    gid_t group)
{
	_cleanup_close_ int fd = -1;
	char fresh[NAME_MAX + 1];
	int err;

	if (snprintf(fresh, sizeof(fresh), "%s.new", name) > NAME_MAX)
		return -ENAMETOOLONG;
	unlinkat(directory, fresh, 0); /* a killed process may have left this file */
	fd = openat(directory, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	err = fd_write(fd, file->text, file->size);
	/* ignore a failure: users may set only groups to which they belong */
	if (group != GROUP_KEPT && fchown(fd, -1, group))
		errno = 0;
	if (!err && (fchmod(fd, mode) || renameat(directory, fresh, directory, name)))
		err = -errno;
	if (err)
		unlinkat(directory, fresh, 0);
	return err;
}

int file_replace(const char *path, const char *text, size_t size, mode_t mode, gid_t group)
{
	const struct file file = {.text = (char *)text, .size = size};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	_cleanup_free_ char *parent = name == path ? strdup(".") : strndup(path, name - path);
	_cleanup_close_ int directory =
		parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int err = directory < 0 ? -errno : 0;
	bool becomes = false;
	struct owner self;
	struct stat st;

	/*
	 * as root, use the directory owner's ids, because a file of an untrusted owner would be
	 * refused
	 */
	if (!err && !geteuid() && !fstat(directory, &st) && owner_is_trusted(st.st_uid)) {
		err = owner_become(directory, &self);
		becomes = !err;
	}
	err = err ?: file_put(directory, name, &file, mode, group);
	if (becomes)
		owner_leave(&self);
	if (!err && fsync(directory))
		err = -errno;
	return err ? error_add(err, "file-write", NULL, "cannot write %s: %s", path, strerror(-err))
		   : 0;
}

void file_remove(const char *path)
{
	char fresh[PATH_MAX];

	unlink(path);
	if ((size_t)snprintf(fresh, sizeof(fresh), "%s.new", path) < sizeof(fresh))
		unlink(fresh);
}

void file_free(struct file *file)
{
	free(file->text);
	*file = (struct file){0};
}
