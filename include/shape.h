/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of shaping: a leaky bucket that queues. A packet gets a departure time, and a
 * queue such as Linux's fq qdisc (tc-fq(8), earliest departure time) holds it until then. Pure
 * functions; the time is an argument.
 *
 * The state is one time, `ready_at`, at which the next slot begins. A packet gets this slot, or if
 * `ready_at` is past, a slot that begins now. `ready_at` then moves to the start of the slot plus
 * the packet's cost. So the slots of two packets never overlap, even in a burst. If the slot
 * would begin later than `horizon` from now, the packet is refused and costs nothing. This is the
 * virtual scheduling form of the leaky bucket (ITU-T I.371, annex A), except that packets wait
 * instead of being lost.
 *
 * Another shape, or the sender's pacing, may delay a packet beyond the start of its slot. Such a
 * delay does not delay other packets of the key. So in any span t, at most rate x t departs, plus
 * packets with such a delay: at most rate x longest horizon.
 *
 * Units: ticks. A horizon is at most SL_BURST_TICKS_MAX.
 */
#ifndef SLUICE_SHAPE_H
#define SLUICE_SHAPE_H

#include "credit.h"

/* Returns how long a packet that arrives at `now` must wait, in ticks. */
static inline __u64 shape_wait(const struct sl_state *state, __u64 now)
{
	return credit_max(0, credit_span(now, state->ready_at));
}

/*
 * Returns whether the sender delays the packet until after the horizon. wanted: departure time that
 * the sender requests; 0: none. Such a packet is refused and not charged. No slice stores its
 * refusal, because other packets may depart earlier.
 */
static inline bool shape_is_too_late(const struct sl_limit *limit, __u64 wanted, __u64 now)
{
	return wanted && credit_span(now, wanted) > (__s64)limit->horizon;
}

/* Returns the state of a new key, in which the next packet departs at once. */
static inline struct sl_state shape_full(__u64 now)
{
	return (struct sl_state){.ready_at = now, .charged_at = now};
}

/*
 * Charges a copy of a state. The caller publishes the copy by compare-and-swap on `ready_at`.
 * Returns false if the slot would begin after the horizon. earliest: time before which the packet
 * must not depart; 0: none. Sets *ret to the departure time.
 */
static inline bool shape_charge(const struct sl_limit *limit, struct sl_state *state, __u64 cost,
				__u64 now, __u64 earliest, __u64 *ret)
{
	__u64 slot = credit_latest(now, state->ready_at);

	if (credit_span(now, slot) > (__s64)limit->horizon)
		return false;
	state->ready_at = slot + cost;
	state->charged_at = credit_latest(state->charged_at, now);
	/* If `earliest` is 0, it is not a time. Times wrap, so 0 could be later than `slot`. */
	*ret = earliest ? credit_latest(slot, earliest) : slot;
	return true;
}

#endif
