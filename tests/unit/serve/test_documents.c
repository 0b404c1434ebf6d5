// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/serve/documents.h, with a document_read() that waits until the test allows it. So a
 * test knows which documents wait, and in which order they are read.
 */
#include <pthread.h>
#include "test.h"
#include "base/error.h"
#include "serve/documents.h"
#include "serve/read.h"

#define ASKERS 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_read;
static unsigned int begun, answered;
static struct route read_routes[ASKERS]; /* in the order of the reads */

struct answer *document_read(struct gates_reader *reader, const struct route *route,
			     uint64_t *ret_least)
{
	(void)reader;
	pthread_mutex_lock(&lock);
	read_routes[begun++] = *route;
	pthread_cond_broadcast(&changed);
	while (!may_read)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	*ret_least = 0;
	return answer_refusal(200, "read", "");
}

void reader_rest(struct gates_reader *reader)
{
	(void)reader;
}

void reader_close(struct gates_reader *reader)
{
	(void)reader;
}

static void on_ready(struct asker *asker)
{
	(void)asker;
	pthread_mutex_lock(&lock);
	answered++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static struct documents *documents;
static struct asker askers[ASKERS];
static unsigned int asked;

/* Asks for a document. Returns whether it waits, because the server is not too busy. */
static bool waits(const char *format, unsigned int number)
{
	struct asker *asker = &askers[asked++];
	struct route route;
	char target[64];

	snprintf(target, sizeof(target), format, number);
	assert_int_equal(route_parse(target, &route), 0);
	route.open_metrics = route.id == ROUTE_METRICS && number;
	asker->ready = on_ready;
	return !documents_ask(documents, &route, asker, true);
}

/* Asks for more documents than there are slots. Returns how many wait; the others are refused. */
static unsigned int ask_many(const char *format)
{
	unsigned int waiting = 0;

	for (unsigned int i = 0; i < 70; i++)
		waiting += waits(format, i);
	assert_true(waiting < 70);
	return waiting;
}

/* Starts the thread, which then waits in the read of a first document. */
static void begin(void)
{
	const struct serve_scope scope = {0};

	memset(askers, 0, sizeof(askers));
	may_read = false;
	begun = answered = asked = 0;
	assert_int_equal(documents_open(&scope, &documents), 0);
	assert_true(waits("/api/v1/limits", 0));
	pthread_mutex_lock(&lock);
	while (!begun)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* Allows the reads, and waits until `count` clients have an answer. Then ends the thread. */
static void finish(unsigned int count)
{
	pthread_mutex_lock(&lock);
	may_read = true;
	pthread_cond_broadcast(&changed);
	while (answered < count)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	documents_stop(documents);
	for (unsigned int i = 0; i < asked; i++)
		answer_drop(askers[i].answer);
	documents_close(documents);
}

TEST(test_clients_share_a_document)
{
	begin();
	for (unsigned int i = 0; i < 10; i++)
		assert_true(waits("/api/v1/stats", i));
	finish(11);
	assert_int_equal(begun, 2);
	assert_ptr_equal(askers[1].answer, askers[10].answer);
}

TEST(test_unknown_gates_do_not_delay_the_metrics)
{
	unsigned int waiting;

	begin();
	waiting = 1 + ask_many("/api/v1/stats?gate=g%u");
	assert_true(waits("/metrics", 0) && waits("/metrics", 1));
	assert_true(waits("/healthz", 0) && waits("/api/v1/gates", 0));
	finish(waiting + 4);
	assert_int_equal(begun, waiting + 4);
	assert_int_equal(read_routes[1].id, ROUTE_METRICS);
	assert_int_equal(read_routes[2].id, ROUTE_METRICS);
	assert_int_equal(read_routes[3].id, ROUTE_HEALTH);
	assert_int_equal(read_routes[4].id, ROUTE_GATES);
	assert_int_equal(read_routes[5].id, ROUTE_STATS);
}

TEST(test_documents_with_many_parameters_are_read_last)
{
	unsigned int varied;

	begin();
	varied = ask_many("/api/v1/sources?skip=%u");
	assert_false(waits("/api/v1/check?address=192.0.2.1", 0));
	assert_true(waits("/api/v1/live", 0));
	finish(1 + varied + 1);
	assert_int_equal(read_routes[1].id, ROUTE_LIVE);
	assert_int_equal(read_routes[2].id, ROUTE_SOURCES);
	assert_int_equal(read_routes[2].sources.skip, 0);
	assert_int_equal(read_routes[3].sources.skip, 1);
}

TEST(test_a_client_that_has_left_is_not_answered)
{
	begin();
	assert_true(waits("/api/v1/stats", 0) && waits("/api/v1/lists", 0));
	assert_true(documents_cancel(documents, &askers[1]));
	assert_false(documents_cancel(documents, &askers[1]));
	finish(2);
	assert_int_equal(begun, 2);
	assert_int_equal(read_routes[1].id, ROUTE_LISTS);
	assert_null(askers[1].answer);
}

TESTS(NULL, NULL)
