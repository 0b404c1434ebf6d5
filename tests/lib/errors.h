/* SPDX-License-Identifier: GPL-2.0 */
/* Checks the list of errors: their ids, objects, and positions in files. */
#ifndef SLUICE_TEST_ERRORS_H
#define SLUICE_TEST_ERRORS_H

#include <ctype.h>
#include "base/error.h"
#include "test.h"

/*
 * Copies the text up to the next '|' from `*rest`, and advances `*rest` past the '|'. Returns false
 * at the end.
 */
static inline bool part_next(const char **rest, char part[128])
{
	size_t length = *rest ? strcspn(*rest, "|") : 0;

	if (!*rest)
		return false;
	snprintf(part, 128, "%.*s", (int)length, *rest);
	*rest = (*rest)[length] ? *rest + length + 1 : NULL;
	return true;
}

/*
 * Checks that the list has exactly one error, with this id and with `part` in its object. Empties
 * the list.
 */
static inline void assert_one_error(const char *id, const char *part)
{
	const struct sl_error *error = error_last(0);

	if (!error)
		fail_msg("no error, not %s: %s", id, part);
	if (error_count() != 1 || strcmp(error->id, id) || !strstr(error->object, part))
		fail_msg("%u errors, [%s] %s: %s; %s, not [%s] %s", error_count(), error->id,
			 error->object, error->text, error->hint, id, part);
	error_drop(0);
}

/* Returns the length of the positions at the start of an object ("rules.yaml:3:7: list.txt:2"). */
static inline size_t places_length(const char *object)
{
	size_t length = 0;

	for (;;) {
		const char *begin = object + length + (length ? 2 : 0), *end = strstr(begin, ": ");
		size_t part = end ? (size_t)(end - begin) : strlen(begin);

		if (!part || !isdigit((unsigned char)begin[part - 1]) ||
		    !memchr(begin, ':', part) || strspn(begin, "0123456789abcdef:./") == part)
			return length;
		length = begin + part - object;
		if (!end)
			return length;
	}
}

/*
 * Returns the errors as positions in `file` and ids, such as "3:7 no-unit; 9:1 bad-name". If an
 * error has no position, its object is printed instead. Empties the list. The text is valid until
 * the next call.
 */
static inline const char *errors_text(const char *file)
{
	static char text[1 << 14];
	size_t length = 0, prefix = strlen(file);

	*text = '\0';
	for (unsigned int i = 0; i < error_count(); i++) {
		const struct sl_error *error = error_get(i);
		const char *object = error->object;
		size_t end = places_length(object) ?: strlen(object);

		if (prefix && !strncmp(object, file, prefix) && object[prefix] == ':') {
			object += prefix + 1;
			end -= prefix + 1;
		}
		length += snprintf(text + length, sizeof(text) - length, "%s%.*s%s%s",
				   i ? "; " : "", (int)end, object, end ? " " : "", error->id);
	}
	error_drop(0);
	return text;
}

#define assert_errors(file, expected) assert_string_equal(errors_text(file), expected)

#endif
