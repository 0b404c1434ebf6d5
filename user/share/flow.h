/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the protocol of docs/cluster.md for one key of a shared limit. It computes what this node
 * reports to the store, and what this node charges its own state for the packets that other nodes
 * admitted. Pure: it uses no clock, socket or map; time is an argument.
 *
 * All amounts are ticks of time at the rate of the limit, so the rate is 1. A packet of cost c adds
 * c to `asked`, and to `taken` if it was admitted. In each round the amounts are:
 *
 *   expected  the other nodes' share of all demand if demand exceeds the rate, otherwise all of
 *             their demand
 *   repaid    1/nodes of what the other nodes took beyond `expected` (this is `unsettled`); all of
 *             it if no node has demand; if only this node has no demand, also as much as leaves its
 *             level at half of a burst
 *   refunded  if the other nodes took less than expected: this node's share of the difference
 *   kept      this node's own demand, at most 0.9 x rate/nodes; expected + repaid <= rate - kept
 *
 * The store is not trusted. Whatever it replies, flow_step() keeps its bounds and never refunds
 * more than it charged. `unsettled` never exceeds flow_cap(), so the effect of a false reply ends
 * within a bounded time.
 */
#ifndef SLUICE_FLOW_H
#define SLUICE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice.h"

/* The largest demand that a node reports, in multiples of the rate. `taken` may exceed it. */
#define FLOW_ASKED 16

/*
 * The counters in the store have a unit of 2^10 ticks (64 ns), so that they do not wrap for years.
 * The caller must round the counters of this node down to whole units by flow_whole(). Otherwise
 * the totals would seem to fall.
 */
#define FLOW_UNIT_SHIFT 10

static inline uint64_t flow_whole(uint64_t ticks)
{
	return ticks >> FLOW_UNIT_SHIFT << FLOW_UNIT_SHIFT;
}

/* All nodes together may take 1/100 of the rate of a key without reporting it. */
#define FLOW_UNREPORTED_PART 100

/*
 * After this many rounds in a row without a reply, a node ignores the last reply. After fewer, the
 * next reply covers all rounds since the last one.
 */
#define FLOW_LOST 3

/* The store may still execute a report of a reset connection this long after the next reply. */
#define FLOW_DOUBT (SL_TICKS_PER_SEC / 2)

#define FLOW_NODES_MAX 4096 /* a larger number of nodes is treated as this number */

#define FLOW_RATE (1ULL << 32) /* the whole rate, in fields that contain a share of the rate */

/* Ticks that were admitted (`taken`) and offered (`asked`). They only grow, and may wrap. */
struct flow_count {
	uint64_t taken;
	uint64_t asked;
};

struct flow {
	struct flow_count reported; /* counters of this node at the last report */
	struct flow_count sent;	    /* amounts that this node reported in the current round */
	struct flow_count totals;   /* sums over all nodes, from the last reply */
	uint64_t reported_at;	    /* start of the current round */
	uint64_t learned_at;	    /* start of the last round that got a reply */
	uint64_t round;		    /* ticks between the last two reports */
	uint64_t length;	    /* ticks from `learned_at` to the last report */
	uint64_t offered;	    /* sum of `sent.asked` of all reports within `length` */
	float usual;	    /* average demand of this node (choice_demand()), at most 0.9/nodes */
	unsigned int nodes; /* number of nodes at the last reply */
	uint64_t busy_at;   /* last time at which total demand exceeded half of the rate */
	uint64_t stepped_at;
	uint64_t expected; /* demand of other nodes to charge, as a share of FLOW_RATE */
	uint64_t assumed;  /* ticks charged as `expected` since the last reply */
	int64_t unsettled; /* ticks that others took and that were not charged; < 0: overcharge */
	uint64_t repay;	   /* part of `unsettled` left to charge in this round */
	uint64_t repaying; /* speed of charging `repay`, as a share of FLOW_RATE */
	uint64_t refund;   /* ticks that the next flow_step() refunds */
	struct flow_count in_doubt; /* unanswered reports that the store may still execute */
	uint64_t doubted_until;	    /* time at which `in_doubt` is cleared */
	bool waits;		    /* the current report has no reply yet */
	bool was_lost;		    /* the previous round got no reply */
	bool has_totals; /* `totals` are valid, because they are fewer than FLOW_LOST rounds old */
	bool knows;	 /* the demand of other nodes is known, because two replies were compared */
	bool is_idle;	 /* this node had no demand in the last round */
};

/*
 * Returns whether a key must be reported. excess: ticks that the key took here and that were not
 * reported. level: the level of its state.
 */
bool flow_is_due(uint64_t excess, int64_t level, uint64_t burst);

/* Initializes a flow. Its first report covers what the counters exceed `reported` by. */
void flow_begin(struct flow *flow, const struct flow_count *reported, uint64_t now);

/*
 * Begins a round; the previous round must have ended. own: the counters of this node. Returns the
 * increase since the last report, which the caller adds to the totals in the store. Each increase
 * is returned once, even if the report is lost.
 */
struct flow_count flow_report(struct flow *flow, const struct flow_count *own, uint64_t now);

/*
 * Ends a round with a reply. totals: the totals in the store, including the report of this round.
 * nodes: the number of nodes that share the limit, including this node. The first totals, and
 * totals that fell, are stored as a baseline and charge nothing.
 */
void flow_learn(struct flow *flow, uint64_t burst, const struct flow_count *totals,
		unsigned int nodes, uint64_t now);

/*
 * Ends a round without a reply. rounds: the number of rounds lost in a row, including this round.
 * was_sent: whether the store may still execute the report. The caller must reset the connection: a
 * report that the store executes later than FLOW_DOUBT is attributed to other nodes.
 */
void flow_lost(struct flow *flow, unsigned int rounds, bool was_sent);

/*
 * Drops what is known about other nodes, as after FLOW_LOST rounds without a reply. The next totals
 * are a baseline, overcharges are not refunded, and nothing is charged for the time until `now`.
 * Debt (`unsettled` > 0) is kept.
 */
void flow_forget(struct flow *flow, uint64_t now);

/*
 * Returns the ticks to charge now; a negative result is a refund. A charge is at most `burst`. It
 * is also at most the time since the last step, or, if this node is idle, as much as leaves `level`
 * at half of a burst. burst: must be at least the usual time between two steps, because time beyond
 * it is not charged.
 */
int64_t flow_step(struct flow *flow, uint64_t burst, int64_t level, uint64_t now);

/*
 * Reports that `amount` of the last flow_step() could not be charged. It stays owed, up to
 * flow_cap(). If amount < 0, it is a refund that failed, and is dropped.
 */
void flow_uncharged(struct flow *flow, uint64_t burst, int64_t amount);

/*
 * Returns whether another key may take over the account of this key: the debt is at most
 * burst/1024, and replies show that total demand was less than half of the rate for a burst's time.
 */
bool flow_is_quiet(const struct flow *flow, uint64_t burst);

/*
 * Returns whether the account can be dropped: the key was quiet for 2 x nodes x (burst + 2 rounds).
 * The credit left in that time outweighs the excess that the key gets if it is reported again.
 */
bool flow_rests(const struct flow *flow, uint64_t burst, uint64_t now);

/* Returns the largest debt, nodes x (burst + 4 x length): docs/cluster.md. length: of a round. */
int64_t flow_cap(uint64_t burst, uint64_t length, unsigned int nodes);

#endif
