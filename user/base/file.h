/* SPDX-License-Identifier: GPL-2.0 */
/* Base: files that users wrote, read whole or refused. */
#ifndef SLUICE_FILE_H
#define SLUICE_FILE_H

#include <stddef.h>

#include "base/log.h"

/* The largest file that is read, in bytes: room for some millions of prefixes. */
#define FILE_MAX (90 << 20)

struct file {
	char *text; /* a NUL follows it, none is in it */
	size_t size;
};

/*
 * Reads a whole regular file, or standard input for "-", when it has not changed for a tenth of a
 * second, or for 2.1 s where its time may be rounded. Refuses a device, a directory, a file above
 * FILE_MAX, NUL bytes, and a file that changes in that wait or while it is read. A byte order mark
 * is left out. A writer that pauses for longer than that is not noticed: write the file under
 * another name and rename it.
 */
enum status file_read(const char *path, struct file *ret);
void file_free(struct file *file);

#endif
