/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Blocks: for a time after an overrun a state refuses everything that its limit matches. Every kind
 * of limit that drops may block. Pure functions; the time is an argument.
 *
 * A block is one word, its end in ticks; 0: no block yet. Clocks count whole nanoseconds, so the
 * lowest 4 bits of an end are free. With `escalate` they hold its steps: how often the block was
 * multiplied. A block does not change the level of its state, which refills in the meantime. If a
 * block were debt in `empty_at`, it would end with an empty state, and the first two packets in a
 * row would begin the next block.
 *
 * Escalation. If a block begins before the length of the last block has passed after its end, it
 * has one step more, up to `steps_max`, which gives `block_max`. For each such length without a
 * block it has a step less.
 */
#ifndef SLUICE_BLOCK_H
#define SLUICE_BLOCK_H

#include "credit.h"

#define BLOCK_STEPS_BITS 4
#define BLOCK_STEPS_MAX	 15ULL /* and their mask */

/* Returns the length of a block after `steps`: block x escalate^steps, at most block_max. */
static inline __u64 block_length(const struct sl_limit *limit, __u64 steps)
{
	__u64 length = limit->block, power = limit->escalate;

	if (steps && steps >= limit->steps_max)
		return limit->block_max;
	/* without a branch, which would double what the verifier walks */
	for (int bit = 0; bit < BLOCK_STEPS_BITS; bit++) {
		length *= 1 + (power - 1) * (steps >> bit & 1);
		power *= power; /* may wrap, but is not used then */
	}
	return length;
}

/* Returns the end of a block, without its steps. */
static inline __u64 block_end(const struct sl_limit *limit, const struct sl_state *state)
{
	return limit->escalate ? state->blocked_until & ~BLOCK_STEPS_MAX : state->blocked_until;
}

static inline bool block_holds(const struct sl_limit *limit, const struct sl_state *state,
			       __u64 now)
{
	return limit->block && state->blocked_until &&
	       credit_span(now, block_end(limit, state)) > 0;
}

/* Returns the steps of a block that begins now, in a state that is not blocked. */
static inline __u64 block_steps(const struct sl_limit *limit, const struct sl_state *state,
				__u64 now)
{
	__u64 steps = state->blocked_until & BLOCK_STEPS_MAX, length, rest, back;

	if (!limit->escalate || !state->blocked_until)
		return 0;
	length = block_length(limit, steps);
	rest = credit_max(0, credit_span(block_end(limit, state), now));
	back = rest ? (rest - 1) / length : 0;
	return credit_min(credit_max(0, credit_span(back, steps + 1)), limit->steps_max);
}

/* Returns the word of a block that begins now. If it would end at 0, it ends a nanosecond later. */
static inline __u64 block_next(const struct sl_limit *limit, const struct sl_state *state,
			       __u64 now)
{
	__u64 steps = block_steps(limit, state, now);
	__u64 end = now + block_length(limit, steps);

	if (limit->escalate)
		end = ((end + BLOCK_STEPS_MAX) & ~BLOCK_STEPS_MAX) | steps;
	return end ? end : BLOCK_STEPS_MAX + 1;
}

#endif
