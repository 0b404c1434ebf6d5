// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/share/flow.h, which computes what a node charges for other nodes. Tests single rounds,
 * random sequences, wrong totals, and simulations of many nodes (flow_model.h).
 */
#include <math.h>
#include "test.h"
#include "flow_model.h"

#define BURST (100 * MS)
#define ROUND (100 * MS)
#define NOW   (0 - 5 * SEC) /* the clock wraps 5 s after a test starts */

/* A node, and the totals in the store, to which tests add the packets of other nodes. */
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

/* Runs steps of 10 ms for `span` ticks. Returns the sum of what the steps charge. */
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

/*
 * Runs a round. Adds `mine` to the counters of this node, and `theirs` to the totals of the store.
 */
static void bench_round(struct bench *bench, struct flow_count mine, struct flow_count theirs,
			unsigned int nodes)
{
	bench_pass(bench, ROUND);
	bench->totals.taken += theirs.taken;
	bench->totals.asked += theirs.asked;
	bench_report(bench, mine.taken, mine.asked);
	bench_learn(bench, nodes);
}

static const struct flow_count nothing;

/* Returns whether two amounts are equal within 1/1000. */
static bool near(double is, double expected)
{
	return is - expected < 0.001 && expected - is < 0.001;
}

/* --- Rounds of one node --------------------------------------------------------------------- */

/*
 * Commands of a script, separated by commas. Amounts are multiples of ROUND. A command that ends
 * with xN is repeated N times.
 *
 *   round MT MA TT TA   runs a round; this node passes MT of MA, other nodes pass TT of TA
 *   wait S              waits for S rounds
 *   report T A          reports that this node passed T of A
 *   others T A          adds T of A for other nodes to the totals in the store
 *   learn               reads the totals in the store
 *   lost N              loses the reply of a round, as the Nth lost round in a row
 *   unsent N            loses the report of a round, as the Nth lost round in a row
 *   flush               deletes the data of the store
 *   forget              calls flow_forget()
 *   forgive             sets the debt to 0
 *   alone               sets the expected demand of other nodes to 0
 *   pass S C            checks that C is charged within S rounds
 *   step L C S          checks that a step after S rounds (default 0.1) charges C at level L
 *   owed C              checks that `unsettled` is C
 *   debt                checks that `unsettled` is positive
 *   credit              checks that `unsettled` is negative
 *   usual C             checks that `usual` is C
 *   charged C           checks that the sum of all charges is C
 *   quiet B             checks that flow_is_quiet() returns B
 *   rests B             checks that flow_rests() returns B
 */
struct script {
	const char *name;
	unsigned int nodes;
	const char *commands;
};

