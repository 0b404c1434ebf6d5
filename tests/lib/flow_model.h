/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Simulates nodes that share the limit of one source through a store. Time advances in steps.
 * Traffic is a continuous amount instead of packets. Each node has a state and a flow
 * (user/share/flow.h). Traffic and user/share/debt.h charge the state. All admitted traffic is also
 * charged to one bucket, the judge.
 *
 *   world_begin()    starts with idle nodes
 *   world_run()      advances the time
 *   world_mean()     returns the admitted rate in a span, as a multiple of the limit's rate
 *   world_second()   returns the highest or lowest rate of any second in a span, in the same unit
 */
#ifndef SLUICE_TEST_FLOW_MODEL_H
#define SLUICE_TEST_FLOW_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include "credit.h"
#include "random.h"
#include "share/debt.h"

#define WORLD_SEC SL_TICKS_PER_SEC

/* A node renews the TTL of a key after this time, as in user/share/accounts.c. */
#define WORLD_EXPIRY (10 * (int64_t)WORLD_SEC)

struct world_node {
	struct flow flow;
	struct division division;
	struct debt debt;
	struct sl_entry entry; /* entry of the simulated key, with its state */
	/* traffic that arrived at the node, and traffic that the node passed */
	struct flow_count own;
	int64_t alone, lowest;	/* level and lowest level of a bucket that only this node charges */
	struct flow_count seen; /* value of `own` at the last round */
	uint64_t seen_at;	/* start of the last round */
	uint64_t excess;	/* unreported traffic above 1/100 of rate/nodes */
	uint64_t expiry_at;	/* time of the node's last EXPIRE for the key; 0: none */
	struct flow_count answer;
	uint64_t beat;	    /* start of the next round, without jitter */
	uint64_t due;	    /* start of the next round, with jitter */
	uint64_t answer_at; /* arrival time of the reply; 0: no reply is pending */
	unsigned int lost;  /* consecutive rounds without a reply */
	bool shares;	    /* the node has an account for the key */
	bool is_left_out;   /* the node never gets an account for the key */
	bool sleeps;	    /* `sluice share` is stopped, but packets are still judged */
};

struct world {
	/* Set these fields before world_begin(). Times are in ticks. */
	unsigned int nodes;
	uint64_t burst, round, step, delay;
	double jitter;	    /* maximum random delay of a round, in rounds */
	uint64_t late;	    /* maximum random delay of a reply, in addition to `delay` */
	bool spread;	    /* the nodes' rounds start at evenly spaced times */
	uint64_t seed;	    /* seed of random numbers */
	bool divides;	    /* nodes divide the limit while the store does not reply */
	bool starts_shared; /* a new state has 1/nodes of the burst */
	unsigned int lose;  /* one of `lose` replies is lost, at random; 0: none is lost */
	double (*offered)(const struct world *world, unsigned int node, double at);
	double level; /* parameter of offered(), often the rate of all nodes */
	/* A test may change these fields at any time. */
	bool cut;     /* the store does not reply */
	bool silent;  /* if `cut`: the store gets reports, although it does not reply */
	bool forgets; /* the store loses all reports */
	/* results */
	struct world_node *node;
	struct sl_limit limit;
	struct flow_count totals;
	uint64_t now, begin, random;
	uint64_t commands; /* commands from all nodes to the store so far */
	double *passed;	   /* traffic that the nodes passed in each step, divided by the rate */
	size_t steps, room;
	double judge, lowest; /* s: current and lowest level of a bucket that all nodes charge */
};

static const struct state_key world_key = {.limit = 9};

/* Returns a limit whose cost is 0, because the simulation charges ticks instead of packets. */
static inline struct sl_limit world_limit(uint64_t burst)
{
	return (struct sl_limit){.burst = burst, .refill = burst};
}

static inline double world_random(struct world *world)
{
	return (random_next(&world->random) >> 11) * 0x1p-53;
}

