/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of a sliding window: never more than N (`most`) in any span of T, exact, on any
 * number of CPUs. Pure functions; time is an argument.
 *
 *   window_roll        moves a ledger on to the current sub-window
 *   window_draw        charges a ledger, or refuses
 *   window_when        when so much may pass again
 *   window_give_back   undoes a charge
 *
 * Time is cut into sub-windows of T/G, the same for all keys. What passes is counted in the
 * sub-window of its moment, and a packet passes while the current sub-window and the G before it
 * hold at most N together. Any span of T touches at most G + 1 of them, so at most N pass in it.
 * A source that takes all it can gets N every G + 1 sub-windows: G/(G+1) of N/T.
 *
 * The state is three words, of which the first decides:
 *
 *   window   index of the current sub-window (16 bits), and the total that counts now (48 bits)
 *   past     a tag (4 bits), and what each of the G sub-windows before counted (60/G bits each)
 *   drawn    a moment in the current sub-window
 *
 * A charge adds to the total by one compare-and-swap of `window`. When a sub-window has begun, one
 * CPU turns the ledger: what counted in the oldest is subtracted from the total. It takes four
 * steps, each a compare-and-swap, and gives up where one fails (ledger_turn() in bpf/ledger.h). A
 * CPU may stall, and others act, between any two.
 *
 *   1. past     If its tag is not that of the index, or is that of the next one: no counts.
 *   2. drawn    Moves on, never back. From here on each CPU knows that the sub-window is over,
 *               whatever its own clock says, as the moment is not of the index.
 *   3. window   The new index and the new total.
 *   4. past     The new counts, with the new index as their tag.
 *
 * Where `past` has no counts, or a wrong tag, the whole total is taken to be of the sub-window that
 * ended last: it is forgotten later, never sooner. A tag comes round after 16 sub-windows. Step 1
 * keeps it from looking right while the counts are those of another sub-window: between steps 3 and
 * 4 it is wrong, or there are none.
 *
 * A count of `past` is in units of 2^shift, the smallest that let N fit. What is left over stays in
 * the total and is counted with the next sub-window: later, never sooner. Less than one unit is
 * left over at any time, and N is at least 2^(60/G - 1) units. So a source gets at least
 *
 *     G/(G+1) x (N - 2^shift)/T        exactly G/(G+1) x N/T while N < 2^(60/G): 4096 for G = 5
 *
 * in packets; in bytes less by what the last packet did not fit into.
 *
 * The index comes round after 65,536 sub-windows, so `drawn` tells how long ago its sub-window was.
 * Only while a turn is between steps 2 and 3, or was given up there, the indexes alone tell it, and
 * tell too little if they came round. Whoever comes back in just the sub-window in which the index
 * comes round, or in one of the G before, finds what counted then: it is forgotten later, never
 * sooner.
 *
 * Charges can be lost where a CPU stands still for longer than T within a turn: between steps 2 and
 * 3, if the index comes round and as much is charged meanwhile as counted then; or before step 4,
 * for 16 sub-windows, until another CPU has come between its steps 1 and 4, and `past` is the same.
 *
 * When the clock itself wraps, after 36 years, its last sub-window, which is cut short, and the
 * first one after count as one. Clocks of CPUs that differ take no index back, and T is longer by
 * WINDOW_CLOCKS than what was asked for. A packet counts at the moment that its CPU reads, or at
 * `drawn` if that is later.
 *
 * Units. Amounts are packets or bytes, below 2^47. Moments and periods are in ticks.
 */
#ifndef SLUICE_WINDOW_H
#define SLUICE_WINDOW_H

#include "credit.h"

#define WINDOW_GROUPS_MAX 10
#define WINDOW_MOST_MAX	  (1ULL << 47)

/* By how much the clocks of two CPUs may differ: 2 us. Synchronized ones differ by far less. */
#define WINDOW_CLOCKS (2000 * SL_TICKS_PER_NS)

#define WINDOW_TOTAL_BITS 48
#define WINDOW_TOTAL_MASK ((1ULL << WINDOW_TOTAL_BITS) - 1)
#define WINDOW_INDEX_MASK 0xffffULL
#define WINDOW_PAST_BITS  60
#define WINDOW_PAST_MASK  ((1ULL << WINDOW_PAST_BITS) - 1)
#define WINDOW_TAG_MASK	  0xfULL

#define WINDOW_STEP_BITS   20 /* a sub-window has 2^19 to 2^20 steps, or as many as ticks */
#define WINDOW_FACTOR_BITS 44 /* and leaves 20 bits of a product to the index */

/* The bits of one count in `past`. groups: 1 to WINDOW_GROUPS_MAX; one count has 48 at most. */
static inline __u32 window_bits(__u32 groups)
{
	return groups < 2 ? WINDOW_TOTAL_BITS : WINDOW_PAST_BITS / groups;
}

