/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the flow of one key of a shared limit: what this node reports of it to the store, and what
 * its state is charged for other nodes. Pure: no clock, no socket, no map; time is an argument.
 *
 * Units. All is in ticks of time at the rate of the limit: a state refills one tick a tick, so the
 * rate is 1, and a packet of cost c adds c ticks to `taken` if it was admitted and to `asked` in
 * any case. No clock is compared between nodes.
 *
 * Each round tells what the other nodes took and were offered since the round before: the totals
 * now, less the totals then, less what this node added itself. From it follows what is charged in
 * the next round:
 *
 *   expected  what the others are expected to take: their part of all demand, if demand exceeds
 *             the rate; else their demand
 *   repaid    of what they took beyond what was expected (`unsettled`) the part 1/nodes, or all if
 *             nothing is offered anywhere; and where nothing is offered here as much at once as
 *             leaves half of a burst
 *   given     where they took less: of what was charged in vain this node's part of all demand, at
 *   back      once
 *   kept      what this node always keeps for its own demand, that of the last round or that of
 *             the last seconds, whichever is more: 0.9 x rate/nodes at most.
 *             expected + repaid <= rate - kept
 *
 * That of seconds, because of a slow limit, and of traffic that comes in bursts, few rounds see a
 * packet: without it a flood through one node silences such a source at the others.
 *
 * A part of 1/nodes, because all nodes repay the same excess: more does not settle. What was
 * charged in vain can be taken once, by those who ask for it. Half of a burst, because a source
 * that moves takes what it finds at each node: with a whole burst it would take too much, and with
 * none it would wait until the node has learned that it has left the one before.
 *
 * Until the first difference of totals nothing is known of the others. A node that is offered more
 * than the rate takes them to be, too: it has 1/nodes of the limit then. Demand of one node beyond
 * FLOW_ASKED times the rate is not told: it changes no share that matters, and would make the
 * totals overflow.
 *
 * The store is not trusted. Whatever it answers, flow_step charges no more than is said there, and
 * gives back no more than it charged. `unsettled` stays within flow_cap() and what a state can
 * have missed, so a lie ends within a bounded time.
 *
 * Bounds and their proofs: docs/cluster.md.
 */
#ifndef SLUICE_FLOW_H
#define SLUICE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice.h"

/* The most that a node reports as asked for, in times of the rate; more only if it was admitted. */
#define FLOW_ASKED 16

/*
 * Counters of the store are in units of 2^10 ticks, 64 ns, and so last for years. What is reported
 * is whole units if the counters of this node are: or the totals would seem to fall.
 */
#define FLOW_UNIT_SHIFT 10

/* What all nodes together may take of a key without telling of it: this part of the rate. */
#define FLOW_UNTOLD_PART 100

/*
 * Rounds in a row without an answer, after which the last one counts no more. After fewer, the next
 * answer tells of all rounds since the last.
 */
#define FLOW_LOST 3

/*
 * How long behind the first answer a report that got none may still be carried out: from what was
 * on its way in a connection that has been reset.
 */
#define FLOW_DOUBT (SL_TICKS_PER_SEC / 2)

/* More nodes than these are not told apart from these. */
#define FLOW_NODES_MAX 4096

/* A share of the rate: the rate is FLOW_RATE. */
#define FLOW_RATE (1ULL << 32)

/* Ticks that were admitted and offered. They count on and may wrap. */
struct flow_count {
	uint64_t taken;
	uint64_t asked;
};