static inline void world_begin(struct world *world)
{
	world->node = calloc(world->nodes, sizeof(*world->node));
	if (!world->node)
		abort();
	if (!world->step)
		world->step = WORLD_SEC / 100;
	world->step |= 1; /* odd, so that the store's unit does not divide the step */
	world->random = RANDOM_BEGIN + world->seed * 0x9e3779b97f4a7c15;
	world->now = world->begin = -30 * WORLD_SEC; /* the clock wraps after 30 s */
	world->judge = (double)world->burst / WORLD_SEC;
	world->limit = world_limit(world->burst);
	world->limit.start_share = world->starts_shared;
	for (unsigned int i = 0; i < world->nodes; i++) {
		double phase = world->spread ? (i + 0.5) / world->nodes : world_random(world);

		world->node[i].entry.limit = world_key.limit;
		*entry_state(&world->node[i].entry) =
			credit_new(&world->limit, world->nodes, world->now);
		world->node[i].alone = world->burst;
		world->node[i].own.asked = world->node[i].own.taken = -1000ULL * i;
		world->node[i].seen = world->node[i].own;
		world->node[i].seen_at = world->now;
		world->node[i].beat = world->now + (uint64_t)(phase * world->round);
		world->node[i].due = world->node[i].beat;
	}
}

static inline void world_end(struct world *world)
{
	free(world->node);
	free(world->passed);
}

static inline double world_at(const struct world *world)
{
	return (double)(world->now - world->begin) / WORLD_SEC;
}

static inline int64_t world_level(const struct world *world, const struct world_node *node)
{
	return credit_level(&world->limit, (const struct sl_state *)&node->entry.state, world->now);
}

/* Rounds traffic in ticks down to whole units of the store. */
static inline uint64_t world_units(uint64_t ticks)
{
	return ticks >> FLOW_UNIT_SHIFT << FLOW_UNIT_SHIFT;
}

/* Charges the traffic of one step to a node. Returns the admitted part of the traffic. */
static inline uint64_t world_admit(struct world *world, struct world_node *node, double offered)
{
	uint32_t times = credit_times(node->division.at, world->nodes, world->now);
	uint64_t want = offered * world->step;
	uint64_t got = credit_max(0, credit_min(want, world_level(world, node) / times));
	struct sl_slice slice = {0};

	if (got)
		credit_charge(&world->limit, entry_state(&node->entry), &slice, 0, got * times,
			      world->now, 1);
	node->own.taken += got;
	node->own.asked += want;
	node->alone = credit_min(node->alone + world->step, world->burst) - got;
	node->lowest = credit_min(node->lowest, node->alone);
	return got;
}

/*
 * If the key is close to its limit, starts to report the key. The first report contains `excess`,
 * as in user/share/accounts.c.
 */
static inline void world_scan(struct world *world, struct world_node *node)
{
	uint64_t passed = world->now - node->seen_at;
	struct flow_count counted = {node->own.taken - node->seen.taken,
				     node->own.asked - node->seen.asked};
	int64_t excess =
		node->excess + counted.taken - passed / FLOW_UNREPORTED_PART / world->nodes;
	struct flow_count reported = {world_units(node->own.taken), world_units(node->own.asked)};

	node->seen = node->own;
	node->seen_at = world->now;
	node->excess = node->shares ? 0 : credit_max(0, excess);
	if (node->is_left_out || !flow_is_due(node->excess, world_level(world, node), world->burst))
		return;
	reported.taken -= world_units(node->excess);
	reported.asked -= world_units(credit_max(node->excess, counted.asked));
	node->excess = 0;
	node->shares = true;
	node->debt = (struct debt){0};
	flow_begin(&node->flow, &reported, world->now - passed);
}

/* Ends a round of a node. `is_answered`: the store has replied. */
static inline void world_judge(struct world *world, struct world_node *node, bool is_answered)
{
	node->lost = is_answered ? 0 : node->lost + 1;
	if (world->divides)
		division_round(&node->division, node->lost, world->now);
}

static inline void world_lose(struct world *world, struct world_node *node)
{
	if (node->shares)
		flow_lost(&node->flow, node->lost + 1, true);
	world_judge(world, node, false);
}

static inline void world_report(struct world *world, struct world_node *node)
{
	struct flow_count own = {world_units(node->own.taken), world_units(node->own.asked)};
	struct flow_count sent = flow_report(&node->flow, &own, world->now);

	world->commands++;
	if ((sent.taken || sent.asked) &&
	    (!node->expiry_at || credit_span(node->expiry_at, world->now) >= WORLD_EXPIRY)) {
		node->expiry_at = world->now;
		world->commands++;
	}
	if (!world->forgets) {
		world->totals.taken += world_units(sent.taken);
		world->totals.asked += world_units(sent.asked);
	}
	node->answer = world->totals;
	node->answer_at = world->now + world->delay;
	if (world->late)
		node->answer_at += (uint64_t)(world_random(world) * world->late);
}

