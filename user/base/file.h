/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: reads files of users, and returns an error for a file that is being written. Reads and
 * writes Sluice's own files, and trusts such a file only if no other user can write to it.
 */
#ifndef SLUICE_FILE_H
#define SLUICE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* Largest accepted file, in bytes: enough for some millions of prefixes. */
#define FILE_MAX (90 << 20)

struct file {
	char *text;  /* content, followed by a NUL byte that `size` does not include */
	size_t size; /* bytes */
	uid_t owner; /* set by file_read_own() only */
	mode_t mode; /* permissions; set by file_read_own() only */
};

/*
 * Reads a whole regular file, or standard input if the path is "-". Drops a byte order mark.
 * Returns an error for a device, a directory, a file above FILE_MAX, or a file with a NUL byte.
 * Waits until the file has not changed for 0.1 s, or for 2.1 s if its mtime is in whole seconds.
 * Returns an error if the file changes during the reading. If a writer pauses for longer than this
 * wait, the incomplete file is read, so writers should write a new file and rename it.
 */
int file_read(const char *path, struct file *ret);
void file_free(struct file *file);

/* Identifies a version of a file by its metadata. All fields are 0 if the file does not exist. */
struct stamp {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed, modified;
};

struct stamp stamp_of(const char *path);

/*
 * Returns the mtime in seconds since 1970. If the mtime is in the future, returns the present time.
 */
uint64_t stamp_written(const struct stamp *stamp);

bool stamp_equal(const struct stamp *a, const struct stamp *b);

/* Returns whether both stamps have the same inode. Returns false if the file does not exist. */
bool stamp_same_file(const struct stamp *a, const struct stamp *b);

/*
 * Reads a file that Sluice wrote. In addition to the checks of file_read(), refuses a symbolic
 * link, and a file that a user who is not trusted may write. If the file does not exist, returns 0
 * and clears `ret_is_there`.
 */
int file_read_own(const char *path, struct file *ret, bool *ret_is_there);

/*
 * Reads the first bytes, at most `room`, of a file that the caller will replace. Stores a size of 0
 * if the file does not exist. If it is not a regular file, returns an error, and does not open it.
 */
int file_begin(const char *path, char *text, size_t room, size_t *ret_size);

/*
 * Replaces a file atomically: writes PATH.new, and renames it. The file is complete even after a
 * crash of the machine. Sets the file's group if permitted, unless `group` is GROUP_KEPT. If root
 * writes the file, and a trusted user owns the directory, that user owns the file.
 */
#define GROUP_KEPT ((gid_t)-1)
int file_replace(const char *path, const char *text, size_t size, mode_t mode, gid_t group);

/* Removes a file that file_replace() wrote, and PATH.new if a killed process left it. */
void file_remove(const char *path);

#endif