static void command_run(struct bench *bench, const struct script *script, const char *command)
{
	struct flow *flow = &bench->flow;
	double a = 0, b = 0, c = 0, d = 0, is = 0, expected = 0;
	char op[16];

	assert_true(sscanf(command, "%15[a-z] %lf %lf %lf %lf", op, &a, &b, &c, &d) > 0);
	if (!strcmp(op, "round"))
		bench_round(bench, (struct flow_count){a * ROUND, b * ROUND},
			    (struct flow_count){(int64_t)(c * ROUND), (int64_t)(d * ROUND)},
			    script->nodes);
	else if (!strcmp(op, "wait"))
		bench_pass(bench, a * ROUND);
	else if (!strcmp(op, "report"))
		bench_report(bench, a * ROUND, b * ROUND);
	else if (!strcmp(op, "others"))
		bench->totals.taken += a * ROUND, bench->totals.asked += b * ROUND;
	else if (!strcmp(op, "learn"))
		bench_learn(bench, script->nodes);
	else if (!strcmp(op, "lost"))
		flow_lost(flow, a, true);
	else if (!strcmp(op, "unsent"))
		flow_lost(flow, a, false);
	else if (!strcmp(op, "flush"))
		bench->totals = nothing;
	else if (!strcmp(op, "forgive"))
		flow->unsettled = flow->repay = 0;
	else if (!strcmp(op, "forget"))
		flow_forget(flow, bench->now);
	else if (!strcmp(op, "alone"))
		flow->expected = 0;
	else if (!strcmp(op, "pass"))
		is = (double)bench_pass(bench, a * ROUND) / ROUND, expected = b;
	else if (!strcmp(op, "step"))
		bench->now += (int64_t)((c ?: .1) * ROUND),
			is = flow_step(flow, BURST, a * BURST, bench->now) / (double)ROUND,
			expected = b;
	else if (!strcmp(op, "owed"))
		is = (double)flow->unsettled / ROUND, expected = a;
	else if (!strcmp(op, "charged"))
		is = (double)bench->charged / ROUND, expected = a;
	else if (!strcmp(op, "usual"))
		is = flow->usual, expected = a;
	else if (!strcmp(op, "credit") || !strcmp(op, "debt"))
		is = *op == 'c' ? flow->unsettled < 0 : flow->unsettled > 0, expected = 1;
	else if (!strcmp(op, "quiet"))
		is = flow_is_quiet(flow, BURST), expected = a;
	else if (!strcmp(op, "rests"))
		is = flow_rests(flow, BURST, bench->now), expected = a;
	else
		fail_msg("%s: unknown command %s", script->name, command);
	if (!near(is, expected))
		fail_msg("%s: %.20s: %.4f", script->name, command, is);
}

