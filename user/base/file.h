/* SPDX-License-Identifier: GPL-2.0 */
/* Files that people wrote: read whole, or refused. */
#ifndef SLUICE_FILE_H
#define SLUICE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

/* No rules file or list is larger: room for some millions of prefixes. */
#define FILE_MAX (90 << 20)

struct file {
	char *text; /* NUL behind it, none in it */
	size_t size;
	bool is_written; /* another process has it open for writing: it may be half of what it will be */
};

/*
 * Reads a regular file, "-" for standard input, whole. Refuses a device or a directory, more than FILE_MAX, one that
 * changes while it is read, or within a tenth of a second where others have it open for writing, NUL bytes, and what is
 * not UTF-8, saying the line.
 */
enum status file_read(const char *path, struct file *ret);
void file_free(struct file *file);

#endif
