/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of shaping: a leaky bucket that queues. A packet gets a departure time, and a
 * queue such as Linux's fq qdisc (tc-fq(8), earliest departure time) holds it until then. Pure
 * functions; the time is an argument.
 *
 * The state is one time, `ready_at`: when the next slot begins. A packet gets the slot at
 * `ready_at`, or a slot that begins now if that is past, and moves `ready_at` to the slot's begin
 * plus its cost. So the slots of two packets are their cost apart, even in a burst. If its slot
 * would begin later than `horizon` from now, the packet is refused and costs nothing. This is the
 * virtual scheduling form of the leaky bucket (ITU-T I.371, annex A), with a wait in place of the
 * loss.
 *
 * A packet that another shape or its sender's pacing delays departs after its slot begins, and does
 * not delay other packets of its key. So in any span t at most rate x t departs, plus such delayed
 * packets: at most what the longest horizon holds at the rate.
 *
 * Units: ticks. A horizon is at most SL_BURST_TICKS_MAX.
 */
#ifndef SLUICE_SHAPE_H
#define SLUICE_SHAPE_H

#include "credit.h"

/* Returns how long a packet has to wait at `now`. */
static inline __u64 shape_wait(const struct sl_state *state, __u64 now)
{
	return credit_max(0, credit_span(now, state->ready_at));
}

/*
 * Returns whether the sender delays the packet to `wanted` (0: not at all), beyond the horizon. It
 * is refused without a charge, and not stored, because other packets may depart earlier.
 */
static inline bool shape_is_too_late(const struct sl_limit *limit, __u64 wanted, __u64 now)
{
	return wanted && credit_span(now, wanted) > (__s64)limit->horizon;
}

/* Returns a state that lets the next packet depart at once: new, or as `forgive` sets it. */
static inline struct sl_state shape_full(__u64 now)
{
	return (struct sl_state){.ready_at = now, .charged_at = now};
}

/*
 * Charges a copy of a state, which the caller publishes by compare-and-swap on `ready_at`. Returns
 * false if the slot would begin after the horizon. earliest: the packet departs no earlier; 0: any
 * time. ret: its departure time.
 */
static inline bool shape_charge(const struct sl_limit *limit, struct sl_state *state, __u64 cost,
				__u64 now, __u64 earliest, __u64 *ret)
{
	__u64 slot = credit_latest(now, state->ready_at);

	if (credit_span(now, slot) > (__s64)limit->horizon)
		return false;
	state->ready_at = slot + cost;
	state->charged_at = credit_latest(state->charged_at, now);
	*ret = earliest ? credit_latest(slot, earliest) : slot; /* 0 may be later: times wrap */
	return true;
}

#endif
