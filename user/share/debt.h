/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: charges states for the packets that other nodes admitted, and blocks keys that other nodes
 * block. The packet path changes the same states meanwhile, so every change is a compare-and-swap,
 * and may fail.
 */
#ifndef SLUICE_SHARE_DEBT_H
#define SLUICE_SHARE_DEBT_H

#include <stdbool.h>
#include <stdint.h>

#include "share/flow.h"
#include "ways.h"

struct debt {
	uint64_t refundable; /* ticks by which earlier charges of this process lower the level */
	uint64_t full_at;    /* time at which the state would be full without these charges */
};

/*
 * Charges a state `cost` ticks, even if its level is too low for a packet; refunds if `cost` is
 * negative. limit: a token bucket. The level falls to at most a burst below 0, or 20 ms if that is
 * more: this is the largest debt of a source. *refundable: begins at 0, and is updated here. A
 * refund is at most *refundable, so no source gets more than without this process.
 *
 * Returns the ticks charged; 0 if the entry now has another key, or if packets changed the state
 * during every attempt.
 */
int64_t debt_charge(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, int64_t cost, uint64_t *refundable, uint64_t now);

/*
 * Charges or refunds the result of flow_step(). An amount that could not be charged stays owed.
 * entry: NULL if the key has no entry. Its state would have refilled meanwhile, so the amount then
 * counts as charged. Returns the ticks charged, as debt_charge() does.
 */
int64_t debt_step(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		  struct flow *flow, struct debt *debt, uint64_t now);

/*
 * Blocks the key of an entry until `until`, at most for the longest block of the limit. Returns
 * whether it did: false if the limit does not block, if the key is already blocked, if the entry
 * has another key, or if a packet changed the block meanwhile.
 */
bool debt_block(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		uint64_t until, uint64_t now);

/* --- Division ------------------------------------------------------------------------------- */

/*
 * Computes `divide_at` of the gate, for `--on-loss divide`. From that time on the packet path
 * divides shared limits by the number of nodes. While the store replies, the process moves the time
 * ahead at each step, like a lease. So division begins by itself if the process is killed or
 * stopped. If the store is away, the process sets the time to now.
 */

/* How far ahead the time is set: a busy machine or a resize delays the process less than this. */
#define DIVISION_LEASE (3 * SL_TICKS_PER_SEC)

/*
 * Limits stay divided this long after the store replies again. Other nodes may reach the store a
 * little later, and until then they use their parts of the limits without reporting that.
 */
#define DIVISION_GRACE (2 * SL_TICKS_PER_SEC)

struct division {
	uint64_t at; /* value for `divide_at`, at first read from the gate; 0: never divide */
	uint64_t answered_at; /* time of the first reply after the store was last lost */
	bool is_answered;     /* one of the last FLOW_LOST rounds got a reply */
	bool divides;	      /* the packet path divided limits at the last step */
};

/* Returns whether the packet path divides limits now. If so, nothing may be charged for others. */
bool division_step(struct division *division, uint64_t now);

/*
 * Handles the end of a round; call it after division_step() with the same `now`. lost: the number
 * of rounds in a row without a reply, 0 if this round got a reply.
 */
void division_round(struct division *division, unsigned int lost, uint64_t now);

#endif
