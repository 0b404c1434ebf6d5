/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The pace of newcomers on one CPU: windows of some 64 ms, in which too many are a crowd, and
 * counts in total and by second.
 *
 * Pure functions, shared by the packet path (bpf/newcomer.h) and the command line; the moment is an
 * argument.
 */
#ifndef SLUICE_PACE_H
#define SLUICE_PACE_H

#include "sluice.h"

/* The window of a jiffy: never 0. */
static inline __u64 window_of(const struct sl_meeting *meeting, __u64 jiffy)
{
	return (jiffy >> meeting->window_shift) + 1;
}

/* In a crowd: how often a key must have shown itself before. */
#define CROWD_BAR 2

/* Whether a CPU meets a crowd of newcomers. */
static inline bool pace_is_crowded(const struct sl_admission *here, __u64 jiffy)
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
