// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/events/runner.h, which runs a program for each event. Tests the limits and the process
 * groups of these programs.
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "events/runner.h"
#include "test.h"

static struct events_runner runner;
static char directory[] = "/tmp/sluice-runner-XXXXXX";
static char program[64], output[64];
static const struct event event = {.kind = EVENT_TRIAL, .phase = EVENT_BEGIN, .text = "a b"};

/* Writes a program, and makes the runner run it. */
static void begin(const char *script)
{
	FILE *file = fopen(program, "w");

	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	fclose(file);
	assert_int_equal(chmod(program, 0755), 0);
	assert_int_equal(events_runner_begin(program, &runner), 0);
}

/* Waits until all programs of the runner have ended. `now` is the uptime that the runner gets. */
static void wait_for_end(uint64_t now)
{
	siginfo_t info;

	events_runner_step(&runner, now);
	while (runner.count) {
		waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
		events_runner_step(&runner, now);
	}
}

/* Waits until init has reaped a process. */
static void wait_until_gone(pid_t pid)
{
	for (int ms = 0; !kill(pid, 0); ms++) {
		if (ms == 20000) {
			kill(pid, SIGKILL);
			fail_msg("process %d goes on", pid);
		}
		usleep(1000);
	}
	assert_int_equal(errno, ESRCH);
}

