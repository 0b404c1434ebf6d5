/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: charges states for what other nodes took, and blocks keys that other nodes block, while
 * packets change the same words.
 */
#ifndef SLUICE_SHARE_DEBT_H
#define SLUICE_SHARE_DEBT_H

#include <stdbool.h>
#include <stdint.h>

#include "share/flow.h"
#include "ways.h"

struct debt {
	uint64_t refundable; /* ticks by which the level is lower because of this process */
	uint64_t full_at;    /* when the state may be full, apart from that */
};

/*
 * Charges a state as a packet of that cost would, but never refuses; or refunds, if `cost` is
 * negative. limit: a token bucket. cost: in ticks. The level falls at most a burst below 0, or 20
 * ms if that is more: a source can owe that much for others. No more is refunded than `refundable`,
 * 0 at first, so no source gets more than without this process.
 *
 * Returns what was charged: 0 if the entry has another key, or if packets win every try.
 */
int64_t debt_charge(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, int64_t cost, uint64_t *refundable, uint64_t now);

/*
 * Charges, or refunds, what flow_step() returns. What could not be charged stays owed. entry: NULL
 * if the key has no entry; then time pays, as it would fill a state. Returns as debt_charge().
 */
int64_t debt_step(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		  struct flow *flow, struct debt *debt, uint64_t now);

/*
 * Blocks the key of an entry until a moment, at most for the time of the limit. Returns false if
 * the limit does not block, the key is blocked already, the entry has another key, or packets won.
 */
bool debt_block(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		uint64_t until, uint64_t now);

/* --- Division ------------------------------------------------------------------------------- */

/*
 * `divide_at` of the gate, for `--on-loss divide`: from that moment on the packet path charges a
 * packet of a shared limit as often as there are nodes. It is a lease. A process that gets replies
 * moves it ahead at each step, so it expires if the process is killed or stopped; if the store is
 * away the process ends it.
 */

/* The term of the lease: longer than a busy machine stops a process, or than a resize takes. */
#define DIVISION_LEASE (3 * SL_TICKS_PER_SEC)

/*
 * Limits stay divided this long after replies have returned: other nodes may reach the store later,
 * and take their part meanwhile without reporting it.
 */
#define DIVISION_GRACE (2 * SL_TICKS_PER_SEC)

struct division {
	uint64_t at;	      /* at first the word of the gate; 0: never */
	uint64_t answered_at; /* since when rounds get replies */
	bool is_answered;     /* one of the last FLOW_LOST rounds got a reply */
	bool divides;	      /* the packet path did at the last step */
};

/* Returns whether the packet path divides limits now. Then nothing may be charged for others. */
bool division_step(struct division *division, uint64_t now);

/* After division_step() with the same `now`. lost: rounds in a row without a reply, with this one. */
void division_round(struct division *division, unsigned int lost, uint64_t now);

#endif