static const struct script scripts[] = {
	{"no demand elsewhere: nothing", 2, "round, round 1 20 0 0, pass 1 0"},
	{"demand elsewhere below the rate: all of it, and half of the last round's", 2,
	 "round, round 0 0 .2 .2, pass 1 .3"},
	{"half of all demand elsewhere: half of the rate, and as much debt as leaves .45", 2,
	 "round, round 1 10 .5 10, pass 1 .55"},
	{"a flood elsewhere leaves an honest node its demand", 4,
	 "round, round .2 .2 1 1000, pass 1 .8"},
	{"a flood elsewhere leaves a greedy node 0.9/N", 4,
	 "round, round 1 16 1 1000000, pass 1 .775"},
	{"a node without demand is charged the whole rate", 4, "round, round 0 0 1 16, pass 1 1"},
	{"the whole debt is repaid at once if no node has demand", 4,
	 "round, round 0 0 1 0, pass 1 1"},
	{"the first totals are only stored", 4,
	 "others 700000 20000000, round, pass 1 0, round 0 0 1 1, pass 1 .625"},
	{"totals that fall are a new baseline", 2,
	 "round .5 10 .5 10 x100, pass 1 .5, flush, report .5 10, learn, pass 1 .5,"
	 "others .5 10, report .5 10, learn, pass 1 .5"},
	{"totals are a new baseline if `asked` falls", 2,
	 "round x2, round 0 0 10 -10, owed 0, pass 1 0"},
	{"totals are a new baseline if `taken` falls", 2,
	 "round x2, round 0 0 -10 10, owed 0, pass 1 0"},
	{"a round repays its part once, however long the next reply takes", 4,
	 "round, round .1 .1 1 .5, alone, pass 5 .25"},
	{"a node without demand repays at once: half of a full burst", 4,
	 "round, round 0 0 10 10, step 1 .5"},
	{"a node without demand repays at once what leaves half of a burst", 4,
	 "round, round 0 0 10 10, step .75 .25"},
	{"a node without demand repays at the rate below half of a burst", 4,
	 "round, round 0 0 10 10, step .5 .1"},
	{"a node without demand repays at the rate below empty", 4,
	 "round, round 0 0 10 10, step -1 .1"},
	{"a node with demand does not repay at once", 4, "round, round 0 1 10 10, step 1 .0775"},
	{"a late step charges one burst, and a step back in time nothing", 2,
	 "round, round 0 0 1 10, step 0 1 200, step 0 0 -200, step 0 0 200, step 0 .01 .01"},
	{"`usual` is not larger after lost rounds", 2,
	 "round, wait 1000, report 50 50, learn, usual .05"},

	/*
	 * if a node's demand exceeds the rate, it assumes that the other nodes have equal demand;
	 * the assumption ends with the second reply
	 */
	{"assumed demand of 4 nodes; the other nodes had no demand, so the charge is refunded", 4,
	 "round 0 16 0 0, pass 1 .75, report 0 16, learn, pass 1 -.75"},
	{"nothing is assumed by a single node", 1,
	 "round 0 16 0 0, pass 1 0, report 0 16, learn, pass 1 0"},
	{"nothing is assumed if the nodes have not been counted", 0,
	 "round 0 16 0 0, pass 1 0, report 0 16, learn, pass 1 0"},
	{"nothing is assumed with demand at the rate", 4,
	 "round 0 1 0 0, pass 1 0, report 0 1, learn, pass 1 0"},
	{"nothing is assumed without demand", 4, "round, pass 1 0, report 0 0, learn, pass 1 0"},

	{"all is refunded with all demand", 4,
	 "round, round 0 0 .9 .9, forgive, round 1 1 0 0, step 0 -.9, step 0 0"},
	{"half is refunded with half of the demand", 4,
	 "round, round 0 0 .9 .9, forgive, round .4 .4 0 .4, step 0 -.41"},
	{"a tenth is refunded with a tenth of the demand", 4,
	 "round, round 0 0 .9 .9, forgive, round .1 .1 0 .9, step 0 0"},
	{"all is refunded if no node has demand", 4,
	 "round, round 0 0 .9 .9, forgive, round, step 0 -.9"},
	{"nothing is refunded if only others have demand", 4,
	 "round, round 0 0 .9 .9, forgive, round 0 0 0 .5, step 0 .05"},

	/* rounds in which the store does not reply */
	{"one lost round changes nothing", 4,
	 "round 0 1 1 700000 x4, lost 1, pass 1 .775, others 10 0, report 0 1, learn,"
	 "pass 1 .775"},
	{"two lost rounds change nothing", 4,
	 "round 0 1 1 700000 x4, lost 2, pass 1 .775, others 10 0, report 0 1, learn,"
	 "pass 1 .775"},
	{"the next reply covers one lost round", 2,
	 "round .5 10 .5 10 x100, owed 0, wait 1, others 1 10, report .5 10, lost 1,"
	 "round .5 10 .5 10, owed .5, pass 1 .55"},
	{"the next reply covers two lost rounds", 2,
	 "round .5 10 .5 10 x100, wait 1, others 1 10, report .5 10, lost 1, wait 1,"
	 "others 1 10, report .5 10, lost 2, round .5 10 .5 10, owed 1, pass 1 .55"},
	{"nothing is charged after three lost rounds, until the second reply", 4,
	 "round 0 1 1 700000 x4, lost 3, pass 1 0, others 10 0, report 0 1, learn,"
	 "pass 1 0"},
	{"nothing is charged after more lost rounds", 4, "round 0 1 1 700000 x4, lost 9, pass 1 0"},
	{"an overcharge is dropped after three lost rounds", 2,
	 "round 0 10 0 10 x10, credit, lost 3, owed 0"},
	{"a refund is dropped after three lost rounds, and demand is assumed again", 4,
	 "round 0 10 0 0, round 0 10 0 10, round 0 10 0 0, lost 3, pass 1 0,"
	 "report 0 10, learn, pass 1 .75"},
	{"a debt is not repaid at once after three lost rounds", 4,
	 "round, round 0 0 3 3, lost 3, step 1 0"},
	{"a lost report that is in a later total is not attributed to others", 2,
	 "wait 1, report 1 1, flush, lost 1, round, round 0 0 1 1, pass 1 0"},
	{"a report that was not sent cannot be in a later total", 2,
	 "wait 1, report 1 1, flush, unsent 1, round, round 0 0 1 1, pass 1 .976"},
	{"lost reports are forgotten after FLOW_DOUBT", 2,
	 "round x2, wait 1, report 100 100, flush, lost 1, round, round 0 0 1 1, pass 1 0,"
	 "round 0 0 1 1 x6, pass 1 .633"},

	/* conditions under which flow_rests() allows an account to end */
	{"24 rounds = 2 x nodes x (burst + 2 rounds) without demand", 4,
	 "round, round 0 0 3 3, rests 0, round x2, quiet 0, round, quiet 1, charged 3, "
	 "round x20,"
	 "quiet 1, rests 0, round, rests 1"},
	{"demand of half of the rate ends the rest", 4,
	 "round x30, rests 1, round 0 .25 0 .25, rests 1, round 0 .25 0 .34, rests 0"},
	{"a busy key does not become quiet before the next reply", 2,
	 "round .5 1 .5 1 x100, owed 0, wait 200, quiet 0"},
	{"a debt of which each round repays a part does not keep a key", 4,
	 "round, round .2 .2 3 3, round .2 .2 0 0 x64, debt, rests 1"},

	/* rounds while the packet path divides limits, and rounds with wrong totals */
	{"while the packet path divides limits, rounds continue, but charge nothing", 4,
	 "round .25 10 1 1 x3, owed 1.0966, forget, wait 1, forget, others 1 1, report .25 "
	 "10, learn,"
	 "forget, step 1 0, quiet 0, wait 1, forget, others 1 1, report .25 10, learn,"
	 "forget, step 1 0, quiet 0, owed 1.0966, round .25 10 .25 10, owed 1.0966, pass 1 "
	 ".75"},
	{"the debt by false totals is at most nodes x (burst + 4 rounds), and is repaid", 10,
	 "round, round 0 0 7e8 7e8 x100, owed 50, charged 99, round x1000, owed 0,"
	 "charged 149, rests 1"},
};

