// SPDX-License-Identifier: GPL-2.0
#include "share/flow.h"

#include "credit.h"

/* No amount is larger, so sums of two do not overflow. */
#define AMOUNT_MAX (1LL << 61)

/* What all nodes together keep for their own demand. The rest of the rate repays what is owed. */
#define KEPT (FLOW_RATE / 10 * 9)

/* Of how many rounds the consumption can be unknown to a node: docs/cluster.md. */
#define UNKNOWN_ROUNDS 4

/* a / b as a share, 1 at most. b > 0 */
static uint64_t share_of(uint64_t a, uint64_t b)
{
	return a >= b ? FLOW_RATE : ((unsigned __int128)a << 32) / b;
}

/* share: at most FLOW_RATE */
static uint64_t amount_of(uint64_t share, uint64_t span)
{
	return (unsigned __int128)share * span >> 32;
}

static unsigned int known_nodes(unsigned int nodes)
{
	return credit_max(1, credit_min(nodes, FLOW_NODES_MAX));
}

int64_t flow_cap(uint64_t burst, uint64_t length, unsigned int nodes)
{
	int64_t most = AMOUNT_MAX / known_nodes(nodes);
	int64_t unknown = credit_min(length, most / UNKNOWN_ROUNDS) * UNKNOWN_ROUNDS;

	return credit_min(credit_min(burst, most) + unknown, most) * known_nodes(nodes);
}

void flow_begin(struct flow *flow, const struct flow_count *reported, uint64_t now)
{
	*flow = (struct flow){
		.reported = *reported,
		.reported_at = now,
		.busy_at = now,
		.stepped_at = now,
	};
}

/* The next totals are only noted: others' part of them cannot be told. */
static void flow_abandon(struct flow *flow)
{
	if (flow->waits) {
		flow->in_doubt.taken =
			credit_min(flow->in_doubt.taken + flow->sent.taken, AMOUNT_MAX);
		flow->in_doubt.asked =
			credit_min(flow->in_doubt.asked + flow->sent.asked, AMOUNT_MAX);
	}
	flow->sent = (struct flow_count){0};
	flow->waits = false;
	flow->has_totals = false;
}

/* From `then` to `now`; 0 for counters that began again. */
static uint64_t counted(uint64_t then, uint64_t now)
{
	return credit_min(credit_max(0, credit_span(then, now)), AMOUNT_MAX);
}

struct flow_count flow_report(struct flow *flow, const struct flow_count *own, uint64_t now)
{
	uint64_t most;

	if (flow->waits)
		flow_abandon(flow);
	flow->length = credit_min(credit_max(1, credit_span(flow->reported_at, now)),
				  AMOUNT_MAX / FLOW_ASKED);
	most = FLOW_ASKED * flow->length >> FLOW_UNIT_SHIFT << FLOW_UNIT_SHIFT;
	flow->sent.taken = counted(flow->reported.taken, own->taken);
	flow->sent.asked = credit_max(flow->sent.taken,
				      credit_min(counted(flow->reported.asked, own->asked), most));
	/* a purse that gives back lets `taken` fall: that is told by telling less later */
	if (credit_span(flow->reported.taken, own->taken) > 0)
		flow->reported.taken = own->taken;
	flow->reported.asked = own->asked;
	flow->reported_at = now;
	flow->waits = true;
	return flow->sent;
}

/*
 * Adds what the others took beyond what was expected. What this node sent without getting an answer
 * may come back in it, long after: as much is not counted.
 */
static void flow_settle(struct flow *flow, uint64_t burst, uint64_t taken, unsigned int nodes)
{
	int64_t beyond = credit_min(taken, AMOUNT_MAX) - credit_min(flow->assumed, AMOUNT_MAX);
	int64_t doubted = credit_max(0, credit_min(beyond, flow->in_doubt.taken));
	int64_t in_vain = credit_min(burst, AMOUNT_MAX) + flow->length;
	int64_t unsettled = flow->unsettled + beyond - doubted;

	flow->in_doubt.taken -= doubted;
	flow->unsettled =
		credit_max(-in_vain, credit_min(unsettled, flow_cap(burst, flow->length, nodes)));
}

/* The demand of the others, of what is told as theirs. */
static uint64_t flow_demand(struct flow *flow, uint64_t asked)
{
	uint64_t doubted = credit_min(asked, flow->in_doubt.asked);

	flow->in_doubt.asked -= doubted;
	return credit_min(asked - doubted, AMOUNT_MAX);
}

