// SPDX-License-Identifier: GPL-2.0
/*
 * user/share/flow.h: what is charged for other nodes, on cases, on random schedules, under a store
 * that lies, and with whole worlds of nodes (flow_model.h).
 */
#include <math.h>
#include "test.h"
#include "flow_model.h"

#define BURST (100 * MS)
#define ROUND (100 * MS)
#define NOW   (0 - 5 * SEC) /* moments wrap in the middle */

/* One node, and a store in which the test writes what the others did. */
struct bench {
	struct flow flow;
	struct flow_count own, totals;
	uint64_t now, charged;
};

static struct bench bench_new(void)
{
	struct bench bench = {.own = {-1000, -1000}, .totals = {-5000, 7}, .now = NOW};

	flow_begin(&bench.flow, &bench.own, bench.now);
	return bench;
}

/* Time passes in steps of 10 ms; returns what was charged. */
static int64_t bench_pass(struct bench *bench, uint64_t span)
{
	int64_t charged = 0;

	for (; span; span -= credit_min(span, 10 * MS)) {
		bench->now += credit_min(span, 10 * MS);
		charged += flow_step(&bench->flow, BURST, 0, bench->now);
	}
	bench->charged += charged;
	return charged;
}

static void bench_report(struct bench *bench, uint64_t taken, uint64_t asked)
{
	struct flow_count sent;

	bench->own.taken += taken;
	bench->own.asked += asked;
	sent = flow_report(&bench->flow, &bench->own, bench->now);
	bench->totals.taken += sent.taken;
	bench->totals.asked += sent.asked;
}

static void bench_learn(struct bench *bench, unsigned int nodes)
{
	flow_learn(&bench->flow, BURST, &bench->totals, nodes, bench->now);
}

/* A round in which this node and the others took and were offered so much. */
static void bench_round(struct bench *bench, struct flow_count mine, struct flow_count theirs,
			unsigned int nodes)
{
	bench_pass(bench, ROUND);
	bench->totals.taken += theirs.taken;
	bench->totals.asked += theirs.asked;
	bench_report(bench, mine.taken, mine.asked);
	bench_learn(bench, nodes);
}

/* What a node keeps for what it is offered over some seconds, a part of the rate. */
static double bench_usual(const struct bench *bench)
{
	return bench->flow.usual;
}

static const struct flow_count nothing;

/* How long a key that nobody uses is kept. */
#define REST(nodes) (2 * (nodes) * (BURST + 2 * ROUND))

/* Within a part in a thousand of the round: shares are rounded down. */
static bool near(double is, double expected)
{
	return is - expected < 0.001 && expected - is < 0.001;
}

static void test_what_a_round_charges(void **state)
{
	/* all in rounds at the rate */
	static const struct {
		const char *name;
		double mine, theirs_taken, theirs_asked;
		unsigned int nodes;
		double next; /* charged in the round behind it */
	} cases[] = {
		{"nobody else: nothing", 20, 0, 0, 2, 0},
		{"demand below the rate: all of it, and what was missed", 0, .2, .2, 2, .3},
		{"half of the demand: half of the rate, and 1/2 of what was missed, but .1 kept",
		 10, .5, 10, 2, .55},
		{"a flood elsewhere leaves an honest node its demand", .2, 1, 1000, 4, .8},
		{"a flood elsewhere leaves a greedy node 0.9/N", 16, 1, 1000000, 4, .775},
		{"a node with no demand is charged all", 0, 1, 16, 4, 1},
		{"without demand the whole debt at once", 0, 1, 0, 4, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bench bench = bench_new();
		uint64_t mine = cases[i].mine * ROUND;
		int64_t next;

		bench_round(&bench, nothing, nothing, cases[i].nodes);
		bench_round(&bench, (struct flow_count){credit_min(mine, ROUND), mine},
			    (struct flow_count){cases[i].theirs_taken * ROUND,
						cases[i].theirs_asked * ROUND},
			    cases[i].nodes);
		next = bench_pass(&bench, ROUND);
		if (!near((double)next / ROUND, cases[i].next))
			fail_msg("%s: %.4f of a round", cases[i].name, (double)next / ROUND);
	}
}

static void test_the_first_totals_are_not_charged(void **state)
{
	struct bench bench = bench_new();

	(void)state;
	bench.totals = (struct flow_count){1ULL << 50, 1ULL << 55};
	bench_round(&bench, nothing, nothing, 4);
	assert_int_equal(bench_pass(&bench, ROUND), 0);
	bench_round(&bench, nothing, (struct flow_count){ROUND, ROUND}, 4);
	assert_true(bench_pass(&bench, ROUND) > (int64_t)ROUND / 2);
}

static void test_totals_that_fall_begin_again(void **state)
{
	struct bench bench = bench_new();
	const struct flow_count flood = {ROUND / 2, ROUND * 10};
	uint64_t before;

	(void)state;
	for (int i = 0; i < 100; i++)
		bench_round(&bench, flood, flood, 2);
	before = bench_pass(&bench, ROUND);
	bench.totals = nothing;
	bench_report(&bench, ROUND / 2, ROUND * 10);
	bench_learn(&bench, 2);
	assert_in_range(bench_pass(&bench, ROUND), before * 98 / 100, before);
	assert_true(bench.flow.unsettled >= -(int64_t)ROUND / 100);
	bench.totals.taken += ROUND / 2;
	bench.totals.asked += ROUND * 10;
	bench_report(&bench, ROUND / 2, ROUND * 10);
	bench_learn(&bench, 2);
	assert_in_range(bench_pass(&bench, ROUND), ROUND * 49 / 100, ROUND * 51 / 100);
}

/* Else the store's totals would be less than this node's own, and seem to have fallen. */
/* Of the two totals one alone may fall, where the other one was added to since. */
static void test_one_total_that_falls_begins_again(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct bench bench = bench_new();
		const struct flow_count less = {i ? -SEC : SEC, i ? SEC : -SEC};

		bench_round(&bench, nothing, nothing, 2);
		bench_round(&bench, nothing, nothing, 2);
		bench_round(&bench, nothing, less, 2);
		assert_int_equal(bench.flow.unsettled, 0);
		assert_int_equal(bench_pass(&bench, ROUND), 0);
	}
}