TEST(test_rounds_of_one_node)
{
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		char text[512], *rest = text, *command;
		struct bench bench = bench_new();

		snprintf(text, sizeof(text), "%s", scripts[i].commands);
		while ((command = strsep(&rest, ","))) {
			const char *times = strchr(command, 'x');

			command += strspn(command, " ");
			for (int n = times ? atoi(times + 1) : 1; n; n--)
				command_run(&bench, &scripts[i], command);
		}
	}
}

/* A report has whole units of the store. The next report also has the rest. */
TEST(test_what_is_reported)
{
	static const struct {
		const char *name;
		int64_t taken, asked;	  /* increments of this node's two counters, in ticks */
		int64_t sent, sent_asked; /* ticks in the report, for each counter */
	} reports[] = {
		{"the increase of the counters", 100, 300, 100, 300},
		{"nothing again, although the round was lost", 0, 0, 0, 0},
		{"of a flood, 16 times the rate in whole units", ROUND / 10, 1LL << 60, ROUND / 10,
		 FLOW_ASKED * ROUND},
		{"nothing if a slice was returned", -300, 0, 0, 0},
		{"less after a slice was returned", 400, 400, 100, 400},
		{"nothing if the counter fell far", -(1LL << 62), 0, 0, 0},
	};
	struct bench bench = bench_new();

	for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
		struct flow_count sent;

		bench.own.taken += reports[i].taken;
		bench.own.asked += reports[i].asked;
		sent = flow_report(&bench.flow, &bench.own, bench.now += ROUND + 1);
		flow_lost(&bench.flow, 1, true);
		if ((int64_t)sent.taken != reports[i].sent ||
		    (int64_t)sent.asked != reports[i].sent_asked)
			fail_msg("%s: %lld, %lld", reports[i].name, (long long)sent.taken,
				 (long long)sent.asked);
	}
}

/*
 * A source sends in every fifth round, at a mean rate of a fifth of the limit. Its packets pass
 * even if other nodes are flooded.
 */
