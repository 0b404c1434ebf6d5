// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/serve, which parses the headers of requests, limits connections, and formats metrics.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "test.h"
#include "base/clock.h"
#include "serve/answer.h"
#include "serve/http.h"
#include "serve/metrics.h"

TEST(test_tokens)
{
	static const struct {
		const char *header;
		bool matches;
	} cases[] = {
		{"Bearer 0123456789abcdef", true},
		{"bearer 0123456789abcdef", true},
		{"Bearer 0123456789abcdeF", false},
		{"Bearer 0123456789abcde", false},
		{"Bearer 0123456789abcdef0123456789abcdef", false},
		{"Bearer 0123456789abcdef ", false},
		{"Bearer ", false},
		{"Bearer", false},
		{"Basic 0123456789abcdef", false},
		{"", false},
		{NULL, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(token_matches("0123456789abcdef", cases[i].header),
				 cases[i].matches);
}

TEST(test_hosts)
{
	static const struct {
		const char *header;
		bool is_local;
	} cases[] = {
		{"localhost", true},
		{"LOCALHOST:9740", true},
		{"127.0.0.1:9740", true},
		{"[::1]:9740", true},
		{"[::1]", true},
		{"192.0.2.1", true},
		{"attacker.example", false},
		{"localhost.example", false},
		{"127.0.0.1.example", false},
		{"[::1", false},
		{"", false},
		{NULL, false},
		{"[attacker.example]", false},
		{"12345678901234567890123456789012345678901234567890", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(host_is_local(cases[i].header), cases[i].is_local);
}

TEST(test_errors_are_ascii)
{
	const struct sl_error error = {.id = "x", .object = "a\x1f\"\\\x7f\x80\xff~", .text = "b"};
	struct answer *answer = answer_error(400, &error);

	assert_non_null(answer);
	assert_non_null(strstr(answer->text, "\"object\": \"a??????~\""));
	answer_drop(answer);
}

TEST(test_the_bytes_of_answers_are_counted)
{
	struct answer *answer = answer_refusal(503, "x", "text");

	assert_non_null(answer);
	answer_count(answer);
	assert_int_equal(answers_bytes(), strlen(answer->text));
	answer_take(answer);
	answer_drop(answer);
	assert_int_equal(answers_bytes(), strlen(answer->text));
	answer_drop(answer);
	assert_int_equal(answers_bytes(), 0);
}

/* --- Connections ---------------------------------------------------------------------------- */

static struct connections all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct sockaddr_storage address_of(uint32_t number)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};

	((struct sockaddr_in *)&address)->sin_addr.s_addr = number;
	return address;
}

/* Adds a connection from an address. Its descriptor is not open. */
static bool add(int fd, uint32_t number, uint64_t now)
{
	struct sockaddr_storage address = address_of(number);

	return connection_add(&all, fd, &address, now);
}

static enum client_state state_of(int fd)
{
	struct connection_entry *entry = connection_of(&all, fd);

	return entry ? entry->state : CONNECTION_FREE;
}

static int empty(void **state)
{
	(void)state;
	memset(all.entries, 0, sizeof(all.entries));
	all.streams = 0;
	return 0;
}

TEST(test_the_oldest_idle_connection_of_an_address_is_closed)
{
	empty(NULL);
	assert_true(add(1000, 7, 0));
	for (int i = 1; i <= CONNECTIONS_EACH; i++)
		assert_true(add(1000 + i, 8, i));
	assert_true(add(2000, 8, 100));
	assert_int_equal(state_of(1000), CONNECTION_IDLE);
	assert_int_equal(state_of(1001), CONNECTION_SHUT);
	assert_int_equal(state_of(1002), CONNECTION_IDLE);
	assert_int_equal(state_of(2000), CONNECTION_IDLE);
}

TEST(test_busy_connections_are_not_closed_for_others)
{
	empty(NULL);
	for (int i = 0; i < CONNECTIONS_EACH; i++) {
		assert_true(add(1000 + i, 8, i));
		assert_true(
			connection_set(&all, connection_of(&all, 1000 + i), CONNECTION_BUSY, i));
	}
	assert_false(add(2000, 8, 100));
	assert_true(add(2001, 9, 100));
	assert_int_equal(state_of(1000), CONNECTION_BUSY);
}

TEST(test_a_client_that_reads_slowly_is_closed_for_others)
{
	const uint64_t s = NS_PER_SEC;
	int request;

	empty(NULL);
	for (int i = 0; i < CONNECTIONS_EACH; i++) {
		assert_true(add(1000 + i, 8, 0));
		connection_set(&all, connection_of(&all, 1000 + i), CONNECTION_BUSY, i);
	}
	connection_wait(&all, connection_of(&all, 1000), &request);
	assert_false(add(2000, 8, s));
	assert_true(add(2000, 8, 2 * s));
	assert_int_equal(state_of(1000), CONNECTION_BUSY);
	assert_int_equal(state_of(1001), CONNECTION_SHUT);
	assert_true(add(2001, 8, 2 * s));
	assert_int_equal(state_of(2000), CONNECTION_SHUT); /* idle connections are closed first */
}

TEST(test_a_busy_connection_whose_client_has_left_is_closed)
{
	int pair[2];

	empty(NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_true(add(pair[0], 8, 50));
	for (int i = 1; i < CONNECTIONS_EACH; i++)
		assert_true(add(1000 + i, 8, i));
	for (size_t i = 0; i < ARRAY_SIZE(all.entries); i++)
		if (all.entries[i].state != CONNECTION_FREE)
			all.entries[i].state = CONNECTION_BUSY;
	assert_false(add(2000, 8, 100));
	close(pair[1]);
	assert_true(add(2000, 8, 100));
	assert_int_equal(state_of(pair[0]), CONNECTION_SHUT);
	close(pair[0]);
}

TEST(test_the_oldest_of_all_is_closed_if_all_are_used)
{
	empty(NULL);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		assert_true(add(1000 + i, i, i));
	assert_true(add(5000, 100000, 1000));
	assert_int_equal(state_of(1000), CONNECTION_SHUT);
	connection_remove(&all, 1000);
	assert_int_equal(state_of(1000), CONNECTION_FREE);
}

TEST(test_slow_clients_are_closed)
{
	const uint64_t s = NS_PER_SEC;

	empty(NULL);
	assert_true(add(1000, 1, 0) && add(1001, 1, 0) && add(1002, 1, 0));
	connection_set(&all, connection_of(&all, 1001), CONNECTION_BUSY, 0);
	connection_set(&all, connection_of(&all, 1002), CONNECTION_STREAM, 0);
	connections_expire(&all, 20 * s);
	assert_int_equal(state_of(1000), CONNECTION_IDLE);
	connections_expire(&all, 21 * s);
	assert_int_equal(state_of(1000), CONNECTION_SHUT);
	assert_int_equal(state_of(1001), CONNECTION_BUSY);
	connections_expire(&all, 121 * s);
	assert_int_equal(state_of(1001), CONNECTION_SHUT);
	assert_int_equal(state_of(1002), CONNECTION_STREAM);
}

static void *abandoned;

static void abandon(void *waiter)
{
	abandoned = waiter;
}

TEST(test_a_request_whose_client_has_left_waits_no_longer)
{
	int pair[2], request;

	empty(NULL);
	abandoned = NULL;
	all.abandon = abandon;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_true(add(pair[0], 1, 0));
	connection_set(&all, connection_of(&all, pair[0]), CONNECTION_BUSY, 0);
	connection_wait(&all, connection_of(&all, pair[0]), &request);
	connections_expire(&all, 1);
	assert_null(abandoned);
	close(pair[1]);
	connections_expire(&all, 2);
	assert_ptr_equal(abandoned, &request);
	assert_int_equal(state_of(pair[0]), CONNECTION_SHUT);
	close(pair[0]);
}

TEST(test_streams_are_counted)
{
	empty(NULL);
	for (int i = 0; i <= STREAMS_MAX; i++) {
		assert_true(add(1000 + i, i, 0));
		assert_int_equal(
			connection_set(&all, connection_of(&all, 1000 + i), CONNECTION_STREAM, 0),
			i < STREAMS_MAX);
	}
	connection_remove(&all, 1000);
	assert_true(connection_set(&all, connection_of(&all, 1000 + STREAMS_MAX), CONNECTION_STREAM,
				   0));
}

/* --- Metrics -------------------------------------------------------------------------------- */

TEST(test_metrics_become_openmetrics)
{
	static const char from[] = "# HELP a_total Number of \"a\".\n"
				   "# TYPE a_total counter\n"
				   "a_total{gate=\"x\"} 1\n"
				   "# HELP a_total_more A gauge.\n"
				   "# TYPE a_total_more gauge\n"
				   "a_total_more 2\n";
	static const char to[] = "# HELP a Number of \\\"a\\\".\n"
				 "# TYPE a counter\n"
				 "a_total{gate=\"x\"} 1\n"
				 "# HELP a_total_more A gauge.\n"
				 "# TYPE a_total_more gauge\n"
				 "a_total_more 2\n"
				 "# EOF\n";
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	metrics_convert(from, out);
	fclose(out);
	assert_string_equal(text, to);
	free(text);
}

TESTS(NULL, NULL)
