/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the protocol of docs/cluster.md, for one key of a shared limit: what this node reports to
 * the store, and what its state is charged for other nodes. Pure: no clock, no socket, no map; time
 * is an argument.
 *
 * All amounts are ticks of time at the rate of the limit: the rate is 1, and a packet of cost c
 * adds c to `asked`, and to `taken` if it was admitted. A round charges:
 *
 *   expected  the others' part of all demand if demand exceeds the rate, otherwise their demand
 *   repaid    1/nodes of what they took beyond that (`unsettled`), or all of it if nothing is
 *             offered anywhere; if nothing is offered here, also what leaves half of a burst
 *   refunded  if they took less: this node's part of what was charged too much
 *   kept      this node's own demand, at most 0.9 x rate/nodes: expected + repaid <= rate - kept
 *
 * The store is not trusted. Whatever it replies, flow_step() keeps its bounds and refunds no more
 * than it charged, and `unsettled` stays within flow_cap(), so a lie ends within a bounded time.
 */
#ifndef SLUICE_FLOW_H
#define SLUICE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice.h"

/* The largest demand that a node reports, in times of the rate; `taken` may exceed it. */
#define FLOW_ASKED 16

/*
 * Counters of the store count 2^10 ticks, 64 ns, and so last for years. Reports are whole units if
 * the counters of this node are: otherwise the totals would seem to fall.
 */
#define FLOW_UNIT_SHIFT 10

static inline uint64_t flow_whole(uint64_t ticks)
{
	return ticks >> FLOW_UNIT_SHIFT << FLOW_UNIT_SHIFT;
}

/* All nodes together may take this part of the rate of a key without reporting it. */
#define FLOW_UNREPORTED_PART 100

/*
 * After this many rounds in a row without a reply, the last reply no longer counts. After fewer,
 * the next reply covers all rounds since.
 */
#define FLOW_LOST 3

/* A reset connection may still deliver a report for this long after the next reply. */
#define FLOW_DOUBT (SL_TICKS_PER_SEC / 2)

#define FLOW_NODES_MAX 4096 /* a larger number of nodes counts as this many */

#define FLOW_RATE (1ULL << 32) /* the rate, in the unit of shares of the rate */

/* Ticks that were admitted and offered. They only grow, and may wrap. */
struct flow_count {
	uint64_t taken;
	uint64_t asked;
};

struct flow {
	struct flow_count reported; /* this node's counters up to the last report */
	struct flow_count sent;	    /* in the current round */
	struct flow_count totals;   /* of the last reply */
	uint64_t reported_at;	    /* when the current round began */
	uint64_t learned_at;	    /* when the last round with a reply began */
	uint64_t round;		    /* ticks between the last two reports */
	uint64_t length;    /* ticks between the report of the last reply and the last report */
	uint64_t offered;   /* what was reported as asked in `length` */
	float usual;	    /* choice_demand() of `offered`, at most what is kept */
	unsigned int nodes; /* at the last reply */
	uint64_t busy_at;   /* when all nodes together were last offered half the rate */
	uint64_t stepped_at;
	uint64_t expected; /* a share of the rate */
	uint64_t assumed;  /* what was charged as expected since the last reply */
	int64_t unsettled; /* what the others took and was not charged; < 0: charged too much */
	uint64_t repay;	   /* what this round still has to repay of it */
	uint64_t repaying; /* the share of the rate at which it does */
	uint64_t refund;   /* what the next step gives back */
	struct flow_count in_doubt; /* reports without a reply, which the store may still add */
	uint64_t doubted_until;
	bool waits;	 /* for the reply to a report */
	bool was_lost;	 /* the previous round got no reply */
	bool has_totals; /* and fewer than FLOW_LOST rounds were lost since */
	bool knows;	 /* a difference of totals */
	bool is_idle;	 /* nothing was offered here in the last round */
};

/* Returns whether a key that took `excess` ticks unreported has to be reported. level: of its state. */
bool flow_is_due(uint64_t excess, int64_t level, uint64_t burst);

/* reported: the counters of this node up to which nothing has to be reported. */
void flow_begin(struct flow *flow, const struct flow_count *reported, uint64_t now);

/*
 * Begins a round, after the previous one has ended. Returns what to add to the totals of the key,
 * and never returns it again, whatever happens to it. own: the counters of this node.
 */
struct flow_count flow_report(struct flow *flow, const struct flow_count *own, uint64_t now);

/*
 * Ends a round with a reply. totals: those after the report was added. nodes: that share the limit,
 * with this one. The first totals, and totals that fell, are only stored.
 */
void flow_learn(struct flow *flow, uint64_t burst, const struct flow_count *totals,
		unsigned int nodes, uint64_t now);

/*
 * Ends a round without a reply. rounds: lost in a row, with this one. was_sent: the store may still
 * add the report. The caller has to reset the connection: what is added later than FLOW_DOUBT counts
 * as taken by others.
 */
void flow_lost(struct flow *flow, unsigned int rounds, bool was_sent);

/*
 * Forgets what the others do, as FLOW_LOST rounds without a reply do: the next totals are only
 * stored, what was charged too much is not refunded, and nothing is charged for the time until now.
 * What is owed stays owed.
 */
void flow_forget(struct flow *flow, uint64_t now);

/*
 * Returns what to charge now: at most `burst`, and at most the time since the last step or what
 * leaves half of a burst of `level`; negative: what to give back. burst: at least the usual time
 * between two steps, because a later step charges no more than it.
 */
int64_t flow_step(struct flow *flow, uint64_t burst, int64_t level, uint64_t now);

/*
 * Corrects the last flow_step(): this amount was not charged, so it stays owed, up to flow_cap().
 * A refund that failed (amount < 0) is dropped.
 */
void flow_uncharged(struct flow *flow, uint64_t burst, int64_t amount);

/*
 * Returns whether another key may get the account of this key: at most a thousandth of a burst is
 * owed, and all nodes were offered less than half the rate for a burst's time, with replies.
 */
bool flow_is_quiet(const struct flow *flow, uint64_t burst);

/*
 * Returns whether the key can be dropped at no cost: it was quiet for 2 x nodes x (burst + 2
 * rounds), which makes up for what starting again costs.
 */
bool flow_rests(const struct flow *flow, uint64_t burst, uint64_t now);

/* The most that can be owed: docs/cluster.md. length: of a round. */
int64_t flow_cap(uint64_t burst, uint64_t length, unsigned int nodes);

#endif
