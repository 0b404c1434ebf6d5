/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tokens: how many keys this CPU may admit, and how many newcomers it meets.
 *
 *   admission_begin   at each newcomer: begins a window if one is due
 *   admission_meet    counts a newcomer, and tells a crowd
 *   admission_bar     how often a key must have shown itself to be admitted
 *   tokens_get        fills up this CPU's tokens from the pool that all CPUs share
 *   admission_take    takes the token of one insertion
 *   admission_note    counts the result of an insertion
 *
 * Used by: newcomer.h, bucket.h, ledger.h. Uses: include/pool.h, which has the
 * arithmetic; clocks.h; maps.h.
 */
#ifndef SLUICE_ADMISSION_H
#define SLUICE_ADMISSION_H

#include "clocks.h"
#include "maps.h"
#include "pool.h"

#define EBUSY	  16
#define EEXIST	  17
#define ENOMEM	  12
#define EDEADLK	  35
#define ETIMEDOUT 110

static __always_inline struct sl_admission *admission_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&admission, &first);
}

/*
 * Tokens and counts belong to one CPU and are updated plainly. On PREEMPT_RT a race loses a count,
 * or gives a token twice.
 */
static __always_inline void event_count(struct sl_admission *here, enum sl_event event)
{
	here->event[event].total++;
	here->event[event].now++;
}

static __always_inline struct sl_pool_word *pool_get(__u32 pool)
{
	return bpf_map_lookup_elem(&pools, &pool);
}

/* Reads how many tokens a pool has, in the window that has just begun. */
static __always_inline void pool_read(struct sl_admission *here, const struct sl_meeting *meeting,
				      enum sl_pool pool)
{
	const struct sl_pool_word *word = pool_get(pool);

	if (word)
		here->seen[pool] = pool_level(meeting, pool, read_once(word->spent), here->window);
}

/* A lost round means that another CPU took a batch. */
#define POOL_TRIES 8

/*
 * Fills up this CPU's tokens to a batch, or with what the pool has left. A CPU that gets none waits
 * for the next window.
 */
BPF_GLOBAL int pool_draw(struct sl_admission *here, const struct sl_meeting *meeting,
			 enum sl_pool pool)
{
	struct sl_pool_word *word = pool_get(pool);

	if (!here || !meeting || !word || pool >= SL_POOLS)
		return 0;
	here->seen[pool] = 0;
	for (int i = 0; i < POOL_TRIES; i++) {
		__u64 spent = read_once(word->spent);
		__u32 level = pool_level(meeting, pool, spent, here->window);
		__u32 room = meeting->batch[pool] - here->tokens[pool];
		__u32 count = level < room ? level : room;
		__u64 next = pool_take(meeting, pool, spent, here->window, count);

		if (!count)
			return 0;
		if (__sync_val_compare_and_swap(&word->spent, spent, next) != spent)
			continue;
		here->tokens[pool] += count;
		here->seen[pool] = level - count;
		return 0;
	}
	return 0;
}

/*
 * Makes sure that a packet finds a token for each of its insertions, if the pool has them. This
 * comes before the insertions, and not where a token is taken, because the stack is short there
 * (BPF_GLOBAL).
 */
static __always_inline void tokens_get(struct sl_admission *here, const struct sl_meeting *meeting,
				       enum sl_pool pool)
{
	__u32 needed = pool == SL_POOL_LEDGERS ? SL_LIMITS_MAX : 1;

	if (here->tokens[pool] < needed && here->seen[pool])
		pool_draw(here, meeting, pool);
}

/* Begins a window of this CPU: reads the pools, and counts the newcomers of the window before. */
BPF_GLOBAL int admission_turn(struct sl_admission *here, const struct sl_meeting *meeting,
			      __u64 window)
{
	__u32 second = clock_ticks() / SL_TICKS_PER_NS >> SL_SECOND_SHIFT;

	if (!here || !meeting)
		return 0;
	pace_met(here);
	here->window = window;
	pool_read(here, meeting, SL_POOL_LEDGERS);
	pool_read(here, meeting, SL_POOL_BUCKETS);
	pace_turn(here, second);
	return 0;
}

static __always_inline void admission_begin(struct sl_admission *here,
					    const struct sl_meeting *meeting, __u64 jiffy)
{
	__u64 window = pool_window(meeting, jiffy);

	if (here->window != window)
		admission_turn(here, meeting, window);
}

/*
 * Counts a packet of an unknown key. More than `crowd` in one window are a crowd until the next
 * window has ended.
 */
static __always_inline void admission_meet(struct sl_admission *here,
					   const struct sl_meeting *meeting, __u64 jiffy)
{
	if (++here->met > meeting->crowd)
		here->crowd_until = (pool_window(meeting, jiffy) + 1) << meeting->window_shift;
}

static __always_inline bool admission_is_crowded(__u64 jiffy)
{
	const struct sl_admission *here = admission_get();

	return here && pool_is_crowded(here, jiffy);
}

/* How often a key must have shown itself before this packet. */
static __always_inline __u32 admission_bar(const struct sl_admission *here,
					   const struct sl_meeting *meeting, enum sl_pool pool,
					   __u64 jiffy)
{
	return pool_bar(meeting, pool, here->tokens[pool] + here->seen[pool],
			pool_is_crowded(here, jiffy));
}

/* Takes the token of one insertion. False: none is left. */
static __always_inline bool admission_take(enum sl_pool pool)
{
	struct sl_admission *here = admission_get();

	if (!here || !here->tokens[pool])
		return false;
	here->tokens[pool]--;
	return true;
}

/* Counts the result of an insertion. The errno of a refusal differs by kernel. */
static __always_inline void admission_note(long err)
{
	struct sl_admission *here = admission_get();

	if (!here)
		return;
	if (!err)
		event_count(here, SL_EVENT_INSERTED);
	else if (err == -EBUSY || err == -EDEADLK || err == -ETIMEDOUT)
		event_count(here, SL_EVENT_BUSY);
	else if (err == -ENOMEM)
		event_count(here, SL_EVENT_NO_MEMORY);
	else if (err != -EEXIST)
		event_count(here, SL_EVENT_FAILED);
}

#endif
