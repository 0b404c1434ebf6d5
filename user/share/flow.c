// SPDX-License-Identifier: GPL-2.0
#include "share/flow.h"

#include "credit.h"
#include "share/choice.h"

/* No amount is larger, so sums of two do not overflow. */
#define AMOUNT_MAX (1LL << 61)

/* What all nodes together keep for their own demand. The rest of the rate repays what is owed. */
#define KEPT (FLOW_RATE / 10 * 9)

/* What is owed below this part of a burst is nothing. */
#define NEGLIGIBLE 1024

/* The part of a credit that fades in a round: see flow_fade(). */
#define FADING 8

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

/* What was sent may be in the next totals, or in later ones. */
static void flow_abandon(struct flow *flow)
{
	if (flow->waits) {
		flow->in_doubt.taken =
			credit_min(flow->in_doubt.taken + flow->sent.taken, AMOUNT_MAX);
		flow->in_doubt.asked =
			credit_min(flow->in_doubt.asked + flow->sent.asked, AMOUNT_MAX);
	}
	flow->sent = (struct flow_count){0};
	flow->was_lost = true;
	flow->waits = false;
}

/* From `then` to `now`; 0 for counters that began again. */
static uint64_t counted(uint64_t then, uint64_t now)
{
	return credit_min(credit_max(0, credit_span(then, now)), AMOUNT_MAX);
}

/* At least 1. */
static uint64_t span_of(uint64_t then, uint64_t now)
{
	return credit_min(credit_max(1, credit_span(then, now)), AMOUNT_MAX / FLOW_ASKED);
}

struct flow_count flow_report(struct flow *flow, const struct flow_count *own, uint64_t now)
{
	uint64_t most;

	if (flow->waits)
		flow_abandon(flow);
	flow->round = span_of(flow->reported_at, now);
	most = FLOW_ASKED * flow->round >> FLOW_UNIT_SHIFT << FLOW_UNIT_SHIFT;
	flow->sent.taken = counted(flow->reported.taken, own->taken);
	flow->sent.asked = credit_max(flow->sent.taken,
				      credit_min(counted(flow->reported.asked, own->asked), most));
	flow->offered = credit_min(flow->offered + flow->sent.asked, AMOUNT_MAX);
	flow->length = span_of(flow->learned_at, now);
	/* a slice that gives back lets `taken` fall: that is told by telling less later */
	if (credit_span(flow->reported.taken, own->taken) > 0)
		flow->reported.taken = own->taken;
	flow->reported.asked = own->asked;
	flow->reported_at = now;
	flow->waits = true;
	return flow->sent;
}

/* What is the others' of an amount that may hold what this node sent without getting an answer. */
static uint64_t without_doubted(uint64_t amount, uint64_t *doubted)
{
	uint64_t less = credit_min(amount, *doubted);

	*doubted -= less;
	return credit_min(amount - less, AMOUNT_MAX);
}

/* Adds what the others took beyond what was expected. */
static void flow_settle(struct flow *flow, uint64_t burst, uint64_t taken, unsigned int nodes)
{
	int64_t theirs = without_doubted(taken, &flow->in_doubt.taken);
	int64_t beyond = theirs - credit_min(flow->assumed, AMOUNT_MAX);
	int64_t in_vain = credit_min(burst, AMOUNT_MAX) + flow->length;

	flow->unsettled = credit_max(-in_vain, credit_min(flow->unsettled + beyond,
							  flow_cap(burst, flow->length, nodes)));
}

/*
 * What others leave while all ask for their parts, they leave to repay. Taken for credit, it would
 * go round between nodes for ever, and nothing be repaid: so credit fades then.
 */
static void flow_fade(struct flow *flow, uint64_t theirs, unsigned int nodes)
{
	if (flow->unsettled < 0 && theirs >= flow->assumed && flow->offered >= flow->length / nodes)
		flow->unsettled -= flow->unsettled / FADING;
}

/* The part of what is unsettled that is repaid in the next round, or given back. */
static int64_t flow_part(const struct flow *flow, uint64_t demand, unsigned int nodes)
{
	if (!demand)
		return flow->unsettled;
	if (flow->unsettled < 0)
		return -amount_of(share_of(flow->offered, demand), -flow->unsettled);
	return flow->unsettled / nodes;
}

/* No more counts than a node keeps at most: where a source has left it begins to fade at once. */
static void flow_remember(struct flow *flow, uint64_t burst, unsigned int nodes)
{
	float demand = choice_demand(flow->usual, flow->offered, flow->length, burst);
	float most = (float)KEPT / FLOW_RATE / nodes;

	flow->usual = demand < most ? demand : most;
}

/* Where nothing is offered anywhere, all of the rate is there to repay. */
static uint64_t flow_kept(const struct flow *flow, uint64_t demand, unsigned int nodes)
{
	uint64_t usual = flow->usual * FLOW_RATE;
	uint64_t mine = credit_max(share_of(flow->offered, flow->length), usual);

	return demand ? credit_min(mine, KEPT / nodes) : 0;
}

