/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rate of new keys on one CPU: intervals of about 64 ms, flood detection, and counts in total
 * and by second. Pure functions; the time is an argument.
 */
#ifndef SLUICE_ADMISSION_H
#define SLUICE_ADMISSION_H

#include "sluice.h"

/* Returns the interval of a jiffy; never 0. */
static inline __u64 flood_interval(const struct sl_params *params, __u64 jiffy)
{
	return (jiffy >> params->interval_shift) + 1;
}

/* In a flood a key gets an entry if it was seen more often than this. */
#define FLOOD_MIN_HITS 2

/* Returns whether a CPU sees a flood of new keys whose policies have a budget, or have none. */
static inline bool flood_is_on(const struct sl_admission *here, bool budgeted, __u64 jiffy)
{
	return jiffy < here->flood_until[budgeted];
}

/* Returns whether a CPU sees a flood of new keys of any policy. */
static inline bool flood_is_any(const struct sl_admission *here, __u64 jiffy)
{
	return flood_is_on(here, false, jiffy) || flood_is_on(here, true, jiffy);
}

/* Counts the new keys of an interval, at its end. */
static inline void flood_count_interval(struct sl_admission *here)
{
	for (int budgeted = 0; budgeted < 2; budgeted++) {
		here->event[SL_EVENT_NEW_KEY].total += here->new_keys[budgeted];
		here->event[SL_EVENT_NEW_KEY].now += here->new_keys[budgeted];
		here->new_keys[budgeted] = 0;
	}
}

/* Moves the rates on to a second: many may have passed since this CPU last saw a new key. */
static inline void flood_turn(struct sl_admission *here, __u32 second)
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
