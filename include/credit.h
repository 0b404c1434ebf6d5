/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of a token bucket. Pure functions; the time is an argument.
 *
 * A state stores one time, `empty_at`: when the bucket was empty. Its level is the time since then,
 * at most `burst`. A packet costs time and moves `empty_at` forward by its cost. This is the
 * virtual scheduling form of the Generic Cell Rate Algorithm (ITU-T I.371, annex A; empty_at = TAT
 * - burst): refill is lazy, and no fraction is lost. If `empty_at` is ahead of now, the level is
 * negative (debt), and nothing is charged until the debt is paid.
 *
 * Slices. A CPU borrows credit for several packets from the state into a slice, and spends it
 * without shared memory. Let S be the most that all slices can hold together. Three rules keep
 * state and slices within one burst, and give an idle source all of it:
 *
 *  1. The state refills to at most `refill` = burst - S. It may hold more when it is new, or
 *     because slices were returned. That part is `full_at` - `empty_at`; it can be spent, and does
 *     not refill.
 *  2. A slice is valid for S, as a time, from when it was borrowed. Then it returns to the state.
 *  3. A state is full if it had time to fill (burst since `empty_at`) and no charge for 2 S: S
 *     until every slice ended, S to refill what they may have spent at the last moment. Then
 *     `full_at` is set to that time, and credit that older slices still hold is void.
 *
 * Large packets. A state in use refills to `refill` and no further, so a packet passes if the state
 * holds its cost or `refill`, whichever is less, and the rest becomes debt. Otherwise a stream of
 * merged packets that cost more than the burst would stop, and a slow trickle, which keeps rule 3
 * from applying, would starve a packet that costs more than `refill`. A source that uses a part p
 * of its rate leaves its state at `refill` for 1 - p of the time, and a packet of any cost passes
 * then. A packet that costs more than `refill` is refused if it always follows directly after a
 * small packet of its source.
 *
 * The bound. Over any span of t, packets worth at most
 *
 *   max(burst, cost of the largest packet + S) + t
 *
 * pass, with S = burst / 16, or 0 for a limit without slices. That is burst + t if no packet costs
 * more than `refill`.
 *
 * Proof. Let `held` be the level of the state and of all slices that are not void. The rules keep
 * held <= burst. Time raises it by no more than itself. Borrowing, returning and expiry move credit
 * or lose it. A packet that passes lowers it by its cost, and a refund undoes that. So what passes
 * costs at most held(begin) - held(end) + t. No slice is negative, and a state only falls below 0
 * by a charge that costs more than `refill`, from `refill` at least: held(end) >= -(cost - refill).
 * Then burst + (cost - refill) = cost + S. Debt is paid before anything else is charged, so debts
 * never add up, and the rate is exact in the long run. Rule 3 holds in debt as well, because it
 * requires burst since `empty_at`. Clocks that differ add at most their difference, once.
 *
 * Units: ticks (1/16 ns). Times may wrap: they are compared by signed difference. Costs are rounded
 * up. Spans and costs are at most SL_BURST_TICKS_MAX, debts twice that.
 */
#ifndef SLUICE_CREDIT_H
#define SLUICE_CREDIT_H

#include "sluice.h"

/* Returns the ticks from `then` to `now`. The result is negative if `now` is earlier. */
static inline __s64 credit_span(__u64 then, __u64 now)
{
	return (__s64)(now - then);
}

static inline __s64 credit_min(__s64 a, __s64 b)
{
	return a < b ? a : b;
}

static inline __s64 credit_max(__s64 a, __s64 b)
{
	return a > b ? a : b;
}

/*
 * Returns the later of two times. If a time in a state is later than a CPU's clock, the CPU uses
 * the time in the state. Otherwise credit could count twice.
 */
static inline __u64 credit_latest(__u64 a, __u64 b)
{
	return credit_span(a, b) > 0 ? b : a;
}

