/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kinds of limit, with one interface: pure functions of a limit, the words of its state, a cost
 * and a time. The packet path, the command line, tests and fuzzers use no other functions for
 * charges.
 *
 * kind             the word that decides                    passes                     header
 * SL_TOKEN_BUCKET  empty_at: when the bucket was empty      burst + rate x t in any t  credit.h
 * SL_WINDOW        window: what counts now                  N in any T                 window.h
 * SL_SHAPE         ready_at: when the next packet departs   one per 1/rate, later      shape.h
 *
 * Only a token bucket borrows into slices (credit.h). A slice of another kind only stores a
 * refusal, for one jiffy.
 */
#ifndef SLUICE_KINDS_H
#define SLUICE_KINDS_H

#include "credit.h"
#include "shape.h"
#include "window.h"

/* Inlining makes `kind` a constant, so the compiler drops the code of all other kinds. */
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* --- Blocks --------------------------------------------------------------------------------- */

/*
 * A block: for a time after an overrun, a state refuses every packet that its limit matches. Every
 * kind that drops may block. One word stores the end of a block in ticks, or 0 before the first
 * block. A block does not change the level of the state, so the state refills during the block. If
 * a block were debt in `empty_at`, the state would be empty when the block ends, and two packets in
 * a row would begin the next block.
 *
 * Clocks count whole nanoseconds, so the lowest 4 bits of an end are free. If blocks escalate,
 * these bits store the number of steps. Each step multiplies the length by `escalate`. If a new
 * block begins sooner after the end of the last block than the last block was long, the new block
 * has one step more than the last block. With `steps_max` steps, a block has length `block_max`.
 * One step is removed for each span without a block that is as long as the last block.
 */
#define BLOCK_STEPS_BITS 4
#define BLOCK_STEPS_MAX	 15ULL /* largest number of steps, and the mask of their bits */

/* Returns a block's length after `steps` escalations: block x escalate^steps, at most block_max. */
static inline __u64 block_length(const struct sl_limit *limit, __u64 steps)
{
	__u64 length = limit->block, power = limit->escalate;

	if (steps && steps >= limit->steps_max)
		return limit->block_max;
	/* no branch, because each branch would double the paths that the verifier walks */
	for (int bit = 0; bit < BLOCK_STEPS_BITS; bit++) {
		length *= 1 + (power - 1) * (steps >> bit & 1);
		/*
		 * This may wrap. Then `steps` has no higher bit that is set, so the result is not
		 * used.
		 */
		power *= power;
	}
	return length;
}

/*
 * Returns the end of a block. If blocks escalate, clears the lowest bits of the end, because they
 * count steps.
 */
static inline __u64 block_end(const struct sl_limit *limit, const struct sl_state *state)
{
	return limit->escalate ? state->blocked_until & ~BLOCK_STEPS_MAX : state->blocked_until;
}

static inline bool block_holds(const struct sl_limit *limit, const struct sl_state *state,
			       __u64 now)
{
	return limit->block && state->blocked_until &&
	       credit_span(now, block_end(limit, state)) > 0;
}

/*
 * Returns the number of escalation steps of a block that begins now. Call it only if no block is in
 * force.
 */
static inline __u64 block_steps(const struct sl_limit *limit, const struct sl_state *state,
				__u64 now)
{
	__u64 steps = state->blocked_until & BLOCK_STEPS_MAX, length, rest, back;

	if (!limit->escalate || !state->blocked_until)
		return 0;
	length = block_length(limit, steps);
	rest = credit_max(0, credit_span(block_end(limit, state), now));
	back = rest ? (rest - 1) / length : 0;
	return credit_min(credit_max(0, credit_span(back, steps + 1)), limit->steps_max);
}

/* Returns `blocked_until` of a block that begins now. Never returns 0, which means no block. */
static inline __u64 block_next(const struct sl_limit *limit, const struct sl_state *state,
			       __u64 now)
{
	__u64 steps = block_steps(limit, state, now);
	__u64 end = now + block_length(limit, steps);

	if (limit->escalate)
		end = ((end + BLOCK_STEPS_MAX) & ~BLOCK_STEPS_MAX) | steps;
	return end ? end : BLOCK_STEPS_MAX + 1;
}

/* --- Charges -------------------------------------------------------------------------------- */

/* The arguments of kind_charge() for one packet. */
struct kind_charge {
	__u64 cost;	/* cost of the packet, computed by credit_cost() */
	__u64 borrow;	/* most credit to borrow into the slice, in addition to `cost` */
	__u64 now;	/* time of the packet, in ticks */
	__u64 earliest; /* shape: time before which the packet must not depart; 0: none */
	__u64 jiffy;
};

/*
 * Returns the later of two times: the time of the packet, and the time of the state's last charge.
 * CPU clocks differ, so the packet's time may be earlier.
 */
