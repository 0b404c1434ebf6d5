// SPDX-License-Identifier: GPL-2.0
#include "share/debts.h"

#include "block.h"
#include "gate/table.h"

/* As STATE_TRIES of packets: in each that is lost a packet was charged. */
#define TRIES 16

/* Of debt, in ticks: a limit may have less as its burst. */
#define DEBT_LEAST ((int64_t)SL_TICKS_PER_SEC / 50)

/*
 * A burst, or twice the time between two charges: a state that fills up in less would let pass
 * meanwhile what others have taken.
 */
static uint64_t debt_most(const struct sl_limit *limit)
{
	return credit_max(limit->burst, DEBT_LEAST);
}

static struct sl_state state_copy(const struct sl_state *state)
{
	return (struct sl_state){
		.zero = __atomic_load_n(&state->zero, __ATOMIC_SEQ_CST),
		.born = __atomic_load_n(&state->born, __ATOMIC_RELAXED),
		.drawn = __atomic_load_n(&state->drawn, __ATOMIC_RELAXED),
		.blocked = __atomic_load_n(&state->blocked, __ATOMIC_RELAXED),
	};
}

/*
 * What the state is after the charge. A state that has rested is born again, as in a draw. Where
 * it fills up, what was lent to others is made up for.
 */
static struct sl_state state_charged(const struct sl_limit *limit, struct sl_state state,
				     int64_t cost, uint64_t *lent, uint64_t now,
				     int64_t *ret_charged)
{
	int64_t level, charged;

	now = kind_now(SL_BUCKET, &state, now);
	if (credit_rested(limit, &state, now))
		state.born = now;
	level = credit_level(limit, &state, now);
	*lent = credit_min(*lent, credit_max(0, (int64_t)limit->refill - level));
	charged = credit_max(-(int64_t)*lent,
			     credit_min(cost, credit_max(0, level + (int64_t)debt_most(limit))));
	*ret_charged = charged;
	*lent += charged;
	if (charged)
		credit_set_level(limit, &state, level - charged, now);
	return state;
}

int64_t debt_charge(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, int64_t cost, uint64_t *lent, uint64_t now)
{
	struct sl_state *state = entry_state(entry);

	for (int i = 0; (cost || *lent) && i < TRIES; i++) {
		struct sl_state seen = state_copy(state), next;
		uint64_t lends = *lent;
		int64_t charged;

		if (!entry_is(entry, key))
			return 0;
		next = state_charged(limit, seen, cost, &lends, now, &charged);
		if (!charged) {
			*lent = lends;
			return 0;
		}
		moment_advance(&state->born, next.born);
		moment_advance(&state->drawn, next.drawn);
		if (!word_swap(&state->zero, seen.zero, next.zero))
			continue;
		if (entry_is(entry, key)) {
			*lent = lends;
			return charged;
		}
		/* the entry is another key's, which may have overwritten the charge */
		word_swap(&state->zero, next.zero, seen.zero);
		return 0;
	}
	return 0;
}

/*
 * What a state could have refilled since the last step, and not have held, is lent no more: it may
 * have been full in between, and be empty again.
 */
int64_t debt_step(const struct sl_limit *limit, struct sl_entry *entry, const struct state_key *key,
		  struct flow *flow, struct debt *debt, uint64_t now)
{
	int64_t level = entry ? credit_level(limit, entry_state(entry), now) : 0;
	int64_t cost = flow_step(flow, debt_most(limit), level, now);
	int64_t over = credit_max(0, credit_span(debt->full_at, now)), charged;

	if (!entry)
		return 0;
	debt->lent -= credit_min(debt->lent, over);
	charged = debt_charge(limit, entry, key, cost, &debt->lent, now);
	flow_uncharged(flow, limit->burst, cost - charged);
	/* when it would be full without what was lent, if no packet came */
	debt->full_at = now + limit->refill - (level - charged + debt->lent);
	return charged;
}

/* The word of a block that ends at a moment, with the steps after which one is as long. */
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
	next.blocked = block_word(limit, until, now);
	if (!word_swap(&state->blocked, seen.blocked, next.blocked))
		return false;
	if (entry_is(entry, key))
		return true;
	word_swap(&state->blocked, next.blocked, seen.blocked);
	return false;
}