/*
 * Returns the cost of a frame in ticks, rounded up. packets: 1 to 65535; more than 1 if the kernel
 * merged packets. bytes: length of these packets on the wire. The products do not wrap, because a
 * packet costs less than 2^46 ticks, and a byte less than 2^43 before the shift. The result for
 * packets is at most SL_BURST_TICKS_MAX.
 */
static inline __u64 credit_cost(const struct sl_limit *limit, __u32 packets, __u32 bytes)
{
	const __u64 fraction = (1ULL << SL_BYTE_COST_SHIFT) - 1;

	if (!limit->by_bytes)
		return credit_min(limit->cost * packets, SL_BURST_TICKS_MAX);
	return (limit->cost >> SL_BYTE_COST_SHIFT) * bytes +
	       (((limit->cost & fraction) * bytes + fraction) >> SL_BYTE_COST_SHIFT);
}

/* Returns the cost of `count` packets of cost `cost` each, but at most SL_BURST_TICKS_MAX. */
static inline __u64 credit_multiply(__u64 cost, __u32 count)
{
	return count && cost > SL_BURST_TICKS_MAX / count ? SL_BURST_TICKS_MAX : cost * count;
}

/*
 * Returns how many times a shared limit charges each packet. Before `divide_at`, each packet is
 * charged once. From then on, it is charged once for each node, so each node passes an equal part
 * of the limit.
 */
static inline __u32 credit_times(__u64 divide_at, __u32 nodes, __u64 now)
{
	return divide_at && credit_span(divide_at, now) >= 0 ? credit_max(1, nodes) : 1;
}

/* Converts ticks to packets or bytes, rounded down. ticks: at most 2 SL_BURST_TICKS_MAX. */
static inline __u64 credit_units(const struct sl_limit *limit, __u64 ticks)
{
	if (!limit->by_bytes)
		return ticks / limit->cost;
	return (ticks / limit->cost << SL_BYTE_COST_SHIFT) +
	       ((ticks % limit->cost << SL_BYTE_COST_SHIFT) / limit->cost);
}

/*
 * Returns the level that a state needs to pass a packet. If the cost is higher than this level, the
 * packet puts the state in debt.
 */
static inline __s64 credit_needed(const struct sl_limit *limit, __u64 cost)
{
	return credit_min(cost, limit->refill);
}

/*
 * Returns S, the most credit that all slices of a limit together can hold. S ticks is also the time
 * for which a slice is valid.
 */
static inline __u64 credit_slices(const struct sl_limit *limit)
{
	return limit->burst - limit->refill;
}

/* Returns the time at which a state will be full if no packet is charged until then (rule 3). */
static inline __u64 credit_full_at(const struct sl_limit *limit, const struct sl_state *state)
{
	return credit_latest(state->empty_at + limit->burst,
			     state->charged_at + 2 * credit_slices(limit));
}

static inline bool credit_is_full(const struct sl_limit *limit, const struct sl_state *state,
				  __u64 now)
{
	return credit_span(credit_full_at(limit, state), now) >= 0;
}

/*
 * Returns the level of a state in ticks. The level is at most burst, and is negative in debt. If a
 * CPU's clock is late, the level can only be too low.
 *
 * If `full_at` - `empty_at` exceeds burst, `full_at` is ignored, because no charge may use the
 * excess. This needs a race: one CPU stores `full_at` while another CPU charges the state by an
 * older `full_at`. It also needs a state that was idle for S longer than it needed to fill.
 */
static inline __s64 credit_level(const struct sl_limit *limit, const struct sl_state *state,
				 __u64 now)
{
	__s64 refilled = credit_min(credit_span(state->empty_at, now), limit->refill);
	__s64 born_with = credit_span(state->empty_at, state->full_at);

	if (credit_is_full(limit, state, now))
		return limit->burst;
	return born_with > (__s64)limit->burst ? refilled : credit_max(refilled, born_with);
}

/* The last 1/8 of a budget's `refill` is reserved for packets whose keys get a state. */
#define CREDIT_RESERVE 8