static inline __u64 window_total(__u64 window)
{
	return window & WINDOW_TOTAL_MASK;
}

/*
 * The lowest 20 bits of the number of the sub-window at a moment. A multiplication takes the place
 * of a division, which would cost a tenth of the packet: window_scale().
 */
static inline __u64 window_number(const struct sl_limit *limit, __u64 now)
{
	return (now >> limit->coarse) * limit->factor >> WINDOW_FACTOR_BITS;
}

/* The same, as far as a ledger holds it. */
static inline __u64 window_index(const struct sl_limit *limit, __u64 now)
{
	return window_number(limit, now) & WINDOW_INDEX_MASK;
}

/*
 * Sets the length of a sub-window: `least` ticks, or longer by less than 2^-18 of it, or by a tick.
 * Time is told in steps of 2^coarse ticks, and a step is factor / 2^WINDOW_FACTOR_BITS of a
 * sub-window, rounded down: so none is too short. Products wrap, which costs nothing: the index
 * needs their low bits only.
 */
static inline void window_scale(struct sl_limit *limit, __u64 least)
{
	__u64 steps;

	limit->coarse = 0;
	while (least >> limit->coarse >> WINDOW_STEP_BITS)
		limit->coarse++;
	steps = (least >> limit->coarse) + 1;
	limit->factor = (1ULL << WINDOW_FACTOR_BITS) / steps;
	limit->period = ((1ULL << WINDOW_FACTOR_BITS) / limit->factor + 1) << limit->coarse;
}

static inline __u64 window_make(__u64 index, __u64 total)
{
	return index << WINDOW_TOTAL_BITS | (total < WINDOW_TOTAL_MASK ? total : WINDOW_TOTAL_MASK);
}

static inline __u64 window_past(__u64 index, __u64 counts)
{
	return index << WINDOW_PAST_BITS | counts;
}

/* The sum of all counts of `past`, in packets or bytes. */
static inline __u64 window_sum(const struct sl_limit *limit, __u64 counts)
{
	__u64 sum = 0, mask = (1ULL << limit->bits) - 1;

	for (int i = 0; i < WINDOW_GROUPS_MAX && i < limit->groups; i++) {
		sum += counts & mask;
		counts >>= limit->bits;
	}
	return sum << limit->shift;
}

/*
 * How many sub-windows have begun since that of the index, and never more. now: not before `drawn`.
 * Since the begin of time, which is where the clock wraps, none is older than that.
 */
static inline __u64 window_steps(const struct sl_limit *limit, const struct sl_ledger *ledger,
				 __u64 now)
{
	__u64 old = ledger->window >> WINDOW_TOTAL_BITS, number = window_number(limit, now);
	__u64 least = (now - ledger->drawn) / limit->period, steps = number - old;
	__u64 wrapped = now < ledger->drawn;

	if (least > limit->groups + wrapped) /* indexes may have come round */
		return least;
	if (wrapped)
		steps += window_number(limit, ~0ULL);
	steps &= WINDOW_INDEX_MASK;
	/* `drawn` is ahead of the index, which may be of before a wrap */
	if (window_index(limit, ledger->drawn) != old && now / limit->period <= limit->groups)
		steps = steps < number ? steps : number;
	return steps;
}

/* Whether indexes come round to an old one in this sub-window, or in one of the next G. */
static inline bool window_comes_round(const struct sl_limit *limit, __u64 old, __u64 index)
{
	return ((old - index) & WINDOW_INDEX_MASK) <= limit->groups;
}

/*
 * Moves a ledger on by `steps` sub-windows, into the one with this index. Where that comes round to
 * the old one within G the total stays, and counts once more: by the first word, which it makes up,
 * a CPU that stalls in a turn from the old one sees that charges were made since.
 */
static inline void window_advance(const struct sl_limit *limit, struct sl_ledger *ledger,
				  __u64 steps, __u64 index)
{
	__u64 old = ledger->window >> WINDOW_TOTAL_BITS, total = window_total(ledger->window);
	__u64 counts = ledger->past & WINDOW_PAST_MASK, most = (1ULL << limit->bits) - 1;
	__u64 before, current, closed;

	if (ledger->past >> WINDOW_PAST_BITS != (old & WINDOW_TAG_MASK))
		counts = 0;
	if (steps > limit->groups) {
		total = window_comes_round(limit, old, index) ? total : 0;
		counts = 0;
	} else if (steps) {
		before = window_sum(limit, counts);
		current = total > before ? total - before : 0;
		closed = credit_min(current >> limit->shift, most);
		counts = (counts << limit->bits | closed) << limit->bits * (steps - 1);
		counts &= (1ULL << limit->bits * limit->groups) - 1;
		total = window_sum(limit, counts) + current - (closed << limit->shift);
	}
	ledger->window = window_make(index, total);
	ledger->past = window_past(index, counts);
}