/* The part of what is unsettled that is repaid in the next round. */
static int64_t flow_part(const struct flow *flow, uint64_t demand, unsigned int nodes)
{
	if (!demand)
		return flow->unsettled;
	return flow->unsettled / (flow->unsettled < 0 ? nodes / 2 + 1 : nodes);
}

/* What is charged in the next round, which is taken to be as long as this one. */
static void flow_plan(struct flow *flow, uint64_t theirs, unsigned int nodes)
{
	uint64_t mine = flow->sent.asked, length = flow->length;
	uint64_t all = mine + theirs;
	uint64_t kept = credit_min(share_of(mine, length), KEPT / nodes);
	int64_t part = flow_part(flow, all, nodes);

	flow->expected = credit_min(share_of(theirs, credit_max(all, length)), FLOW_RATE - kept);
	part = credit_min(part, amount_of(FLOW_RATE - kept - flow->expected, length));
	flow->repay = credit_max(part, -(int64_t)amount_of(flow->expected, length));
	flow->repaying = share_of(flow->repay < 0 ? -flow->repay : flow->repay, length);
}

/*
 * Goes on to divide for a while when the store answers again. What others seem to have left of
 * their parts meanwhile is what they did not tell: it is no credit.
 */
static void flow_return(struct flow *flow, uint64_t now)
{
	if (!flow->divided)
		return;
	flow->unsettled = credit_max(0, flow->unsettled);
	if (!flow->has_totals)
		flow->divided_until = now + FLOW_RETURN;
	else if (credit_span(flow->divided_until, now) >= 0)
		flow->divided = 0;
	if (flow->expected < flow->divided) {
		flow->expected = flow->divided;
		flow->repay = 0;
	}
}

void flow_learn(struct flow *flow, uint64_t burst, const struct flow_count *totals,
		unsigned int nodes, uint64_t now)
{
	int64_t taken = credit_span(flow->totals.taken + flow->sent.taken, totals->taken);
	int64_t asked = credit_span(flow->totals.asked + flow->sent.asked, totals->asked);
	bool is_busy = true; /* for all that is known */

	if (flow->has_totals && taken >= 0 && asked >= 0) {
		uint64_t theirs;

		nodes = known_nodes(nodes);
		flow_settle(flow, burst, taken, nodes);
		theirs = flow_demand(flow, asked);
		flow_plan(flow, theirs, nodes);
		is_busy = theirs + flow->sent.asked > flow->length / 2;
	}
	if (is_busy)
		flow->busy_at = now;
	flow_return(flow, now);
	flow->totals = *totals;
	flow->assumed = 0;
	flow->has_totals = true;
	flow->sent = (struct flow_count){0};
	flow->waits = false;
}

void flow_lost(struct flow *flow, enum flow_on_loss on_loss, unsigned int nodes,
	       unsigned int rounds)
{
	flow_abandon(flow);
	if (rounds < FLOW_LOST)
		return;
	flow->divided = on_loss == FLOW_DIVIDE ? FLOW_RATE - FLOW_RATE / known_nodes(nodes) : 0;
	flow->expected = flow->divided;
	flow->repay = 0;
	flow->unsettled = credit_max(0, flow->unsettled);
}

void flow_unsent(struct flow *flow)
{
	flow->waits = false;
}

uint64_t flow_step(struct flow *flow, uint64_t burst, uint64_t now)
{
	int64_t span = credit_span(flow->stepped_at, now);
	int64_t expected, repaid;

	if (span <= 0)
		return 0;
	flow->stepped_at = now;
	span = credit_min(span, credit_min(burst, AMOUNT_MAX));
	expected = amount_of(flow->expected, span);
	repaid = amount_of(flow->repaying, span);
	repaid = flow->repay < 0 ? -credit_min(repaid, -flow->repay)
				 : credit_min(repaid, flow->repay);
	flow->assumed += expected;
	flow->repay -= repaid;
	flow->unsettled -= repaid;
	return expected + repaid;
}

bool flow_rests(const struct flow *flow, uint64_t burst, uint64_t now)
{
	return flow->unsettled <= 0 && credit_span(flow->busy_at, now) >= (int64_t)burst;
}
