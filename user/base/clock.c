// SPDX-License-Identifier: GPL-2.0
#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/times.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
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
 * Returns the time, in ns, by which CLOCK_MONOTONIC of this process is ahead of the kernel's own. A
 * time namespace (Linux 5.6) shifts that clock for its processes, but not bpf_ktime_get_ns(). A
 * kernel without time namespaces has no file of offsets.
 *
 * The file has the offsets of the namespace of children. After unshare(2) only the children move;
 * the process follows at the next exec (from Linux 6.3), or never. Such a process is assumed to be
 * in the initial namespace.
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
			     "cannot read " TIMENS_OFFSETS ": %s: in a time namespace, times are "
			     "wrong",
			     strerror(errno));
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) == 2)
			offset = (int64_t)((uint64_t)seconds * NS_PER_SEC + (uint64_t)ns);
	return offset;
}

/* --- Uptime --------------------------------------------------------------------------------- */

uint64_t uptime_ns(void)
{
	return clock_read(CLOCK_MONOTONIC) - offset_ns();
}

uint64_t uptime_ticks(void)
{
	return uptime_ns() * SL_TICKS_PER_NS;
}

/* A moment beyond 32 bits becomes the last one that they hold, nine years after boot. */
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
	uint64_t now = clock_read(CLOCK_REALTIME), moment;

	if (when <= 0 || (uint64_t)when <= now / NS_PER_SEC)
		return 1;
	if (__builtin_mul_overflow((uint64_t)when, NS_PER_SEC, &moment))
		return UINT32_MAX;
	return until_after(moment - now);
}

/*
 * The moment that was meant is in the unit before the end, as until_after() has rounded it up. The
 * search for a whole second begins one unit earlier: the two clocks are read one after the other,
 * here and in until_at(), and a task that is preempted in between must not find the next second. So
 * an end of whole seconds is the same each time, and any other is at most one unit early.
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

/*
 * Loads a program that writes bpf_jiffies64() into its context. Its return value has 32 bits only.
 */
static int program_load(void)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_jiffies64},
		{.code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_SLEEPABLE);

	return bpf_prog_load(BPF_PROG_TYPE_SYSCALL, "sluice_jiffies", "GPL", instructions,
			     ARRAY_SIZE(instructions), &opts);
}

#define CLOCK_TICK_NS (1000000000ULL / sysconf(_SC_CLK_TCK))

/*
 * The last jiffy that can be the present jiffy. times(2) returns jiffies64 in ticks of 10 ms,
 * rounded down.
 */
static uint64_t jiffies_at_most(void)
{
	struct timespec jiffy;
	struct tms unused;
	uint64_t ticks = times(&unused);

	clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
	return ((ticks + 1) * CLOCK_TICK_NS - 1) / jiffy.tv_nsec;
}

int jiffies_read(uint64_t *ret)
{
	uint64_t jiffies = 0;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &jiffies, .ctx_size_in = sizeof(jiffies));
	_cleanup_close_ int fd = program_load();
	int err = fd < 0 ? fd : bpf_prog_test_run_opts(fd, &opts);

	if (err < 0 && err != -EPERM)
		return error_add(err, "jiffies", NULL, "cannot read the kernel's tick count: %s",
				 why(err));
	*ret = err < 0 ? jiffies_at_most() : jiffies;
	return 0;
}

/* --- Calendar ------------------------------------------------------------------------------- */

/* Whether the text begins in this shape, in which 0 stands for any digit and T for T or t. */
static bool shape_fits(const char *text, const char *shape)
{
	for (; *shape; shape++, text++)
		if (*shape == '0' ? !isdigit((unsigned char)*text)
				  : *shape != toupper((unsigned char)*text))
			return false;
	return true;
}

/* Parses "Z" or "+02:00" up to the end of the text. */
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

/* Parses a moment in UTC. False: the calendar has no such day or hour. */
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

	*ret = timegm(&real); /* carries what overflows into the next field */
	return real.tm_mon == date.tm_mon && real.tm_mday == date.tm_mday &&
	       real.tm_hour == date.tm_hour && real.tm_min == date.tm_min &&
	       real.tm_sec == date.tm_sec;
}

int moment_parse(const char *text, time_t *ret)
{
	static const char shape[] = "0000-00-00T00:00:00";
	const char *end = text + strlen(shape);
	time_t when;
	long offset;

	if (!shape_fits(text, shape))
		return error_misuse("moment", NULL,
				    "'%s' is not a moment: write 2026-11-21T13:00:00Z", text);
	if (shape_fits(end, ".0"))
		end += 1 + strspn(end + 1, "0123456789");
	if (!offset_parse(end, &offset))
		return error_misuse("moment-offset", NULL,
				    "'%s' does not end in Z or an offset from UTC: write +02:00",
				    text);
	if (!date_parse(text, &when))
		return error_misuse("no-such-moment", NULL, "'%s': the calendar has no such moment",
				    text);
	*ret = when - offset;
	return 0;
}

/*
 * The longest time that an entry may last, 730d, and a day: the end of one that was given so is
 * rounded up when it is printed, and a file that has it may be read when the clock was set back.
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
			"until '%s' is more than 2 years away: without it, it is for good", text);
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