/* What is charged in the next round, which is taken to be as long as this one. */
static void flow_plan(struct flow *flow, uint64_t theirs, unsigned int nodes)
{
	uint64_t mine = flow->offered, length = flow->length;
	uint64_t all = mine + theirs;
	uint64_t kept = flow_kept(flow, all, nodes);
	int64_t part = flow_part(flow, all, nodes);

	flow->expected = credit_min(share_of(theirs, credit_max(all, length)), FLOW_RATE - kept);
	flow->is_idle = !mine;
	flow->back = credit_max(-part, 0);
	/* what the rate leaves no room for in this round is repaid in a longer one */
	flow->repay = credit_max(part, 0);
	flow->repaying =
		credit_min(share_of(flow->repay, length), FLOW_RATE - kept - flow->expected);
}

/* Behind a loss, what was not carried out for a while never will be. */
static void flow_trust(struct flow *flow, uint64_t now)
{
	if (flow->was_lost)
		flow->doubted_until = now + FLOW_DOUBT;
	else if (credit_span(flow->doubted_until, now) >= 0)
		flow->in_doubt = (struct flow_count){0};
	flow->was_lost = false;
}

void flow_learn(struct flow *flow, uint64_t burst, const struct flow_count *totals,
		unsigned int nodes, uint64_t now)
{
	int64_t taken = credit_span(flow->totals.taken + flow->sent.taken, totals->taken);
	int64_t asked = credit_span(flow->totals.asked + flow->sent.asked, totals->asked);
	bool is_busy = true; /* for all that is known */

	nodes = known_nodes(nodes);
	flow->nodes = nodes;
	flow_remember(flow, burst, nodes);
	if (!flow->knows) { /* what is charged until something is known of the others */
		flow->expected = flow->offered > flow->length ? FLOW_RATE - FLOW_RATE / nodes : 0;
		flow->repay = 0;
	}
	if (flow->has_totals && taken >= 0 && asked >= 0) {
		uint64_t theirs;

		flow_settle(flow, burst, taken, nodes);
		theirs = without_doubted(asked, &flow->in_doubt.asked);
		flow_fade(flow, theirs, nodes);
		flow_plan(flow, theirs, nodes);
		is_busy = theirs + flow->offered > flow->length / 2;
		flow->knows = true;
	}
	if (is_busy)
		flow->busy_at = now;
	flow_trust(flow, now);
	flow->totals = *totals;
	flow->learned_at = flow->reported_at;
	flow->offered = 0;
	flow->assumed = 0;
	flow->has_totals = true;
	flow->sent = (struct flow_count){0};
	flow->waits = false;
}

void flow_forget(struct flow *flow, uint64_t now)
{
	flow->has_totals = flow->knows = flow->is_idle = false;
	flow->expected = flow->repay = flow->back = 0;
	flow->unsettled = credit_max(0, flow->unsettled);
	flow->stepped_at = now;
}

void flow_lost(struct flow *flow, unsigned int rounds)
{
	flow_abandon(flow);
	if (rounds >= FLOW_LOST)
		flow_forget(flow, flow->stepped_at);
}

void flow_unsent(struct flow *flow)
{
	flow->waits = false;
}

int64_t flow_step(struct flow *flow, uint64_t burst, int64_t level, uint64_t now)
{
	int64_t span = credit_span(flow->stepped_at, now);
	int64_t expected, repaid, back;

	if (span <= 0)
		return 0;
	flow->stepped_at = now;
	span = credit_min(span, credit_min(burst, AMOUNT_MAX));
	expected = amount_of(flow->expected, span);
	repaid = credit_min(amount_of(flow->repaying, span), flow->repay);
	if (flow->is_idle)
		repaid = credit_max(repaid, credit_min(flow->unsettled,
						       level - expected - (int64_t)(burst / 2)));
	back = flow->back;
	flow->assumed += expected;
	flow->repay -= credit_min(repaid, flow->repay);
	flow->back = 0;
	flow->unsettled += back - repaid;
	return expected + repaid - back;
}

void flow_uncharged(struct flow *flow, uint64_t burst, int64_t amount)
{
	int64_t most = flow_cap(burst, flow->length, flow->nodes);

	flow->unsettled = credit_max(flow->unsettled, credit_min(flow->unsettled + amount, most));
}

/*
 * What a key costs that is shared anew: a burst on each node, and what comes in until the second
 * answer. Half the rate makes up for it in twice the time.
 */
static int64_t flow_rest(const struct flow *flow, uint64_t burst)
{
	int64_t most = AMOUNT_MAX / 4 / FLOW_NODES_MAX;

	return 2 * flow->nodes * (credit_min(burst, most) + credit_min(2 * flow->round, most));
}

bool flow_is_quiet(const struct flow *flow, uint64_t burst)
{
	/* parts of parts are repaid, so the last of it never is */
	return flow->unsettled <= (int64_t)(burst / NEGLIGIBLE) &&
	       credit_span(flow->busy_at, flow->learned_at) >= (int64_t)burst;
}

bool flow_rests(const struct flow *flow, uint64_t burst, uint64_t now)
{
	return flow_is_quiet(flow, burst) &&
	       credit_span(flow->busy_at, now) >= flow_rest(flow, burst);
}