/* Returns whether the level of a budget is below 1/CREDIT_RESERVE of its `refill`. */
static inline bool credit_is_low(const struct sl_limit *budget, const struct sl_state *state,
				 __u64 now)
{
	return credit_level(budget, state, now) < (__s64)(budget->refill / CREDIT_RESERVE);
}

/* Returns the time at which a packet of this cost can pass, if no packet is charged until then. */
static inline __u64 credit_ready_at(const struct sl_limit *limit, const struct sl_state *state,
				    __u64 cost)
{
	return state->empty_at + credit_needed(limit, cost);
}

/* Returns a full state. `sluice forgive` stores such a state. */
static inline struct sl_state credit_full(const struct sl_limit *limit, __u64 now)
{
	return (struct sl_state){.empty_at = now - limit->burst, .full_at = now, .charged_at = now};
}

/*
 * Returns the state of a new key. nodes: number of nodes that share limits; 0 or 1: only this node.
 */
static inline struct sl_state credit_new(const struct sl_limit *limit, __u32 nodes, __u64 now)
{
	struct sl_state state = credit_full(limit, now);

	if (limit->start_empty)
		state.empty_at = now;
	else if (limit->start_share && nodes > 1)
		state.empty_at = now - limit->burst / nodes;
	return state;
}

/*
 * Sets the level of a state. A level above `refill` is stored as `full_at` - `empty_at` (rule 1).
 */
static inline void credit_set_level(const struct sl_limit *limit, struct sl_state *state,
				    __s64 level, __u64 now)
{
	state->empty_at = (level > (__s64)limit->refill ? state->full_at : now) - level;
	state->charged_at = now;
}

/* Returns how much of `owed` can be charged if the level must not go below -SL_BURST_TICKS_MAX. */
static inline __u64 credit_debit(const struct sl_state *state, __u64 owed, __u64 now)
{
	__s64 room = SL_BURST_TICKS_MAX - credit_span(now, state->empty_at);

	return credit_max(0, credit_min(owed, room));
}

/*
 * Removes the credit from a slice. Returns the sum of this credit and the state's level. Credit
 * that was borrowed before `full_at` is void.
 */
static inline __s64 credit_take_back(const struct sl_limit *limit, const struct sl_state *state,
				     struct sl_slice *slice, __u64 now)
{
	__s64 level = credit_level(limit, state, now);
	__s64 credit = slice->credit;

	slice->credit = 0;
	if (credit <= 0 || credit_span(state->full_at, slice->at.borrowed) < 0)
		return level;
	return credit_min(level + credit, limit->burst);
}

/*
 * If a slice of a shared limit stores a refusal, it also counts the packets that it refuses until
 * the state is charged again. The bits of `until` above the jiffy are this count. The lower 40 bits
 * are enough for jiffies64 for 34 years at HZ=1000.
 */
#define CREDIT_JIFFY_BITS 40
#define CREDIT_JIFFY_MASK ((1ULL << CREDIT_JIFFY_BITS) - 1)

static inline __u32 credit_unasked(const struct sl_slice *slice)
{
	return slice->until >> CREDIT_JIFFY_BITS;
}

static inline void credit_count_unasked(struct sl_slice *slice, __u32 packets)
{
	slice->until += (__u64)packets << CREDIT_JIFFY_BITS;
}

enum credit_answer {
	CREDIT_PASS,
	CREDIT_REFUSE,
	CREDIT_ASK, /* the slice has too little credit to decide; charge the state */
};

/* Returns whether the slice stores a refusal that applies to a packet of this cost. */
static inline bool credit_refused(const struct sl_slice *slice, __u64 cost)
{
	return slice->credit < 0 && (__s64)cost >= -slice->credit;
}

/*
 * Spends `cost` from a slice. A slice expires by jiffies, because reading jiffies costs almost no
 * time.
 */
