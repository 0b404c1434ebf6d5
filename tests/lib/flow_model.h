/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Nodes that share the limit of one source through a store: fluid, in steps of time. Each has a
 * state, charged as packets charge it and by user/share/debt.h, and a flow (user/share/flow.h). The
 * judge is one bucket that is charged with all that any node admits.
 *
 *   world_begin   nodes at rest
 *   world_run     time passes
 *   world_mean    what was admitted over a span, over the rate
 *   world_second  the most or least of any second within a span, over the rate
 */
#ifndef SLUICE_TEST_FLOW_MODEL_H
#define SLUICE_TEST_FLOW_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include "credit.h"
#include "random.h"
#include "share/debt.h"

#define WORLD_SEC SL_TICKS_PER_SEC

/* How long the expiry of a key is taken to last: user/share/accounts.c. */
#define WORLD_EXPIRY (10 * (int64_t)WORLD_SEC)

struct world_node {
	struct flow flow;
	struct division division;
	struct debt debt;
	struct sl_entry entry;	/* with its state */
	struct flow_count own;	/* what it admitted and was offered */
	int64_t alone, lowest;	/* the level of a bucket charged with that and nothing else */
	struct flow_count seen; /* of that, what the last round saw */
	uint64_t seen_at;
	uint64_t excess;    /* while it does not share */
	uint64_t expiry_at; /* when the key in the store was made to last; 0: never */
	struct flow_count answer;
	uint64_t beat;	    /* when the next round should begin */
	uint64_t due;	    /* when it does */
	uint64_t answer_at; /* 0: no answer is under way */
	unsigned int lost;  /* rounds in a row */
	bool shares;	    /* its flow has begun */
	bool is_left_out;   /* and never will: other keys have all accounts */
	bool sleeps;	    /* its daemon: packets go on */
};

struct world {
	/* what a test sets before world_begin */
	unsigned int nodes;
	uint64_t burst, round, step, delay;
	double jitter;	    /* of the begin of a round, as a part of it */
	uint64_t late;	    /* an answer takes up to so much more than `delay`, at random */
	bool spread;	    /* rounds begin one after the other, and not at random */
	uint64_t seed;	    /* of what is random */
	bool divides;	    /* limits, where the store or a daemon is away */
	bool starts_shared; /* a full state is born with burst/nodes */
	unsigned int lose;  /* one answer of so many; 0: none */
	double (*offered)(const struct world *world, unsigned int node, double at);
	double level; /* for `offered`, in times of the rate */
	/* at any time */
	bool cut;     /* the store cannot be reached */
	bool silent;  /* with `cut`: but takes reports */
	bool forgets; /* and loses them */
	/* the result */
	struct world_node *node;
	struct sl_limit limit;
	struct flow_count totals;
	uint64_t now, begin, random;
	uint64_t commands; /* to the store, for the key, of all nodes */
	double *passed;	   /* in each step, in seconds at the rate */
	size_t steps, room;
	double judge, lowest; /* the level of the bucket of all, in seconds */
};

static const struct state_key world_key = {.limit = 9};

/* Without slices. What is charged is a span of time, so packets have no cost of their own. */
static inline struct sl_limit world_limit(uint64_t burst)
{
	return (struct sl_limit){.burst = burst, .refill = burst};
}

static inline double world_random(struct world *world)
{
	return (random_next(&world->random) >> 11) * 0x1p-53;
}

/* When within a round a node reports. */
static inline double world_phase(struct world *world, unsigned int node)
{
	return world->spread ? (node + 0.5) / world->nodes : world_random(world);
}

static inline void world_begin(struct world *world)
{
	world->node = calloc(world->nodes, sizeof(*world->node));
	if (!world->node)
		abort();
	if (!world->step)
		world->step = WORLD_SEC / 100;
	world->step |= 1; /* timers know nothing of the store's units */
	world->random = RANDOM_BEGIN + world->seed * 0x9e3779b97f4a7c15;
	world->now = world->begin = -30 * WORLD_SEC; /* moments wrap soon */
	world->judge = (double)world->burst / WORLD_SEC;
	world->limit = world_limit(world->burst);
	world->limit.start_share = world->starts_shared;
	for (unsigned int i = 0; i < world->nodes; i++) {
		world->node[i].entry.limit = world_key.limit;
		*entry_state(&world->node[i].entry) =
			credit_new(&world->limit, world->nodes, world->now);
		world->node[i].alone = world->burst;
		world->node[i].own.asked = world->node[i].own.taken = -1000ULL * i;
		world->node[i].seen = world->node[i].own;
		world->node[i].seen_at = world->now;
		world->node[i].beat = world->now + (uint64_t)(world_phase(world, i) * world->round);
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

/* The store counts whole units only. */
static inline uint64_t world_units(uint64_t ticks)
{
	return ticks >> FLOW_UNIT_SHIFT << FLOW_UNIT_SHIFT;
}

/* What a node admits in a step, of a limit that is divided or not. */
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
 * A source far from its limit is not reported. As in user/share/accounts.c, what was taken without a
 * report is the excess, less a hundredth of rate/nodes.
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

/* A round of a node has ended, with an answer or without. */
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

/* What the process of a node does after a step. */
static inline void world_daemon(struct world *world, struct world_node *node)
{
	if (node->answer_at && credit_span(node->answer_at, world->now) >= 0)
		world_answer(world, node);
	if (credit_span(node->due, world->now) < 0 || node->answer_at)
		return;
	/* each round begins where it would, however late the one before was */
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

/* What a daemon does at each step. */
static inline void world_step(struct world *world, struct world_node *node)
{
	if (world->divides && division_step(&node->division, world->now))
		flow_forget(&node->flow, world->now);
	else if (node->shares)
		debt_step(&world->limit, &node->entry, &world_key, &node->flow, &node->debt,
			  world->now);
}

static inline void world_run(struct world *world, double seconds)
{
	uint64_t end = world->now + (uint64_t)(seconds * WORLD_SEC);

	while (credit_span(world->now, end) > 0) {
		double at = world_at(world), passed = 0;

		world->now += world->step;
		for (unsigned int i = 0; i < world->nodes; i++) {
			struct world_node *node = &world->node[i];

			if (!node->sleeps)
				world_step(world, node);
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

/* sign: 1 for the most of any second, -1 for the least. */
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

/* What one node admitted so far, over the rate. */
static inline double world_part(const struct world *world, unsigned int node)
{
	return (double)(world->node[node].own.taken + 1000 * node) / WORLD_SEC / world_at(world);
}

/* By how much more was admitted than burst + rate x t, over any span, in seconds at the rate. */
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