static inline void world_answer(struct world *world, struct world_node *node)
{
	node->answer_at = 0;
	if (world->cut || (world->lose && random_next(&world->random) % world->lose == 0)) {
		world_lose(world, node);
		return;
	}
	flow_learn(&node->flow, world->burst, &node->answer, world->nodes, world->now);
	if (flow_rests(&node->flow, world->burst, world->now))
		node->shares = false;
	world_judge(world, node, true);
}

/* Runs a node's daemon after a step: handles a reply, and starts a round if it is due. */
static inline void world_daemon(struct world *world, struct world_node *node)
{
	if (node->answer_at && credit_span(node->answer_at, world->now) >= 0)
		world_answer(world, node);
	if (credit_span(node->due, world->now) < 0 || node->answer_at)
		return;
	/* If a round is late, the times of later rounds do not change. */
	while (credit_span(node->due, world->now) >= 0) {
		node->beat += world->round;
		node->due =
			node->beat + (uint64_t)(world->jitter * world_random(world) * world->round);
	}
	world_scan(world, node);
	if (world->cut && (!node->shares || !world->silent))
		world_lose(world, node);
	else if (node->shares)
		world_report(world, node);
	else
		world_judge(world, node, true);
	if (node->answer_at == world->now)
		world_answer(world, node);
}

static inline void world_note(struct world *world, double passed)
{
	if (world->steps == world->room) {
		world->room = world->room ? 2 * world->room : 4096;
		world->passed = realloc(world->passed, world->room * sizeof(*world->passed));
		if (!world->passed)
			abort();
	}
	world->passed[world->steps++] = passed;
	world->judge += (double)world->step / WORLD_SEC;
	if (world->judge > (double)world->burst / WORLD_SEC)
		world->judge = (double)world->burst / WORLD_SEC;
	world->judge -= passed;
	if (world->judge < world->lowest)
		world->lowest = world->judge;
}

static inline void world_run(struct world *world, double seconds)
{
	uint64_t end = world->now + (uint64_t)(seconds * WORLD_SEC);

	while (credit_span(world->now, end) > 0) {
		double at = world_at(world), passed = 0;

		world->now += world->step;
		for (unsigned int i = 0; i < world->nodes; i++) {
			struct world_node *node = &world->node[i];

			if (!node->sleeps && world->divides &&
			    division_step(&node->division, world->now))
				flow_forget(&node->flow, world->now);
			else if (!node->sleeps && node->shares)
				debt_step(&world->limit, &node->entry, &world_key, &node->flow,
					  &node->debt, world->now);
			passed += world_admit(world, node, world->offered(world, i, at));
		}
		world_note(world, passed / WORLD_SEC);
		for (unsigned int i = 0; i < world->nodes; i++)
			if (!world->node[i].sleeps)
				world_daemon(world, &world->node[i]);
	}
}

static inline size_t world_step_at(const struct world *world, double at)
{
	size_t step = at * WORLD_SEC / world->step + 0.5;

	return step > world->steps ? world->steps : step;
}

static inline double world_sum(const struct world *world, double from, double to)
{
	double sum = 0;

	for (size_t i = world_step_at(world, from); i < world_step_at(world, to); i++)
		sum += world->passed[i];
	return sum;
}

static inline double world_mean(const struct world *world, double from, double to)
{
	return world_sum(world, from, to) / (to - from);
}

/*
 * Returns the admitted rate of the fastest second (sign = 1) or the slowest second (sign = -1) in a
 * span.
 */
static inline double world_second(const struct world *world, double from, double to, int sign)
{
	double found = world_sum(world, from, from + 1);

	for (double at = from; at + 1 <= to + 1e-9; at += 0.1) {
		double sum = world_sum(world, at, at + 1);

		if (sign * (sum - found) > 0)
			found = sum;
	}
	return found;
}

/* Returns a node's mean admitted rate so far, as a multiple of the limit's rate. */
static inline double world_part(const struct world *world, unsigned int node)
{
	return (double)(world->node[node].own.taken + 1000 * node) / WORLD_SEC / world_at(world);
}

/*
 * Compares the traffic that all nodes passed with burst + rate x t. Returns the largest excess,
 * divided by the rate.
 */
static inline double world_excess(const struct world *world)
{
	return -world->lowest;
}

static inline double offered_flood(const struct world *world, unsigned int node, double at)
{
	(void)at;
	(void)node;
	return world->level / world->nodes;
}

#endif