static void test_a_flood_is_told_in_whole_units(void **state)
{
	const struct flow_count own = {0, 1000 * SEC};
	struct bench bench = bench_new();
	struct flow_count sent;

	(void)state;
	bench.now += ROUND + 1;
	bench.own.asked = bench.own.taken = 0;
	flow_begin(&bench.flow, &bench.own, bench.now - ROUND - 1);
	sent = flow_report(&bench.flow, &own, bench.now);
	assert_int_equal(sent.asked % (1 << FLOW_UNIT_SHIFT), 0);
	assert_in_range(sent.asked, FLOW_ASKED * ROUND - 1000, FLOW_ASKED * (ROUND + 1));
}

static void test_a_report_is_told_once(void **state)
{
	struct bench bench = bench_new();
	struct flow_count sent, own = bench.own;

	(void)state;
	bench.now += ROUND;
	own.taken += 100;
	own.asked += 300;
	sent = flow_report(&bench.flow, &own, bench.now);
	assert_int_equal(sent.taken, 100);
	assert_int_equal(sent.asked, 300);
	flow_lost(&bench.flow, 1);
	sent = flow_report(&bench.flow, &own, bench.now + ROUND);
	assert_int_equal(sent.taken, 0);
	assert_int_equal(sent.asked, 0);
	own.taken += ROUND / 10;
	own.asked += 1ULL << 60;
	sent = flow_report(&bench.flow, &own, bench.now + 2 * ROUND);
	assert_int_equal(sent.taken, ROUND / 10);
	assert_int_equal(sent.asked, FLOW_ASKED * ROUND);
	own = nothing; /* a state that was reused */
	own.taken -= 1ULL << 62;
	sent = flow_report(&bench.flow, &own, bench.now + 3 * ROUND);
	assert_int_equal(sent.taken, 0);
}

static void test_what_is_given_back_is_not_told_twice(void **state)
{
	struct bench bench = bench_new();
	struct flow_count own = bench.own;

	(void)state;
	own.taken += 1000;
	assert_int_equal(flow_report(&bench.flow, &own, bench.now + ROUND).taken, 1000);
	own.taken -= 300;
	assert_int_equal(flow_report(&bench.flow, &own, bench.now + 2 * ROUND).taken, 0);
	own.taken += 400;
	assert_int_equal(flow_report(&bench.flow, &own, bench.now + 3 * ROUND).taken, 100);
}

