/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: charges states for what other nodes took, and blocks what they block, while packets do
 * the same.
 */
#ifndef SLUICE_SHARE_DEBTS_H
#define SLUICE_SHARE_DEBTS_H

#include <stdbool.h>
#include <stdint.h>

#include "share/flow.h"
#include "ways.h"

struct debt {
	uint64_t lent;	  /* what the state lacks for others: debt_charge() */
	uint64_t full_at; /* when it may be full if it lacked nothing */
};

/*
 * Charges the state in a entry, as a packet of that cost would be, though it is never refused; or,
 * where `cost` is negative, gives back what was charged in vain. limit: a token bucket; cost: in
 * ticks, at most the burst or, if that is more, 20 ms. So far the level falls below 0: that is what
 * a source can owe for others.
 *
 * lent: ticks by which the level is lower than it would be without this process, at most; 0 to
 * begin with. No more is given back, so no source gets more than without it.
 *
 * Returns what was charged; 0, too, for a entry of another key, and if packets win every try.
 */
int64_t debt_charge(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, int64_t cost, uint64_t *lent, uint64_t now);

/*
 * Charges what the flow of a key says, or gives back: flow_step(). What could not be charged is
 * owed still. entry: NULL if the key has none; what is due passes with time then, as it would for a
 * state that is full. Returns what debt_charge() does.
 */
int64_t debt_step(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		  struct flow *flow, struct debt *debt, uint64_t now);

/*
 * Blocks the key in a entry until a moment, for the time of the limit at most. False: the limit does
 * not block, the key is blocked already, the entry is another key's, or packets were faster.
 */
bool debt_block(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		uint64_t until, uint64_t now);

#endif
