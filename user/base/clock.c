// SPDX-License-Identifier: GPL-2.0
#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/times.h>

#include "base/cleanup.h"
#include "sluice.h"

#define TIMENS_OFFSETS	"/proc/self/timens_offsets"
#define TIMENS_SELF	"/proc/self/ns/time"
#define TIMENS_CHILDREN "/proc/self/ns/time_for_children"

uint64_t clock_read(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

/* --- Time namespaces ------------------------------------------------------------------------ */

/*
 * Returns CLOCK_MONOTONIC of this process minus bpf_ktime_get_ns(), in ns. It is not 0 in a time
 * namespace (Linux 5.6). If unshare(2) gave children another time namespace, assumes that this
 * process is in the initial time namespace.
 */
static int64_t offset_ns(void)
{
	_cleanup_fclose_ FILE *file = NULL;
	static bool is_known;
	static int64_t offset;
	struct stat self, children;
	int64_t seconds, ns;
	char line[128];

	if (is_known)
		return offset;
	is_known = true;
	if (!stat(TIMENS_SELF, &self) && !stat(TIMENS_CHILDREN, &children) &&
	    self.st_ino != children.st_ino)
		return 0;
	file = fopen(TIMENS_OFFSETS, "re");
	if (!file && errno != ENOENT)
		error_notice("time-namespace", NULL,
			     "cannot read " TIMENS_OFFSETS ": %s; in a time namespace, times will "
			     "be wrong",
			     strerror(errno));
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) == 2)
			offset = (int64_t)((uint64_t)seconds * NS_PER_SEC + (uint64_t)ns);
	return offset;
}

/* --- Uptime --------------------------------------------------------------------------------- */

static uint64_t uptime_fixed; /* the time of uptime_set(), or 0 */

void uptime_set(uint64_t ns)
{
	uptime_fixed = ns;
}

uint64_t uptime_ns(void)
{
	if (uptime_fixed)
		return uptime_fixed;
	return clock_read(CLOCK_MONOTONIC) - offset_ns();
}

uint64_t uptime_ticks(void)
{
	return uptime_ns() * SL_TICKS_PER_NS;
}

/* If the end does not fit into 32 bits, returns UINT32_MAX, which is nine years after boot. */
uint32_t until_after(uint64_t ns)
{
	uint64_t end, unit = 1ULL << SL_UNTIL_SHIFT;

	if (__builtin_add_overflow(uptime_ns() + unit - 1, ns, &end))
		return UINT32_MAX;
	end >>= SL_UNTIL_SHIFT;
	return end > UINT32_MAX ? UINT32_MAX : end; /* not 0, because `end` is rounded up */
}

uint32_t until_at(time_t when)
{
	uint64_t now = clock_read(CLOCK_REALTIME), moment;

	if (when <= 0 || (uint64_t)when <= now / NS_PER_SEC)
		return 1;
	if (__builtin_mul_overflow((uint64_t)when, NS_PER_SEC, &moment))
		return UINT32_MAX;
	return until_after(moment - now);
}

/*
 * Converts an end to a time, rounded up to a second. First subtracts two units: until_after()
 * rounds up by at most one unit, and reading two clocks adds at most one. So a time in whole
 * seconds is converted back to itself. Any other result is at most one unit early.
 */
time_t until_time(uint32_t until)
{
	uint64_t meant = until > 2 ? (uint64_t)(until - 2) << SL_UNTIL_SHIFT : 0;

	return (clock_read(CLOCK_REALTIME) - uptime_ns() + meant) / NS_PER_SEC + 1;
}

uint64_t until_left_ns(uint32_t until)
{
	uint64_t end = (uint64_t)until << SL_UNTIL_SHIFT, now = uptime_ns();

	return end > now ? end - now : 0;
}

bool until_is_cut(uint32_t was, uint32_t now)
{
	uint32_t second = (NS_PER_SEC >> SL_UNTIL_SHIFT) + 1;

	return now && (!was || (was > now && was - now > second));
}

bool until_equal(uint32_t a, uint32_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	if (!a || !b)
		return a == b;
	return apart << SL_UNTIL_SHIFT < UNTIL_SAME_NS;
}

/* --- Jiffies -------------------------------------------------------------------------------- */

uint64_t jiffies_now(void)
{
	uint64_t tick_ns = NS_PER_SEC / sysconf(_SC_CLK_TCK), ticks;
	struct timespec jiffy;
	struct tms unused;

	ticks = times(&unused);
	clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
	return ((ticks + 1) * tick_ns - 1) / jiffy.tv_nsec;
}

/* --- Calendar ------------------------------------------------------------------------------- */

/* Parses an offset from UTC, "Z" or "+02:00", to seconds. Returns false if it is invalid. */
static bool offset_parse(const char *text, long *ret_seconds)
{
	unsigned int hours, minutes;
	char again[8];

	*ret_seconds = 0;
	if (!strcasecmp(text, "Z"))
		return true;
	if ((*text != '+' && *text != '-') || sscanf(text + 1, "%2u:%2u", &hours, &minutes) != 2)
		return false;
	snprintf(again, sizeof(again), "%02u:%02u", hours, minutes);
	*ret_seconds = (*text == '-' ? -60L : 60L) * (60 * hours + minutes);
	return !strcmp(text + 1, again) && hours < 24 && minutes < 60;
}

int moment_parse(const char *text, time_t *ret)
{
	char date[] = "0000-00-00T00:00:00", again[MOMENT_TEXT];
	size_t length = strlen(date);
	struct tm fields = {0};
	bool is_real;
	time_t when;
	long offset;

	for (size_t i = 0; i < length; i++) {
		bool fits = date[i] == '0' ? isdigit((unsigned char)text[i])
					   : date[i] == toupper((unsigned char)text[i]);

		if (!fits)
			return error_misuse("moment", NULL,
					    "'%s' is not a time; write '2026-11-21T13:00:00Z'",
					    text);
		date[i] = toupper((unsigned char)text[i]);
	}
	text += length;
	if (text[0] == '.' && isdigit((unsigned char)text[1]))
		text += 1 + strspn(text + 1, "0123456789");
	if (!offset_parse(text, &offset))
		return error_misuse(
			"moment-offset", NULL,
			"'%s%s' does not end in Z or an offset from UTC; write '+02:00'", date,
			text);
	is_real = strptime(date, "%Y-%m-%dT%H:%M:%S", &fields);
	when = timegm(&fields); /* timegm() accepts 31 November as 1 December */
	if (!is_real || strncmp(moment_format(when, again), date, length))
		return error_misuse("no-such-moment", NULL,
				    "'%s%s': the calendar has no such date or time", date, text);
	*ret = when - offset;
	return 0;
}

/*
 * The latest end of an entry that is accepted is in 731 days. That is a day more than the longest
 * duration (730 days), because printed ends are rounded up, and the clock may be set back.
 */
#define UNTIL_MAX_SEC (731 * 86400L)

int until_parse(const char *text, uint32_t *ret, bool *ret_ended)
{
	time_t now = time(NULL), when;
	int err = moment_parse(text, &when);

	if (err)
		return err;
	if (when > now + UNTIL_MAX_SEC)
		return error_misuse(
			"until-too-late", NULL,
			"until '%s' is more than 2 years away; for an entry without an end, omit "
			"'until'",
			text);
	*ret_ended = when <= now;
	*ret = until_at(when);
	return 0;
}

const char *moment_format(time_t when, char text[MOMENT_TEXT])
{
	struct tm date;

	strftime(text, MOMENT_TEXT, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&when, &date));
	return text;
}