static void test_what_goes_on_without_answers(void **state)
{
	static const struct {
		const char *name;
		unsigned int rounds;
		double charged; /* in times of the rate */
	} cases[] = {
		{"one round lost changes nothing", 1, .775},
		{"two rounds lost change nothing", 2, .775},
		{"nothing from three rounds on", 3, 0},
		{"nor from more", 9, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bench bench = bench_new();
		const struct flow_count most = {ROUND, 1ULL << 50};
		double charged;

		for (int n = 0; n < 4; n++)
			bench_round(&bench, (struct flow_count){0, ROUND}, most, 4);
		flow_lost(&bench.flow, cases[i].rounds);
		charged = (double)bench_pass(&bench, ROUND) / ROUND;
		if (!near(charged, cases[i].charged))
			fail_msg("%s: %.4f", cases[i].name, charged);
		/* an answer alone tells nothing of the others */
		bench.totals.taken += SEC;
		bench_report(&bench, 0, ROUND);
		bench_learn(&bench, 4);
		charged = (double)bench_pass(&bench, ROUND) / ROUND;
		if (!near(charged, cases[i].charged))
			fail_msg("%s: %.4f behind the first answer", cases[i].name, charged);
	}
}

/* Offered more than the rate, and nothing known of the others: it takes them to be, too. */
static void test_what_is_charged_until_something_is_known(void **state)
{
	static const struct {
		const char *name;
		double mine;
		unsigned int nodes;
		double next; /* charged in the round behind the first totals */
	} cases[] = {
		{"a flood, 4 nodes", 16, 4, .75},
		{"a flood, one node", 16, 1, 0},
		{"a flood, of nodes that nobody has counted", 16, 0, 0},
		{"demand at the rate", 1, 4, 0},
		{"no demand", 0, 4, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bench bench = bench_new();
		struct flow_count mine = {0, cases[i].mine * ROUND};

		bench_round(&bench, mine, nothing, cases[i].nodes);
		if (!near((double)bench_pass(&bench, ROUND) / ROUND, cases[i].next))
			fail_msg("%s", cases[i].name);
		bench_report(&bench, mine.taken, mine.asked);
		bench_learn(&bench, cases[i].nodes);
		/* nobody was there: it is given back */
		assert_true(near((double)bench_pass(&bench, ROUND) / ROUND, -cases[i].next));
		assert_int_equal(bench.charged, 0);
	}
}

/* Of what was charged in vain each node has its part of the demand: it is taken once. */
static void test_what_was_charged_in_vain_is_given_back_by_demand(void **state)
{
	static const struct {
		double mine, theirs, back; /* in rounds at the rate */
	} cases[] = {{1, 0, .9}, {.4, .4, .45}, {.1, .9, .09}, {0, 0, .9}, {0, .5, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bench bench = bench_new();
		uint64_t mine = cases[i].mine * ROUND, theirs = cases[i].theirs * ROUND;
		int64_t back;

		bench_round(&bench, nothing, nothing, 4);
		bench_round(&bench, nothing, (struct flow_count){.9 * ROUND, .9 * ROUND}, 4);
		flow_step(&bench.flow, BURST, 0, bench.now);
		bench.flow.unsettled = 0; /* of what was missed before */
		bench.flow.repay = 0;
		bench_round(&bench, (struct flow_count){mine, mine}, (struct flow_count){0, theirs},
			    4);
		bench.now++;
		back = -flow_step(&bench.flow, BURST, 0, bench.now);
		if (!near((double)back / ROUND, cases[i].back))
			fail_msg("case %zu: %.4f", i, (double)back / ROUND);
		assert_true(flow_step(&bench.flow, BURST, 0, bench.now + 1) >= 0);
	}
}

/* Where nothing is offered what is owed is charged at once, but for half of a burst. */
/* Packets that come each half second, at a fifth of the rate; the others are flooded, or silent. */
static void test_what_is_usual_is_kept_while_others_ask(void **state)
{
	const struct flow_count mine = {ROUND, ROUND}, flood = {ROUND, 16 * ROUND};
	struct bench bench = bench_new();

	(void)state;
	for (int i = 0; i < 500; i++)
		bench_round(&bench, i % 5 ? nothing : mine, flood, 4);
	assert_in_range(1000 * bench_usual(&bench), 180, 225);
	bench_round(&bench, nothing, flood, 4);
	assert_true(near((double)bench_pass(&bench, ROUND) / ROUND, 1 - bench_usual(&bench)));
	bench_round(&bench, nothing, nothing, 4);
	assert_true(near((double)bench_pass(&bench, ROUND) / ROUND, 1));
	/* it is forgotten within some times CHOICE_TICKS */
	for (int i = 0; i < 200; i++)
		bench_round(&bench, nothing, flood, 4);
	assert_true(bench_usual(&bench) < .01);
}

/* A twentieth of the rate is that also where it is told once in 100 s. */
static void test_what_is_usual_is_not_more_behind_lost_rounds(void **state)
{
	struct bench bench = bench_new();

	(void)state;
	bench_round(&bench, nothing, nothing, 2);
	bench_pass(&bench, 100 * SEC);
	bench_report(&bench, 5 * SEC, 5 * SEC);
	bench_learn(&bench, 2);
	assert_in_range(1000 * bench_usual(&bench), 49, 50);
}

static void test_an_idle_node_repays_at_once(void **state)
{
	static const struct {
		double mine, level, next; /* in bursts; what the first step charges */
	} cases[] = {{0, 1, .5}, {0, .75, .25}, {0, .5, .1}, {0, -1, .1}, {1, 1, .0775}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bench bench = bench_new();
		uint64_t mine = cases[i].mine * ROUND;
		int64_t level = cases[i].level * BURST;

		bench_round(&bench, nothing, nothing, 4);
		bench_round(&bench, (struct flow_count){0, mine},
			    (struct flow_count){10 * ROUND, 10 * ROUND}, 4);
		bench.now += 10 * MS;
		if (!near((double)flow_step(&bench.flow, BURST, level, bench.now) / BURST,
			  cases[i].next))
			fail_msg("case %zu", i);
	}
}

static void test_no_credit_behind_a_loss(void **state)
{
	struct bench bench = bench_new();
	const struct flow_count flood = {0, ROUND * 10};

	(void)state;
	for (int i = 0; i < 10; i++) /* the others are charged for, but take nothing */
		bench_round(&bench, flood, flood, 2);
	assert_true(bench.flow.unsettled < 0);
	flow_lost(&bench.flow, FLOW_LOST);
	assert_int_equal(bench.flow.unsettled, 0);
}

/* Behind a loss nothing is known of the others, of a debt or of what was charged in vain. */
static void test_a_loss_forgets_the_plan(void **state)
{
	const struct flow_count flood = {0, 10 * ROUND}, much = {3 * ROUND, 3 * ROUND};
	struct bench bench = bench_new();

	(void)state;
	bench_round(&bench, flood, nothing, 4);
	bench_round(&bench, flood, flood, 4);
	bench_round(&bench, flood, nothing, 4); /* gives back */
	flow_lost(&bench.flow, FLOW_LOST);
	assert_int_equal(bench_pass(&bench, ROUND), 0);
	bench_report(&bench, flood.taken, flood.asked);
	bench_learn(&bench, 4);
	assert_true(near((double)bench_pass(&bench, ROUND) / ROUND, .75));

	bench = bench_new();
	bench_round(&bench, nothing, nothing, 4);
	bench_round(&bench, nothing, much, 4); /* idle, and owes */
	flow_lost(&bench.flow, FLOW_LOST);
	assert_int_equal(flow_step(&bench.flow, BURST, BURST, bench.now + MS), 0);
}

/* However long the next answer takes. */
static void test_a_round_repays_its_part_once(void **state)
{
	const struct flow_count mine = {ROUND / 10, ROUND / 10};
	struct bench bench = bench_new();

	(void)state;
	bench_round(&bench, nothing, nothing, 4);
	bench_round(&bench, mine, (struct flow_count){ROUND, ROUND / 2}, 4);
	bench.flow.expected = 0;
	assert_true(near((double)bench_pass(&bench, 5 * ROUND) / ROUND, .25));
}

/* As long as the packet path divides: rounds go on, and what they tell is never charged. */
static void test_what_is_divided_is_charged_to_nobody(void **state)
{
	const struct flow_count flood = {ROUND / 4, ROUND * 10};
	struct bench bench = bench_new();
	int64_t owed;

	(void)state;
	for (int i = 0; i < 3; i++)
		bench_round(&bench, flood, (struct flow_count){ROUND, ROUND}, 4);
	owed = bench.flow.unsettled;
	assert_true(owed > 0);
	for (int i = 0; i < 50; i++) {
		bench.now += ROUND;
		flow_forget(&bench.flow, bench.now);
		bench.totals.taken += ROUND;
		bench.totals.asked += ROUND;
		bench_report(&bench, flood.taken, flood.asked);
		bench_learn(&bench, 4);
		flow_forget(&bench.flow, bench.now);
		assert_int_equal(flow_step(&bench.flow, BURST, BURST, bench.now + 10 * MS), 0);
		assert_false(flow_is_quiet(&bench.flow, BURST));
	}
	assert_int_equal(bench.flow.unsettled, owed);
	/* behind it: a guess until the second answer, and of the time before nothing */
	bench_round(&bench, flood, flood, 4);
	assert_int_equal(bench.flow.unsettled, owed);
	assert_true(near((double)bench_pass(&bench, ROUND) / ROUND, .75));
}

/* What others took as much of as this node could not tell is charged, as nothing is in doubt. */
static void test_what_was_never_sent_is_not_in_doubt(void **state)
{
	(void)state;
	for (int is_sent = 0; is_sent <= 1; is_sent++) {
		struct bench bench = bench_new();

		bench_pass(&bench, ROUND);
		bench_report(&bench, ROUND, ROUND);
		bench.totals = nothing;
		if (!is_sent)
			flow_unsent(&bench.flow);
		flow_lost(&bench.flow, 1);
		bench_round(&bench, nothing, nothing, 2);
		bench_round(&bench, nothing, (struct flow_count){ROUND, ROUND}, 2);
		assert_true(near((double)bench_pass(&bench, ROUND) / ROUND,
				 is_sent ? 0 : 1 - bench_usual(&bench)));
	}
}

/* However often that happens: no more is owed than the promise has it. */
static void test_what_was_not_charged_is_owed_up_to_the_cap(void **state)
{
	const struct flow_count flood = {ROUND, ROUND * 10};
	struct bench bench = bench_new();
	int64_t owed, most = flow_cap(BURST, ROUND, 4);

	(void)state;
	flow_uncharged(&bench.flow, BURST, 0);
	assert_int_equal(bench.flow.unsettled, 0);
	for (int i = 0; i < 3; i++)
		bench_round(&bench, nothing, flood, 4);
	owed = bench.flow.unsettled;
	bench.now += 10 * MS;
	flow_uncharged(&bench.flow, BURST, flow_step(&bench.flow, BURST, BURST, bench.now));
	/* with what was expected: the others may take it */
	assert_int_equal(bench.flow.unsettled, owed + bench.flow.assumed);
	flow_uncharged(&bench.flow, BURST, -1000);
	assert_int_equal(bench.flow.unsettled, owed + bench.flow.assumed);
	for (int i = 0; i < 1000; i++)
		flow_uncharged(&bench.flow, BURST, ROUND);
	assert_int_equal(bench.flow.unsettled, most);
	flow_uncharged(&bench.flow, BURST, INT64_MAX / 4);
	assert_int_equal(bench.flow.unsettled, most);
}

static void test_when_a_key_rests(void **state)
{
	struct bench bench = bench_new();
	unsigned int quiet = 0; /* rounds before it rests */

	(void)state;
	bench_round(&bench, nothing, nothing, 4);
	bench_round(&bench, nothing, (struct flow_count){3 * ROUND, 3 * ROUND}, 4);
	assert_false(flow_rests(&bench.flow, BURST, bench.now));
	bench_round(&bench, nothing, nothing, 4);
	/* a burst's time behind the last packet, but the others took three rounds' worth */
	assert_false(flow_rests(&bench.flow, BURST, bench.now));
	for (unsigned int i = 1; i < REST(4) / ROUND; i++) {
		assert_false(flow_rests(&bench.flow, BURST, bench.now));
		quiet += flow_is_quiet(&bench.flow, BURST);
		assert_int_equal(!!quiet, flow_is_quiet(&bench.flow, BURST));
		bench_round(&bench, nothing, nothing, 4);
	}
	assert_true(flow_rests(&bench.flow, BURST, bench.now));
	/* a burst's time behind, once what the others took is repaid */
	assert_in_range(quiet, REST(4) / ROUND - 5, REST(4) / ROUND - 3);
	assert_in_range(bench.charged, 299 * ROUND / 100, 3 * ROUND);
	bench_round(&bench, (struct flow_count){0, ROUND / 4}, (struct flow_count){0, ROUND / 4},
		    4);
	assert_true(flow_rests(&bench.flow, BURST, bench.now));
	bench_round(&bench, (struct flow_count){0, ROUND / 4}, (struct flow_count){0, ROUND / 3},
		    4);
	assert_false(flow_rests(&bench.flow, BURST, bench.now));
}

/* A burst may be shorter than a round, and a process may stop: no answer since is no quiet. */
static void test_a_busy_key_is_not_quiet_until_the_next_answer(void **state)
{
	struct bench bench = bench_new();
	const struct flow_count half = {ROUND / 2, ROUND};

	(void)state;
	for (int i = 0; i < 100; i++)
		bench_round(&bench, half, half, 2);
	bench.now += 20 * SEC;
	assert_true(bench.flow.unsettled <= (int64_t)(BURST / 1024));
	assert_false(flow_is_quiet(&bench.flow, BURST));
}

/* Parts of a part are repaid: the last of it must not keep the key for ever. */
static void test_a_trickle_does_not_keep_a_key(void **state)
{
	struct bench bench = bench_new();
	const struct flow_count trickle = {ROUND / 5, ROUND / 5};

	(void)state;
	bench_round(&bench, nothing, nothing, 4);
	bench_round(&bench, trickle, (struct flow_count){3 * ROUND, 3 * ROUND}, 4);
	for (unsigned int i = 0; i < REST(4) / ROUND + 40; i++)
		bench_round(&bench, trickle, nothing, 4);
	assert_true(bench.flow.unsettled > 0);
	assert_true(flow_rests(&bench.flow, BURST, bench.now));
	assert_false(flow_rests(&bench.flow, bench.flow.unsettled, bench.now));
}

/*
 * Whatever rounds there are: what was charged and is unsettled is what the others took, but for
 * what fades of a credit, an eighth a round.
 */
static void test_the_books_balance(void **state)
{
	uint64_t random = RANDOM_BEGIN;

	(void)state;
	for (int run = 0; run < 200; run++) {
		struct bench bench = bench_new();
		int64_t others = 0, faded = 0, fades;

		bench_round(&bench, nothing, nothing, 4);
		for (int i = 0; i < 200; i++) {
			uint64_t theirs = random_next(&random) % (ROUND / 2);

			bench_pass(&bench, random_next(&random) % (2 * ROUND));
			bench.totals.taken += theirs;
			bench.totals.asked += random_next(&random) % (2 * ROUND) + theirs;
			others += theirs;
			bench_report(&bench, random_next(&random) % ROUND,
				     random_next(&random) % (4 * ROUND));
			bench_learn(&bench, 4);
			if (bench.flow.unsettled <= -(int64_t)BURST)
				break; /* at its floor */
			fades = bench.flow.unsettled - (others - bench.charged + faded);
			if (fades < 0 || fades > credit_max(0, -bench.flow.unsettled) / 7 + 1)
				fail_msg("run %d round %d: unsettled %lld, of which %lld new", run,
					 i, (long long)bench.flow.unsettled, (long long)fades);
			faded += fades;
		}
	}
}

/*
 * A lone node whose reports are lost, are carried out without an answer, or are carried out late, by
 * three rounds at most. It is offered no more than the rate, so it never guesses.
 */
static void test_own_cost_never_comes_back(void **state)
{
	uint64_t random = RANDOM_BEGIN;

	(void)state;
	for (int run = 0; run < 300; run++) {
		struct bench bench = bench_new();
		struct flow_count late = {0};
		unsigned int age = 0, lost = 0;

		bench_round(&bench, nothing, nothing, 4);
		bench_round(&bench, nothing, nothing, 4);
		for (int i = 0; i < 100; i++) {
			uint64_t taken = random_next(&random) % ROUND;
			struct flow_count before = bench.totals;

			bench_pass(&bench, ROUND);
			if (++age > 3 || random_next(&random) % 3 == 0) {
				bench.totals.taken += late.taken;
				bench.totals.asked += late.asked;
				before = bench.totals;
				late = nothing;
				age = 0;
			}
			bench_report(&bench, taken, taken + random_next(&random) % (ROUND - taken));
			if (random_next(&random) % 3) {
				bench_learn(&bench, 4);
				lost = 0;
				continue;
			}
			if (random_next(&random) % 2) {
				late.taken += bench.totals.taken - before.taken;
				late.asked += bench.totals.asked - before.asked;
				bench.totals = before;
			}
			flow_lost(&bench.flow, ++lost);
		}
		bench.totals.taken += late.taken;
		bench.totals.asked += late.asked;
		for (int i = 0; i < 20; i++)
			bench_round(&bench, (struct flow_count){ROUND, ROUND}, nothing, 4);
		assert_int_equal(bench.charged, 0);
	}
}

/* A report that was never carried out hides what others do for a while only. */
static void test_doubt_ends(void **state)
{
	const struct flow_count theirs = {ROUND, ROUND};
	struct bench bench = bench_new();

	(void)state;
	bench_round(&bench, nothing, nothing, 2);
	bench_round(&bench, nothing, nothing, 2);
	bench_pass(&bench, ROUND);
	bench_report(&bench, 100 * ROUND, 100 * ROUND);
	bench.totals = nothing; /* the store has lost it, and begins again */
	flow_lost(&bench.flow, 1);
	bench_round(&bench, nothing, nothing, 2);
	bench_round(&bench, nothing, theirs, 2);
	assert_int_equal(bench_pass(&bench, ROUND), 0);
	for (unsigned int i = 0; i <= FLOW_DOUBT / ROUND; i++)
		bench_round(&bench, nothing, theirs, 2);
	assert_true(near((double)bench_pass(&bench, ROUND) / ROUND, 1 - bench_usual(&bench)));
}

/* What happened in a round without an answer is told by the next answer, as of a longer round. */
static void test_a_lost_round_is_made_up_for(void **state)
{
	const struct flow_count flood = {ROUND / 2, 10 * ROUND};

	(void)state;
	for (unsigned int lost = 0; lost < FLOW_LOST; lost++) {
		struct bench bench = bench_new();
		int64_t unsettled;

		for (int i = 0; i < 100; i++)
			bench_round(&bench, flood, flood, 2);
		unsettled = bench.flow.unsettled;
		for (unsigned int i = 1; i <= lost; i++) {
			bench_pass(&bench, ROUND);
			bench.totals.taken += ROUND;
			bench.totals.asked += 10 * ROUND;
			bench_report(&bench, ROUND / 2, 10 * ROUND);
			flow_lost(&bench.flow, i);
		}
		bench_round(&bench, flood, flood, 2);
		assert_true(near((double)bench.flow.expected / FLOW_RATE, .5));
		assert_true(near((double)(bench.flow.unsettled - unsettled) / ROUND, lost * .5));
	}
}

static uint64_t draw_hostile(uint64_t *random)
{
	static const uint64_t words[] = {0, 1, 1ULL << 62, (1ULL << 63) - 1, 1ULL << 63, -1ULL};

	return random_next(random) % 2 ? words[random_next(random) % ARRAY_SIZE(words)]
				       : random_next(random) >> random_next(random) % 64;
}

/* Any burst, any steps, any totals, any number of nodes. */
static void test_a_store_that_lies(void **state)
{
	uint64_t random = RANDOM_BEGIN;

	(void)state;
	for (int run = 0; run < 3000; run++) {
		struct bench bench = bench_new();
		uint64_t burst = 1 + draw_hostile(&random) % SL_BURST_TICKS_MAX;
		__int128 sum = 0;

		for (int i = 0; i < 60; i++) {
			uint64_t span = random_next(&random) >> (16 + random_next(&random) % 48);
			unsigned int nodes = draw_hostile(&random);
			int64_t charged, level = random_next(&random) % (2 * burst) - burst;

			bench.now += span;
			charged = flow_step(&bench.flow, burst, level, bench.now);
			sum += charged;
			if ((charged > (int64_t)span && charged > level - (int64_t)(burst / 2)) ||
			    charged > (int64_t)burst || sum < 0)
				fail_msg("run %d: %lld charged in %llu", run, (long long)charged,
					 (unsigned long long)span);
			if (random_next(&random) % 4 == 0) {
				flow_uncharged(&bench.flow, burst, charged);
				sum -= credit_max(charged, 0);
			}
			bench.own.asked += draw_hostile(&random);
			bench.own.taken += draw_hostile(&random);
			flow_report(&bench.flow, &bench.own, bench.now);
			bench.totals.taken += draw_hostile(&random);
			bench.totals.asked += draw_hostile(&random);
			if (random_next(&random) % 8)
				flow_learn(&bench.flow, burst, &bench.totals, nodes, bench.now);
			else
				flow_lost(&bench.flow, random_next(&random) % 5);
			assert_true(bench.flow.unsettled <=
				    flow_cap(burst, bench.flow.length, nodes) + (1LL << 61));
		}
	}
}

/* A lie is over as soon as what a source can owe is repaid. */
static void test_a_lie_ends(void **state)
{
	struct bench bench = bench_new();
	int64_t most = flow_cap(BURST, ROUND, 10);

	(void)state;
	assert_int_equal(most, 10 * (BURST + 4 * ROUND));
	bench_round(&bench, nothing, nothing, 10);
	for (int i = 0; i < 100; i++)
		bench_round(&bench, nothing, (struct flow_count){1ULL << 60, 1ULL << 60}, 10);
	assert_in_range(bench.flow.unsettled, most - ROUND, most);
	bench.charged = 0;
	for (int i = 0; i < 1000; i++)
		bench_round(&bench, nothing, nothing, 10);
	assert_in_range(bench.charged, most - ROUND, most + ROUND);
	assert_true(flow_rests(&bench.flow, BURST, bench.now));
}

static void test_a_late_step_charges_one_burst(void **state)
{
	struct bench bench = bench_new();

	(void)state;
	bench_round(&bench, nothing, nothing, 2);
	bench_round(&bench, nothing, (struct flow_count){ROUND, SEC}, 2);
	assert_int_equal(flow_step(&bench.flow, BURST, 0, bench.now + 20 * SEC), BURST);
	assert_int_equal(flow_step(&bench.flow, BURST, 0, bench.now + 20 * SEC), 0);
	assert_int_equal(flow_step(&bench.flow, BURST, 0, bench.now), 0);
	assert_in_range(flow_step(&bench.flow, BURST, 0, bench.now + 20 * SEC + MS), 1, MS);
}

static unsigned int floods;
static double turns_a_second;

static double offered_forged(const struct world *world, unsigned int node, double at)
{
	(void)world;
	(void)at;
	return node < floods ? 100 : 0.2;
}

static double clump_every; /* seconds */

/* 0.2 x the rate as well, but each time within a step or two. */
static double offered_clumps(const struct world *world, unsigned int node, double at)
{
	double turn = at / clump_every + .23 * node;

	(void)world;
	if (node < floods)
		return 20;
	return (turn - floor(turn)) * clump_every < .02 ? .2 * clump_every / .02 : 0;
}

static double offered_turns(const struct world *world, unsigned int node, double at)
{
	return (unsigned int)(at * turns_a_second) % world->nodes == node ? 20 : 0;
}

/* All want more than their part, one of them far more. */
static double offered_greedy(const struct world *world, unsigned int node, double at)
{
	(void)at;
	return node ? world->level : 20;
}

/* All nodes at once, and then none: the key would be shared anew each time if it were forgotten. */
static double offered_pulses(const struct world *world, unsigned int node, double at)
{
	double turn = at / world->level;

	(void)node;
	return turn - (unsigned int)turn < .02 / world->level ? 1000 : 0;
}

static double offered_uneven(const struct world *world, unsigned int node, double at)
{
	(void)world;
	(void)at;
	return node ? 0.02 : 20;
}

static struct world world_of(unsigned int nodes)
{
	return (struct world){.nodes = nodes,
			      .burst = BURST,
			      .round = ROUND,
			      .level = 20,
			      .offered = offered_flood};
}

static void must_be_within(const char *what, double is, double least, double most)
{
	if (is < least || is > most)
		fail_msg("%s: %.3f, not in %.3f to %.3f", what, is, least, most);
}

static void test_one_limit_over_many_nodes(void **state)
{
	static const struct {
		const char *name;
		unsigned int nodes;
		double jitter, delay;
		bool spread;
		unsigned int lose;
	} cases[] = {
		{"2 nodes", 2, 0, 0, false, 0},
		{"4 nodes", 4, 0, 0, false, 0},
		{"10 nodes", 10, 0, 0, false, 0},
		{"2 nodes by turns, a fifth of a round late", 2, .2, 0, true, 0},
		{"4 nodes by turns, a fifth of a round late", 4, .2, 0, true, 0},
		{"10 nodes, a fifth of a round late", 10, .2, 0, false, 0},
		{"4 nodes, answers that take 40 ms", 4, 0, .04, false, 0},
		{"4 nodes, answers that take 200 ms", 4, 0, .2, true, 0},
		{"10 nodes, one answer of 100 is lost", 10, 0, 0, false, 100},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world world = world_of(cases[i].nodes);

		world.spread = cases[i].spread;
		world.jitter = cases[i].jitter;
		world.delay = cases[i].delay * SEC;
		world.lose = cases[i].lose;
		world_begin(&world);
		world_run(&world, 120);
		must_be_within(cases[i].name, world_mean(&world, 0, 120), .98, 1.02);
		must_be_within(cases[i].name, world_second(&world, 60, 120, 1), .9, 1.1);
		must_be_within(cases[i].name, world_second(&world, 60, 120, -1), .9, 1.1);
		/* the bound that docs/cluster.md proves */
		must_be_within(cases[i].name, world_excess(&world), 0,
			       cases[i].nodes * (.1 + 3 * (.1 + cases[i].delay)));
		world_end(&world);
	}
}

/* What one repays is no credit of another, which would keep it for ever. */
static void test_nodes_that_ask_alike_get_alike(void **state)
{
	static const unsigned int nodes[] = {2, 4, 10};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		struct world world = world_of(nodes[i]);
		uint64_t taken[10];

		world_begin(&world);
		world_run(&world, 90);
		for (unsigned int k = 0; k < nodes[i]; k++)
			taken[k] = world.node[k].own.taken;
		world_run(&world, 60);
		for (unsigned int k = 0; k < nodes[i]; k++) {
			double part = (double)(world.node[k].own.taken - taken[k]) / SEC / 60;

			must_be_within("a node's part", part * nodes[i], .85, 1.15);
		}
		world_end(&world);
	}
}

static void test_a_forged_flood_starves_no_node(void **state)
{
	(void)state;
	for (floods = 1; floods < 4; floods += 2) {
		struct world world = world_of(4);

		world.offered = offered_forged;
		world_begin(&world);
		world_run(&world, 90);
		must_be_within("total", world_mean(&world, 30, 90), .98, 1.02);
		for (unsigned int i = floods; i < 4; i++)
			must_be_within("an honest node", world_part(&world, i), .19, .21);
		world_end(&world);
	}
}

/* A packet of a slow limit, or a burst of a fast one, comes in one of many rounds. */
static void test_a_forged_flood_starves_no_source_that_comes_now_and_then(void **state)
{
	(void)state;
	floods = 1;
	for (clump_every = .1; clump_every < 2; clump_every *= 1.7) {
		struct world world = world_of(4);
		struct flow_count before[4];

		world.burst = SEC;
		world.offered = offered_clumps;
		world_begin(&world);
		world_run(&world, 60);
		for (unsigned int i = 0; i < 4; i++)
			before[i] = world.node[i].own;
		world_run(&world, 120);
		must_be_within("total", world_mean(&world, 60, 180), .98, 1.02);
		for (unsigned int i = floods; i < 4; i++) {
			const struct flow_count *own = &world.node[i].own;

			must_be_within("an honest node",
				       (double)(own->taken - before[i].taken) /
					       (own->asked - before[i].asked),
				       .95, 1);
		}
		world_end(&world);
	}
}

static void test_a_source_that_moves(void **state)
{
	static const double turns[] = {1, 5, 20};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
		struct world world = world_of(8);

		turns_a_second = turns[i];
		world.offered = offered_turns;
		world_begin(&world);
		world_run(&world, 90);
		must_be_within("by turns", world_mean(&world, 0, 90), .93, 1.05);
		world_end(&world);
	}
}

/*
 * Whatever is given back: by its own state each node lets pass burst + rate x t at most. Of sources
 * that move, as what was charged for others in vain is given back then.
 */
static void test_no_node_lets_pass_more_than_alone(void **state)
{
	static const double turns[] = {.2, 1, 3, 20};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
		struct world world = world_of(4);

		turns_a_second = turns[i];
		world.offered = offered_turns;
		world_begin(&world);
		world_run(&world, 60);
		for (int k = 0; k < 4; k++)
			assert_true(world.node[k].lowest >= 0);
		world_end(&world);
	}
}

