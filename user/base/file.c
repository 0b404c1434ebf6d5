// SPDX-License-Identifier: GPL-2.0
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The longest sequence of UTF-8. */
#define UTF8_BYTES 4

/* How long a file that is open for writing elsewhere has to keep still. */
#define STILL_MS      100
#define STILL_POLL_MS 5

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

static void pause_ms(unsigned int ms)
{
	struct timespec time = {.tv_nsec = ms * 1000000L};

	nanosleep(&time, NULL);
}

/*
 * Waits until no process has the file open for writing. Its times and size tell of a write when it begins, so they
 * cannot show that it is complete. A read lease can: the kernel grants it when there is no writer, and then keeps
 * writers waiting until the file is closed. False: the file stays open for writing, as it does when a program writes
 * a temporary file and runs this one.
 */
static bool file_hold(int fd)
{
	/* a waiting writer is announced by SIGIO, which would end this process; SIGCHLD does nothing */
	if (fcntl(fd, F_SETSIG, SIGCHLD))
		return true;
	for (unsigned int waited = 0; fcntl(fd, F_SETLEASE, F_RDLCK); waited += STILL_POLL_MS) {
		if (errno != EAGAIN) /* not lent here: times and sizes are all there is */
			return true;
		if (waited >= STILL_MS)
			return false;
		pause_ms(STILL_POLL_MS);
	}
	return true;
}

/* Neither a FIFO nor a device can hold us up: O_NONBLOCK opens it at once, and it is not read. */
static enum status file_open(const char *path, int *ret_fd)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	enum status status = OK;
	struct stat st;

	if (fd < 0)
		return fail("cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, &st))
		status = fail("cannot read %s: %s", path, strerror(errno));
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

/* Reads to the end, with a NUL behind it. */
static enum status file_fill(int fd, const char *name, struct file *file)
{
	size_t room = 0;
	ssize_t got = 0;
	char *text;

	do {
		if (got < 0 && errno != EINTR)
			return fail("cannot read %s: %s", name, strerror(errno));
		if (got > 0)
			file->size += got;
		if (file->size > FILE_MAX)
			return refuse_size(name);
		if (room - file->size < 2) {
			room = room ? 2 * room : 1 << 16;
			text = realloc(file->text, room);
			if (!text)
				return fail("cannot read %s: out of memory", name);
			file->text = text;
		}
		got = read(fd, file->text + file->size, room - file->size - 1);
	} while (got);
	file->text[file->size] = '\0';
	return OK;
}

static enum status refuse_change(const char *path)
{
	return misuse("%s changed while it was read: try again when it is written", path);
}

/* Refuses a file that was written in place while it was read. One that was replaced is read as it was. */
static enum status check_unchanged(int fd, const char *path, const struct stat *before, size_t size)
{
	struct stat after;

	if (fstat(fd, &after))
		return fail("cannot read %s: %s", path, strerror(errno));
	if (after.st_size == before->st_size && (size_t)after.st_size == size &&
	    after.st_mtim.tv_sec == before->st_mtim.tv_sec &&
	    after.st_mtim.tv_nsec == before->st_mtim.tv_nsec)
		return OK;
	return refuse_change(path);
}

/* The length of the character at `p`, of at most `left` bytes; 0: it is none. */
static unsigned int utf8_length(const unsigned char *p, size_t left)
{
	static const uint32_t least[UTF8_BYTES + 1] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned int length = *p < 0x80	  ? 1
			      : *p < 0xc0 ? 0
			      : *p < 0xe0 ? 2
			      : *p < 0xf0 ? 3
			      : *p < 0xf8 ? 4
					  : 0;
	uint32_t code = length > 1 ? *p & (0x7f >> length) : *p;

	if (!length || length > left)
		return 0;
	for (unsigned int i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

static enum status check_text(const char *name, const struct file *file)
{
	const unsigned char *p = (const unsigned char *)file->text, *end = p + file->size;
	unsigned int line = 1, column = 1, length;

	for (; p < end; p += length, column++) {
		length = utf8_length(p, end - p);
		if (!length)
			return misuse("%s:%u:%u: the byte 0x%02x there is not UTF-8", name, line,
				      column, *p);
		if (!*p)
			return misuse("%s:%u:%u: a NUL byte: this is no text", name, line, column);
		if (*p == '\n') {
			line++;
			column = 0;
		}
	}
	return OK;
}

/* Some editors put a byte order mark before UTF-8. */
static void drop_mark(struct file *file)
{
	if (file->size < 3 || memcmp(file->text, "\xef\xbb\xbf", 3))
		return;
	file->size -= 3;
	memmove(file->text, file->text + 3, file->size + 1);
}

/* Without a hold on the file: what it says has to be the same for a while. */
static enum status check_still(int fd, const char *path, const struct file *file)
{
	struct file again = {0};
	enum status status = OK;

	pause_ms(STILL_MS);
	if (lseek(fd, 0, SEEK_SET))
		return fail("cannot read %s: %s", path, strerror(errno));
	status = file_fill(fd, path, &again);
	if (!status && (again.size != file->size || memcmp(again.text, file->text, file->size)))
		status = refuse_change(path);
	file_free(&again);
	return status;
}

static enum status file_read_path(const char *path, struct file *file)
{
	struct stat before;
	int fd = -1;
	enum status status = file_open(path, &fd);
	bool held;

	if (status)
		return status;
	held = file_hold(fd);
	if (fstat(fd, &before))
		status = fail("cannot read %s: %s", path, strerror(errno));
	if (!status)
		status = file_fill(fd, path, file);
	if (!status && !held)
		status = check_still(fd, path, file);
	if (!status)
		status = check_unchanged(fd, path, &before, file->size);
	file->is_written = !held;
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

	if (!status)
		status = check_text(name, &file);
	if (status) {
		file_free(&file);
		return status;
	}
	drop_mark(&file);
	*ret = file;
	return OK;
}

void file_free(struct file *file)
{
	free(file->text);
	*file = (struct file){0};
}