static inline __u64 kind_now(enum sl_kind kind, const struct sl_state *state, __u64 now)
{
	now = credit_latest(now, state->charged_at);
	return kind == SL_TOKEN_BUCKET ? credit_latest(now, state->full_at) : now;
}

/*
 * Returns the state of a new key. nodes: number of nodes that share limits; 0 or 1: only this node.
 */
static inline struct sl_state kind_new(enum sl_kind kind, const struct sl_limit *limit, __u32 nodes,
				       __u64 now)
{
	if (kind == SL_WINDOW)
		return window_new(limit, now);
	return kind == SL_SHAPE ? shape_full(now) : credit_new(limit, nodes, now);
}

/*
 * Returns how much more can be charged to a new state, in ticks. For a window, the unit is packets
 * or bytes.
 */
static inline __u64 kind_left(const struct sl_limit *limit, const struct sl_state *state, __u64 now)
{
	if (limit->kind == SL_WINDOW)
		return window_left(limit, state);
	if (limit->kind == SL_SHAPE) /* Add 1, because a packet may wait for exactly the horizon. */
		return limit->horizon + 1 - shape_wait(state, now);
	return credit_max(0, credit_span(state->empty_at, now));
}

/* Returns the state of a key to which nothing has been charged. */
static inline struct sl_state kind_full(const struct sl_limit *limit, __u64 now)
{
	if (limit->kind == SL_WINDOW)
		return window_full(limit, now);
	return limit->kind == SL_SHAPE ? shape_full(now) : credit_full(limit, now);
}

/* Updates a state to a time. A window drops the sub-windows that are older than its span. */
static inline void kind_roll(const struct sl_limit *limit, struct sl_state *state, __u64 now)
{
	if (limit->kind == SL_WINDOW)
		window_roll(limit, state, now);
}

/* Returns the reason to drop if a state that is not blocked refuses a packet of this cost. */
static inline enum sl_reason kind_refusal(const struct sl_limit *limit, __u64 cost)
{
	if (limit->kind == SL_SHAPE)
		return SL_DROP_OVER_HORIZON;
	return limit->kind == SL_WINDOW && cost > limit->most ? SL_DROP_OVERSIZE
							      : SL_DROP_OVER_LIMIT;
}

/*
 * Stores in a slice that the state refuses packets until the jiffy ends. After the jiffy a refund
 * or `sluice forgive` may have changed the state. A shape's refusal applies to packets of any cost.
 * If a packet is too large to ever pass, its refusal is not stored, because a smaller packet may
 * pass.
 */
static inline void kind_remember(const struct sl_limit *limit, struct sl_slice *slice,
				 const struct kind_charge *charge)
{
	*slice = (struct sl_slice){
		.credit = limit->kind == SL_SHAPE ? -1 : -(__s64)charge->cost,
		.at.ready = charge->now,
	};
	if (kind_refusal(limit, charge->cost) != SL_DROP_OVERSIZE)
		credit_refuse_jiffy(limit, slice, charge->jiffy);
}

static __always_inline bool kind_charge_unblocked(enum sl_kind kind, const struct sl_limit *limit,
						  struct sl_state *state, struct sl_slice *slice,
						  const struct kind_charge *charge, __u64 now)
{
	if (kind == SL_TOKEN_BUCKET)
		return credit_charge(limit, state, slice, charge->borrow, charge->cost, now,
				     charge->jiffy);
	if (kind == SL_WINDOW ? window_charge(limit, state, charge->cost)
			      : shape_charge(limit, state, charge->cost, charge->now,
					     charge->earliest, &slice->at.departs)) {
		slice->credit = 0; /* remove the refusal that the slice stores */
		return true;
	}
	kind_remember(limit, slice, charge);
	return false;
}

/*
 * Charges a packet to a state. kind_roll() must have updated the state to the packet's time.
 * Returns false if the state refuses. `state` and `slice` are copies. The caller publishes them,
 * the state by one compare-and-swap of its first word. Stores in the slice the borrowed credit, the
 * refusal, or the departure time of a shape. kind: the limit's kind. It is a constant in callers
 * that have one function for each kind.
 */
static __always_inline bool kind_charge(enum sl_kind kind, const struct sl_limit *limit,
					struct sl_state *state, struct sl_slice *slice,
					const struct kind_charge *charge)
{
	__u64 now = kind_now(kind, state, charge->now);

	if (block_holds(limit, state, now)) {
		credit_refuse_block(slice, now, charge->jiffy);
		return false;
	}
	return kind_charge_unblocked(kind, limit, state, slice, charge, now);
}

/*
 * Returns whether a refusal begins a block. A packet that is too large to ever pass begins no
 * block.
 */
static inline bool kind_blocks(const struct sl_limit *limit, __u64 cost)
{
	return limit->block && kind_refusal(limit, cost) != SL_DROP_OVERSIZE;
}

/*
 * Undoes a charge of time `at`, on a copy of a state. Returns false if the state is a window in
 * which the charge cannot be separated from later charges. The next slot of a shape becomes
 * earlier. If another packet was charged in the meantime, two packets may depart together, but the
 * number of packets until then stays within the rate.
 */