static void test_a_source_that_comes_in_pulses(void **state)
{
	static const unsigned int nodes[] = {2, 4, 10};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		for (double period = .7; period < 20; period *= 1.3) {
			struct world world = world_of(nodes[i]);

			world.burst = SEC;
			world.offered = offered_pulses;
			world.level = period;
			world_begin(&world);
			world_run(&world, 500);
			must_be_within("pulses", world_mean(&world, 200, 500), 0, 1.02);
			must_be_within("pulses", world_excess(&world), 0, (nodes[i] - 1) * 1.2);
			world_end(&world);
		}
}

/* A round is as long as its answer takes: what a short one could not repay a long one does. */
static void test_uneven_demand_and_answers_of_any_delay(void **state)
{
	static const double late[] = {.08, .16, .4}, levels[] = {.2, .3, .6, 2};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(late) * ARRAY_SIZE(levels); i++) {
		struct world world = world_of(4);
		char name[64];

		world.late = late[i / ARRAY_SIZE(levels)] * SEC;
		world.level = levels[i % ARRAY_SIZE(levels)];
		world.offered = offered_greedy;
		world_begin(&world);
		world_run(&world, 120);
		snprintf(name, sizeof(name), "%.1f x at three, answers of up to %.0f ms",
			 world.level, world.late / MS * 1.);
		must_be_within(name, world_mean(&world, 30, 120), .98, 1.02);
		world_end(&world);
	}
}

