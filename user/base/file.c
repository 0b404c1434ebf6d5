// SPDX-License-Identifier: GPL-2.0
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A file is read when it has not changed for this long. */
#define STILL_MS 100

/*
 * How much older than it is a file may seem. Some file systems round its time down to a second, as
 * ext4 with small inodes, or to two, as FAT. A time without a fraction may be such a time.
 */
#define ROUNDED_MS 2000

static const char *kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

static enum status refuse_size(const char *name)
{
	return misuse("%s is larger than %d MiB, the most that a file of rules or prefixes may be",
		      name, FILE_MAX >> 20);
}

/*
 * Opens a regular file of at most FILE_MAX bytes. O_NONBLOCK: open(2) of a FIFO or a device returns
 * at once, and the file is refused.
 */
static enum status file_open(const char *path, int *ret_fd)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	enum status status = OK;
	struct stat st;

	if (fd < 0)
		return failure("cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, &st))
		status = failure("cannot read %s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		status = misuse("%s is %s, and not a regular file", path, kind_name(st.st_mode));
	else if (st.st_size > FILE_MAX)
		status = refuse_size(path);
	if (status)
		close(fd);
	else
		*ret_fd = fd;
	return status;
}

/* Reads from fd to its end, and appends a NUL. */
static enum status file_fill(int fd, const char *name, struct file *file)
{
	size_t room = 0;
	ssize_t got = 0;
	char *text;

	do {
		if (got < 0 && errno != EINTR)
			return failure("cannot read %s: %s", name, strerror(errno));
		if (got > 0)
			file->size += got;
		if (file->size > FILE_MAX)
			return refuse_size(name);
		if (room - file->size < 2) {
			room = room ? 2 * room : 1 << 16;
			text = realloc(file->text, room);
			if (!text)
				return failure("cannot read %s: out of memory", name);
			file->text = text;
		}
		got = read(fd, file->text + file->size, room - file->size - 1);
	} while (got);
	file->text[file->size] = '\0';
	return OK;
}

/*
 * Refuses a file that was changed in place while it was read. A file that was replaced has no
 * effect: fd still refers to the old one.
 */
static enum status check_unchanged(int fd, const char *path, const struct stat *before, size_t size)
{
	struct stat after;

	if (fstat(fd, &after))
		return failure("cannot read %s: %s", path, strerror(errno));
	if (after.st_size == before->st_size && (size_t)after.st_size == size &&
	    after.st_mtim.tv_sec == before->st_mtim.tv_sec &&
	    after.st_mtim.tv_nsec == before->st_mtim.tv_nsec)
		return OK;
	return misuse("%s changed while it was read: try again when it is written", path);
}

/* Removes a byte order mark, which some editors write before UTF-8. */
static void bom_remove(struct file *file)
{
	if (file->size < 3 || memcmp(file->text, "\xef\xbb\xbf", 3))
		return;
	file->size -= 3;
	memmove(file->text, file->text + 3, file->size + 1);
}

static int64_t age_ms(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (now.tv_sec - st->st_mtim.tv_sec) * 1000LL +
	       (now.tv_nsec - st->st_mtim.tv_nsec) / 1000000;
}

/*
 * Reads the state of the file, from which on it must not change, and waits until its last change is
 * STILL_MS old: the times of a file tell when a write began, not when it ended. A writer that
 * pauses for longer than STILL_MS is not noticed.
 */
static enum status file_settle(int fd, const char *path, struct stat *ret)
{
	int64_t age, wait;

	if (fstat(fd, ret))
		return failure("cannot read %s: %s", path, strerror(errno));
	age = age_ms(ret);
	wait = STILL_MS + (ret->st_mtim.tv_nsec ? 0 : ROUNDED_MS) - age;
	if (age <= 0) /* the file's time is of another clock */
		wait = STILL_MS;
	if (wait > 0)
		nanosleep(&(struct timespec){wait / 1000, wait % 1000 * 1000000}, NULL);
	return OK;
}

static enum status file_read_path(const char *path, struct file *file)
{
	struct stat before = {0};
	int fd = -1;
	enum status status = file_open(path, &fd);

	if (status)
		return status;
	status = file_settle(fd, path, &before);
	if (!status)
		status = file_fill(fd, path, file);
	if (!status)
		status = check_unchanged(fd, path, &before, file->size);
	close(fd);
	return status;
}

enum status file_read(const char *path, struct file *ret)
{
	bool is_stdin = !strcmp(path, "-");
	const char *name = is_stdin ? "standard input" : path;
	struct file file = {0};
	enum status status =
		is_stdin ? file_fill(STDIN_FILENO, name, &file) : file_read_path(path, &file);

	if (!status && memchr(file.text, '\0', file.size))
		status = misuse("%s has a NUL byte: this is no text", name);
	if (status) {
		file_free(&file);
		return status;
	}
	bom_remove(&file);
	*ret = file;
	return OK;
}

void file_free(struct file *file)
{
	free(file->text);
	*file = (struct file){0};
}
