/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pools of tokens, one for ledgers and one for buckets. An insertion into their maps costs a token.
 *
 *   pool_level, pool_take   what a pool holds; what its word becomes when tokens are taken
 *   pool_bar                how often a key must have shown itself, by what is left
 *   pace_met, pace_turn     counts of admission, in total and by second
 *
 * A pool is a token bucket that all CPUs share. It is kept as one word: the tokens spent, plus
 * those that arrived while it was full. Its level is what was made by the current window less that
 * word. CPUs take tokens in batches.
 *
 *  1. Over any span of t seconds all CPUs together insert at most half as many entries as the map
 *     has, plus t/32 of them. The pool holds that half, less a batch for each possible CPU, and
 *     less what a window brings, which comes at its beginning. So a CPU may keep tokens for later
 *     and need not return them: the pool refills at its whole rate beside them.
 *  2. All batches together are at most a sixteenth of that half, which is what the pool gets in a
 *     second, or as many tokens each as a policy has limits.
 *  3. A CPU reads the pool once in each window, and takes up to a batch when it runs out and the
 *     pool had some. A CPU that found no token reads it again in the next window. So the word
 *     changes once for a batch of insertions, and not with the packets of a flood.
 *
 * Pure functions, shared by the packet path (bpf/admission.h) and the command line; the window is
 * an argument.
 */
#ifndef SLUICE_POOL_H
#define SLUICE_POOL_H

#include "sluice.h"

/* The window of a jiffy: never 0. */
static inline __u64 pool_window(const struct sl_meeting *meeting, __u64 jiffy)
{
	return (jiffy >> meeting->window_shift) + 1;
}

/* Tokens made by the beginning of a window, in 1/2^SL_TOKEN_SHIFT. May wrap. */
static inline __u64 pool_made(const struct sl_meeting *meeting, enum sl_pool pool, __u64 window)
{
	return window * meeting->refill[pool];
}

/*
 * The level, in 1/2^SL_TOKEN_SHIFT. It is 0 for a CPU that still is in an earlier window than the
 * last one to take.
 */
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

/* The word after `count` tokens, at most the level, were taken. */
static inline __u64 pool_take(const struct sl_meeting *meeting, enum sl_pool pool, __u64 spent,
			      __u64 window, __u32 count)
{
	return pool_made(meeting, pool, window) - pool_left(meeting, pool, spent, window) +
	       ((__u64)count << SL_TOKEN_SHIFT);
}

/*
 * Tokens that a CPU can count on, its own included. spent: the word of the pool, used if a window
 * has begun since.
 */
static inline __u32 pool_available(const struct sl_meeting *meeting,
				   const struct sl_admission *here, enum sl_pool pool, __u64 spent,
				   __u64 window)
{
	return here->tokens[pool] + (here->window == window
					     ? here->seen[pool]
					     : pool_level(meeting, pool, spent, window));
}

/* A bar that no key meets: the counts of the sketch end below it. */
#define BAR_CLOSED 0xffU

/*
 * How often a key must have shown itself before, by the tokens that a CPU can count on. 0: every
 * key is admitted.
 */
static inline __u32 pool_bar(const struct sl_meeting *meeting, enum sl_pool pool, __u32 left,
			     bool crowded)
{
	__u32 most = meeting->tokens[pool];

	if (!left)
		return BAR_CLOSED;
	if (left > most / 2)
		return crowded ? 2 : 0;
	return left > most / 4 ? 2 : left > most / 8 ? 4 : 8;
}

/* Whether a CPU meets a crowd of newcomers. */
static inline bool pool_is_crowded(const struct sl_admission *here, __u64 jiffy)
{
	return jiffy < here->crowd_until;
}

/* Counts the newcomers of a window, at its end. */
static inline void pace_met(struct sl_admission *here)
{
	here->event[SL_EVENT_MET].total += here->met;
	here->event[SL_EVENT_MET].now += here->met;
	here->met = 0;
}

/*
 * Brings the paces to a second. A CPU does so only when it meets a newcomer, so many seconds may
 * have passed.
 */
static inline void pace_turn(struct sl_admission *here, __u32 second)
{
	if (second == here->second)
		return;
	for (int i = 0; i < SL_EVENTS; i++) {
		here->event[i].last = second == here->second + 1 ? here->event[i].now : 0;
		here->event[i].now = 0;
	}
	here->second = second;
}

#endif