/* Each second answer is lost, or one of five by chance. */
static void test_answers_that_are_often_lost(void **state)
{
	struct world world = world_of(4);

	(void)state;
	world_begin(&world);
	for (int i = 0; i < 900; i++) {
		world.cut = i % 2;
		world_run(&world, .1);
	}
	must_be_within("each second", world_mean(&world, 0, 90), .98, 1.02);
	must_be_within("each second", world_second(&world, 60, 90, 1), .9, 1.1);
	world_end(&world);
	world = world_of(4);
	world.lose = 5;
	world_begin(&world);
	world_run(&world, 120);
	must_be_within("one of five", world_mean(&world, 20, 120), .98, 1.03);
	world_end(&world);
}

static void test_one_node_has_most_of_the_load(void **state)
{
	struct world world = world_of(10);

	(void)state;
	world.offered = offered_uneven;
	world_begin(&world);
	world_run(&world, 90);
	must_be_within("uneven", world_mean(&world, 30, 90), .98, 1.02);
	must_be_within("uneven", world_part(&world, 1), .0195, .0205);
	world_end(&world);
}

/* A cut of the network to the store, from 60 s to 90 s, for a key with an account or without. */
static void test_a_store_that_is_away(void **state)
{
	static const struct {
		const char *name;
		bool divides, is_left_out;
		double during;
	} cases[] = {
		{"local", false, false, 4},
		{"divide", true, false, 1},
		{"divide, left out", true, true, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world world = world_of(4);

		world.divides = cases[i].divides;
		world_begin(&world);
		for (int k = 0; k < 4; k++)
			world.node[k].is_left_out = cases[i].is_left_out;
		world_run(&world, 60);
		world.cut = true;
		world_run(&world, 30);
		world.cut = false;
		world_run(&world, 60);
		must_be_within(cases[i].name, world_mean(&world, 61, 90), cases[i].during * .98,
			       cases[i].during * 1.02);
		if (cases[i].divides) /* until the others have found it, too */
			must_be_within(cases[i].name, world_mean(&world, 90, 92), .98, 1.02);
		if (!cases[i].is_left_out) {
			/* two rounds behind its return: no burst of credit, nothing to repay */
			must_be_within(cases[i].name, world_second(&world, 90.4, 150, 1), .9, 1.1);
			must_be_within(cases[i].name, world_second(&world, 90.4, 150, -1), .9, 1.1);
		}
		world_end(&world);
	}
}

/* The store takes reports and does not answer, from 60 s to 90 s; then it does. */
static void test_a_store_that_is_silent(void **state)
{
	(void)state;
	for (int forgets = 0; forgets <= 1; forgets++) {
		struct world world = world_of(4);

		world.delay = SEC / 20;
		world_begin(&world);
		world_run(&world, 60);
		world.cut = world.silent = true;
		world.forgets = forgets;
		world_run(&world, 30);
		world.cut = world.silent = world.forgets = false;
		world_run(&world, 60);
		must_be_within("silent", world_mean(&world, 61, 90), 3.9, 4.1);
		must_be_within("behind it", world_second(&world, 91, 150, 1), .9, 1.1);
		must_be_within("behind it", world_second(&world, 91, 150, -1), .85, 1.1);
		world_end(&world);
	}
}

/* The daemon of one node sleeps from 60 s to 80 s: its packets go on, unshared or divided. */
static void test_a_node_that_is_paused(void **state)
{
	(void)state;
	for (int divides = 0; divides <= 1; divides++) {
		struct world world = world_of(4);

		world.divides = divides;
		world_begin(&world);
		world_run(&world, 60);
		world.node[1].sleeps = true;
		world_run(&world, 20);
		world.node[1].sleeps = false;
		world_run(&world, 80);
		must_be_within("paused", world_mean(&world, 64, 80), divides ? 1.2 : 1.9,
			       divides ? 1.3 : 2.1);
		must_be_within("behind it", world_second(&world, 80.4, 160, 1), .85,
			       divides ? 1.3 : 1.1);
		must_be_within("behind it", world_second(&world, 80.4, 160, -1), .85, 1.1);
		must_be_within("at the end", world_second(&world, 150, 160, -1), .98, 1.02);
		world_end(&world);
	}
}

static void test_totals_that_are_flushed(void **state)
{
	struct world world = world_of(10);

	(void)state;
	world_begin(&world);
	world_run(&world, 90);
	world.totals = nothing;
	world_run(&world, 30);
	must_be_within("flushed", world_second(&world, 89, 120, 1), .9, 1.1);
	must_be_within("flushed", world_second(&world, 89, 120, -1), .9, 1.1);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_round_charges),
		cmocka_unit_test(test_the_first_totals_are_not_charged),
		cmocka_unit_test(test_totals_that_fall_begin_again),
		cmocka_unit_test(test_one_total_that_falls_begins_again),
		cmocka_unit_test(test_a_flood_is_told_in_whole_units),
		cmocka_unit_test(test_a_report_is_told_once),
		cmocka_unit_test(test_what_is_given_back_is_not_told_twice),
		cmocka_unit_test(test_what_goes_on_without_answers),
		cmocka_unit_test(test_what_is_charged_until_something_is_known),
		cmocka_unit_test(test_what_was_charged_in_vain_is_given_back_by_demand),
		cmocka_unit_test(test_what_is_usual_is_kept_while_others_ask),
		cmocka_unit_test(test_what_is_usual_is_not_more_behind_lost_rounds),
		cmocka_unit_test(test_an_idle_node_repays_at_once),
		cmocka_unit_test(test_no_credit_behind_a_loss),
		cmocka_unit_test(test_a_loss_forgets_the_plan),
		cmocka_unit_test(test_a_round_repays_its_part_once),
		cmocka_unit_test(test_what_is_divided_is_charged_to_nobody),
		cmocka_unit_test(test_what_was_never_sent_is_not_in_doubt),
		cmocka_unit_test(test_what_was_not_charged_is_owed_up_to_the_cap),
		cmocka_unit_test(test_when_a_key_rests),
		cmocka_unit_test(test_a_busy_key_is_not_quiet_until_the_next_answer),
		cmocka_unit_test(test_a_trickle_does_not_keep_a_key),
		cmocka_unit_test(test_the_books_balance),
		cmocka_unit_test(test_own_cost_never_comes_back),
		cmocka_unit_test(test_doubt_ends),
		cmocka_unit_test(test_a_lost_round_is_made_up_for),
		cmocka_unit_test(test_a_store_that_lies),
		cmocka_unit_test(test_a_lie_ends),
		cmocka_unit_test(test_a_late_step_charges_one_burst),
		cmocka_unit_test(test_one_limit_over_many_nodes),
		cmocka_unit_test(test_nodes_that_ask_alike_get_alike),
		cmocka_unit_test(test_a_forged_flood_starves_no_node),
		cmocka_unit_test(test_a_forged_flood_starves_no_source_that_comes_now_and_then),
		cmocka_unit_test(test_a_source_that_moves),
		cmocka_unit_test(test_no_node_lets_pass_more_than_alone),
		cmocka_unit_test(test_a_source_that_comes_in_pulses),
		cmocka_unit_test(test_uneven_demand_and_answers_of_any_delay),
		cmocka_unit_test(test_answers_that_are_often_lost),
		cmocka_unit_test(test_one_node_has_most_of_the_load),
		cmocka_unit_test(test_a_store_that_is_away),
		cmocka_unit_test(test_a_store_that_is_silent),
		cmocka_unit_test(test_a_node_that_is_paused),
		cmocka_unit_test(test_totals_that_are_flushed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
