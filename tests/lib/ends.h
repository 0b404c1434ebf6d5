/* SPDX-License-Identifier: GPL-2.0 */
/* Replaces times in printed entries by durations, which a test can compare. */
#ifndef SLUICE_TEST_ENDS_H
#define SLUICE_TEST_ENDS_H

#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "rules/value.h"

/*
 * Replaces each "until TIME" in the text by a duration in whole minutes ("in 1h"). Returns the new
 * text, which is valid until the next call.
 */
static inline const char *ends_as_spans(const char *text)
{
	static char out[1 << 16];
	char moment[MOMENT_TEXT], span[UNITS_TEXT];
	const char *end;
	size_t length = 0;
	time_t when;

	for (; (end = strstr(text, "until ")); text = end + strlen("until ") + strlen(moment)) {
		sscanf(end, "until %31s", moment);
		assert_int_equal(moment_parse(moment, &when), 0);
		length += snprintf(out + length, sizeof(out) - length, "%.*sin %s",
				   (int)(end - text), text,
				   time_format((when - time(NULL) + 30) / 60 * 60000000000, span));
	}
	snprintf(out + length, sizeof(out) - length, "%s", text);
	return out;
}

#endif