TEST(test_what_is_usual_is_kept_while_others_ask)
{
	const struct flow_count mine = {ROUND, ROUND}, flood = {ROUND, 16 * ROUND};
	struct bench bench = bench_new();

	for (int i = 0; i < 500; i++)
		bench_round(&bench, i % 5 ? nothing : mine, flood, 4);
	assert_in_range(1000 * bench.flow.usual, 180, 225);
	bench_round(&bench, nothing, flood, 4);
	assert_true(near((double)bench_pass(&bench, ROUND) / ROUND, 1 - bench.flow.usual));
	bench_round(&bench, nothing, nothing, 4);
	assert_true(near((double)bench_pass(&bench, ROUND) / ROUND, 1));
	/* 20 s without packets of this node lower `usual` to almost 0 */
	for (int i = 0; i < 200; i++)
		bench_round(&bench, nothing, flood, 4);
	assert_true(bench.flow.usual < .01);
}

/* The debt never exceeds flow_cap(), however often a charge fails. */
TEST(test_what_was_not_charged_is_owed_up_to_the_cap)
{
	const struct flow_count flood = {ROUND, ROUND * 10};
	struct bench bench = bench_new();
	int64_t owed, most = flow_cap(BURST, ROUND, 4);

	flow_uncharged(&bench.flow, BURST, 0);
	assert_int_equal(bench.flow.unsettled, 0);
	for (int i = 0; i < 3; i++)
		bench_round(&bench, nothing, flood, 4);
	owed = bench.flow.unsettled;
	bench.now += 10 * MS;
	flow_uncharged(&bench.flow, BURST, flow_step(&bench.flow, BURST, BURST, bench.now));
	/*
	 * the failed charge is added to `unsettled` again, with the assumed traffic of other nodes
	 */
	assert_int_equal(bench.flow.unsettled, owed + bench.flow.assumed);
	flow_uncharged(&bench.flow, BURST, -1000);
	assert_int_equal(bench.flow.unsettled, owed + bench.flow.assumed);
	for (int i = 0; i < 1000; i++)
		flow_uncharged(&bench.flow, BURST, ROUND);
	assert_int_equal(bench.flow.unsettled, most);
	flow_uncharged(&bench.flow, BURST, INT64_MAX / 4);
	assert_int_equal(bench.flow.unsettled, most);
}

/*
 * Other nodes pass traffic. Charges plus `unsettled` must equal this traffic, but an eighth of a
 * negative `unsettled` is dropped in each round.
 */
TEST(test_the_books_balance)
{
	uint64_t random = RANDOM_BEGIN;

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
				break; /* `unsettled` cannot fall further */
			fades = bench.flow.unsettled - (others - bench.charged + faded);
			if (fades < 0 || fades > credit_max(0, -bench.flow.unsettled) / 7 + 1)
				fail_msg("run %d round %d: unsettled %lld, of which %lld new", run,
					 i, (long long)bench.flow.unsettled, (long long)fades);
			faded += fades;
		}
	}
}

/*
 * Only this node has packets. Reports are lost, or stored up to three rounds late without a reply.
 * The node must not mistake its own packets for packets of other nodes.
 */
TEST(test_own_cost_never_comes_back)
{
	uint64_t random = RANDOM_BEGIN;

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
			flow_lost(&bench.flow, ++lost, true);
		}
		bench.totals.taken += late.taken;
		bench.totals.asked += late.asked;
		for (int i = 0; i < 20; i++)
			bench_round(&bench, (struct flow_count){ROUND, ROUND}, nothing, 4);
		assert_int_equal(bench.charged, 0);
	}
}

static uint64_t draw_hostile(uint64_t *random)
{
	static const uint64_t words[] = {0, 1, 1ULL << 62, (1ULL << 63) - 1, 1ULL << 63, -1ULL};

	return random_next(random) % 2 ? words[random_next(random) % ARRAY_SIZE(words)]
				       : random_next(random) >> random_next(random) % 64;
}

