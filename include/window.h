/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of a sliding window: at most N (`most`) in any span of T, exact, on any number of
 * CPUs. Pure functions; the time is an argument.
 *
 * Time is cut into sub-windows of T/G, the same for all keys. A packet passes if the current
 * sub-window and the G sub-windows before it then hold at most N together. It is counted in the
 * sub-window of its time. Any span of T touches at most G + 1 sub-windows, so at most N pass in it.
 * A source that sends as much as possible gets N every G + 1 sub-windows: G/(G+1) of N/T.
 *
 * The state is three words, of which the first decides:
 *
 *  window      index of the current sub-window (16 bits), and the total that counts now (48 bits)
 *  past        a tag (4 bits), and the count of each of the G sub-windows before (60/G bits each)
 *  charged_at  a time in the current sub-window
 *
 * A charge adds to the total by one compare-and-swap of `window`. When a sub-window has begun, one
 * CPU turns the state: it subtracts the count of the oldest sub-window from the total. A turn has
 * four steps, each a compare-and-swap, and ends if one fails (state_turn() in bpf/state.h). Between
 * two steps the CPU may stall, and other CPUs may act.
 *
 *  1. past        Its counts are cleared unless its tag fits the old index and not the new index.
 *  2. charged_at  It moves forward, never back. From then on each CPU knows that the sub-window is
 *                 over, even if its clock is late: `charged_at` is not in the index's sub-window.
 *  3. window      It gets the new index and the new total.
 *  4. past        It gets the new counts, with the new index as their tag.
 *
 * If `past` has no counts, or a wrong tag, the whole total is assumed to be of the last sub-window:
 * it expires late, never early. A tag wraps after 16 sub-windows, but matches no counts of
 * another sub-window: between steps 3 and 4 the tag is wrong, or step 1 has cleared the counts.
 *
 * A count of `past` is in units of 2^shift, the smallest unit in which N fits. The remainder, below
 * one unit, stays in the total and is counted with the next sub-window: later, never sooner. N is
 * at least 2^(60/G - 1) units. So a source gets at least
 *
 *   G/(G+1) x (N - 2^shift)/T        exactly G/(G+1) x N/T while N < 2^(60/G): 4096 for G = 5
 *
 * in packets; in bytes less by the part that was too small for the last packet.
 *
 * The index wraps after 65,536 sub-windows; `charged_at` shows how long ago its sub-window was,
 * except while a turn is between steps 2 and 3, or was given up there. If a source then comes back
 * in exactly the sub-window in which the index wraps to its old value, or in one of the G before
 * it, its old total still counts: it expires later, never sooner.
 *
 * Charges can be lost only if a CPU stalls within a turn: between steps 2 and 3 for longer than T,
 * if the index wraps to the same value and the same total is charged in the meantime; or before
 * step 4 for 16 sub-windows, if another CPU is between its steps 1 and 4, and `past` is the same.
 *
 * When the clock wraps, after 36 years, its last sub-window, which is shorter, and the first one
 * after it count as one. If CPU clocks differ, no index moves back: a packet counts at the time
 * that its CPU reads, or at `charged_at` if that is later. T is WINDOW_CLOCKS longer than requested
 * to cover the difference.
 *
 * Units: amounts are packets or bytes, below 2^47. Times and periods are in ticks.
 */
#ifndef SLUICE_WINDOW_H
#define SLUICE_WINDOW_H

#include "credit.h"

#define WINDOW_GROUPS_MAX 10
#define WINDOW_MOST_MAX	  (1ULL << 47)

/*
 * Largest difference between two CPU clocks that a window allows for: 2 us. The clocks of a machine
 * differ far less.
 */
#define WINDOW_CLOCKS (2000 * SL_TICKS_PER_NS)

#define WINDOW_TOTAL_BITS 48
#define WINDOW_TOTAL_MASK ((1ULL << WINDOW_TOTAL_BITS) - 1)
#define WINDOW_INDEX_MASK 0xffffULL
#define WINDOW_PAST_BITS  60
#define WINDOW_PAST_MASK  ((1ULL << WINDOW_PAST_BITS) - 1)
#define WINDOW_TAG_MASK	  0xfULL

