/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pools of tokens, one for ledgers and one for buckets: an insertion into their maps costs a token. A pool is a token
 * bucket that all CPUs share. It is kept as one word, the tokens spent, and those that came while it was full; what was
 * made by a window, less that, is its level. CPUs take tokens from it in batches. Pure functions, shared by the packet
 * path (bpf/admission.h) and the command line (user/pressure.c); a window is an argument.
 *
 *  1. Over any span of t seconds all CPUs insert half as many entries as the map has, and t/32 of them, at most. The pool
 *     holds that half, less a batch for each possible CPU, and less what a window brings, as that comes at its beginning.
 *     So tokens that a CPU keeps for later are taken from no other, and need not go back: the pool refills at its whole
 *     rate beside them.
 *  2. All batches together are a sixteenth of that half at most, what the pool gets in a second; or as many tokens each
 *     as a policy has limits.
 *  3. A CPU looks at the pool once in each window, and takes up to a batch when it runs out and the pool had some. A CPU
 *     that found no token looks again in the next window. So the word moves once for a batch of insertions, and not
 *     with the packets of a flood.
 */
#ifndef SLUICE_POOL_H
#define SLUICE_POOL_H

#include "sluice.h"

/* The window that a jiffy is in; never 0. */
static inline __u64 pool_window(const struct sl_meeting *meeting, __u64 jiffy)
{
	return (jiffy >> meeting->window_shift) + 1;
}

/* Tokens made by the beginning of a window, in 1/2^SL_TOKEN_SHIFT. Wraps. */
static inline __u64 pool_made(const struct sl_meeting *meeting, enum sl_pool pool, __u64 window)
{
	return window * meeting->refill[pool];
}

/* The level, in 1/2^SL_TOKEN_SHIFT. A CPU may see a window later than another: then nothing is left for now. */
static inline __u64 pool_left(const struct sl_meeting *meeting, enum sl_pool pool, __u64 spent,
			      __u64 window)
{
	__s64 left = pool_made(meeting, pool, window) - spent;
	__s64 most = (__u64)meeting->tokens[pool] << SL_TOKEN_SHIFT;

	return left < 0 ? 0 : left < most ? left : most;
}

/* Tokens in the pool, rounded down. */
static inline __u32 pool_level(const struct sl_meeting *meeting, enum sl_pool pool, __u64 spent,
			       __u64 window)
{
	return pool_left(meeting, pool, spent, window) >> SL_TOKEN_SHIFT;
}

/* The word after `count` tokens were taken: at most the level. */
static inline __u64 pool_take(const struct sl_meeting *meeting, enum sl_pool pool, __u64 spent,
			      __u64 window, __u32 count)
{
	return pool_made(meeting, pool, window) - pool_left(meeting, pool, spent, window) +
	       ((__u64)count << SL_TOKEN_SHIFT);
}

/* What a CPU knows to be left, its own tokens included. spent: the pool's word, for when a window has begun since. */
static inline __u32 pool_known(const struct sl_meeting *meeting, const struct sl_admission *here,
			       enum sl_pool pool, __u64 spent, __u64 window)
{
	return here->tokens[pool] + (here->window == window
					     ? here->seen[pool]
					     : pool_level(meeting, pool, spent, window));
}

/* No source can show itself so often: its count ends before. */
#define BAR_NOBODY 0xffU

/* How often a source must have shown itself before, by what a CPU knows to be left. 0: each one comes in. */
static inline __u32 pool_bar(const struct sl_meeting *meeting, enum sl_pool pool, __u32 left,
			     bool crowded)
{
	__u32 most = meeting->tokens[pool];

	if (!left)
		return BAR_NOBODY;
	if (left > most / 2)
		return crowded ? 2 : 0;
	return left > most / 4 ? 2 : left > most / 8 ? 4 : 8;
}

#endif
