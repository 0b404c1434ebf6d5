/* SPDX-License-Identifier: GPL-2.0 */
/* Captures what code prints to a stream, such as stdout. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "test.h"

struct capture {
	FILE *stream;
	int kept;
	int memory;
};

static struct capture capture_begin(FILE *stream)
{
	struct capture capture = {stream, dup(fileno(stream)), memfd_create("capture", 0)};

	fflush(stream);
	error_drop(0);
	if (capture.kept < 0 || capture.memory < 0 || dup2(capture.memory, fileno(stream)) < 0)
		abort();
	return capture;
}

/* Ends the capture. Returns the captured text, which is valid until the next call. */
static const char *capture_end(struct capture *capture)
{
	static char text[1 << 16];
	ssize_t length;

	error_drop(0);
	fflush(capture->stream);
	dup2(capture->kept, fileno(capture->stream));
	length = pread(capture->memory, text, sizeof(text) - 1, 0);
	close(capture->kept);
	close(capture->memory);
	if (length < 0)
		abort();
	text[length] = '\0';
	return text;
}

#endif