static const char *output_read(void)
{
	static char text[4096];
	FILE *file = fopen(output, "r");
	size_t length = 0;

	if (file) {
		length = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[length] = '\0';
	return text;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(program, sizeof(program), "%s/program", directory);
	snprintf(output, sizeof(output), "%s/output", directory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	events_runner_end(&runner);
	unlink(program);
	unlink(output);
	return rmdir(directory);
}

TEST(test_the_program_gets_the_event_and_a_clean_environment)
{
	char script[256];

	assert_int_equal(setenv("SECRET", "1", 1), 0);
	snprintf(script, sizeof(script), "{ cat; env; } > %s", output);
	begin(script);
	events_runner_add(&runner, "edge", &event, 0);
	wait_for_end(0);
	assert_ptr_equal(strstr(output_read(), "{\"schema\":\"sluice-event\""), output_read());
	assert_non_null(strstr(output_read(), "\"text\":\"a b\"}\n"));
	assert_non_null(strstr(output_read(), "SLUICE_GATE=edge\n"));
	assert_non_null(strstr(output_read(), "SLUICE_EVENT=trial\n"));
	assert_non_null(strstr(output_read(), "SLUICE_TEXT=a b\n"));
	assert_non_null(strstr(output_read(), "\nPATH=/usr/local/sbin:"));
	assert_null(strstr(output_read(), "SECRET"));
	assert_int_equal(runner.left_out + runner.failed + runner.killed, 0);
	events_runner_end(&runner);
}

TEST(test_a_program_is_killed_with_its_children_at_its_limit)
{
	char script[256];
	pid_t child;

	snprintf(script, sizeof(script), "sleep 20 & echo $! > %s.new; mv %s.new %s; wait", output,
		 output, output);
	unlink(output);
	begin(script);
	events_runner_add(&runner, "edge", &event, 5);
	assert_int_equal(events_runner_step(&runner, 6), 5 + RUNNER_LIMIT_NS);
	while (!strchr(output_read(), '\n'))
		usleep(1000);
	child = atoi(output_read());
	assert_int_equal(kill(child, 0), 0);
	wait_for_end(5 + RUNNER_LIMIT_NS);
	assert_int_equal(runner.killed, 1);
	wait_until_gone(child);
	events_runner_end(&runner);
}

TEST(test_what_a_program_leaves_is_killed_when_it_ends)
{
	char script[256];

	snprintf(script, sizeof(script), "sleep 20 & echo $! > %s", output);
	begin(script);
	events_runner_add(&runner, "edge", &event, 0);
	wait_for_end(0);
	wait_until_gone(atoi(output_read()));
	assert_int_equal(runner.killed, 0);
	events_runner_end(&runner);
}

TEST(test_programs_are_bounded_and_the_rest_is_counted)
{
	struct event instant = event;

	instant.phase = EVENT_INSTANT;
	begin("exec sleep 20");
	for (int i = 0; i < RUNNER_MOST + RUNNER_QUEUE + 3; i++)
		events_runner_add(&runner, "edge", &instant, 0);
	assert_int_equal(runner.count, RUNNER_MOST);
	assert_int_equal(runner.waiting, RUNNER_QUEUE);
	assert_int_equal(runner.left_out, 3);
	events_runner_end(&runner);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no process is left */
}

/*
 * The first program for 192.0.2.1 waits until the test makes a file. Programs for the other source
 * do not wait, and programs for one source run in order.
 */
TEST(test_begins_and_ends_of_a_source_are_in_order)
{
	static const char *const sources[] = {"192.0.2.1", "192.0.2.1", "192.0.2.1",
					      "192.0.2.2", "192.0.2.1", "192.0.2.2"};
	char script[512];

	snprintf(script, sizeof(script),
		 "[ $SLUICE_SOURCE != 192.0.2.1 ] || while [ ! -e %s.go ]; do sleep 0.01; done\n"
		 "echo $SLUICE_SOURCE $SLUICE_PHASE $SLUICE_TEXT >>%s",
		 output, output);
	unlink(output);
	begin(script);
	for (unsigned int i = 0; i < ARRAY_SIZE(sources); i++) {
		struct event each = {.kind = EVENT_BLOCK, .phase = i % 2 ? EVENT_END : EVENT_BEGIN};

		assert_int_equal(prefix_parse(sources[i], &each.source), 0);
		snprintf(each.text, sizeof(each.text), "%u", i);
		events_runner_add(&runner, "edge", &each, 0);
	}
	for (int ms = 0; runner.waiting > 3 || runner.count > 1; ms++) {
		if (ms == 20000) {
			events_runner_end(&runner);
			fail_msg("programs of a source run at once");
		}
		events_runner_step(&runner, 0);
		usleep(1000);
	}
	assert_string_equal(output_read(), "192.0.2.2 end 3\n192.0.2.2 end 5\n");
	snprintf(script, sizeof(script), "%s.go", output);
	fclose(fopen(script, "w"));
	wait_for_end(0);
	unlink(script);
	assert_string_equal(output_read(),
			    "192.0.2.2 end 3\n192.0.2.2 end 5\n192.0.2.1 begin 0\n"
			    "192.0.2.1 end 1\n192.0.2.1 begin 2\n192.0.2.1 begin 4\n");
	events_runner_end(&runner);
}

/* The events of one source do not fill the queue: the oldest are left out, and the last waits. */
TEST(test_a_source_of_many_events_leaves_room_for_others)
{
	struct event other = event;

	begin("exec sleep 20");
	for (int i = 0; i < 1 + RUNNER_QUEUE; i++) {
		struct event each = event;

		snprintf(each.text, sizeof(each.text), "%d", i);
		events_runner_add(&runner, "edge", &each, 0);
	}
	assert_int_equal(runner.count, 1);
	assert_int_equal(runner.waiting, RUNNER_SAME_MOST);
	assert_int_equal(runner.left_out, RUNNER_QUEUE - RUNNER_SAME_MOST);
	for (unsigned int i = 0; i < RUNNER_SAME_MOST; i++)
		assert_int_equal(atoi(runner.queue[(runner.first + i) % RUNNER_QUEUE].event.text),
				 1 + RUNNER_QUEUE - RUNNER_SAME_MOST + i);
	assert_int_equal(prefix_parse("192.0.2.9", &other.source), 0);
	events_runner_add(&runner, "edge", &other, 0);
	assert_int_equal(runner.count, 2);
	assert_int_equal(runner.left_out, RUNNER_QUEUE - RUNNER_SAME_MOST);
	events_runner_end(&runner);
}

TEST(test_a_program_that_fails_is_counted)
{
	begin("exit 3");
	events_runner_add(&runner, "edge", &event, 0);
	wait_for_end(0);
	assert_int_equal(runner.failed, 1);
	unlink(program);
	events_runner_add(&runner, "edge", &event, 0);
	wait_for_end(0);
	assert_int_equal(runner.failed, 2);
	events_runner_end(&runner);
}

TEST(test_a_program_must_be_an_absolute_path_that_can_be_executed)
{
	assert_int_equal(events_runner_begin("true", &runner), -EINVAL);
	assert_int_equal(events_runner_begin("/none/such", &runner), -ENOENT);
	error_drop(0);
}

TESTS(setup, teardown)