/* Checks the bounds in flow.h with random bursts, times, totals and numbers of nodes. */
TEST(test_a_store_that_lies)
{
	uint64_t random = RANDOM_BEGIN;

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
				flow_lost(&bench.flow, random_next(&random) % 5, true);
			assert_true(bench.flow.unsettled <=
				    flow_cap(burst, bench.flow.length, nodes) + (1LL << 61));
		}
	}
}

/* --- Worlds of nodes ------------------------------------------------------------------------ */

static double arg; /* parameter of a demand function; see the comment of the function */

/*
 * Demand: the first world->level nodes get 100 times the rate. Each other node gets 0.2 of the
 * rate.
 */
static double offered_forged(const struct world *world, unsigned int node, double at)
{
	(void)at;
	return node < world->level ? 100 : 0.2;
}

/*
 * Demand: the first world->level nodes get 20 times the rate. All other nodes get a fifth of the
 * rate, as pulses of 20 ms every `arg` seconds.
 */
static double offered_clumps(const struct world *world, unsigned int node, double at)
{
	double turn = at / arg + .23 * node;

	if (node < world->level)
		return 20;
	return (turn - floor(turn)) * arg < .02 ? .2 * arg / .02 : 0;
}

/*
 * Demand: one source sends to one node at a time. It moves to the next node `arg` times per second.
 */
static double offered_turns(const struct world *world, unsigned int node, double at)
{
	return (unsigned int)(at * arg) % world->nodes == node ? 20 : 0;
}

/*
 * Demand: the first node gets 20 times the rate. Each other node gets world->level times the rate.
 */
static double offered_greedy(const struct world *world, unsigned int node, double at)
{
	(void)at;
	return node ? world->level : 20;
}

/*
 * Demand: each node gets packets for 20 ms, once every `arg` seconds. An account must survive the
 * pause, because a new account would grant a new burst.
 */
