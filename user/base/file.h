/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: reads files of users, whole or not at all; and files of Sluice's own, which are trusted only
 * if no other user could have written them.
 */
#ifndef SLUICE_FILE_H
#define SLUICE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* The largest file that is read, in bytes: room for some millions of prefixes. */
#define FILE_MAX (90 << 20)

struct file {
	char *text; /* a NUL follows it, none is in it */
	size_t size;
	uid_t owner; /* set by file_read_own() */
	mode_t mode; /* permissions; set by file_read_own() */
};

/*
 * Reads a whole regular file, or standard input for "-", if it has not changed for a tenth of a
 * second, or for 2.1 s if its time may be rounded. Refuses a device, a directory, a file above
 * FILE_MAX, NUL bytes, and a file that changes meanwhile. Drops a byte order mark. A writer that
 * pauses for longer is not noticed: write the file under another name and rename it.
 */
int file_read(const char *path, struct file *ret);
void file_free(struct file *file);

/* Identifies a version of a file; all 0: there is no file. */
struct stamp {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed, modified;
};

struct stamp stamp_of(const char *path);

/* Returns when the file was last written, in seconds since 1970, at most the present. */
uint64_t stamp_written(const struct stamp *stamp);

bool stamp_equal(const struct stamp *a, const struct stamp *b);

/* Whether both are versions of the same file; false if it does not exist. */
bool stamp_same_file(const struct stamp *a, const struct stamp *b);

/*
 * Reads a file of Sluice's own. Also refuses a symbolic link, and a file unless
 * owner_alone_writes(). Returns 0 and false in ret_is_there if there is no such file.
 */
int file_read_own(const char *path, struct file *ret, bool *ret_is_there);

/*
 * Reads at most `room` bytes of a file that is to be replaced; none if it does not exist. Refuses
 * what is not a regular file, without opening it.
 */
int file_begin(const char *path, char *text, size_t room, size_t *ret_size);

/*
 * Replaces a file in one step that survives a crash of the machine: writes PATH.new, and renames
 * it. mode: permissions. group: the group of the file, if the caller may set it; GROUP_KEPT: leaves
 * the group. A file that root writes gets the owner of the directory, if that user is trusted.
 */
#define GROUP_KEPT ((gid_t)-1)
int file_replace(const char *path, const char *text, size_t size, mode_t mode, gid_t group);

/* Removes such a file, and PATH.new of a process that was killed. */
void file_remove(const char *path);

#endif
