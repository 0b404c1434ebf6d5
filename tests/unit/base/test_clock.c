// SPDX-License-Identifier: GPL-2.0
/* user/base/clock.h: the packet path's clocks, when list entries end, RFC 3339. */
#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include "test.h"
#include "base/clock.h"
#include "capture.h"
#include "sluice.h"

#define UNIT (1ULL << SL_UNTIL_SHIFT)

/* The longest time between two readings of a clock: the machine may stop. */
#define SLACK SEC_NS

/* --- Clocks --------------------------------------------------------------------------------- */

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* Exit statuses of processes of the next test. */
#define RIGHT	 0
#define WRONG	 1
#define NOT_HERE 77

/* Moves the clock of children ten days ahead; false: not here. */
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

/* The process that makes the namespace is not in it; one that it forks then is. */
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

static void test_a_time_namespace_changes_nothing(void **state)
{
	struct timespec now; /* and not uptime_ns(), which remembers what the namespace adds */
	pid_t child;
	int status;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &now);
	child = fork();
	if (!child)
		_exit(clocks_try(now.tv_sec * SEC_NS + now.tv_nsec));
	status = exit_status_of(child);
	if (status == NOT_HERE)
		skip_because("making a time namespace takes root, and a kernel that has them");
	assert_int_equal(status, RIGHT);
}

static void test_the_clock_runs(void **state)
{
	uint64_t ns = uptime_ns(), ticks = uptime_ticks();

	(void)state;
	assert_true(ns);
	assert_in_range(ticks, ns * SL_TICKS_PER_NS, (ns + SLACK) * SL_TICKS_PER_NS);
}

/* --- Ends of list entries ------------------------------------------------------------------- */

/* An entry ends no sooner than asked for, and later by one unit at most. */
static void test_the_end_of_an_entry(void **state)
{
	static const uint64_t spans[] = {1,	   1000000,	  UNIT - 1,	    UNIT,
					 UNIT + 1, 3600 * SEC_NS, 63072000 * SEC_NS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		uint64_t before = uptime_ns();
		uint64_t end = (uint64_t)until_after(spans[i]) << SL_UNTIL_SHIFT;

		assert_in_range(end, before + spans[i], before + spans[i] + UNIT + SLACK);
	}
}

static void test_an_end_is_never_never(void **state)
{
	(void)state;
	assert_int_not_equal(until_after(0), 0);
	assert_int_equal(until_after(UINT64_MAX), UINT32_MAX);
	assert_int_equal(until_after((1ULL << 32) * UNIT), UINT32_MAX);
}

static void test_what_is_left(void **state)
{
	uint32_t until = until_after(3600 * SEC_NS);

	(void)state;
	assert_in_range(until_left_ns(until), 3600 * SEC_NS - SLACK, 3600 * SEC_NS + UNIT);
	assert_int_equal(until_left_ns(1), 0);
	assert_int_equal(until_left_ns(uptime_ns() >> SL_UNTIL_SHIFT), 0);
}

static void test_moments_of_the_calendar(void **state)
{
	time_t now = time(NULL);

	(void)state;
	assert_int_equal(until_at(now - 1), 1);
	assert_int_equal(until_at(0), 1);
	assert_int_equal(until_at(-5), 1);
	assert_int_equal(until_at(INT64_MIN), 1);
	assert_int_equal(until_at(INT64_MAX), UINT32_MAX);
	assert_int_equal(until_at(now + 20LL * 365 * 86400), UINT32_MAX);
	assert_in_range(until_left_ns(until_at(now + 3600)), 3600 * SEC_NS - SLACK - SEC_NS,
			3600 * SEC_NS + UNIT);
}

/* A file tells whole seconds: what is read back ends at most a unit sooner or a second later. */
static void test_there_and_back(void **state)
{
	(void)state;
	for (uint64_t span = 2 * SEC_NS; span < 60000000 * SEC_NS; span = span * 3 + 12345678) {
		uint32_t until = until_after(span);
		uint32_t again = until_at(until_time(until));

		assert_in_range(again, until - 1, until + (SEC_NS + SLACK) / UNIT + 2);
	}
}

