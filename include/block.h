/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Blocks: for a time after an overrun a ledger refuses whatever its limit matches. Pure functions;
 * time is an argument. Every kind of limit that drops may block.
 *
 *   block_holds   whether an overrun before blocks a ledger now
 *   block_next    the block that an overrun begins
 *
 * A block is one word, its end in ticks; 0: there was none. Clocks tell whole nanoseconds, so the
 * lowest 4 bits of an end are free. With `escalate` they hold its steps: how often the block was
 * multiplied. A block leaves the level of its ledger as it is, so at its end the level is that
 * after a rest of the same length. As debt in `zero` a block would end with an empty ledger, and
 * the first two packets in a row would begin the next one.
 *
 * Escalation. A block that begins within the length of the last one after its end is one step
 * longer, up to `block_max`, which `steps_max` steps reach. For each such length that passes
 * without one it is a step shorter.
 */
#ifndef SLUICE_BLOCK_H
#define SLUICE_BLOCK_H

#include "credit.h"

#define BLOCK_STEPS_BITS 4
#define BLOCK_STEPS_MAX	 15ULL /* and their mask */

/* The length of a block after so many steps: block x escalate^steps, and block_max at most. */
static inline __u64 block_length(const struct sl_limit *limit, __u64 steps)
{
	__u64 length = limit->block, power = limit->escalate;

	if (steps && steps >= limit->steps_max)
		return limit->block_max;
	/* without a branch, which would double what the verifier walks */
	for (int bit = 0; bit < BLOCK_STEPS_BITS; bit++) {
		length *= 1 + (power - 1) * (steps >> bit & 1);
		power *= power; /* may wrap, and is of no use then */
	}
	return length;
}

/* The end of a block, without its steps. */
static inline __u64 block_end(const struct sl_limit *limit, const struct sl_ledger *ledger)
{
	return limit->escalate ? ledger->blocked & ~BLOCK_STEPS_MAX : ledger->blocked;
}

static inline bool block_holds(const struct sl_limit *limit, const struct sl_ledger *ledger,
			       __u64 now)
{
	return limit->block && ledger->blocked && credit_span(now, block_end(limit, ledger)) > 0;
}

/* The steps of a block that begins now, on a ledger that is not blocked. */
static inline __u64 block_steps(const struct sl_limit *limit, const struct sl_ledger *ledger,
				__u64 now)
{
	__u64 steps = ledger->blocked & BLOCK_STEPS_MAX, length, rest, back;

	if (!limit->escalate || !ledger->blocked)
		return 0;
	length = block_length(limit, steps);
	rest = credit_max(0, credit_span(block_end(limit, ledger), now));
	back = rest ? (rest - 1) / length : 0;
	return credit_min(credit_max(0, credit_span(back, steps + 1)), limit->steps_max);
}

/* The word of a block that begins now. One that would end at moment 0 ends a nanosecond later. */
static inline __u64 block_next(const struct sl_limit *limit, const struct sl_ledger *ledger,
			       __u64 now)
{
	__u64 steps = block_steps(limit, ledger, now);
	__u64 end = now + block_length(limit, steps);

	if (limit->escalate)
		end = ((end + BLOCK_STEPS_MAX) & ~BLOCK_STEPS_MAX) | steps;
	return end ? end : BLOCK_STEPS_MAX + 1;
}

#endif