/*
 * Whether a sub-window has begun since that of the index, or a turn has not come further than step
 * 2. A clock that is behind that of another CPU does not bring back a sub-window that is over.
 */
static inline bool window_is_over(const struct sl_limit *limit, const struct sl_ledger *ledger,
				  __u64 now)
{
	__u64 index = ledger->window >> WINDOW_TOTAL_BITS;

	now = credit_latest(now, ledger->drawn);
	return now - ledger->drawn >= limit->period || window_index(limit, now) != index ||
	       window_index(limit, ledger->drawn) != index;
}

/* Moves a ledger on to the sub-window of `now`, with nothing charged: the result of a turn. */
static inline void window_roll(const struct sl_limit *limit, struct sl_ledger *ledger, __u64 now)
{
	if (!window_is_over(limit, ledger, now))
		return;
	now = credit_latest(now, ledger->drawn);
	window_advance(limit, ledger, window_steps(limit, ledger, now), window_index(limit, now));
	ledger->drawn = now;
}

/* What step 1 of a turn from `seen` to `next` makes of `past`. */
static inline __u64 window_settle(const struct sl_ledger *seen, const struct sl_ledger *next)
{
	__u64 index = seen->window >> WINDOW_TOTAL_BITS, tag = seen->past >> WINDOW_PAST_BITS;

	if (tag == (index & WINDOW_TAG_MASK) && tag != next->past >> WINDOW_PAST_BITS)
		return seen->past;
	return window_past(index, 0);
}

/* A ledger in which nothing counts, which `forgive` makes too. */
static inline struct sl_ledger window_full(const struct sl_limit *limit, __u64 now)
{
	__u64 index = window_index(limit, now);

	return (struct sl_ledger){
		.window = window_make(index, 0), .past = window_past(index, 0), .drawn = now};
}

/* The ledger of a new key. One that starts empty has all of N in the current sub-window. */
static inline struct sl_ledger window_birth(const struct sl_limit *limit, __u64 now)
{
	struct sl_ledger ledger = window_full(limit, now);

	if (limit->start_empty)
		ledger.window += limit->most;
	return ledger;
}

/*
 * Charges `cost` to a copy of a ledger that was rolled to now, or refuses (false). The caller
 * publishes it by compare-and-swap of `window`.
 */
static inline bool window_draw(const struct sl_limit *limit, struct sl_ledger *ledger, __u64 cost)
{
	if (window_total(ledger->window) + cost > limit->most)
		return false;
	ledger->window += cost;
	return true;
}

/*
 * Undoes a charge, while its sub-window is the current one. Later it cannot be told apart from what
 * other packets were charged, and stays. now: the moment of the charge. False: it stays.
 */
static inline bool window_give_back(const struct sl_limit *limit, struct sl_ledger *ledger,
				    __u64 cost, __u64 now)
{
	if (ledger->window >> WINDOW_TOTAL_BITS != window_index(limit, now) ||
	    window_total(ledger->window) < cost)
		return false;
	ledger->window -= cost;
	return true;
}

/* What may still pass in a ledger that was rolled to now. */
static inline __u64 window_left(const struct sl_limit *limit, const struct sl_ledger *ledger)
{
	__u64 total = window_total(ledger->window);

	return total < limit->most ? limit->most - total : 0;
}

/* The moment at which the sub-window `steps` after that of `now` begins. */
static inline __u64 window_begin(const struct sl_limit *limit, __u64 now, __u64 steps)
{
	__u64 whole = 1ULL << WINDOW_FACTOR_BITS, step = now >> limit->coarse;
	__u64 left = steps * whole - (step * limit->factor & (whole - 1));
	__u64 begin = step + (left + limit->factor - 1) / limit->factor;

	if (begin <= ~0ULL >> limit->coarse)
		return begin << limit->coarse;
	/* the clock wraps until then: these are sub-windows after that */
	steps -= (window_number(limit, ~0ULL) - window_number(limit, now)) & WINDOW_INDEX_MASK;
	return (steps * whole + limit->factor - 1) / limit->factor << limit->coarse;
}

/*
 * Finds when at least `needed` may pass, if nothing is asked until then: now, or at the begin of
 * one of the next sub-windows. ret: the ledger at that moment. needed: at most N.
 */
static inline __u64 window_when(const struct sl_limit *limit, const struct sl_ledger *ledger,
				__u64 needed, __u64 now, struct sl_ledger *ret)
{
	__u64 then = now = credit_latest(now, ledger->drawn);

	/* one more than G + 1, for the two that count as one where the clock wraps */
	for (__u64 step = 1; step <= WINDOW_GROUPS_MAX + 3 && step <= limit->groups + 3ULL;
	     step++) {
		*ret = *ledger;
		window_roll(limit, ret, then);
		if (window_left(limit, ret) >= needed)
			break;
		then = window_begin(limit, now, step);
	}
	return then;
}

#endif
