// SPDX-License-Identifier: GPL-2.0
#include "share/flow.h"

#include "credit.h"
#include "share/choice.h"

/* Upper bound of an amount, in ticks. The sum of two such amounts does not overflow. */
#define AMOUNT_MAX (1LL << 61)

/* A node reserves at most 0.9/nodes of the rate for its own demand. The rest can repay debt. */
#define KEPT (FLOW_RATE / 10 * 9)

/*
 * A debt below 1/1024 of a burst counts as 0. Otherwise a node would repay ever smaller parts
 * forever.
 */
#define NEGLIGIBLE 1024

/* A node must not refund some overcharges. Each round forgets 1/8 of such an overcharge. */
#define FADING 8

/*
 * Up to 4 rounds may have no totals from the store. A node may have debt from these rounds
 * (docs/cluster.md).
 */
#define UNKNOWN_ROUNDS 4

/* Returns a / b as a share of FLOW_RATE, at most FLOW_RATE. b must be > 0. */
static uint64_t share_of(uint64_t a, uint64_t b)
{
	return a >= b ? FLOW_RATE : ((unsigned __int128)a << 32) / b;
}

static uint64_t amount_of(uint64_t share, uint64_t span)
{
	return (unsigned __int128)share * span >> 32;
}

/*
 * Returns now - then, but at least `least` and at most `most`. The arguments may be counters that
 * wrap.
 */
