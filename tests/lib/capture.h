/* SPDX-License-Identifier: GPL-2.0 */
/* Captures what a call writes to a stream, and compares messages by their places and objects. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <ctype.h>
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

static inline void capture_print(const struct sl_error *error)
{
	char *text = error_format(error);

	fprintf(stderr, "sluice: %s\n", text ?: "out of memory");
	free(text);
}

/* Returns the text and, for standard error, the messages. Returns the text, which the next call overwrites. */
static const char *capture_end(struct capture *capture)
{
	static char text[1 << 16];
	ssize_t length;

	error_set_printer(capture->stream == stderr ? capture_print : NULL);
	error_flush();
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

/* Whether these words are between two places of a text, and no part of longer ones. */
static inline bool has_words(const char *begin, const char *end, const char *words)
{
	size_t length = strlen(words);
	const char *last = words + length - !!length;

	for (; (begin = memmem(begin, end - begin, words, length)); begin++)
		if (!(isalnum((unsigned char)*words) && isalnum((unsigned char)begin[-1])) &&
		    !(isalnum((unsigned char)*last) && isalnum((unsigned char)begin[length])))
			return true;
	return false;
}

/* Whether `said` begins with a message of this place, which has these words before `end`. */
static inline bool message_is(const char *said, const char *end, const char *place,
			      const char *words)
{
	size_t length = strlen(place);

	return !strncmp(said, "sluice: ", 8) && !strncmp(said + 8, place, length) &&
	       (!length || strchr(": ", said[8 + length])) &&
	       has_words(said + 8 + length, end, words);
}

/*
 * Fails unless `said` has the expected messages and no other. Expected are places and what is
 * named there, such as "1:17 'prefix'; 3:8 '0'"; each place is one in the file, if there is a file.
 */
static inline void assert_messages(const char *said, const char *file, const char *expected)
{
	const char *rest = said;
	char *copy = strdup(expected), *next = copy, place[256];

	while (copy && *copy && next) {
		char *words = next, *end = strchr(rest, '\n');

		next = strstr(next, "; ");
		if (next) {
			*next = '\0';
			next += 2;
		}
		snprintf(place, sizeof(place), "%s%s%.*s", file, *file && *words != ' ' ? ":" : "",
			 (int)strcspn(words, " "), words);
		words += strcspn(words, " ");
		if (!end || !message_is(rest, end, place, words + !!*words))
			fail_msg("'%s' at '%s' is not in: %s", words, place, said);
		rest = end + 1;
	}
	free(copy);
	if (*rest)
		fail_msg("more than '%s': %s", expected, said);
}

#endif
