/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the protocol of docs/cluster.md for one key of a shared limit. Computes what this node
 * reports to the store. Also computes what it charges its own state for packets that passed at
 * other nodes. Pure functions: no clock, socket or map; the time is an argument.
 *
 * Amounts are in ticks at the rate of the limit, so the rate is 1. A packet of cost c adds c to
 * `asked`. If it passes, it also adds c to `taken`.
 *
 * The amounts of a round are "expected", "repaid", "refunded" and "kept". "expected" is the demand
 * of other nodes. If all demand exceeds the rate, it is the share of other nodes in all demand.
 * "repaid" is 1/nodes of `unsettled`, the ticks that other nodes took beyond "expected". If no node
 * has demand, all of `unsettled` is repaid. If only this node has no demand, it repays more: as
 * much as leaves its level at half of a burst. "refunded" is this node's share of the difference if
 * other nodes took less than "expected". "kept" is this node's own demand, at most 0.9 x
 * rate/nodes. The sum of "expected" and "repaid" is at most rate - "kept".
 *
 * The store is not trusted. Whatever it replies, flow_step() keeps its bounds, and refunds at most
 * what it charged. `unsettled` is at most flow_cap(), so the effect of a false reply ends after a
 * bounded time.
 */
#ifndef SLUICE_FLOW_H
#define SLUICE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice.h"

/*
 * Largest demand that a node reports, as a multiple of the rate. The reported `taken` may be
 * larger.
 */
#define FLOW_ASKED 16

/*
 * The counters in the store count units of 2^10 ticks (64 ns), so that they do not overflow for
 * years. The caller must round its counters down to units by flow_whole(). Otherwise totals would
 * seem to fall.
 */
#define FLOW_UNIT_SHIFT 10

static inline uint64_t flow_whole(uint64_t ticks)
{
	return ticks >> FLOW_UNIT_SHIFT << FLOW_UNIT_SHIFT;
}

/* All nodes together let at most 1/100 of the rate of a key pass without a report. */
#define FLOW_UNREPORTED_PART 100

/*
 * After this many consecutive rounds without a reply, discard the totals of the last reply. After
 * fewer such rounds, the next reply includes the changes of all these rounds.
 */
#define FLOW_LOST 3

/*
 * After a connection was reset, the store may still execute a report that was sent over it. If the
 * store has not executed the report until this time after the next reply, the node assumes that the
 * report is lost.
 */
#define FLOW_DOUBT (SL_TICKS_PER_SEC / 2)

#define FLOW_NODES_MAX 4096 /* a larger number of nodes counts as this number */

#define FLOW_RATE (1ULL << 32) /* the whole rate; shares of the rate are fractions of this number */

/* Ticks of packets that passed (`taken`) and of all packets (`asked`). These counters may wrap. */
struct flow_count {
	uint64_t taken;
	uint64_t asked;
};

struct flow {
	struct flow_count reported; /* counters of this node at its last report */
	struct flow_count sent;	    /* what this node reported to the store in the current round */
	struct flow_count totals;   /* totals of all nodes, from the last reply */
	uint64_t reported_at;	    /* time at which this round began */
	uint64_t learned_at;	    /* time at which the last round that got a reply began */
	uint64_t round;		    /* time between the last two reports, in ticks */
	uint64_t length;	    /* time between `learned_at` and the last report, in ticks */
	uint64_t offered;	    /* sum of `sent.asked` of all reports within `length` */
	float usual;	    /* average demand at this node, at most 0.9/nodes (choice_demand()) */
	unsigned int nodes; /* number of nodes when the last reply arrived */
	uint64_t busy_at;   /* when demand of all nodes last exceeded half of the rate */
	uint64_t stepped_at;
	uint64_t expected; /* expected demand of other nodes, as a share of FLOW_RATE */
	uint64_t assumed;  /* ticks charged for the demand of other nodes since the last reply */
	int64_t unsettled; /* ticks of other nodes that are not charged yet; < 0: overcharge */
	uint64_t repay;	   /* part of `unsettled` that is charged in this round */
	uint64_t repaying; /* rate of charging `repay`, as a share of FLOW_RATE */
	uint64_t refund;   /* ticks that the next call of flow_step() refunds */
	struct flow_count in_doubt; /* reports without a reply, which the store may still execute */
	uint64_t doubted_until;	    /* time at which `in_doubt` is cleared */
	bool waits;		    /* the report of the current round has no reply yet */
	bool was_lost;		    /* the last round had no reply */
	bool has_totals; /* `totals` are valid, because a reply came in the last FLOW_LOST rounds */
	bool knows;	 /* two replies have arrived, so the demand of other nodes is known */
	bool is_idle;	 /* this node had no demand in the last round */
};

/*
 * Returns whether this node must report a key to the store. excess: ticks that the key took since
 * its last report. level: level of the key's state.
 */
bool flow_is_due(uint64_t excess, int64_t level, uint64_t burst);

/* Begins a flow. Its first report is the difference between the counters and `reported`. */
void flow_begin(struct flow *flow, const struct flow_count *reported, uint64_t now);

/*
 * Begins a round. The last round must have ended. own: counters of this node. Returns their
 * increase since the last report. The caller adds it to the totals in the store. An increase is
 * returned only once, even if the report is lost.
 */
struct flow_count flow_report(struct flow *flow, const struct flow_count *own, uint64_t now);

/*
 * Ends a round with a reply. totals: totals in the store, including the report of this round.
 * nodes: number of nodes, including this node. The first totals are only a baseline for the next
 * reply. So are totals that are lower than before.
 */
void flow_learn(struct flow *flow, uint64_t burst, const struct flow_count *totals,
		unsigned int nodes, uint64_t now);

/*
 * Ends a round without a reply. rounds: number of consecutive rounds without a reply, including
 * this round. was_sent: the store may still execute the report. The caller must reset the
 * connection. If the store executes the report after FLOW_DOUBT, its packets count as packets of
 * other nodes.
 */
void flow_lost(struct flow *flow, unsigned int rounds, bool was_sent);

/*
 * Discards all data about other nodes. The totals in the next reply are only a baseline. Time until
 * `now` is not charged. An overcharge is not refunded. A debt (`unsettled` > 0) remains.
 */
void flow_forget(struct flow *flow, uint64_t now);

/*
 * Returns the ticks to charge now. A negative result is a refund. A charge is at most `burst`, and
 * at most the time since the last step. If this node is idle, a charge may be larger: it may reduce
 * `level` to half of a burst. burst: at least the usual time between two steps, because longer
 * times are not charged.
 */
int64_t flow_step(struct flow *flow, uint64_t burst, int64_t level, uint64_t now);

/*
 * Adds `amount` to the debt, because this part of the last flow_step() was not charged. The debt is
 * at most flow_cap(). Ignores a negative `amount`, which is a failed refund.
 */
void flow_uncharged(struct flow *flow, uint64_t burst, int64_t amount);

/*
 * Returns whether another key may replace this key in its account. The debt must be at most
 * burst/1024. Replies must show that total demand was below half of the rate for the time of a
 * burst.
 */
bool flow_is_quiet(const struct flow *flow, uint64_t burst);

/*
 * Returns whether the account can be dropped, because the key was quiet for 2 x nodes x (burst + 2
 * rounds). The key may later exceed its limit when it gets a new account, but by less than the
 * credit that it left unused in this time.
 */
bool flow_rests(const struct flow *flow, uint64_t burst, uint64_t now);

/* Returns the largest debt, which is nodes x (burst + 4 x length). length: ticks of a round. */
int64_t flow_cap(uint64_t burst, uint64_t length, unsigned int nodes);

#endif