static inline enum credit_answer credit_spend(struct sl_slice *slice, __u64 cost, __u64 jiffy)
{
	if (jiffy > slice->until)
		return CREDIT_ASK;
	if (slice->credit >= (__s64)cost) {
		slice->credit -= cost;
		return CREDIT_PASS;
	}
	/* the upper bits of `until` are a count, so mask them before comparing */
	return credit_refused(slice, cost) && jiffy <= (slice->until & CREDIT_JIFFY_MASK)
		       ? CREDIT_REFUSE
		       : CREDIT_ASK;
}

/* Returns whether the slice stores a refusal of this cost that is valid beyond `now`. */
static inline bool credit_must_wait(const struct sl_slice *slice, __u64 cost, __u64 now)
{
	return credit_refused(slice, cost) && credit_span(now, slice->at.ready) > 0;
}

/* Makes the refusal in a slice valid until this jiffy ends, if limit->refuse_by_jiffy is set. */
static inline void credit_refuse_jiffy(const struct sl_limit *limit, struct sl_slice *slice,
				       __u64 jiffy)
{
	slice->until = limit->refuse_by_jiffy ? jiffy : 0;
}

/*
 * Stores in a slice that its key is blocked. This is valid for one jiffy only, because `sluice
 * forgive` may end the block.
 */
static inline void credit_refuse_block(struct sl_slice *slice, __u64 now, __u64 jiffy)
{
	*slice = (struct sl_slice){.credit = -1, .at.ready = now, .until = jiffy};
}

/*
 * Refunds `cost` to a slice. Returns false if the slice has no room. Then the caller must refund
 * the state.
 */
static inline bool credit_give_back(const struct sl_limit *limit, struct sl_slice *slice,
				    __u64 cost)
{
	if (slice->credit < 0 || slice->credit + cost > limit->slice)
		return false;
	slice->credit += cost;
	return true;
}

/*
 * Returns the rest of the slice to the state, charges `cost` to the state, and borrows a new slice
 * of at most `fill` (limit->slice, or 0). If the state refuses, returns false, and stores in the
 * slice the level that the packet needs and the time at which the state reaches that level. `state`
 * and `slice` are copies. The caller publishes the state by compare-and-swap on `empty_at`.
 */
static inline bool credit_charge(const struct sl_limit *limit, struct sl_state *state,
				 struct sl_slice *slice, __u64 fill, __u64 cost, __u64 now,
				 __u64 jiffy)
{
	__s64 level;
	bool has_credit = slice->credit > 0;

	now = credit_latest(now, credit_latest(state->full_at, state->charged_at));
	if (credit_is_full(limit, state, now))
		state->full_at = now;
	level = credit_take_back(limit, state, slice, now);

	if (level < credit_needed(limit, cost)) {
		if (has_credit)
			credit_set_level(limit, state, level, now);
		slice->credit = -credit_needed(limit, cost);
		slice->at.ready = credit_ready_at(limit, state, cost);
		credit_refuse_jiffy(limit, slice, jiffy);
		return false;
	}
	level -= cost;
	fill = credit_max(0, credit_min(level, fill));
	credit_set_level(limit, state, level - fill, now);
	slice->credit = fill;
	slice->at.borrowed = now;
	slice->until = jiffy + limit->life - 1;
	return true;
}

/*
 * Adapts the slices of a bucket to this version of policy `number`. Slices of another policy are
 * void. Slices of a limit with a new id are void. All other slices expire, so the next packet
 * returns their credit to the state. Stored refusals are removed.
 */
static inline void slices_fit(struct sl_bucket *bucket, const struct sl_policy *policy,
			      __u32 number)
{
	if (bucket->policy == number && bucket->policy_since == policy->since)
		return;
	for (int i = 0; i < SL_LIMITS_MAX; i++) {
		struct sl_slice *slice = &bucket->slice[i];

		if (bucket->policy != number || slice->credit < 0 ||
		    (__s32)(policy->changed[i] - bucket->policy_since) > 0)
			slice->credit = 0;
		slice->until = 0;
		bucket->state[i] = 0;
	}
	bucket->policy = number;
	bucket->policy_since = policy->since;
}

#endif
