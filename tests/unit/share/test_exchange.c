// SPDX-License-Identifier: GPL-2.0
/* user/share/exchange.h: what a round asks a store, which is in this test. */
#include <poll.h>
#include "test.h"
#include "share/exchange.h"
#include "share/flow.h"

static struct store_counts counts;
#define ALIVE_MS 5000

static int nodes_status, round_status; /* what the store answers */
static unsigned int nodes_told, nodes_asked, rounds_asked, alike_told, alike_asked;
static unsigned int expiry;
static int alike_status;
static int processes_status;
static unsigned int processes_told, processes_asked;
static uint64_t now;	 /* ms */
static uint64_t meaning; /* of the limits of this node */
static char alike_key[STORE_KEY];

uint64_t store_now_ms(void)
{
	return now;
}

struct store *store_open(const struct store_options *options)
{
	(void)options;
	return (struct store *)&counts;
}

void store_close(struct store *store)
{
	(void)store;
}

int store_round(struct store *store, struct store_item *items, size_t count, unsigned int expire_s)
{
	(void)store, (void)items, (void)count;
	assert_int_equal(expire_s, expiry);
	rounds_asked++;
	return round_status;
}

int store_nodes(struct store *store, const char *key, const char *node, unsigned int alive_ms,
		unsigned int *ret_nodes)
{
	bool is_of_all = !strcmp(key, "sluice:{name}:nodes");

	(void)store;
	if (!strncmp(key, "sluice:{name}:node:", strlen("sluice:{name}:node:"))) {
		assert_int_equal(strlen(node), 16);
		assert_true(alive_ms >= 20000);
		processes_asked++;
		*ret_nodes = processes_told;
		return processes_status;
	}
	assert_string_equal(node, "node");
	*ret_nodes = is_of_all ? nodes_told : alike_told;
	if (is_of_all) {
		nodes_asked++;
		return nodes_status;
	}
	assert_true(alive_ms >= 20000);
	alike_asked++;
	snprintf(alike_key, sizeof(alike_key), "%s", key);
	return alike_status;
}

const struct store_counts *store_counts(const struct store *store)
{
	(void)store;
	return &counts;
}

const char *store_error(const struct store *store)
{
	(void)store;
	return "";
}

static struct exchange *exchange; /* of the present test */

static int exchange_new(void **state)
{
	const struct store_options options = {.address = "here:1"};

	(void)state;
	exchange_close(exchange);
	nodes_status = round_status = alike_status = processes_status = 0;
	processes_asked = 0;
	processes_told = 1;
	nodes_asked = rounds_asked = alike_asked = 0;
	now = 1000;
	nodes_told = alike_told = 3;
	meaning = 0xabc;
	return exchange_open(&options, "name", "node", &exchange);
}

static int exchange_end_all(void **state)
{
	(void)state;
	exchange_close(exchange);
	return 0;
}

static struct round round_of(unsigned int items)
{
	static struct store_item item;
	struct pollfd ready = {.fd = exchange_fd(exchange), .events = POLLIN};
	const struct round *round;

	exchange_begin(exchange, &item, items, ++expiry, meaning);
	assert_int_equal(poll(&ready, 1, 5000), 1);
	round = exchange_end(exchange);
	assert_non_null(round);
	return *round;
}

TEST(test_no_key_is_told_before_nodes_are_known)
{
	nodes_status = -1;
	assert_false(round_of(1).is_answered);
	assert_int_equal(rounds_asked, 0);
	nodes_status = 0;
	assert_true(round_of(1).is_answered);
	assert_int_equal(round_of(1).nodes, 3);
	assert_int_equal(rounds_asked, 2);
	assert_int_equal(nodes_asked, 2);
}

/* The packet path divides by it, and a store may lie. */
TEST(test_nodes_are_no_more_than_are_told_apart)
{
	static const unsigned int told[] = {1, FLOW_NODES_MAX, FLOW_NODES_MAX + 1, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
		exchange_new(NULL);
		nodes_told = told[i];
		assert_int_equal(round_of(0).nodes, i ? FLOW_NODES_MAX : 1);
	}
}

/* Keys are of other masters than the nodes are. */
TEST(test_keys_are_told_without_the_nodes)
{
	round_of(1);
	nodes_status = -1;
	now += 1100;
	for (int i = 0; i < 5; i++)
		assert_true(round_of(1).is_answered);
	assert_int_equal(rounds_asked, 6);
	assert_int_equal(nodes_asked, 2); /* of which one in the last second */
}

TEST(test_a_store_that_is_away_is_asked_once_a_round)
{
	round_of(1);
	nodes_status = round_status = -1;
	now += 1100;
	for (int i = 0; i < FLOW_LOST; i++)
		assert_false(round_of(1).is_answered);
	assert_int_equal(nodes_asked, 1); /* so that its loss takes no longer */
	for (int i = 0; i < 5; i++, now += ALIVE_MS / 2)
		assert_false(round_of(1).is_answered);
	assert_int_equal(nodes_asked, 6);
	assert_false(round_of(0).is_answered);
}

