// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/share/choice.h, which chooses the keys that a node reports if it has more keys than
 * accounts. Runs up to four nodes (user/share/accounts.h) with simulated tables, packets and store.
 */
#include <ctype.h>
#include "test.h"
#include "kind_specs.h"
#include "random.h"
#include "shared_gate.h"
#include "share/choice.h"

#define NODES_MOST 4
#define KEYS_MAX   128
#define ENTRIES	   (SL_WAYS * KEYS_MAX)
#define RATE	   100 /* packets per second */
#define ROUND	   (100 * MS)
#define STEP	   (10 * MS)

struct node {
	struct sl_entry entries[ENTRIES];
	struct sl_set sets[ENTRIES / SL_WAYS];
	struct accounts accounts;
	struct store_item items[KEYS_MAX];
};

static struct node node[NODES_MOST];
static double offers[NODES_MOST][KEYS_MAX]; /* demand per node and key; 1: the limit's rate */
static unsigned int nodes, keys;
static struct flow_count totals[KEYS_MAX]; /* totals of each key in the store */
static unsigned int passed[KEYS_MAX];	   /* number of packets of each key that passed */
static uint64_t now, random_state;
static bool store_is_away;

/* --- Nodes ---------------------------------------------------------------------------------- */

static void nodes_close(void)
{
	for (unsigned int i = 0; i < nodes; i++)
		accounts_close(&node[i].accounts);
}

static void nodes_open(unsigned int count, unsigned int most, unsigned int burst)
{
	struct sl_limit_spec spec = spec_bucket(RATE, SL_RATE_PPS, burst);

	nodes_close();
	spec.shared = SL_SHARED_YES;
	limit = (struct shared_limit){.limit = spec_compile(&spec), .meaning = 1};
	memset(totals, 0, sizeof(totals));
	memset(node, 0, sizeof(node));
	nodes = count;
	now = 1000 * SEC;
	random_state = RANDOM_BEGIN;
	store_is_away = false;
	for (unsigned int i = 0; i < nodes; i++) {
		gate_table = (struct table){.entries = node[i].entries,
					    .count = ENTRIES,
					    .sets = {.values = node[i].sets}};
		assert_int_equal(accounts_open(&node[i].accounts, NULL, "here", most), 0);
		accounts_scan(&node[i].accounts, nodes, now);
	}
}

static bool key_send(struct node *at, unsigned int key)
{
	struct sl_entry *entry = &at->entries[key * SL_WAYS];

	if (!entry->limit)
		entry_make(entry, &at->sets[key], 0, key, now);
	return packet_send(entry, now);
}

/* Runs a round of a node. The store replies at once, or never if `store_is_away`. */
static void node_round(struct node *at)
{
	unsigned int count;

	accounts_scan(&at->accounts, nodes, now);
	count = accounts_report(&at->accounts, at->items, now);
	for (unsigned int i = 0; i < count; i++) {
		struct store_item *item = &at->items[i];
		struct flow_count *total = &totals[atoi(strrchr(item->key, ':') + 1)];

		total->taken += item->delta.taken;
		total->asked += item->delta.asked;
		item->total.taken = total->taken;
		item->total.asked = total->asked;
		item->answered = item->sent = !store_is_away;
	}
	accounts_learn(&at->accounts, at->items, nodes, now);
}

/* Sets the demand of each node for the keys `first` to `end` - 1. */
static void offer(unsigned int first, unsigned int end, double amount)
{
	for (unsigned int i = 0; i < NODES_MOST; i++)
		for (unsigned int key = first; key < end; key++)
			offers[i][key] = amount;
}

/*
 * Runs all nodes. Packets arrive at random times, so each node measures a different demand for a
 * key.
 */
