/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: charges the states of this node for packets that passed at other nodes. Also blocks keys
 * that other nodes block. The packet path may change a state at any time, so this file changes
 * states by compare-and-swap.
 */
#ifndef SLUICE_SHARE_DEBT_H
#define SLUICE_SHARE_DEBT_H

#include <stdbool.h>
#include <stdint.h>

#include "share/flow.h"
#include "ways.h"

struct debt {
	uint64_t refundable; /* ticks that this process charged to the state and may still refund */
	uint64_t full_at;    /* when the state would be full if this process had charged nothing */
};

/*
 * Charges `cost` ticks to the state of a token bucket, even if its level is too low for a packet. A
 * negative cost is a refund. The level never falls below minus a burst, or below -20 ms if a burst
 * is shorter than 20 ms. A refund is at most *refundable, the ticks that this process has charged.
 * So a source never gets more credit than without sharing. The caller sets *refundable to 0 before
 * the first call. Returns the ticks that were charged. Returns 0 if the entry has another key, or
 * if packets changed the state during every attempt.
 */
int64_t debt_charge(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, int64_t cost, uint64_t *refundable, uint64_t now);

/*
 * Charges or refunds the amount that flow_step() returns. If a charge fails, the amount is added to
 * the debt. If the key has no entry (`entry` is NULL), charges nothing and forgets the amount,
 * because a missing state is full. Returns the ticks that were charged.
 */
int64_t debt_step(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		  struct flow *flow, struct debt *debt, uint64_t now);

/*
 * Blocks the key of an entry until `until`, but at most for the longest block of the limit. Returns
 * whether the key was blocked. Returns false if the limit does not block, if the key is already
 * blocked, if the entry has another key, or if a packet changed the block meanwhile.
 */
bool debt_block(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		uint64_t until, uint64_t now);

/* --- Division ------------------------------------------------------------------------------- */

/*
 * Computes `divide_at` of a gate, for `--on-loss divide`. After this time, the packet path divides
 * shared limits by the number of nodes. While the store replies, each step moves this time into the
 * future, like a lease. So division begins even if the process is stopped or killed. If the store
 * is away, the process sets the time to now.
 */

/*
 * Each step sets `divide_at` to this time from now. It must exceed the delay of a step on a busy
 * machine or during a resize.
 */
#define DIVISION_LEASE (3 * SL_TICKS_PER_SEC)

/*
 * Limits stay divided for this time after the store replies again. Another node may reach the store
 * later. Until then it does not report what it takes, up to 1/nodes of each limit.
 */
#define DIVISION_GRACE (2 * SL_TICKS_PER_SEC)

struct division {
	uint64_t at; /* value that is written to `divide_at` of the gate at each step; 0: never */
	uint64_t answered_at; /* time of the store's first reply after its last outage */
	bool is_answered;     /* the store has replied in one of the last FLOW_LOST rounds */
	bool divides;	      /* limits were divided at the last step */
};

/* Returns whether limits are divided now. If so, the caller must not charge for other nodes. */
bool division_step(struct division *division, uint64_t now);

/*
 * Ends a round. Must be called after division_step() with an equal `now`. lost: number of
 * consecutive rounds without a reply; 0: this round got a reply.
 */
void division_round(struct division *division, unsigned int lost, uint64_t now);

#endif
