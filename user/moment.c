// SPDX-License-Identifier: GPL-2.0
#include "moment.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Whether the text begins in this shape: a 0 stands for any digit, a T for a t, too. */
static bool shape_fits(const char *text, const char *shape)
{
	for (; *shape; shape++, text++)
		if (*shape == '0' ? !isdigit((unsigned char)*text)
				  : *shape != toupper((unsigned char)*text))
			return false;
	return true;
}

/* "Z", or "+02:00", and nothing behind it. */
static bool offset_parse(const char *text, long *ret_seconds)
{
	long hours, minutes;

	*ret_seconds = 0;
	if (shape_fits(text, "Z"))
		return !text[1];
	if (!shape_fits(text, "+00:00") && !shape_fits(text, "-00:00"))
		return false;
	hours = atoi(text + 1);
	minutes = atoi(text + 4);
	*ret_seconds = (*text == '-' ? -60 : 60) * (60 * hours + minutes);
	return !text[6] && hours < 24 && minutes < 60;
}

/* The moment in UTC; false: there is no such day or hour. */
static bool date_parse(const char *text, time_t *ret)
{
	struct tm date = {
		.tm_year = atoi(text) - 1900,
		.tm_mon = atoi(text + 5) - 1,
		.tm_mday = atoi(text + 8),
		.tm_hour = atoi(text + 11),
		.tm_min = atoi(text + 14),
		.tm_sec = atoi(text + 17),
	};
	struct tm real = date;

	*ret = timegm(&real); /* and moves what overflows */
	return real.tm_mon == date.tm_mon && real.tm_mday == date.tm_mday &&
	       real.tm_hour == date.tm_hour && real.tm_min == date.tm_min &&
	       real.tm_sec == date.tm_sec;
}

enum status moment_parse(const char *text, time_t *ret)
{
	static const char shape[] = "0000-00-00T00:00:00";
	const char *end = text + strlen(shape);
	time_t when;
	long offset;

	if (!shape_fits(text, shape))
		return misuse("'%s' is not a moment: write 2026-11-21T13:00:00Z", text);
	if (shape_fits(end, ".0"))
		end += 1 + strspn(end + 1, "0123456789");
	if (!offset_parse(end, &offset))
		return misuse("'%s' does not end in Z or an offset from UTC: write +02:00", text);
	if (!date_parse(text, &when))
		return misuse("'%s': the calendar has no such moment", text);
	*ret = when - offset;
	return OK;
}

const char *moment_format(time_t when, char text[MOMENT_TEXT])
{
	struct tm date;

	strftime(text, MOMENT_TEXT, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&when, &date));
	return text;
}
