/* SPDX-License-Identifier: GPL-2.0 */
/* Files that people wrote: read whole, or refused. */
#ifndef SLUICE_FILE_H
#define SLUICE_FILE_H

#include <stddef.h>

#include "base/log.h"

/* No rules file or list is larger: room for some millions of prefixes. */
#define FILE_MAX (90 << 20)

struct file {
	char *text; /* NUL behind it, none in it */
	size_t size;
};

/*
 * Reads a regular file, "-" for standard input, whole. Refuses a device or a directory, more than
 * FILE_MAX, a file that changes while it is read or a tenth of a second before, and NUL bytes. A byte
 * order mark is left out. A program that rests for longer while it writes is not noticed: a file that is
 * to be read whole is written under another name and renamed.
 */
enum status file_read(const char *path, struct file *ret);
void file_free(struct file *file);

#endif
