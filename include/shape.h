/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of shaping: a leaky bucket that queues. A packet is not dropped but given a
 * departure time, which a queue that keeps such times holds it back until: earliest departure time,
 * EDT, of Linux's fq qdisc (tc-fq(8)). Pure functions; time is an argument.
 *
 *   shape_draw        gives a packet its departure time, or refuses
 *   shape_give_back   undoes that for the packet that came last
 *
 * The state is one moment, `ready`: when the next packet may depart. A packet departs at `ready`,
 * or at once if that is past, and moves `ready` on from there by its cost. So a packet departs its
 * predecessor's cost after it or later, and the rate is never exceeded, not even in a burst. A
 * packet that would wait longer than `horizon` is refused and costs nothing. This is the virtual
 * scheduling form of the leaky bucket (ITU-T I.371, annex A), with the wait in place of the loss.
 *
 * Units: moments, costs and the horizon are in ticks. A horizon is at most SL_BURST_TICKS_MAX.
 */
#ifndef SLUICE_SHAPE_H
#define SLUICE_SHAPE_H

#include "credit.h"

/* How long a packet that comes now has to wait. */
static inline __u64 shape_wait(const struct sl_ledger *ledger, __u64 now)
{
	return credit_max(0, credit_span(now, ledger->ready));
}

/* A ledger that lets the next packet depart at once: of a new key, and what `forgive` makes. */
static inline struct sl_ledger shape_full(__u64 now)
{
	return (struct sl_ledger){.ready = now, .drawn = now};
}

/*
 * Charges a copy of a ledger, which the caller publishes by compare-and-swap on `ready`. earliest:
 * the packet departs no earlier than that, or than now; 0: at any time. ret: its departure. False:
 * it would have to wait longer than the horizon.
 */
static inline bool shape_draw(const struct sl_limit *limit, struct sl_ledger *ledger, __u64 cost,
			      __u64 now, __u64 earliest, __u64 *ret)
{
	__u64 departure = credit_latest(now, ledger->ready);

	if (earliest) /* 0 may be later than now: moments wrap */
		departure = credit_latest(departure, earliest);
	if (credit_span(now, departure) > (__s64)limit->horizon)
		return false;
	ledger->ready = departure + cost;
	ledger->drawn = credit_latest(ledger->drawn, now);
	*ret = departure;
	return true;
}

/*
 * Undoes a charge if no packet was given a later departure since. Otherwise the time between those
 * two stays unused.
 */
static inline bool shape_give_back(struct sl_ledger *ledger, __u64 cost, __u64 departure)
{
	if (ledger->ready != departure + cost)
		return false;
	ledger->ready = departure;
	return true;
}

#endif
