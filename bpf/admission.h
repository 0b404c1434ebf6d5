/* SPDX-License-Identifier: GPL-2.0 */
/* How many newcomers this CPU may give memory to, and how many there are. */
#ifndef SLUICE_ADMISSION_H
#define SLUICE_ADMISSION_H

#include "clock.h"
#include "maps.h"

#define EBUSY	  16
#define EEXIST	  17
#define ENOMEM	  12
#define EDEADLK	  35
#define ETIMEDOUT 110

static __always_inline struct sl_admission *admission_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&admission, &zero);
}

/* A CPU's tokens and counts are its own; on PREEMPT_RT a race costs a count, or gives a token twice. */
static __always_inline void event_count(struct sl_admission *here, enum sl_event event)
{
	here->event[event].total++;
	here->event[event].now++;
}

static __always_inline void tokens_refill(struct sl_admission *here,
					  const struct sl_meeting *meeting, __u64 windows)
{
	for (int pool = 0; pool < SL_POOLS; pool++) {
		__u32 most = meeting->tokens[pool];
		__u64 tokens = here->tokens[pool] +
			       (windows < most ? windows : most) * meeting->refill[pool];

		here->tokens[pool] = tokens < most ? tokens : most;
	}
}

/* Begins a window of this CPU's. Global, as ledger_charge is, for the verifier's sake. */
__noinline int admission_turn(struct sl_admission *here, const struct sl_meeting *meeting,
			      __u64 window)
{
	__u32 second = clock_ticks() / SL_TICKS_PER_NS >> SL_SECOND_SHIFT;

	if (!here || !meeting)
		return 0;
	tokens_refill(here, meeting, here->window ? window - here->window : ~0U); /* 0: a new map */
	here->event[SL_EVENT_MET].total += here->met;
	here->event[SL_EVENT_MET].now += here->met;
	here->met = 0;
	here->window = window;
	if (second == here->second)
		return 0;
	for (int i = 0; i < SL_EVENTS; i++) {
		here->event[i].last = second == here->second + 1 ? here->event[i].now : 0;
		here->event[i].now = 0;
	}
	here->second = second;
	return 0;
}

/* The window that the packet is in; never 0. */
static __always_inline __u64 admission_window(const struct sl_meeting *meeting, __u64 tick)
{
	return (tick >> meeting->window_shift) + 1;
}

static __always_inline void admission_begin(struct sl_admission *here,
					    const struct sl_meeting *meeting, __u64 tick)
{
	__u64 window = admission_window(meeting, tick);

	if (here->window != window)
		admission_turn(here, meeting, window);
}

/* One packet more of somebody unknown. Too many of them in one window are a crowd, until the end of the next. */
static __always_inline void admission_meet(struct sl_admission *here,
					   const struct sl_meeting *meeting, __u64 tick)
{
	admission_begin(here, meeting, tick);
	if (++here->met > meeting->crowd)
		here->crowd_until = (admission_window(meeting, tick) + 1) << meeting->window_shift;
}

static __always_inline bool admission_is_crowded(__u64 tick)
{
	const struct sl_admission *here = admission_get();

	return here && tick < here->crowd_until;
}

/* No source can show itself so often: its count ends before. */
#define BAR_NOBODY 0xffU

/* How often a source must have shown itself before. 0: everybody comes in. */
static __always_inline __u32 admission_bar(const struct sl_admission *here,
					   const struct sl_meeting *meeting, enum sl_pool pool,
					   __u64 tick)
{
	__u32 left = here->tokens[pool], most = meeting->tokens[pool];

	if (!left)
		return BAR_NOBODY;
	if (left > most / 2)
		return tick < here->crowd_until ? 2 : 0;
	return left > most / 4 ? 2 : left > most / 8 ? 4 : 8;
}

/* Takes the token without which nothing is inserted. */
static __always_inline bool admission_take(enum sl_pool pool)
{
	struct sl_admission *here = admission_get();

	if (!here || !here->tokens[pool])
		return false;
	here->tokens[pool]--;
	return true;
}

/* Counts what came of an insertion. Which errno a refusal has, differs by kernel. */
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