#define WINDOW_STEP_BITS   20 /* a sub-window has 2^19 to 2^20 time steps, or one step per tick */
#define WINDOW_FACTOR_BITS 44 /* a product has 20 more bits, for the number of the sub-window */

/* Returns the size of one count in `past`: at most 48 bits. groups: 1 to WINDOW_GROUPS_MAX. */
static inline __u32 window_bits(__u32 groups)
{
	return groups < 2 ? WINDOW_TOTAL_BITS : WINDOW_PAST_BITS / groups;
}

static inline __u64 window_total(__u64 window)
{
	return window & WINDOW_TOTAL_MASK;
}

/*
 * Returns the lowest 20 bits of the number of the sub-window that contains a time. Multiplies by a
 * fraction (window_scale()), because a division would take a tenth of a packet's time.
 */
static inline __u64 window_number(const struct sl_limit *limit, __u64 now)
{
	return (now >> limit->coarse) * limit->factor >> WINDOW_FACTOR_BITS;
}

/* Returns the index of the sub-window that contains a time: the low bits of its number. */
static inline __u64 window_index(const struct sl_limit *limit, __u64 now)
{
	return window_number(limit, now) & WINDOW_INDEX_MASK;
}

/*
 * Sets the length of a sub-window to at least `least` ticks. The length exceeds `least` by less
 * than 2^-18 of `least`, or by one tick. A step is 2^coarse ticks, and is factor /
 * 2^WINDOW_FACTOR_BITS of a sub-window, rounded down, so no sub-window is too short. Products wrap,
 * but only their low bits matter.
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

/* Returns the sum of all counts in `past`, in packets or bytes. */
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
 * Returns how many sub-windows have begun since the sub-window in the state's index. The result is
 * never too high. If the clock has wrapped, the result is at most the number of sub-windows since
 * time 0. now: not before `charged_at`.
 */
static inline __u64 window_steps(const struct sl_limit *limit, const struct sl_state *state,
				 __u64 now)
{
	__u64 old = state->window >> WINDOW_TOTAL_BITS, number = window_number(limit, now);
	__u64 least = (now - state->charged_at) / limit->period, steps = number - old;
	__u64 wrapped = now < state->charged_at;

	if (least > limit->groups + wrapped) /* the index may have wrapped */
		return least;
	if (wrapped)
		steps += window_number(limit, ~0ULL);
	steps &= WINDOW_INDEX_MASK;
	/* if index and `charged_at` differ, the state may be from before the clock wrapped */
	if (window_index(limit, state->charged_at) != old && now / limit->period <= limit->groups)
		steps = steps < number ? steps : number;
	return steps;
}

/*
 * Returns whether the 16-bit index reaches `old` again at `index` or in the G sub-windows after it.
 */
static inline bool window_comes_round(const struct sl_limit *limit, __u64 old, __u64 index)
{
	return ((old - index) & WINDOW_INDEX_MASK) <= limit->groups;
}

/*
 * Updates a state by `steps` sub-windows, to `index`. If the index wraps to the old index within G
 * sub-windows, keeps the total. Otherwise a CPU that stalls in a turn from the old index could find
 * the same first word again, although packets were charged in the meantime.
 */
static inline void window_advance(const struct sl_limit *limit, struct sl_state *state, __u64 steps,
				  __u64 index)
{
	__u64 old = state->window >> WINDOW_TOTAL_BITS, total = window_total(state->window);
	__u64 counts = state->past & WINDOW_PAST_MASK, most = (1ULL << limit->bits) - 1;
	__u64 before, current, closed;

	if (state->past >> WINDOW_PAST_BITS != (old & WINDOW_TAG_MASK))
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
	state->window = window_make(index, total);
	state->past = window_past(index, counts);
}

/* Returns whether the sub-window in a state's index ended before `now` or before `charged_at`. */
static inline bool window_is_over(const struct sl_limit *limit, const struct sl_state *state,
				  __u64 now)
{
	__u64 index = state->window >> WINDOW_TOTAL_BITS;

	now = credit_latest(now, state->charged_at);
	return now - state->charged_at >= limit->period || window_index(limit, now) != index ||
	       window_index(limit, state->charged_at) != index;
}