static uint64_t span_of(uint64_t then, uint64_t now, uint64_t least, uint64_t most)
{
	return credit_min(credit_max(least, credit_span(then, now)), most);
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

bool flow_is_due(uint64_t excess, int64_t level, uint64_t burst)
{
	return excess && (excess >= burst / 4 || level < (int64_t)(burst / 4));
}

void flow_begin(struct flow *flow, const struct flow_count *reported, uint64_t now)
{
	*flow = (struct flow){
		.reported = *reported,
		.reported_at = now,
		.learned_at = now,
		.busy_at = now,
		.stepped_at = now,
	};
}

struct flow_count flow_report(struct flow *flow, const struct flow_count *own, uint64_t now)
{
	uint64_t most, asked;

	flow->round = span_of(flow->reported_at, now, 1, AMOUNT_MAX / FLOW_ASKED);
	most = flow_whole(FLOW_ASKED * flow->round);
	asked = span_of(flow->reported.asked, own->asked, 0, AMOUNT_MAX);
	flow->sent.taken = span_of(flow->reported.taken, own->taken, 0, AMOUNT_MAX);
	flow->sent.asked = credit_max(flow->sent.taken, credit_min(asked, most));
	flow->offered = credit_min(flow->offered + flow->sent.asked, AMOUNT_MAX);
	flow->length = span_of(flow->learned_at, now, 1, AMOUNT_MAX / FLOW_ASKED);
	/* `taken` falls if a CPU returns unused credit. Then report 0 until it has risen again. */
	if (credit_span(flow->reported.taken, own->taken) > 0)
		flow->reported.taken = own->taken;
	flow->reported.asked = own->asked;
	flow->reported_at = now;
	flow->waits = true;
	return flow->sent;
}

/*
 * Returns the part of `amount`, an increase of a total, that other nodes caused. *doubted is the
 * sum of reports of this node that got no reply. `amount` may contain these reports. Subtracts the
 * smaller value from `amount` and from *doubted.
 */
static uint64_t without_doubted(uint64_t amount, uint64_t *doubted)
{
	uint64_t less = credit_min(amount, *doubted);

	*doubted -= less;
	return credit_min(amount - less, AMOUNT_MAX);
}

/*
 * Adds `taken` - `assumed` to `unsettled`. taken: ticks that other nodes took. theirs: demand of
 * other nodes.
 */
static void flow_settle(struct flow *flow, uint64_t burst, uint64_t taken, uint64_t theirs,
			unsigned int nodes)
{
	int64_t beyond = (int64_t)taken - credit_min(flow->assumed, AMOUNT_MAX);
	int64_t surplus = credit_min(burst, AMOUNT_MAX) + flow->length;

	flow->unsettled = credit_max(-surplus, credit_min(flow->unsettled + beyond,
							  flow_cap(burst, flow->length, nodes)));
	/*
	 * If all nodes have demand for their shares, other nodes took less because they repaid
	 * debt. A refund would move the debt to another node, so no debt would ever be repaid.
	 */
	if (flow->unsettled < 0 && theirs >= flow->assumed && flow->offered >= flow->length / nodes)
		flow->unsettled -= flow->unsettled / FADING;
}

/*
 * Computes the charges of flow_step() for the next round. Assumes that the next round is as long as
 * this round.
 */
static void flow_plan(struct flow *flow, uint64_t theirs, unsigned int nodes)
{
	uint64_t length = flow->length, demand = flow->offered + theirs;
	uint64_t mine =
		credit_max(share_of(flow->offered, length), (uint64_t)(flow->usual * FLOW_RATE));
	/* if no node has demand, nodes can use the whole rate to repay debt */
	uint64_t kept = demand ? credit_min(mine, KEPT / nodes) : 0;
	int64_t part = flow->unsettled;

	if (demand && part < 0)
		part = -amount_of(share_of(flow->offered, demand), -part);
	else if (demand)
		part /= nodes;
	flow->expected = credit_min(share_of(theirs, credit_max(demand, length)), FLOW_RATE - kept);
	flow->is_idle = !flow->offered;
	flow->refund = credit_max(-part, 0);
	/*
	 * A round of this length charges all of `repay`, unless too little of the rate is left. A
	 * shorter round charges only a part of it.
	 */
	flow->repay = credit_max(part, 0);
	flow->repaying =
		credit_min(share_of(flow->repay, length), FLOW_RATE - kept - flow->expected);
}

void flow_learn(struct flow *flow, uint64_t burst, const struct flow_count *totals,
		unsigned int nodes, uint64_t now)
{
	int64_t taken = credit_span(flow->totals.taken + flow->sent.taken, totals->taken);
	int64_t asked = credit_span(flow->totals.asked + flow->sent.asked, totals->asked);
	float usual = choice_demand(flow->usual, flow->offered, flow->length, burst), most;
	bool is_busy = true; /* assume that other nodes have demand, unless their demand is known */

	nodes = known_nodes(nodes);
	flow->nodes = nodes;
	/*
	 * A source may move to another node. With this maximum, the average then falls immediately.
	 */
	most = (float)KEPT / FLOW_RATE / nodes;
	flow->usual = usual < most ? usual : most;
	if (!flow->knows) {
		flow->expected = flow->offered > flow->length ? FLOW_RATE - FLOW_RATE / nodes : 0;
		flow->repay = 0;
	}
	if (flow->has_totals && taken >= 0 && asked >= 0) {
		uint64_t theirs = without_doubted(asked, &flow->in_doubt.asked);

		flow_settle(flow, burst, without_doubted(taken, &flow->in_doubt.taken), theirs,
			    nodes);
		flow_plan(flow, theirs, nodes);
		is_busy = theirs + flow->offered > flow->length / 2;
		flow->knows = true;
	}
	if (is_busy)
		flow->busy_at = now;
	if (flow->was_lost)
		flow->doubted_until = now + FLOW_DOUBT;
	else if (credit_span(flow->doubted_until, now) >= 0)
		flow->in_doubt = (struct flow_count){0};
	flow->totals = *totals;
	flow->learned_at = flow->reported_at;
	flow->offered = flow->assumed = 0;
	flow->sent = (struct flow_count){0};
	flow->has_totals = true;
	flow->was_lost = flow->waits = false;
}

void flow_forget(struct flow *flow, uint64_t now)
{
	flow->has_totals = flow->knows = flow->is_idle = false;
	flow->expected = flow->repay = flow->refund = 0;
	flow->unsettled = credit_max(0, flow->unsettled);
	flow->stepped_at = now;
}

void flow_lost(struct flow *flow, unsigned int rounds, bool was_sent)
{
	struct flow_count *in_doubt = &flow->in_doubt;

	/* The store may execute this report later. So its packets may be in any later reply. */
	if (flow->waits && was_sent) {
		in_doubt->taken = credit_min(in_doubt->taken + flow->sent.taken, AMOUNT_MAX);
		in_doubt->asked = credit_min(in_doubt->asked + flow->sent.asked, AMOUNT_MAX);
	}
	flow->sent = (struct flow_count){0};
	flow->was_lost = true;
	flow->waits = false;
	if (rounds >= FLOW_LOST)
		flow_forget(flow, flow->stepped_at);
}

int64_t flow_step(struct flow *flow, uint64_t burst, int64_t level, uint64_t now)
{
	int64_t span = credit_span(flow->stepped_at, now);
	int64_t expected, repaid, refund = flow->refund;

	if (span <= 0)
		return 0;
	flow->stepped_at = now;
	span = credit_min(span, credit_min(burst, AMOUNT_MAX));
	expected = amount_of(flow->expected, span);
	repaid = credit_min(amount_of(flow->repaying, span), flow->repay);
	if (flow->is_idle)
		repaid = credit_max(repaid, credit_min(flow->unsettled,
						       level - expected - (int64_t)(burst / 2)));
	flow->assumed += expected;
	flow->repay -= credit_min(repaid, flow->repay);
	flow->refund = 0;
	flow->unsettled += refund - repaid;
	return expected + repaid - refund;
}

void flow_uncharged(struct flow *flow, uint64_t burst, int64_t amount)
{
	int64_t most = flow_cap(burst, flow->length, flow->nodes);

	flow->unsettled = credit_max(flow->unsettled, credit_min(flow->unsettled + amount, most));
}

bool flow_is_quiet(const struct flow *flow, uint64_t burst)
{
	return flow->unsettled <= (int64_t)(burst / NEGLIGIBLE) &&
	       credit_span(flow->busy_at, flow->learned_at) >= (int64_t)burst;
}

bool flow_rests(const struct flow *flow, uint64_t burst, uint64_t now)
{
	int64_t most = AMOUNT_MAX / 4 / FLOW_NODES_MAX;
	/*
	 * If a key gets a new account, each node may let it exceed its limit by a burst and two
	 * rounds. While demand is half of the rate, unused credit makes up for this in twice the
	 * time.
	 */
	int64_t rest =
		2 * flow->nodes * (credit_min(burst, most) + credit_min(2 * flow->round, most));

	return flow_is_quiet(flow, burst) && credit_span(flow->busy_at, now) >= rest;
}