static void nodes_run(double seconds)
{
	unsigned int steps = seconds * SEC / STEP + 0.5;

	memset(passed, 0, sizeof(passed));
	for (unsigned int step = 0; step < steps; step++, now += STEP)
		for (unsigned int i = 0; i < nodes; i++) {
			for (unsigned int key = 0; key < keys; key++) {
				double packets = offers[i][key] * RATE * STEP / SEC * 2 *
						 (random_next(&random_state) >> 11) * 0x1p-53;
				double part = (random_next(&random_state) >> 11) * 0x1p-53;

				for (packets += part; packets >= 1; packets--)
					passed[key] += key_send(&node[i], key);
			}
			accounts_step(&node[i].accounts, now);
			if (step % (ROUND / STEP) == i)
				node_round(&node[i]);
		}
}

/*
 * Runs the nodes for `seconds`. Returns the number of keys that passed at most 1.1 times their
 * limit.
 */
static unsigned int keys_held(double seconds)
{
	unsigned int held = 0;

	for (unsigned int key = 0; key < keys; key++)
		held += passed[key] <= 1.1 * RATE * seconds;
	return held;
}

static unsigned int keys_reported_by_all(void)
{
	unsigned int reported[KEYS_MAX] = {0}, all = 0;

	for (unsigned int i = 0; i < nodes; i++)
		for (unsigned int k = 0; k < node[i].accounts.most; k++)
			if (node[i].accounts.list[k].limit)
				reported[node[i].accounts.list[k].key.addr[0]]++;
	for (unsigned int key = 0; key < keys; key++)
		all += reported[key] == nodes;
	return all;
}

/* --- Which keys nodes choose ---------------------------------------------------------------- */

TEST(test_all_nodes_report_the_same_of_equal_abusers)
{
	offer(0, 40, 2);
	for (unsigned int count = 2; count <= 4; count += 2)
		for (unsigned int burst = 10; burst <= 100; burst *= 10) {
			keys = 40;
			nodes_open(count, 20, burst);
			nodes_run(15);
			nodes_run(15);
			assert_int_equal(keys_reported_by_all(), 20);
			assert_int_equal(keys_held(15), 20);
		}
}

TEST(test_nodes_choose_nearly_the_same_of_unequal_demand)
{
	for (int i = 0; i < 2; i++) {
		unsigned int reported = 0, least = 20;

		offer(0, 40, .6); /* both nodes together exceed the limit */
		for (unsigned int key = 0; i && key < 40; key++)
			offers[1][key] = .9;
		keys = 40;
		nodes_open(2, 20, 10);
		nodes_run(15);
		for (int k = 0; k < 20; k++) {
			nodes_run(1);
			reported += keys_reported_by_all();
			least = credit_min(least, keys_reported_by_all());
		}
		assert_true(reported / 20. > 17 && least >= 14);
	}
}

TEST(test_those_that_ask_for_most_come_first)
{
	keys = 60;
	nodes_open(4, 20, 10);
	offer(0, 15, 2);
	offer(15, 60, .4);
	nodes_run(15);
	nodes_run(15);
	for (unsigned int key = 0; key < 15; key++)
		assert_true(passed[key] < 1.1 * RATE * 15);
}

/* --- Which accounts make room --------------------------------------------------------------- */

static unsigned int foremost; /* key with the highest weight */
static unsigned int another;  /* a key other than `foremost` */

/* Selects keys without demand. All other keys have a demand of twice the limit. */
enum quiet {
	NONE,
	FOREMOST,
	ANOTHER,
	ALL_BUT_ANOTHER,
};

static void quiet_run(double seconds, enum quiet quiet)
{
	offer(0, keys, quiet == ALL_BUT_ANOTHER ? 0 : 2);
	if (quiet == FOREMOST)
		offer(foremost, foremost + 1, 0);
	else if (quiet != NONE)
		offer(another, another + 1, quiet == ANOTHER ? 0 : 2);
	nodes_run(seconds);
}

static bool is_reported(unsigned int key)
{
	const struct accounts *accounts = &node[0].accounts;

	for (unsigned int i = 0; i < accounts->most; i++)
		if (accounts->list[i].limit && accounts->list[i].key.addr[0] == key)
			return true;
	return false;
}

