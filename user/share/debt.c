// SPDX-License-Identifier: GPL-2.0
#include "share/debt.h"

#include "kinds.h"
#include "gate/table.h"

/* Give up after 16 failed compare-and-swaps, like STATE_TRIES in the packet path. */
#define TRIES 16

/* Smallest bound of a source's debt: 20 ms, twice the time between two steps of this process. */
#define DEBT_LEAST ((int64_t)SL_TICKS_PER_SEC / 50)

/*
 * Returns the largest debt of a source. If the burst is small, the debt may exceed it. Otherwise
 * the state could refill completely between two steps, and later packets would not pay for all of
 * the charge.
 */
static uint64_t debt_most(const struct sl_limit *limit)
{
	return credit_max(limit->burst, DEBT_LEAST);
}

static struct sl_state state_copy(const struct sl_state *state)
{
	return (struct sl_state){
		.empty_at = __atomic_load_n(&state->empty_at, __ATOMIC_SEQ_CST),
		.full_at = __atomic_load_n(&state->full_at, __ATOMIC_RELAXED),
		.charged_at = __atomic_load_n(&state->charged_at, __ATOMIC_RELAXED),
		.blocked_until = __atomic_load_n(&state->blocked_until, __ATOMIC_RELAXED),
	};
}

/*
 * Returns the state after a charge of `cost`. Stores the charged ticks. First limits *refundable to
 * the credit that the state lacks, because a refund must not overfill the state.
 */
static struct sl_state state_charged(const struct sl_limit *limit, struct sl_state state,
				     int64_t cost, uint64_t *refundable, uint64_t now,
				     int64_t *ret_charged)
{
	int64_t level, charged;

	now = kind_now(SL_TOKEN_BUCKET, &state, now);
	if (credit_is_full(limit, &state, now)) /* update `full_at`, as the packet path does */
		state.full_at = now;
	level = credit_level(limit, &state, now);
	*refundable = credit_min(*refundable, credit_max(0, (int64_t)limit->refill - level));
	charged = credit_max(-(int64_t)*refundable,
			     credit_min(cost, credit_max(0, level + (int64_t)debt_most(limit))));
	*ret_charged = charged;
	*refundable += charged;
	if (charged)
		credit_set_level(limit, &state, level - charged, now);
	return state;
}

int64_t debt_charge(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, int64_t cost, uint64_t *refundable, uint64_t now)
{
	struct sl_state *state = entry_state(entry);

	for (int i = 0; (cost || *refundable) && i < TRIES; i++) {
		struct sl_state seen = state_copy(state), next;
		uint64_t left = *refundable;
		int64_t charged;

		if (!entry_is(entry, key))
			return 0;
		next = state_charged(limit, seen, cost, &left, now, &charged);
		if (!charged) {
			*refundable = left;
			return 0;
		}
		moment_advance(&state->full_at, next.full_at);
		moment_advance(&state->charged_at, next.charged_at);
		if (!word_swap(&state->empty_at, seen.empty_at, next.empty_at))
			continue;
		if (entry_is(entry, key)) {
			*refundable = left;
			return charged;
		}
		/*
		 * the entry now has another key: undo the charge, unless the new key has replaced
		 * the word
		 */
		word_swap(&state->empty_at, next.empty_at, seen.empty_at);
		return 0;
	}
	return 0;
}

int64_t debt_step(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		  struct flow *flow, struct debt *debt, uint64_t now)
{
	int64_t level = entry ? credit_level(limit, entry_state(entry), now) : 0;
	int64_t cost = flow_step(flow, debt_most(limit), level, now);
	int64_t over = credit_max(0, credit_span(debt->full_at, now)), charged;

	if (!entry)
		return 0;
	/* If the state may have been full since a charge, do not refund that charge. */
	debt->refundable -= credit_min(debt->refundable, over);
	charged = debt_charge(limit, entry, key, cost, &debt->refundable, now);
	flow_uncharged(flow, limit->burst, cost - charged);
	debt->full_at = now + limit->refill - (level - charged + debt->refundable);
	return charged;
}

/*
 * Returns `blocked_until` for a block that ends at `until`. If the limit escalates, the low bits of
 * the result contain a number of escalations: the smallest number whose block is at least this long
 * (kinds.h).
 */
static uint64_t block_word(const struct sl_limit *limit, uint64_t until, uint64_t now)
{
	uint64_t longest = limit->escalate ? limit->block_max : limit->block, steps = 0;
	uint64_t length = credit_min(credit_span(now, until), longest);
	uint64_t end = now + length;

	while (steps < limit->steps_max && block_length(limit, steps) < length)
		steps++;
	if (limit->escalate)
		end = (end & ~BLOCK_STEPS_MAX) | steps;
	return end ?: BLOCK_STEPS_MAX + 1;
}

bool debt_block(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		uint64_t until, uint64_t now)
{
	struct sl_state *state = entry_state(entry);
	struct sl_state seen = state_copy(state), next = seen;

	if (!limit->block || credit_span(now, until) <= 0 || block_holds(limit, &seen, now) ||
	    !entry_is(entry, key))
		return false;
	next.blocked_until = block_word(limit, until, now);
	if (!word_swap(&state->blocked_until, seen.blocked_until, next.blocked_until))
		return false;
	if (entry_is(entry, key))
		return true;
	word_swap(&state->blocked_until, next.blocked_until, seen.blocked_until);
	return false;
}

/* --- Division ------------------------------------------------------------------------------- */

bool division_step(struct division *division, uint64_t now)
{
	/* The packet path divides limits under the same condition. */
	bool divides = credit_times(division->at, FLOW_NODES_MAX, now) > 1;

	/*
	 * This process was late, so the packet path divides limits. Only a new reply of the store
	 * ends this.
	 */
	if (divides && !division->divides)
		division->is_answered = false;
	if (!divides && division->is_answered)
		division->at = (now + DIVISION_LEASE) ?: 1;
	division->divides = divides;
	return divides;
}

void division_round(struct division *division, unsigned int lost, uint64_t now)
{
	if (lost >= FLOW_LOST) {
		division->is_answered = false;
		if (!division->divides)
			division->at = now ?: 1;
		division->divides = true;
		return;
	}
	if (lost)
		return;
	if (!division->is_answered)
		division->answered_at = now;
	division->is_answered = true;
	if (division->divides && credit_span(division->answered_at, now) >= (int64_t)DIVISION_GRACE)
		division->at = (now + DIVISION_LEASE) ?: 1;
}
