// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/share/exchange.h, which exchanges keys with the store, and counts nodes. The store is
 * simulated.
 */
#include <poll.h>
#include "test.h"
#include "base/array.h"
#include "share/exchange.h"
#include "share/flow.h"

/* A set in the simulated store, which has the names of nodes. */
struct set {
	long members; /* size of the set in the store; -1: the store does not reply */
	int counted;  /* how often the node read `members` since the last check */
};

static struct set nodes, alike, processes;
static bool keys_are_away;
static int exchanged;	 /* rounds that sent keys to the store, since the last check */
static uint64_t now;	 /* milliseconds */
static uint64_t meaning; /* hash of the limits that this node shares */
static unsigned int expiry;
static struct store_counts counts;

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
	exchanged++;
	return keys_are_away ? -1 : 0;
}

int store_nodes(struct store *store, const char *key, const char *node, unsigned int alive_ms,
		unsigned int *ret_nodes)
{
	static const char process[] = "sluice:{name}:node:";
	char limits[STORE_KEY];
	struct set *set = &alike;

	(void)store;
	snprintf(limits, sizeof(limits), "sluice:{name}:limits:%016llx",
		 (unsigned long long)meaning);
	if (!strncmp(key, process, strlen(process))) {
		set = &processes;
		assert_int_equal(strlen(node), 16);
	} else {
		assert_string_equal(node, "node");
		if (!strcmp(key, "sluice:{name}:nodes"))
			set = &nodes;
		else
			assert_string_equal(key, limits);
	}
	assert_true(alive_ms >= (set == &nodes ? 5000 : 20000));
	set->counted++;
	*ret_nodes = set->members;
	return set->members < 0 ? -1 : 0;
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

static struct exchange *exchange;
static struct round last;

static void round_run(unsigned int items)
{
	static struct store_item item;
	struct pollfd ready = {.fd = exchange_fd(exchange), .events = POLLIN};
	const struct round *round;

	exchange_begin(exchange, &item, items, ++expiry, meaning);
	assert_int_equal(poll(&ready, 1, 5000), 1);
	round = exchange_end(exchange);
	assert_non_null(round);
	last = *round;
}

/*
 * Commands of a script. At its start, the store knows this node and two other nodes.
 *
 *   nodes N          sets the number of nodes in the store; -1: the store does not reply
 *   alike N          sets the number of nodes with the limits of this node; -1: no reply
 *   processes N      sets the number of processes with the name of this node
 *   keys N           0: the store replies for keys; -1: it does not reply
 *   limits N         changes the limits of this node
 *   wait MS          advances the time
 *   round B N MS     runs N rounds with a key, MS apart; B: whether each round gets a reply
 *   empty B          runs a round without keys; B: whether it gets a reply
 *   seconds N U S    runs N rounds without keys, a second apart; checks the largest reported
 *                    numbers: U nodes with other limits, S other processes with this node's name
 *   known N          checks that the last round reports N nodes
 *   counted N        checks how often nodes were counted since the last check
 *   compared N       checks how often limits were compared since the last check
 *   exchanged N      checks how often keys were exchanged since the last check
 */
static const struct {
	const char *name, *commands;
} scripts[] = {
	{"no key is reported before the nodes are known",
	 "nodes -1, round 0, exchanged 0, nodes 3, round 1 2, known 3, exchanged 2, counted 2"},
	{"the packet path divides by the nodes: a false store cannot make them too many",
	 "nodes 1, empty 1, known 1, wait 1000, nodes 4097, empty 1, known 4096, wait 1000,"
	 "nodes 4294967295, empty 1, known 4096"},
	{"a smaller number of nodes counts after 5 s, a larger number at once",
	 "empty 1, nodes 1, seconds 5 0, known 3, seconds 1 0, known 1, nodes 3, seconds 1 0,"
	 "known 3, nodes 2, seconds 5 0, nodes 3, seconds 1 0, nodes 2, seconds 5 0, known 3"},
	{"keys are exchanged if the master with the set of nodes is away",
	 "round 1, nodes -1, wait 1100, round 1 5, exchanged 6, counted 2"},
	{"nodes are not counted while three rounds are lost, and then once a round",
	 "round 1, nodes -1, keys -1, wait 1100, round 0 3, counted 1, round 0 5 2500, counted 5,"
	 "empty 0"},
	{"a node without replies for its keys still reports itself, and repeats a lost report",
	 "round 1, keys -1, round 0 20 500, counted 10, nodes -1, wait 1000, round 0, nodes 3,"
	 "counted 1, round 0 6 500, counted 1, nodes 5, wait 1000, round 0, known 5"},
	{"nodes with other limits are compared every 10 s, and reported after 15 s",
	 "alike 1, empty 1, seconds 14 0, seconds 1 2, compared 16, alike 3, seconds 9 2,"
	 "compared 0, seconds 1 0, compared 1, seconds 9 0, compared 0"},
	{"they are compared at once after a change of the limits",
	 "seconds 12 0, compared 2, limits 2, seconds 1 0, compared 1"},
	{"more nodes with the same limits than nodes are no difference", "alike 7, seconds 30 0"},
	{"after a flush each node reports its limits again within 10 s: no difference",
	 "empty 1, seconds 9 0, alike 1, seconds 11 0, alike 3, seconds 1 0, alike 1,"
	 "seconds 11 0, alike 3, seconds 1 0, alike 1, seconds 11 0, nodes -1, seconds 20 0,"
	 "nodes 3, seconds 11 0"},
	{"a report of the limits without a reply is repeated at once",
	 "alike -1, seconds 3 0, compared 3, alike 3, seconds 3 0, compared 1"},
	{"another process is reported after 26 s",
	 "seconds 30 0 0, processes 2, seconds 26 0 0, seconds 1 0 1, processes 1, seconds 10 0 1,"
	 "seconds 9 0 0"},
	{"the previous process counts for 25 s after a restart, and is not reported",
	 "seconds 10 0 0, processes 2, seconds 25 0 0, processes 1, seconds 10 0 0, processes 2,"
	 "seconds 25 0 0, processes 1, seconds 10 0 0"},
};

static void command_run(const char *name, const char *command)
{
	char op[16];
	long a = 0, b = 1, c = 0, unlike = 0, same = 0;
	int *done = NULL;

	assert_true(sscanf(command, "%15s %ld %ld %ld", op, &a, &b, &c) >= 2);
	if (!strcmp(op, "nodes"))
		nodes.members = a;
	else if (!strcmp(op, "alike"))
		alike.members = a;
	else if (!strcmp(op, "processes"))
		processes.members = a;
	else if (!strcmp(op, "keys"))
		keys_are_away = a;
	else if (!strcmp(op, "limits"))
		meaning = a;
	else if (!strcmp(op, "wait"))
		now += a;
	for (; (!strcmp(op, "round") || !strcmp(op, "empty")) && b; b--, now += c) {
		round_run(*op == 'r');
		if (last.is_answered != a)
			fail_msg("%s: %s", name, command);
	}
	for (long i = 0; !strcmp(op, "seconds") && i < a; i++) {
		now += 1000;
		round_run(0);
		unlike = last.unlike > unlike ? last.unlike : unlike;
		same = last.same_node > same ? last.same_node : same;
	}
	if (!strcmp(op, "counted"))
		done = &nodes.counted;
	else if (!strcmp(op, "compared"))
		done = &alike.counted;
	else if (!strcmp(op, "exchanged"))
		done = &exchanged;
	if ((!strcmp(op, "seconds") && (unlike != b || same != c)) ||
	    (!strcmp(op, "known") && last.nodes != a) || (done && *done != a))
		fail_msg("%s: not %s: unlike %ld, same %ld, nodes %u, done %d", name, command,
			 unlike, same, last.nodes, done ? *done : 0);
	if (done)
		*done = 0;
}

TEST(test_what_rounds_exchange_and_count)
{
	const struct store_options options = {.address = "here:1"};

	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		char text[512], *rest = text, *command;

		nodes = alike = (struct set){.members = 3};
		processes = (struct set){.members = 1};
		keys_are_away = false;
		exchanged = 0;
		now = 1000;
		meaning = 1;
		assert_int_equal(exchange_open(&options, "name", "node", &exchange), 0);
		snprintf(text, sizeof(text), "%s", scripts[i].commands);
		while ((command = strsep(&rest, ",")))
			command_run(scripts[i].name, command);
		exchange_close(exchange);
	}
}

TESTS(NULL, NULL)
