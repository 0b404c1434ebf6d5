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

#endif