/* Opens one node for `count` keys, with at most `most` accounts. */
static void one_node_open(unsigned int count, unsigned int most)
{
	double heaviest = 0;

	keys = count;
	nodes_open(1, most, 10);
	for (unsigned int key = 0; key < keys; key++) {
		const struct state_key of = {.addr = {key}, .limit = 9};
		double weight = choice_weight(1, limit.meaning, &of);

		if (weight > heaviest) {
			heaviest = weight;
			foremost = key;
		}
	}
	another = (foremost + 1) % keys;
}

static const struct {
	const char *name;
	unsigned int keys, most;
	struct {
		double seconds;
		enum quiet quiet;
		bool store_is_away;
		/*
		 * F: `foremost` has an account; f: it has none; A: `another` has an account; a: it
		 * has none
		 */
		const char *reported;
	} times[3];
} rooms[] = {
	{"a key that is earlier in the order replaces a key that has had its account for long",
	 40,
	 1,
	 {{5, FOREMOST, false, "f"}, {3, NONE, false, "F"}, {20, NONE, false, "F"}}},
	{"a key that was added recently is not replaced",
	 40,
	 1,
	 {{.5, ALL_BUT_ANOTHER, false, "A"}, {3, NONE, false, "A"}, {1, NONE, false, "F"}}},
	{"a quiet key is replaced before other keys, whatever the order is",
	 3,
	 2,
	 {{5, ANOTHER, false, "a"}, {.4, FOREMOST, false, "fA"}}},
	{"a key with demand is not replaced while the store is away",
	 40,
	 1,
	 {{5, FOREMOST, false, ""}, {3, NONE, true, "f"}, {.2, NONE, false, "F"}}},
	{"a key is replaced even then, once its demand has decayed",
	 2,
	 1,
	 {{5, FOREMOST, false, "A"}, {3, ANOTHER, true, "A"}, {42, ANOTHER, true, "F"}}},
};

TEST(test_which_accounts_make_room)
{
	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		one_node_open(rooms[i].keys, rooms[i].most);
		for (int k = 0; k < 3 && rooms[i].times[k].seconds; k++) {
			store_is_away = rooms[i].times[k].store_is_away;
			quiet_run(rooms[i].times[k].seconds, rooms[i].times[k].quiet);
			for (const char *reported = rooms[i].times[k].reported; *reported;
			     reported++)
				if (is_reported(toupper(*reported) == 'F' ? foremost : another) !=
				    !!isupper(*reported))
					fail_msg("%s: time %d: %c", rooms[i].name, k, *reported);
		}
	}
}

/*
 * If an account ends before its packets are reported, these packets are added to the key's excess.
 */
TEST(test_what_was_not_reported_yet_is_not_lost)
{
	one_node_open(2, 1);
	quiet_run(5, FOREMOST);
	for (int i = 0; i < 100 && is_reported(another); i++)
		quiet_run(.1, NONE);
	assert_false(is_reported(another));
	/* about ten packets of `another` were not reported */
	assert_true(node[0].accounts.samples.list[another * SL_WAYS].excess >=
		    5 * (limit.limit.cost >> limit.limit.unit_shift));
}

TEST(test_keys_without_a_place_are_counted)
{
	const struct accounts *accounts = &node[0].accounts;
	uint64_t before;

	keys = 40;
	offer(0, keys, 2);
	nodes_open(1, 40, 10);
	nodes_run(5);
	assert_int_equal(accounts->left_out, 0);
	assert_int_equal(accounts->count, 40);
	nodes_open(1, 20, 10);
	nodes_run(5);
	before = accounts->left_out;
	nodes_run(1);
	assert_int_equal(accounts->left_out - before, 10 * 20);
	assert_int_equal(accounts->count, 20);
}

/* --- Demand, weights and the heap ----------------------------------------------------------- */

