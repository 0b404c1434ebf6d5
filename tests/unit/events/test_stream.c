// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/events/stream.h, which sends events to the clients of a socket, and drops clients that
 * are too slow.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/owner.h"
#include "events/stream.h"
#include "test.h"

static struct gate gate;
static struct events_server server;

static int setup(void **state)
{
	struct stat st;

	(void)state;
	gate = GATE_CLOSED;
	server = EVENTS_SERVER_CLOSED;
	snprintf(gate.name, sizeof(gate.name), "unit-%d", getpid());
	gate.dir.fd = open("/run/sluice", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (geteuid() || gate.dir.fd < 0 || fstat(gate.dir.fd, &st) || !owner_alone_writes(&st))
		return 0;
	return events_server_open(&gate, &server);
}

static int teardown(void **state)
{
	(void)state;
	events_server_close(&server);
	if (gate.dir.fd >= 0)
		close(gate.dir.fd);
	return 0;
}

#define require_server()                                                                           \
	do {                                                                                       \
		if (server.fd < 0)                                                                 \
			skip_because("the test needs root, and a trusted /run/sluice");            \
	} while (0)

static int client_connect(void)
{
	int fd = events_connect(gate.name);

	assert_true(fd >= 0);
	events_server_accept(&server);
	return fd;
}

TEST(test_each_client_receives_each_line)
{
	char line[STREAM_LINE];
	int fd[2];

	require_server();
	for (int i = 0; i < 2; i++)
		fd[i] = client_connect();
	assert_int_equal(events_receive(fd[0], line), -EAGAIN);
	events_server_send(&server, "{\"one\": 1}");
	events_server_send(&server, "{}");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(events_receive(fd[i], line), 10);
		assert_string_equal(line, "{\"one\": 1}");
		assert_int_equal(events_receive(fd[i], line), 2);
		assert_int_equal(events_receive(fd[i], line), -EAGAIN);
	}
	events_server_close(&server);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(events_receive(fd[i], line), 0);
		close(fd[i]);
	}
	assert_int_equal(events_connect(gate.name), -ENOENT);
}

TEST(test_a_client_that_reads_nothing_is_disconnected)
{
	char line[STREAM_LINE], text[1024];
	unsigned int received = 0, lines = 0;
	int slow, fast;

	require_server();
	slow = client_connect();
	fast = client_connect();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (; server.count == 2 && lines < 10000; lines++) {
		events_server_send(&server, text);
		received += events_receive(fast, line) > 0;
	}
	assert_int_equal(server.count, 1);
	assert_int_equal(received, lines);
	assert_true(lines > 100);
	close(slow);
	close(fast);
}

TEST(test_clients_are_bounded_and_gone_clients_make_room)
{
	char line[STREAM_LINE];
	int fd[STREAM_CLIENTS_MAX], more;

	require_server();
	for (int i = 0; i < STREAM_CLIENTS_MAX; i++)
		fd[i] = client_connect();
	more = client_connect();
	assert_int_equal(server.count, STREAM_CLIENTS_MAX);
	assert_int_equal(events_receive(more, line), 0);
	close(more);
	close(fd[3]);
	fd[3] = client_connect();
	events_server_send(&server, "{}");
	assert_int_equal(events_receive(fd[3], line), 2);
	for (int i = 0; i < STREAM_CLIENTS_MAX; i++)
		close(fd[i]);
	events_server_send(&server, "{}");
	assert_int_equal(server.count, 0);
}

TEST(test_a_second_server_is_refused)
{
	struct events_server second;
	struct stat st;

	require_server();
	assert_int_equal(events_server_open(&gate, &second), -EADDRINUSE);
	assert_int_equal(lstat(server.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	events_server_close(&second);
	assert_int_equal(lstat(server.path, &st), 0);
}

int main(void)
{
	for (size_t i = 0; i < tests_count; i++) {
		tests_registered[i].setup_func = setup;
		tests_registered[i].teardown_func = teardown;
	}
	return _cmocka_run_group_tests("tests", tests_registered, tests_count, NULL, NULL);
}