/* As a dump that is applied, and dumped again: no round lengthens a ban. */
static void test_a_moment_stays_as_it_is(void **state)
{
	time_t now = time(NULL);

	(void)state;
	for (time_t when = now + 10; when < now + 60000000; when += 1 + (when - now) / 97)
		assert_int_equal(until_time(until_at(when)), when);
}

static void test_there_and_back_of_what_is_past(void **state)
{
	(void)state;
	assert_int_equal(until_at(until_time(1)), 1);
}

/* --- Moments of the calendar ---------------------------------------------------------------- */

static void test_moments_are_read_and_written_back(void **state)
{
	static const struct {
		const char *text;
		time_t when;
		const char *printed; /* NULL: as it was written */
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

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[MOMENT_TEXT];
		time_t when;

		assert_int_equal(moment_parse(cases[i].text, &when), 0);
		assert_int_equal(when, cases[i].when);
		assert_string_equal(moment_format(when, text),
				    cases[i].printed ? cases[i].printed : cases[i].text);
	}
}

static void test_wrong_moments_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"now",
		"1h",
		"2026",
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

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct capture capture = capture_begin(stderr);
		time_t when = 42;
		int status = moment_parse(texts[i], &when);
		const char *said = capture_end(&capture);

		if (status != -EINVAL || !*said)
			fail_msg("moment '%s' is taken", texts[i]);
		assert_int_equal(when, 42);
	}
}

/* It is rounded up when it is told, and so more than that span away. */
static void test_the_end_of_the_longest_span_can_be_read(void **state)
{
	uint32_t until = until_after(730 * 86400 * SEC_NS), again;
	char text[MOMENT_TEXT];
	bool ended;

	(void)state;
	assert_int_equal(until_parse(moment_format(until_time(until), text), &again, &ended), 0);
	assert_false(ended);
	assert_true(until_equal(again, until));
}

/* Reads it in a process without capabilities. */
static uint64_t jiffies_of_nobody(void)
{
	uint64_t jiffies = 0;
	int ends[2], ended;
	pid_t child;

	assert_false(pipe(ends));
	child = fork();
	if (!child) {
		if (setresuid(65534, 65534, 65534) || jiffies_read(&jiffies) ||
		    write(ends[1], &jiffies, sizeof(jiffies)) != sizeof(jiffies))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &ended, 0), child);
	assert_int_equal(ended, 0);
	assert_int_equal(read(ends[0], &jiffies, sizeof(jiffies)), sizeof(jiffies));
	close(ends[0]);
	close(ends[1]);
	return jiffies;
}

/* Never before the jiffy that packets see, and less than 10 ms after it. */
static void test_jiffies_without_a_right(void **state)
{
	uint64_t before, told, after;
	struct timespec jiffy;

	(void)state;
	if (geteuid())
		skip_because("giving up a right takes root");
	clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(jiffies_read(&before), 0);
		told = jiffies_of_nobody();
		assert_int_equal(jiffies_read(&after), 0);
		assert_true(told >= before && told <= after + 10000000 / jiffy.tv_nsec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: the process must not have read the clock before */
		cmocka_unit_test(test_a_time_namespace_changes_nothing),
		cmocka_unit_test(test_the_clock_runs),
		cmocka_unit_test(test_jiffies_without_a_right),
		cmocka_unit_test(test_the_end_of_an_entry),
		cmocka_unit_test(test_an_end_is_never_never),
		cmocka_unit_test(test_what_is_left),
		cmocka_unit_test(test_moments_of_the_calendar),
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_a_moment_stays_as_it_is),
		cmocka_unit_test(test_there_and_back_of_what_is_past),
		cmocka_unit_test(test_moments_are_read_and_written_back),
		cmocka_unit_test(test_wrong_moments_are_refused),
		cmocka_unit_test(test_the_end_of_the_longest_span_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