struct flow {
	struct flow_count reported; /* this node's counters, up to which they were reported */
	struct flow_count sent;	    /* in the round that is under way */
	struct flow_count totals;   /* the last that the store told */
	uint64_t reported_at;	    /* the begin of the round */
	uint64_t learned_at;	    /* the begin of the last round that was answered */
	uint64_t round;		    /* from report to report */
	uint64_t length;	    /* from the report that was learned of to this one */
	uint64_t offered;	    /* and what was reported as asked since */
	float usual;		    /* choice_demand() of what is offered, as far as it is kept */
	unsigned int nodes;	    /* at the last answer */
	uint64_t busy_at;	    /* when much was offered last, on all nodes together */
	uint64_t stepped_at;
	uint64_t expected; /* a share of the rate */
	uint64_t assumed;  /* what was charged as expected since the last round */
	int64_t unsettled; /* what the others took and was not charged; < 0: charged in vain */
	uint64_t repay;	   /* of that, what is left to repay in this round */
	uint64_t repaying; /* at this share of the rate */
	uint64_t back;	   /* what was charged in vain, and is given back by the next step */
	struct flow_count in_doubt; /* what was not answered: the store may still add it */
	uint64_t doubted_until;	    /* behind the first answer */
	bool waits;		    /* for the answer to a report */
	bool was_lost;		    /* the round before */
	bool has_totals;	    /* and not lost FLOW_LOST rounds since */
	bool knows;		    /* something of the others */
	bool is_idle;		    /* nothing was offered here in the last round */
};

/*
 * Whether a node is to tell of a key, of which it took `excess` ticks beyond what need not be told.
 * Local first: a key far from its limit needs nobody.
 */
bool flow_is_due(uint64_t excess, int64_t level, uint64_t burst);

/* reported: the counters of this node, up to which nothing needs to be reported. */
void flow_begin(struct flow *flow, const struct flow_count *reported, uint64_t now);

/*
 * Begins a round, and returns what to add to the totals of the key. It is marked as reported: it is
 * never returned again, whatever becomes of it. own: the counters of this node now.
 */
struct flow_count flow_report(struct flow *flow, const struct flow_count *own, uint64_t now);

/*
 * Ends a round. totals: those behind what was reported. nodes: that share the limit, this one
 * included. The first totals, and totals that fell, are only noted.
 */
void flow_learn(struct flow *flow, uint64_t burst, const struct flow_count *totals,
		unsigned int nodes, uint64_t now);

/*
 * Ends a round in which the store did not answer, or that could not begin. rounds: lost in a row,
 * with this one. The connection of an unanswered report is to be reset, so that it is not carried
 * out later: as others' cost, from FLOW_DOUBT on.
 */
void flow_lost(struct flow *flow, unsigned int rounds);

/*
 * Begins anew with what others do, as behind FLOW_LOST rounds without an answer: the next totals
 * are only noted, what was charged in vain is no credit, and the time until now is charged to
 * nobody. What is owed stays owed.
 */
void flow_forget(struct flow *flow, uint64_t now);

/*
 * Before flow_lost(): the report has surely not been carried out, and never will be. Then nothing
 * of what others seem to take is taken for it.
 */
void flow_unsent(struct flow *flow);

/*
 * What to charge to the state now: at most `burst`, and at most the time since the last step, or
 * what leaves half of a burst of its level; or, negative, what to give back to it. A step that
 * comes later than a burst after the one before charges a burst; burst: not less than the usual
 * time between two steps.
 */
int64_t flow_step(struct flow *flow, uint64_t burst, int64_t level, uint64_t now);

/*
 * So much of what the last step returned was not charged: it is owed still, up to flow_cap(). What
 * was not given back (amount < 0) is no credit any more.
 */
void flow_uncharged(struct flow *flow, uint64_t burst, int64_t amount);

/*
 * Whether the key can be forgotten if another one needs its place: no more than a thousandth of a
 * burst is owed, and all nodes together were offered less than half the rate for as long as a burst
 * takes to refill. Only what was answered counts: of the time since nothing is known.
 */
bool flow_is_quiet(const struct flow *flow, uint64_t burst);

/*
 * Whether it can be forgotten for free: it was quiet for so long that what a new start costs is
 * made up for, 2 x nodes x (burst + 2 rounds).
 */
bool flow_rests(const struct flow *flow, uint64_t burst, uint64_t now);

/* The most that can be owed: docs/cluster.md. length: of a round. */
int64_t flow_cap(uint64_t burst, uint64_t length, unsigned int nodes);

#endif