/* Updates a copy of a state to the sub-window that contains `now`. */
static inline void window_roll(const struct sl_limit *limit, struct sl_state *state, __u64 now)
{
	if (!window_is_over(limit, state, now))
		return;
	now = credit_latest(now, state->charged_at);
	window_advance(limit, state, window_steps(limit, state, now), window_index(limit, now));
	state->charged_at = now;
}

/*
 * Returns `past` after step 1 of a turn from `seen` to `next`. The head of this file defines a
 * turn.
 */
static inline __u64 window_settle(const struct sl_state *seen, const struct sl_state *next)
{
	__u64 index = seen->window >> WINDOW_TOTAL_BITS, tag = seen->past >> WINDOW_PAST_BITS;

	if (tag == (index & WINDOW_TAG_MASK) && tag != next->past >> WINDOW_PAST_BITS)
		return seen->past;
	return window_past(index, 0);
}

/* Returns a state without counted packets. `sluice forgive` stores such a state. */
static inline struct sl_state window_full(const struct sl_limit *limit, __u64 now)
{
	__u64 index = window_index(limit, now);

	return (struct sl_state){
		.window = window_make(index, 0), .past = window_past(index, 0), .charged_at = now};
}

/* Returns the state of a new key. If the limit starts empty, no packet passes at first. */
static inline struct sl_state window_new(const struct sl_limit *limit, __u64 now)
{
	struct sl_state state = window_full(limit, now);

	if (limit->start_empty)
		state.window += limit->most;
	return state;
}

/*
 * Charges `cost` to a copy of a state. The caller has called window_roll(), and publishes the copy.
 * Returns false if the window has no room for `cost`.
 */
static inline bool window_charge(const struct sl_limit *limit, struct sl_state *state, __u64 cost)
{
	if (window_total(state->window) + cost > limit->most)
		return false;
	state->window += cost;
	return true;
}

/*
 * Undoes a charge that was made at time `now`. Returns false if another sub-window has begun since
 * `now`.
 */
static inline bool window_give_back(const struct sl_limit *limit, struct sl_state *state,
				    __u64 cost, __u64 now)
{
	if (state->window >> WINDOW_TOTAL_BITS != window_index(limit, now) ||
	    window_total(state->window) < cost)
		return false;
	state->window -= cost;
	return true;
}

/* Returns how many packets or bytes may still pass in the current sub-window of the state. */
static inline __u64 window_left(const struct sl_limit *limit, const struct sl_state *state)
{
	__u64 total = window_total(state->window);

	return total < limit->most ? limit->most - total : 0;
}

/* Returns the time at which the sub-window begins that is `steps` after the current sub-window. */
static inline __u64 window_begin(const struct sl_limit *limit, __u64 now, __u64 steps)
{
	__u64 whole = 1ULL << WINDOW_FACTOR_BITS, step = now >> limit->coarse;
	__u64 left = steps * whole - (step * limit->factor & (whole - 1));
	__u64 begin = step + (left + limit->factor - 1) / limit->factor;

	if (begin <= ~0ULL >> limit->coarse)
		return begin << limit->coarse;
	/*
	 * The clock wraps before that time, and then sub-windows are numbered from 0 again. So
	 * count only the sub-windows after the wrap.
	 */
	steps -= (window_number(limit, ~0ULL) - window_number(limit, now)) & WINDOW_INDEX_MASK;
	return (steps * whole + limit->factor - 1) / limit->factor << limit->coarse;
}

/*
 * Returns the earliest time at which `needed` packets or bytes may pass, if nothing is charged
 * until then: now, or the start of a later sub-window. needed: at most limit->most. Sets *ret to
 * the state at that time.
 */
static inline __u64 window_when(const struct sl_limit *limit, const struct sl_state *state,
				__u64 needed, __u64 now, struct sl_state *ret)
{
	__u64 then = now = credit_latest(now, state->charged_at);

	/* Take G + 3 steps, because two sub-windows may count as one when the clock wraps. */
	for (__u64 step = 1; step <= WINDOW_GROUPS_MAX + 3 && step <= limit->groups + 3ULL;
	     step++) {
		*ret = *state;
		window_roll(limit, ret, then);
		if (window_left(limit, ret) >= needed)
			break;
		then = window_begin(limit, now, step);
	}
	return then;
}

#endif