/* The others count it within alive_ms. */
TEST(test_a_node_is_there_while_its_keys_are_away)
{
	round_of(1);
	round_status = -1;
	for (int i = 0; i < 20; i++, now += 500)
		assert_false(round_of(1).is_answered);
	assert_in_range(nodes_asked, 8, 10);
	/* one that is lost is made up for while the others count this node still */
	nodes_status = -1;
	now += 1000;
	assert_false(round_of(1).is_answered);
	nodes_status = 0;
	nodes_asked = 0;
	for (int i = 0; i <= ALIVE_MS / 2 / 500; i++, now += 500)
		assert_false(round_of(1).is_answered);
	assert_int_equal(nodes_asked, 1);
	nodes_told = 5;
	now += 1000;
	assert_int_equal(round_of(1).nodes, 5);
}

/* A round each second: the greatest numbers that are reported. */
static struct round rounds_within(unsigned int seconds)
{
	struct round most = {0};

	while (seconds--) {
		struct round round;

		now += 1000;
		round = round_of(0);
		most.unlike = round.unlike > most.unlike ? round.unlike : most.unlike;
		most.same_node =
			round.same_node > most.same_node ? round.same_node : most.same_node;
	}
	return most;
}

/* Each 10 s, and at once if this node's limits change; reported after 15 s. */
TEST(test_nodes_that_share_other_limits_are_counted)
{
	alike_told = 1;
	assert_int_equal(round_of(0).unlike, 0);
	assert_string_equal(alike_key, "sluice:{name}:limits:0000000000000abc");
	assert_int_equal(rounds_within(14).unlike, 0);
	assert_int_equal(rounds_within(1).unlike, 2);
	alike_asked = 0;
	alike_told = 3;
	assert_int_equal(rounds_within(9).unlike, 2);
	assert_int_equal(alike_asked, 0);
	rounds_within(1);
	assert_int_equal(alike_asked, 1);
	assert_int_equal(rounds_within(9).unlike, 0);
	assert_int_equal(alike_asked, 1);
	meaning = 0xdef;
	rounds_within(1);
	assert_int_equal(alike_asked, 2);
	assert_string_equal(alike_key, "sluice:{name}:limits:0000000000000def");
	/* a node that has gone counts as alike for longer than as one at all */
	alike_told = 7;
	assert_int_equal(rounds_within(30).unlike, 0);
}

/* Each node reports its limits every ten seconds, also after a flush. */
TEST(test_a_store_that_lost_its_data_makes_no_limits_differ)
{
	round_of(0);
	rounds_within(9);
	for (int flushes = 0; flushes < 5; flushes++) {
		alike_told = 1;
		assert_int_equal(rounds_within(11).unlike, 0);
		alike_told = 3;
		assert_int_equal(rounds_within(1).unlike, 0);
	}
	alike_told = 1;
	rounds_within(11);
	nodes_status = -1;
	rounds_within(20);
	nodes_status = 0;
	assert_int_equal(rounds_within(11).unlike, 0);
}

/* Else the others miss this node, as its word of 20 s before is forgotten. */
TEST(test_a_word_that_was_not_taken_is_said_again)
{
	alike_status = -1;
	rounds_within(3);
	assert_int_equal(alike_asked, 3);
	alike_status = 0;
	rounds_within(3);
	assert_int_equal(alike_asked, 4);
}

/* The process before this one is counted for 25 s, so another one is reported after that. */
TEST(test_processes_of_one_node_detect_each_other)
{
	assert_int_equal(rounds_within(30).same_node, 0);
	assert_in_range(processes_asked, 3, 4);
	processes_told = 2;
	assert_int_equal(rounds_within(26).same_node, 0);
	assert_int_equal(rounds_within(1).same_node, 1);
	processes_told = 1;
	rounds_within(10);
	assert_int_equal(rounds_within(9).same_node, 0);
	for (int restarts = 0; restarts < 3; restarts++) {
		processes_told = 2;
		assert_int_equal(rounds_within(25).same_node, 0);
		processes_told = 1;
		assert_int_equal(rounds_within(10).same_node, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_no_key_is_told_before_nodes_are_known, exchange_new),
		cmocka_unit_test_setup(test_nodes_are_no_more_than_are_told_apart, exchange_new),
		cmocka_unit_test_setup(test_keys_are_told_without_the_nodes, exchange_new),
		cmocka_unit_test_setup(test_a_store_that_is_away_is_asked_once_a_round,
				       exchange_new),
		cmocka_unit_test_setup(test_a_node_is_there_while_its_keys_are_away, exchange_new),
		cmocka_unit_test_setup(test_nodes_that_share_other_limits_are_counted,
				       exchange_new),
		cmocka_unit_test_setup(test_a_store_that_lost_its_data_makes_no_limits_differ,
				       exchange_new),
		cmocka_unit_test_setup(test_a_word_that_was_not_taken_is_said_again, exchange_new),
		cmocka_unit_test_setup(test_processes_of_one_node_detect_each_other, exchange_new),
	};

	return cmocka_run_group_tests(tests, NULL, exchange_end_all);
}