static inline bool kind_give_back(const struct sl_limit *limit, struct sl_state *state, __u64 cost,
				  __u64 at)
{
	if (limit->kind == SL_WINDOW)
		return window_give_back(limit, state, cost, at);
	state->empty_at -= cost; /* `ready_at` of a shape is the same word */
	return true;
}

/*
 * Returns how much to add to the first word of a new state, if packets that cost `owed` passed
 * before the state existed.
 */
static inline __u64 kind_debit(const struct sl_limit *limit, const struct sl_state *state,
			       __u64 owed, __u64 now)
{
	if (limit->kind == SL_WINDOW)
		return credit_min(owed, WINDOW_TOTAL_MASK - window_total(state->window));
	return credit_debit(state, owed, now);
}

/* --- Decisions ------------------------------------------------------------------------------ */

#define KIND_NEVER (~0ULL)

/* What a limit would decide about a packet that arrives now. The packet is not charged. */
struct decision {
	bool allowed;
	__u64 remaining;      /* packets or bytes that would pass now */
	__u64 retry_after;    /* ticks until this packet would pass; KIND_NEVER: never */
	__u64 remaining_then; /* packets or bytes that would pass at the end of `retry_after` */
	__u64 full_in;	      /* ticks until the state is full, if nothing is charged */
};

static inline struct decision credit_decide(const struct sl_limit *limit,
					    const struct sl_state *state, __u64 held, __u64 cost,
					    __u64 now)
{
	__s64 level = credit_level(limit, state, now), needed = credit_needed(limit, cost);
	__u64 ready = credit_latest(now, credit_ready_at(limit, state, cost));
	__u64 full = credit_latest(now, credit_full_at(limit, state));
	struct decision decision = {
		.allowed = level >= needed,
		.remaining =
			credit_units(limit, credit_max(0, credit_min(level + held, limit->burst))),
	};

	decision.remaining_then = decision.remaining;
	if (!decision.allowed) {
		decision.retry_after = ready - now;
		decision.remaining_then =
			credit_units(limit, credit_max(0, credit_level(limit, state, ready)));
	}
	if (level < (__s64)limit->burst)
		decision.full_in = full - now;
	return decision;
}

static inline struct decision window_decide(const struct sl_limit *limit,
					    const struct sl_state *state, __u64 cost, __u64 now)
{
	struct sl_state then = *state, full;
	struct decision decision = {0};

	window_roll(limit, &then, now);
	decision.remaining = window_left(limit, &then);
	decision.allowed = decision.remaining >= cost;
	decision.full_in = window_when(limit, state, limit->most, now, &full) - now;
	decision.retry_after = KIND_NEVER;
	if (cost <= limit->most) {
		decision.retry_after = window_when(limit, state, cost, now, &then) - now;
		decision.remaining_then = window_left(limit, &then);
	}
	return decision;
}

static inline struct decision shape_decide(const struct sl_limit *limit,
					   const struct sl_state *state, __u64 now)
{
	__u64 wait = shape_wait(state, now), horizon = limit->horizon;
	bool allowed = wait <= horizon;

	return (struct decision){
		.allowed = allowed,
		/* Add 1, because one more packet may wait for exactly the horizon. */
		.remaining = allowed ? credit_units(limit, horizon - wait) + 1 : 0,
		.retry_after = allowed ? 0 : wait - horizon,
		.remaining_then = allowed ? credit_units(limit, horizon - wait) + 1 : 1,
		.full_in = wait,
	};
}

/*
 * Returns what a limit would decide about a packet, without charging it. held: ticks of credit in
 * the slices of a token bucket. This credit counts as remaining. During a block, `remaining` is 0,
 * and `remaining_then` is the amount at the end of the block. Times are relative to `now`, even if
 * the clock of another CPU is ahead.
 */
static inline struct decision kind_decide(const struct sl_limit *limit,
					  const struct sl_state *state, __u64 held, __u64 cost,
					  __u64 now)
{
	struct decision decision;
	__u64 at = kind_now(limit->kind, state, now);
	bool blocked = block_holds(limit, state, at);

	if (blocked)
		at = block_end(limit, state);
	else if (limit->kind == SL_SHAPE) /* for a shape, use the clock of the packet's CPU */
		at = now;
	if (limit->kind == SL_WINDOW)
		decision = window_decide(limit, state, cost, at);
	else if (limit->kind == SL_SHAPE)
		decision = shape_decide(limit, state, at);
	else
		decision = credit_decide(limit, state, held, cost, at);
	if (blocked) {
		decision.allowed = false;
		decision.remaining = 0;
	}
	if (blocked || decision.full_in)
		decision.full_in += at - now;
	if (!decision.allowed && decision.retry_after != KIND_NEVER)
		decision.retry_after += at - now;
	return decision;
}

#endif
