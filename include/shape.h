/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of shaping: a leaky bucket that queues. A packet is not dropped but given a
 * departure time, which a queue that keeps such times holds it back until: earliest departure time,
 * EDT, of Linux's fq qdisc (tc-fq(8)). Pure functions; time is an argument.
 *
 *   shape_draw        gives a packet its departure time, or refuses
 *   shape_wait        how long a packet that comes now has to wait
 *
 * The state is one moment, `ready`: when the next slot begins. A packet takes the slot at `ready`,
 * or one that begins now if that is past, and the next slot begins behind it, later by its cost. It
 * departs at the begin of its slot, so the slots of two packets are their cost apart, in a burst
 * too. A packet whose slot would begin later than `horizon` from now is refused and costs nothing.
 * This is the virtual scheduling form of the leaky bucket (ITU-T I.371, annex A), with the wait in
 * place of the loss.
 *
 * A packet that may not depart yet, because of another limit or by its sender's own pacing, departs
 * later than its slot begins. It holds up no other packet of its key: the slots go on. So in any
 * span t at most rate x t departs, and what such packets have saved up, at most a horizon's worth
 * where other limits delay them.
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
 * the packet departs no earlier than that; 0: at any time. ret: its departure. False: its slot
 * would begin beyond the horizon.
 */
static inline bool shape_draw(const struct sl_limit *limit, struct sl_ledger *ledger, __u64 cost,
			      __u64 now, __u64 earliest, __u64 *ret)
{
	__u64 slot = credit_latest(now, ledger->ready);

	if (credit_span(now, slot) > (__s64)limit->horizon)
		return false;
	ledger->ready = slot + cost;
	ledger->drawn = credit_latest(ledger->drawn, now);
	*ret = earliest ? credit_latest(slot, earliest) : slot; /* 0 may be later: moments wrap */
	return true;
}

#endif
