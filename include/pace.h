/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rate of new keys on one CPU: intervals of about 64 ms, flood detection, and counts in total
 * and by second. Pure functions; the time is an argument.
 */
#ifndef SLUICE_PACE_H
#define SLUICE_PACE_H

#include "sluice.h"

/* Returns the interval of a jiffy; never 0. */
static inline __u64 window_of(const struct sl_meeting *meeting, __u64 jiffy)
{
	return (jiffy >> meeting->window_shift) + 1;
}

/* In a flood a key gets an entry if it was seen more often than this. */
#define CROWD_BAR 2

/* Returns whether a CPU sees a flood of new keys whose policies have a budget, or have none. */
static inline bool pace_is_crowded(const struct sl_admission *here, bool budgeted, __u64 jiffy)
{
	return jiffy < here->crowd_until[budgeted];
}

/* Returns whether a CPU sees a flood of new keys of any policy. */
static inline bool pace_is_flooded(const struct sl_admission *here, __u64 jiffy)
{
	return pace_is_crowded(here, false, jiffy) || pace_is_crowded(here, true, jiffy);
}

/* Counts the new keys of an interval, at its end. */
static inline void pace_met(struct sl_admission *here)
{
	for (int budgeted = 0; budgeted < 2; budgeted++) {
		here->event[SL_EVENT_MET].total += here->met[budgeted];
		here->event[SL_EVENT_MET].now += here->met[budgeted];
		here->met[budgeted] = 0;
	}
}

/* Moves the rates on to a second: many may have passed since this CPU last saw a new key. */
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
