// SPDX-License-Identifier: GPL-2.0
#include "uptime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "sluice.h"

#define NS_PER_SEC 1000000000ULL

#define TIMENS_OFFSETS	"/proc/self/timens_offsets"
#define TIMENS_SELF	"/proc/self/ns/time"
#define TIMENS_CHILDREN "/proc/self/ns/time_for_children"

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

/* --- Time namespaces ------------------------------------------------------------------------ */

/*
 * A time namespace (Linux 5.6) shifts CLOCK_MONOTONIC for the processes in it, and not bpf_ktime_get_ns(). The offset
 * is a property of the namespace that children of this process get. A kernel without time namespaces has no such file.
 */
static int64_t children_offset_ns(void)
{
	FILE *file = fopen(TIMENS_OFFSETS, "re");
	int64_t seconds, ns, offset = 0;
	char line[128];

	if (!file && errno != ENOENT)
		note("cannot read " TIMENS_OFFSETS ": %s: in a time namespace, times are wrong",
		     strerror(errno));
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) == 2)
			offset = (int64_t)((uint64_t)seconds * NS_PER_SEC + (uint64_t)ns);
	if (file)
		fclose(file);
	return offset;
}

/* unshare(2) moves the children only, and the process itself stays where it is until exec (Linux 6.3), or for good. */
static bool is_in_namespace_of_children(void)
{
	struct stat self, children;

	return stat(TIMENS_SELF, &self) || stat(TIMENS_CHILDREN, &children) ||
	       self.st_ino == children.st_ino;
}

/*
 * How far the clock of a child is ahead of this process's, which no file tells: a child reads it. The error is at most
 * half of the time that the child takes. 0 where no child can be made: it is said.
 */
static int64_t children_ahead_ns(void)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), theirs;
	int ends[2] = {-1, -1};
	pid_t child = pipe(ends) ? -1 : fork();
	bool read_it;

	if (!child) {
		theirs = clock_ns(CLOCK_MONOTONIC);
		_exit(write(ends[1], &theirs, sizeof(theirs)) != sizeof(theirs));
	}
	close(ends[1]);
	read_it = child > 0 && read(ends[0], &theirs, sizeof(theirs)) == sizeof(theirs);
	close(ends[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	if (read_it)
		return (int64_t)(theirs - (begin + clock_ns(CLOCK_MONOTONIC)) / 2);
	note("cannot read the clock of the time namespace of children: times are wrong");
	return 0;
}

/* How far CLOCK_MONOTONIC of this process is ahead of the kernel's own. */
static int64_t offset_ns(void)
{
	static int64_t offset;
	static bool is_known;

	if (!is_known) {
		offset = children_offset_ns();
		if (!is_in_namespace_of_children())
			offset -= children_ahead_ns();
		is_known = true;
	}
	return offset;
}

/* --- Uptime --------------------------------------------------------------------------------- */

uint64_t uptime_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) - offset_ns();
}

uint64_t uptime_ticks(void)
{
	return uptime_ns() * SL_TICKS_PER_NS;
}

/* Beyond what 32 bits hold: the last moment that they do, nine years after boot. */
uint32_t until_after(uint64_t ns)
{
	uint64_t end, unit = 1ULL << SL_UNTIL_SHIFT;

	if (__builtin_add_overflow(uptime_ns() + unit - 1, ns, &end))
		return UINT32_MAX;
	end >>= SL_UNTIL_SHIFT;
	return end > UINT32_MAX ? UINT32_MAX : end; /* not 0: the machine is up */
}

uint32_t until_at(time_t when)
{
	uint64_t now = clock_ns(CLOCK_REALTIME), moment;

	if (when <= 0 || (uint64_t)when <= now / NS_PER_SEC)
		return 1;
	if (__builtin_mul_overflow((uint64_t)when, NS_PER_SEC, &moment))
		return UINT32_MAX;
	return until_after(moment - now);
}

/* Rounded up, as the end itself is: what is read back from a file does not end sooner. */
time_t until_time(uint32_t until)
{
	uint64_t end = clock_ns(CLOCK_REALTIME) - uptime_ns() + ((uint64_t)until << SL_UNTIL_SHIFT);

	return (end + NS_PER_SEC - 1) / NS_PER_SEC;
}

uint64_t until_left_ns(uint32_t until)
{
	uint64_t end = (uint64_t)until << SL_UNTIL_SHIFT, now = uptime_ns();

	return end > now ? end - now : 0;
}

bool until_equal(uint32_t a, uint32_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	if (!a || !b)
		return a == b;
	return apart << SL_UNTIL_SHIFT < UNTIL_SAME_NS;
}