TEST(test_what_demand_is)
{
	static const struct {
		const char *name;
		double asked;	    /* demand for the key, as a multiple of the limit's rate */
		double burst, for_; /* seconds: burst of the limit, and duration of the demand */
		double is;	    /* expected result */
	} cases[] = {
		{"nothing", 0, 1, 60, 0},
		{"half of the limit", .5, 1, 60, .5},
		{"half of the limit, of a long burst", .5, 100, 2000, .5},
		{"the limit", 1, 1, 60, 1},
		{"more than twice the limit", 5, 1, 60, 2},
		{"the limit, for CHOICE_TICKS", 1, 1, 4, .63},
		{"twice the limit, for a part of a burst", 2, 100, 10, .19},
		{"the limit, for a part of a very long burst", 1, 1800, 180, .095},
		{"hardly anything", .0001, 1, 60, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		float demand = 0;

		for (double at = 0; at < cases[i].for_; at += .1)
			demand = choice_demand(demand, cases[i].asked * ROUND, ROUND,
					       cases[i].burst * SEC);
		if (demand < cases[i].is - .01 || demand > cases[i].is + .01)
			fail_msg("%s: %.3f", cases[i].name, demand);
		for (double at = 0; at < 10 * cases[i].burst + 40; at += .1)
			demand = choice_demand(demand, 0, ROUND, cases[i].burst * SEC);
		assert_true(demand == 0);
	}
}

/* choice_demand() returns a value from 0 to 2 for any arguments. */
TEST(test_demand_of_any_numbers)
{
	static const int64_t words[] = {INT64_MIN, -1, 0, 1, SEC, 1LL << 60, INT64_MAX};
	uint64_t random = RANDOM_BEGIN;
	float demand = 0;

	for (int i = 0; i < 100000; i++) {
		demand = choice_demand(demand, words[random_next(&random) % ARRAY_SIZE(words)],
				       words[random_next(&random) % ARRAY_SIZE(words)],
				       words[random_next(&random) % ARRAY_SIZE(words)]);
		assert_true(demand >= 0 && demand <= 2);
	}
}

TEST(test_the_order_of_keys_goes_by_all_that_the_store_has_of_them)
{
	const struct state_key key = {.addr = {1, 2}, .limit = 9};
	const struct state_key others[] = {{.addr = {3, 2}, .limit = 9},
					   {.addr = {1, 3}, .limit = 9},
					   {.addr = {2, 1}, .limit = 9}};
	const struct state_key elsewhere = {.addr = {1, 2}, .limit = 17};
	double weight = choice_weight(1, 5, &key), least = 2, most = 0;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_true(choice_weight(1, 5, &others[i]) != weight);
	assert_true(choice_weight(1, 6, &key) != weight);
	/* the id of a limit can differ between nodes, so the weight must not depend on it */
	assert_true(choice_weight(1, 5, &elsewhere) == weight);
	assert_true(choice_weight(2, 5, &key) == weight);
	assert_true(choice_weight(.5, 5, &key) == weight / 2);
	for (uint64_t i = 0; i < 1000; i++) {
		const struct state_key some = {.addr = {i << 24}};

		weight = choice_weight(1, 5, &some);
		assert_true(weight >= 1 && weight < 1.25);
		least = weight < least ? weight : least;
		most = weight > most ? weight : most;
	}
	assert_true(least < 1.005 && most > 1.245);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#define WEIGHTS 500

TEST(test_the_largest_are_chosen)
{
	uint64_t random = RANDOM_BEGIN;

	for (int run = 0; run < 300; run++) {
		unsigned int most = random_next(&random) % 40,
			     count = random_next(&random) % WEIGHTS;
		struct choice list[40];
		struct choices choices = {.list = list, .most = most};
		double weights[WEIGHTS], of[40] = {0};

		for (unsigned int i = 0; i < count; i++) {
			unsigned int number;

			weights[i] = random_next(&random) % 1000;
			if (!choices_add(&choices, weights[i], &number))
				continue;
			assert_true(number < most);
			of[number] = weights[i];
		}
		qsort(weights, count, sizeof(*weights), by_value);
		choices_sort(&choices);
		assert_int_equal(choices.count, credit_min(count, most));
		for (unsigned int i = 0; i < choices.count; i++) {
			assert_true(list[i].weight == weights[count - choices.count + i]);
			assert_true(of[list[i].number] == list[i].weight);
		}
	}
}

static int finish(void **state)
{
	(void)state;
	nodes_close();
	return 0;
}

TESTS(NULL, finish)
