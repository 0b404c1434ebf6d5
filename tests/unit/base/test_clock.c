// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/base/clock.h: the clocks of the packet path, the expiry of list entries, and RFC 3339.
 */
#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <bpf/bpf.h>
#include "test.h"
#include "base/clock.h"
#include "base/error.h"
#include "sluice.h"

#define UNIT (1ULL << SL_UNTIL_SHIFT)

/* Maximum difference of two clock readings, between which the test can be preempted. */
#define SLACK SEC_NS

/* --- Clocks --------------------------------------------------------------------------------- */

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* Exit statuses of the child processes of test_a_time_namespace_changes_nothing(). */
#define RIGHT	 0
#define WRONG	 1
#define NOT_HERE 77

/*
 * Makes a time namespace for child processes. CLOCK_MONOTONIC is ten days ahead in it. Returns
 * false if the kernel has no time namespaces or denies permission.
 */
static bool namespace_make(void)
{
	FILE *offsets = unshare(CLONE_NEWTIME) ? NULL : fopen("/proc/self/timens_offsets", "we");
	bool made;

	if (!offsets)
		return false;
	made = fputs("monotonic 864000 5\n", offsets) >= 0;
	return !fclose(offsets) && made;
}

static int exit_status_of(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status)
									: WRONG;
}

static bool clock_is_right(uint64_t before)
{
	uint64_t now = uptime_ns();

	return now + SLACK > before && now < before + SLACK;
}

/* Checks the clock in this process and in a child process inside a new time namespace. */
static int clocks_try(uint64_t before)
{
	pid_t child;

	if (!namespace_make())
		return NOT_HERE;
	child = fork();
	if (!child)
		_exit(clock_is_right(before) ? RIGHT : WRONG);
	return clock_is_right(before) ? exit_status_of(child) : WRONG;
}

/*
 * This test must run first, because uptime_ns() reads the offset of the time namespace only once.
 */
TEST(test_a_time_namespace_changes_nothing)
{
	struct timespec now;
	pid_t child;
	int status;

	clock_gettime(CLOCK_MONOTONIC, &now);
	child = fork();
	if (!child)
		_exit(clocks_try(now.tv_sec * SEC_NS + now.tv_nsec));
	status = exit_status_of(child);
	if (status == NOT_HERE)
		skip_because("making a time namespace takes root, and a kernel that has them");
	assert_int_equal(status, RIGHT);
}

TEST(test_the_clock_runs)
{
	uint64_t ns = uptime_ns(), ticks = uptime_ticks();

	assert_true(ns);
	assert_in_range(ticks, ns * SL_TICKS_PER_NS, (ns + SLACK) * SL_TICKS_PER_NS);
}

/* --- Ends of list entries ------------------------------------------------------------------- */

/*
 * A list entry is in effect at least for the requested time, and at most one unit of `until`
 * longer.
 */
TEST(test_the_end_of_an_entry)
{
	static const uint64_t spans[] = {0,    1,	 1000000,	UNIT - 1,
					 UNIT, UNIT + 1, 3600 * SEC_NS, 63072000 * SEC_NS};

	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		uint64_t before = uptime_ns();
		uint32_t until = until_after(spans[i]);
		uint64_t end = (uint64_t)until << SL_UNTIL_SHIFT;

		assert_in_range(end, before + spans[i], before + spans[i] + UNIT + SLACK);
		assert_in_range(until_left_ns(until), spans[i] > SLACK ? spans[i] - SLACK : 0,
				spans[i] + UNIT);
	}
	assert_int_equal(until_after(UINT64_MAX), UINT32_MAX);
	assert_int_equal(until_after((1ULL << 32) * UNIT), UINT32_MAX);
	assert_int_equal(until_left_ns(1), 0);
	assert_int_equal(until_left_ns(uptime_ns() >> SL_UNTIL_SHIFT), 0);
}

TEST(test_moments_of_the_calendar)
{
	time_t now = time(NULL);

	assert_int_equal(until_at(now - 1), 1);
	assert_int_equal(until_at(0), 1);
	assert_int_equal(until_at(-5), 1);
	assert_int_equal(until_at(INT64_MIN), 1);
	assert_int_equal(until_at(INT64_MAX), UINT32_MAX);
	assert_int_equal(until_at(now + 20LL * 365 * 86400), UINT32_MAX);
	assert_in_range(until_left_ns(until_at(now + 3600)), 3600 * SEC_NS - SLACK - SEC_NS,
			3600 * SEC_NS + UNIT);
}

/* Converting an expiry to seconds and back changes the expiry by at most 1 s. */
TEST(test_there_and_back)
{
	assert_int_equal(until_at(until_time(1)), 1);
	for (uint64_t span = 2 * SEC_NS; span < 60000000 * SEC_NS; span = span * 3 + 12345678) {
		uint32_t until = until_after(span);
		uint32_t again = until_at(until_time(until));

		assert_in_range(again, until - 1, until + (SEC_NS + SLACK) / UNIT + 2);
	}
}