static double offered_pulses(const struct world *world, unsigned int node, double at)
{
	double turn = at / arg;

	(void)world, (void)node;
	return turn - (unsigned int)turn < .02 / arg ? 1000 : 0;
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

/*
 * Simulations of many nodes. Checks the rate that all nodes pass together, as a multiple of the
 * limit's rate.
 */
static const struct world_case {
	const char *name;
	unsigned int nodes;
	double (*offered)(const struct world *world, unsigned int node, double at);
	double level, arg;
	double jitter, delay; /* jitter: in rounds; delay: in seconds */
	bool spread;
	unsigned int lose;
	double seconds, from;		  /* duration; begin of the average */
	double least, most;		  /* bounds of the average rate */
	double second;			  /* maximum difference from 1 of the rate in any second */
	unsigned int honest;		  /* first of the nodes that are not flooded; 0: none */
	double honest_least, honest_most; /* bounds of the rate of each node that is not flooded */
} worlds[] = {
	{"2 nodes with equal demand, which pass equal parts", 2, .second = .1, .honest = 1,
	 .honest_least = .43, .honest_most = .57},
	{"4 nodes with equal demand", 4, .second = .1, .honest = 1, .honest_least = .21,
	 .honest_most = .29},
	{"10 nodes with equal demand", 10, .second = .1, .honest = 1, .honest_least = .085,
	 .honest_most = .115},
	{"2 nodes by turns, a fifth of a round late", 2, .jitter = .2, .spread = true,
	 .second = .1},
	{"4 nodes by turns, a fifth of a round late", 4, .jitter = .2, .spread = true,
	 .second = .1},
	{"10 nodes, a fifth of a round late", 10, .jitter = .2, .second = .1},
	{"4 nodes, replies that take 40 ms", 4, .delay = .04, .second = .1},
	{"4 nodes, replies that take 200 ms", 4, .delay = .2, .spread = true, .second = .1},
	{"10 nodes, one reply of 100 is lost", 10, .lose = 100, .second = .1},
	{"4 nodes, one reply of five is lost", 4, .lose = 5, .from = 20, .most = 1.03},

	{"a forged flood at one node starves no other", 4, .offered = offered_forged, .level = 1,
	 .seconds = 90, .from = 30, .honest = 1, .honest_least = .19, .honest_most = .21},
	{"a forged flood at three", 4, .offered = offered_forged, .level = 3, .seconds = 90,
	 .from = 30, .honest = 3, .honest_least = .19, .honest_most = .21},
	{"one node has most of the load", 10, .offered = offered_greedy, .level = .02,
	 .seconds = 90, .from = 30, .honest = 1, .honest_least = .0195, .honest_most = .0205},
	{"a source that moves once a second", 8, .offered = offered_turns, .arg = 1, .seconds = 90,
	 .least = .93, .most = 1.05},
	{"five times a second", 8, .offered = offered_turns, .arg = 5, .seconds = 90, .least = .93,
	 .most = 1.05},
	{"20 times a second", 8, .offered = offered_turns, .arg = 20, .seconds = 90, .least = .93,
	 .most = 1.05},
};

TEST(test_one_limit_over_many_nodes)
{
	for (size_t i = 0; i < ARRAY_SIZE(worlds); i++) {
		const struct world_case *of = &worlds[i];
		struct world world = world_of(of->nodes);
		double end = of->seconds ?: 120;

		arg = of->arg;
		world.offered = of->offered ?: offered_flood;
		world.level = of->level ?: 20;
		world.spread = of->spread;
		world.jitter = of->jitter;
		world.delay = of->delay * SEC;
		world.lose = of->lose;
		world_begin(&world);
		world_run(&world, end);
		must_be_within(of->name, world_mean(&world, of->from, end), of->least ?: .98,
			       of->most ?: 1.02);
		if (of->second) {
			must_be_within(of->name, world_second(&world, end / 2, end, 1), 0,
				       1 + of->second);
			must_be_within(of->name, world_second(&world, end / 2, end, -1),
				       1 - of->second, 2);
			must_be_within(of->name, world_excess(&world), 0,
				       of->nodes * (.1 + 3 * (.1 + of->delay)));
		}
		for (unsigned int k = of->honest; k && k < of->nodes; k++)
			must_be_within(of->name, world_part(&world, k), of->honest_least,
				       of->honest_most);
		/* no node passes more than the limit */
		for (unsigned int k = 0; k < of->nodes; k++)
			assert_true(world.node[k].lowest >= 0);
		world_end(&world);
	}
}

/*
 * If a source sends only in few rounds, all of its packets pass, even if another node is flooded.
 */
TEST(test_a_forged_flood_starves_no_source_that_comes_now_and_then)
{
	for (arg = .1; arg < 2; arg *= 1.7) {
		struct world world = world_of(4);
		struct flow_count before[4];

		world.burst = SEC;
		world.offered = offered_clumps;
		world.level = 1;
		world_begin(&world);
		world_run(&world, 60);
		for (unsigned int i = 0; i < 4; i++)
			before[i] = world.node[i].own;
		world_run(&world, 120);
		must_be_within("total", world_mean(&world, 60, 180), .98, 1.02);
		for (unsigned int i = 1; i < 4; i++) {
			const struct flow_count *own = &world.node[i].own;

			must_be_within("an honest node",
				       (double)(own->taken - before[i].taken) /
					       (own->asked - before[i].asked),
				       .95, 1);
		}
		world_end(&world);
	}
}

TEST(test_a_source_that_comes_in_pulses)
{
	static const unsigned int nodes[] = {2, 4, 10};

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		for (arg = .7; arg < 20; arg *= 1.3) {
			struct world world = world_of(nodes[i]);

			world.burst = SEC;
			world.offered = offered_pulses;
			world_begin(&world);
			world_run(&world, 500);
			must_be_within("pulses", world_mean(&world, 200, 500), 0, 1.02);
			must_be_within("pulses", world_excess(&world), 0, (nodes[i] - 1) * 1.2);
			world_end(&world);
		}
}

/*
 * If replies arrive after random times, a node must still charge each packet of other nodes only
 * once.
 */
TEST(test_uneven_demand_and_replies_of_any_delay)
{
	static const double late[] = {.08, .16, .4}, levels[] = {.2, .3, .6, 2};

	for (size_t i = 0; i < ARRAY_SIZE(late) * ARRAY_SIZE(levels); i++) {
		struct world world = world_of(4);
		char name[64];

		world.late = late[i / ARRAY_SIZE(levels)] * SEC;
		world.level = levels[i % ARRAY_SIZE(levels)];
		world.offered = offered_greedy;
		world_begin(&world);
		world_run(&world, 120);
		snprintf(name, sizeof(name), "%.1f x at three, replies of up to %.0f ms",
			 world.level, world.late / MS * 1.);
		must_be_within(name, world_mean(&world, 30, 120), .98, 1.02);
		world_end(&world);
	}
}

/* A fault that lasts from second 60 to second 90. Rates are multiples of the limit's rate. */
TEST(test_what_fails_for_a_while)
{
	static const struct {
		const char *name;
		bool cut, silent, forgets, flushed, sleeps, divides, is_left_out;
		double least, most;		  /* bounds of the mean rate from 64 s to 90 s */
		double behind_least, behind_most; /* bounds of the rate in each second after 91 s */
	} cases[] = {
		{"a store that is away", .cut = true, .least = 3.92, .most = 4.08,
		 .behind_least = .9, .behind_most = 1.1},
		{"divide", .cut = true, .divides = true, .least = .98, .most = 1.02,
		 .behind_least = .9, .behind_most = 1.1},
		{"divide, without an account", .cut = true, .divides = true, .is_left_out = true,
		 .least = .98, .most = 1.02},
		{"a store that takes reports and is silent", .cut = true, .silent = true,
		 .least = 3.9, .most = 4.1, .behind_least = .85, .behind_most = 1.1},
		{"and loses them", .cut = true, .silent = true, .forgets = true, .least = 3.9,
		 .most = 4.1, .behind_least = .85, .behind_most = 1.1},
		{"a store that is flushed", .flushed = true, .least = .98, .most = 1.02,
		 .behind_least = .9, .behind_most = 1.1},
		{"a process that is stopped", .sleeps = true, .least = 1.9, .most = 2.1,
		 .behind_least = .85, .behind_most = 1.1},
		{"divide, a process that is stopped", .sleeps = true, .divides = true, .least = 1.2,
		 .most = 1.3, .behind_least = .85, .behind_most = 1.3},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world world = world_of(4);
		const char *name = cases[i].name;

		world.divides = cases[i].divides;
		world.delay = cases[i].silent ? SEC / 20 : 0;
		world_begin(&world);
		for (int k = 0; k < 4; k++)
			world.node[k].is_left_out = cases[i].is_left_out;
		world_run(&world, 60);
		world.cut = cases[i].cut;
		world.silent = cases[i].silent;
		world.forgets = cases[i].forgets;
		world.node[1].sleeps = cases[i].sleeps;
		if (cases[i].flushed)
			world.totals = nothing;
		world_run(&world, 30);
		world.cut = world.silent = world.forgets = world.node[1].sleeps = false;
		world_run(&world, 60);
		must_be_within(name, world_mean(&world, 64, 90), cases[i].least, cases[i].most);
		if (cases[i].cut && cases[i].divides)
			must_be_within(name, world_mean(&world, 90, 92), .98, 1.02);
		if (cases[i].flushed) {
			must_be_within(name, world_second(&world, 59, 90, 1), 0, 1.1);
			must_be_within(name, world_second(&world, 59, 90, -1), .9, 2);
		}
		if (cases[i].behind_most) {
			/* after the fault, the rate is near the limit again */
			must_be_within(name, world_second(&world, 91, 150, 1), .9,
				       cases[i].behind_most);
			must_be_within(name, world_second(&world, 91, 150, -1),
				       cases[i].behind_least, 1.1);
			must_be_within(name, world_second(&world, 140, 150, -1), .95, 1.05);
		}
		world_end(&world);
	}
}

TESTS(NULL, NULL)