/* Repeated printing and parsing does not change an expiry. */
TEST(test_a_moment_stays_as_it_is)
{
	time_t now = time(NULL);

	for (time_t when = now + 10; when < now + 60000000; when += 1 + (when - now) / 97)
		assert_int_equal(until_time(until_at(when)), when);
}

/* --- Moments of the calendar ---------------------------------------------------------------- */

TEST(test_moments_are_read_and_written_back)
{
	static const struct {
		const char *text;
		time_t when;
		const char *printed; /* printed text; NULL: same as `text` */
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0, NULL},
		{"2001-09-09T01:46:40Z", 1000000000, NULL},
		{"2001-09-09t01:46:40z", 1000000000, "2001-09-09T01:46:40Z"},
		{"2001-09-09T01:46:40.999999999999999999999Z", 1000000000, "2001-09-09T01:46:40Z"},
		{"2001-09-09T03:46:40+02:00", 1000000000, "2001-09-09T01:46:40Z"},
		{"2001-09-08T15:16:40-10:30", 1000000000, "2001-09-09T01:46:40Z"},
		{"2001-09-09T01:46:40-00:00", 1000000000, "2001-09-09T01:46:40Z"},
		{"2000-02-29T23:59:59Z", 951868799, NULL},
		{"2024-02-29T00:00:00+23:59", 1709078460, "2024-02-28T00:01:00Z"},
		{"9999-12-31T23:59:59Z", 253402300799, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[MOMENT_TEXT];
		time_t when;

		assert_int_equal(moment_parse(cases[i].text, &when), 0);
		assert_int_equal(when, cases[i].when);
		assert_string_equal(moment_format(when, text),
				    cases[i].printed ? cases[i].printed : cases[i].text);
	}
}

TEST(test_wrong_moments_are_refused)
{
	static const char *const texts[] = {
		"",
		"now",
		"2026-11-21",
		"2026-11-21T13:00Z",
		"2026-11-21T13:00:00",
		"2026-11-21 13:00:00Z",
		"2026-11-21T13:00:00z ",
		" 2026-11-21T13:00:00Z",
		"2026-11-21T13:00:00ZZ",
		"2026-11-21T13:00:00.Z",
		"2026-11-21T13:00:00+0200",
		"2026-11-21T13:00:00+2:00",
		"2026-11-21T13:00:00+24:00",
		"2026-11-21T13:00:00+01:60",
		"2026-11-21T13:00:00+01:00Z",
		"2026-11-21T13:00:00+ 1:00",
		"2026-11-21T24:00:00Z",
		"2026-11-21T13:60:00Z",
		"2026-11-21T13:00:60Z",
		"2026-11-31T13:00:00Z",
		"2026-13-21T13:00:00Z",
		"2026-00-21T13:00:00Z",
		"2026-11-00T13:00:00Z",
		"2025-02-29T13:00:00Z",
		"1900-02-29T13:00:00Z",
		"+026-11-21T13:00:00Z",
		"02026-11-21T13:00:00Z",
		"2026-1-21T13:00:00Z",
		"2026-11-21T13:00:00\xe2\x88\x92"
		"01:00",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		time_t when = 42;

		if (moment_parse(texts[i], &when) != -EINVAL || error_count() != 1 || when != 42)
			fail_msg("moment '%s' is accepted", texts[i]);
		error_drop(0);
	}
}

/*
 * The longest expiry is 730 days. The printed text is rounded up, and must be accepted by the
 * parser.
 */
TEST(test_the_end_of_the_longest_span_can_be_read)
{
	uint32_t until = until_after(730 * 86400 * SEC_NS), again;
	char text[MOMENT_TEXT];
	bool ended;

	assert_int_equal(until_parse(moment_format(until_time(until), text), &again, &ended), 0);
	assert_false(ended);
	assert_true(until_equal(again, until));
}

/* Runs a BPF program that stores bpf_jiffies64() in its context. Returns the stored value. */
static uint64_t jiffies_of_packets(void)
{
	static const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_jiffies64},
		{.code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	uint64_t jiffies = 0;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_SLEEPABLE);
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &jiffies, .ctx_size_in = sizeof(jiffies));
	int fd = bpf_prog_load(BPF_PROG_TYPE_SYSCALL, "jiffies", "GPL", instructions,
			       ARRAY_SIZE(instructions), &opts);

	assert_true(fd >= 0);
	assert_int_equal(bpf_prog_test_run_opts(fd, &run), 0);
	close(fd);
	return jiffies;
}

TEST(test_jiffies_are_those_of_packets_or_up_to_10_ms_later)
{
	struct timespec jiffy;

	if (geteuid())
		skip_because("running a BPF program takes root");
	clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
	for (int i = 0; i < 20; i++) {
		uint64_t before = jiffies_of_packets(), now = jiffies_now();

		assert_in_range(now, before, jiffies_of_packets() + 10000000 / jiffy.tv_nsec);
	}
}

TESTS(NULL, NULL)
