/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Charges a packet to one shared state. The state is of a key under a limit, or of a budget.
 * include/kinds.h computes the charge on copies, and a compare-and-swap publishes the result.
 */
#ifndef SLUICE_STATE_H
#define SLUICE_STATE_H

#include "flood.h"
#include "kinds.h"

/*
 * Give up after 16 failed CAS, and drop the packet as SL_DROP_CONTENDED. A CAS fails only if
 * another CPU has just charged the state. So many failures need many CPUs on one small limit.
 */
#define STATE_TRIES 16

/*
 * A source is hot if its state was charged within the last 250 us. A bucket of a hot source saves
 * more time than its cache lines cost.
 */
#define HOT_TICKS ((__s64)SL_TICKS_PER_SEC / 4000)

/*
 * Returns how many times a packet is charged to a limit. The number is 1, except when a shared
 * limit is divided by the number of nodes (credit_times()).
 */
static __always_inline __u32 limit_times(const struct sl_limit *limit, __u64 at)
{
	const struct sl_gate *gate = limit->shared ? gate_get() : NULL;

	return gate ? credit_times(read_once(gate->divide_at), read_once(gate->nodes), at) : 1;
}

static __always_inline __u64 cost_times(__u64 cost, __u32 times)
{
	return times > 1 ? credit_multiply(cost, times) : cost;
}

static __always_inline struct sl_state state_read(const struct sl_state *state)
{
	return (struct sl_state){
		.empty_at = read_once(state->empty_at),
		.full_at = read_once(state->full_at),
		.charged_at = read_once(state->charged_at),
		.blocked_until = read_once(state->blocked_until),
	};
}

/* Moves a time in a state forward to `to`, if `to` is later. */
static __always_inline void state_advance(__u64 *time, __u64 to)
{
	if (credit_span(read_once(*time), to) > 0)
		write_once(*time, to);
}

/*
 * Publishes a charge. seen: the state before the charge. next: the state after the charge. Returns
 * false if another CPU has changed the state in between.
 *
 * Races: `full_at` and `charged_at` are stored before the swap of `empty_at`, so a CPU that sees
 * the new `empty_at` also sees the other two. If a store is delayed until after another CPU's
 * charge, it can raise the level above `refill`, by at most the time between the clock readings of
 * both CPUs. If the entry is given to another key before the swap, see entry_write() in table.h.
 */
static __always_inline bool state_publish(enum sl_kind kind, struct sl_state *state,
					  const struct sl_state *seen, const struct sl_state *next)
{
	if (kind == SL_TOKEN_BUCKET)
		state_advance(&state->full_at, next->full_at);
	if (kind != SL_WINDOW) /* only state_turn() changes `charged_at` of a window */
		state_advance(&state->charged_at, next->charged_at);
	return next->empty_at == seen->empty_at ||
	       __sync_val_compare_and_swap(&state->empty_at, seen->empty_at, next->empty_at) ==
		       seen->empty_at;
}

/*
 * Begins a sub-window, in the four steps of include/window.h. If another CPU was faster, a step
 * fails, and the caller reads the state again. `past` is read first. It is swapped even if its
 * value stays the same, because the swap proves that `past` had this value when `window` was read.
 */
BPF_GLOBAL int state_turn(const struct sl_limit *limit, struct sl_state *state, __u64 now)
{
	struct sl_state seen, next;
	__u64 past;

	if (!limit || !state)
		return 0;
	past = read_once(state->past);
	seen = state_read(state);
	seen.past = past;
	next = seen;
	window_roll(limit, &next, now);
	past = window_settle(&seen, &next);
	if (__sync_val_compare_and_swap(&state->past, seen.past, past) == seen.past &&
	    __sync_val_compare_and_swap(&state->charged_at, seen.charged_at, next.charged_at) ==
		    seen.charged_at &&
	    __sync_val_compare_and_swap(&state->window, seen.window, next.window) == seen.window)
		__sync_val_compare_and_swap(&state->past, past, next.past);
	return 0;
}

/*
 * Tries once to charge a packet to a state. slice: may be NULL; gets the borrowed credit or the
 * refusal, unless the result is CHARGE_LOST. kind: a constant, so that each caller contains the
 * code of one kind.
 */
static __always_inline enum charge_result state_try(enum sl_kind kind, struct packet *packet,
						    const struct sl_limit *limit,
						    struct sl_slice *slice, struct sl_state *state,
						    struct verdict *verdict)
{
	struct kind_charge charge = {0};
	struct sl_slice copy = {0};
	struct sl_state seen, next;
	__u32 times;
	bool passes;

	if (!packet || !limit || !state || !verdict)
		return CHARGE_LOST;
	charge.now = packet_now(packet);
	times = kind == SL_TOKEN_BUCKET ? limit_times(limit, charge.now) : 1;
	charge.cost = cost_times(credit_cost(limit, packet->packets, packet->bytes), times);
	charge.jiffy = packet->jiffy;
	charge.earliest = verdict->departure;
	if (slice)
		copy = *slice;
	seen = state_read(state);
	/*
	 * During a block, begin no sub-window. It would overwrite `charged_at`, which is the start
	 * of the block.
	 */
	if (kind == SL_WINDOW && window_is_over(limit, &seen, charge.now) &&
	    !block_holds(limit, &seen, kind_now(kind, &seen, charge.now))) {
		state_turn(limit, state, charge.now);
		return CHARGE_LOST;
	}
	/* for a window, entry_count_window() sets is_hot */
	if (kind != SL_WINDOW)
		verdict->is_hot |= credit_span(seen.charged_at, charge.now) < HOT_TICKS;
	/*
	 * Only a hot source borrows, because any other source may soon lose its bucket with the
	 * credit. A new source does not borrow, because a slice passes packets without charging the
	 * budget. A packet that is charged several times does not borrow, because a slice is
	 * charged only once.
	 */
	if (slice && verdict->is_hot && !(verdict->is_new && limit->budgeted) && times == 1)
		charge.borrow = limit->slice;
	next = seen;
	passes = kind_charge(kind, limit, &next, &copy, &charge);
	if (!state_publish(kind, state, &seen, &next))
		return CHARGE_LOST;
	if (slice)
		*slice = copy;
	if (!passes)
		return charge_refuse(verdict, block_holds(limit, &seen, charge.now)
						      ? SL_DROP_BLOCKED
						      : kind_refusal(limit, charge.cost));
	if (kind == SL_SHAPE) {
		verdict->departure = copy.at.departs;
		verdict->is_shaped = true;
	}
	return CHARGE_PASSED;
}

/*
 * Each kind has a function of its own. So the verifier walks each function once, with a stack frame
 * of its own.
 */
BPF_GLOBAL enum charge_result state_charge_bucket(struct packet *packet,
						  const struct sl_limit *limit,
						  struct sl_slice *slice, struct sl_state *state,
						  struct verdict *verdict)
{
	return state_try(SL_TOKEN_BUCKET, packet, limit, slice, state, verdict);
}

BPF_GLOBAL enum charge_result state_charge_window(struct packet *packet,
						  const struct sl_limit *limit,
						  struct sl_slice *slice, struct sl_state *state,
						  struct verdict *verdict)
{
	return state_try(SL_WINDOW, packet, limit, slice, state, verdict);
}

BPF_GLOBAL enum charge_result state_charge_shape(struct packet *packet,
						 const struct sl_limit *limit,
						 struct sl_slice *slice, struct sl_state *state,
						 struct verdict *verdict)
{
	if (!packet || !limit || !verdict)
		return CHARGE_LOST;
	if (!verdict->is_shaped && shape_is_too_late(limit, verdict->departure, packet_now(packet)))
		return charge_refuse(verdict, SL_DROP_OVER_HORIZON);
	return state_try(SL_SHAPE, packet, limit, slice, state, verdict);
}

/* --- Entries of the table ------------------------------------------------------------------- */

/*
 * Counts, for the other nodes, the credit of a shared limit that was used, and the cost of refused
 * packets. Borrowed credit counts as used. Returned credit is subtracted, so `taken` may be
 * negative. A packet that another limit refuses is not counted.
 *
 * Both counts are in units of 2^unit_shift ticks. A fraction of a unit is rounded up with a
 * probability equal to the fraction. The nanoseconds of the packet's time decide, so the cost of a
 * packet and its refund add up to 0. Both counts are in one word, so a carry of `taken` enters
 * `refused`; readers subtract the carry.
 */
static __always_inline void entry_count_shared(const struct sl_limit *limit, struct sl_entry *entry,
					       __u64 now, __s64 taken, __u64 refused)
{
	__u32 shift = limit->unit_shift % 64;
	__u64 part = now / SL_TICKS_PER_NS & ((1ULL << shift) - 1);
	__u64 units = taken < 0 ? -((part - taken) >> shift) : (taken + part) >> shift;

	__sync_fetch_and_add(&entry->count.word, ((refused + part) >> shift << 32) + units);
}

/*
 * Stores in a window's entry the time of this packet, and whether at most half of the window is
 * used. Returns whether the source is hot. Race: if another CPU gives the entry to a key of a
 * shared limit, this store makes the counts of that key wrong once.
 */
static __always_inline bool entry_count_window(const struct sl_limit *limit, struct sl_entry *entry,
					       __u64 now)
{
	__u32 half = entry_window_half(limit, entry), seen = entry_seen(now);
	bool is_hot = entry_idle(entry, entry_state(entry), now) < HOT_TICKS;

	if (read_once(entry->count.window.half) != half)
		write_once(entry->count.window.half, half);
	if (read_once(entry->count.window.seen) != seen)
		write_once(entry->count.window.seen, seen);
	return is_hot;
}

/*
 * Begins a block for the key of a refused packet, unless another CPU has begun a block. slice: the
 * block is stored there as well; may be NULL.
 *
 * Race: another CPU may give the entry to another key before the swap. So the key is compared after
 * the swap. If it differs, the block is removed. A CPU that has read the state before refuses
 * packets of the new key for the rest of the jiffy.
 */
BPF_GLOBAL int entry_block(const struct packet *packet, const struct sl_limit *limit,
			   struct sl_slice *slice, struct sl_entry *entry)
{
	struct sl_state *state, seen;
	struct state_key key;
	__u64 block, now;

	if (!packet || !limit || !entry)
		return 0;
	state = entry_state(entry);
	seen = state_read(state);
	now = kind_now(limit->kind, &seen, packet->now);
	if (block_holds(limit, &seen, now))
		return 0;
	block = block_next(limit, &seen, now);
	if (__sync_val_compare_and_swap(&state->blocked_until, seen.blocked_until, block) !=
	    seen.blocked_until)
		return 0;
	key = packet_key(packet, limit);
	if (!entry_is(entry, &key))
		__sync_val_compare_and_swap(&state->blocked_until, block, seen.blocked_until);
	else if (slice)
		credit_refuse_block(slice, now, packet->jiffy);
	return 0;
}

/*
 * Refunds a packet that another limit refused. There is no refund if the entry was evicted, if the
 * sub-window is over, or if every try fails because other CPUs change the state. times: number of
 * times that the packet was charged. If a token bucket has refilled to `refill` meanwhile, the
 * refund raises its level above `refill`, by at most the time that the packet took.
 */
BPF_GLOBAL int entry_refund(const struct packet *packet, const struct sl_limit *limit, __u64 cost,
			    __u32 times)
{
	const struct sl_gate *gate = gate_get();
	struct sl_state *state, copy = {0};
	struct sl_entry *entry;
	struct state_key key;
	__u64 seen;

	if (!packet || !limit || !gate)
		return 0;
	key = packet_key(packet, limit);
	entry = table_find(&gate->params, state_digest(hash_secret, &key), &key);
	if (!entry)
		return 0;
	state = entry_state(entry);
	for (int i = 0; i < STATE_TRIES; i++) {
		seen = read_once(state->empty_at);
		copy.empty_at = seen;
		if (!kind_give_back(limit, &copy, cost_times(cost, times), packet->now))
			return 0;
		if (__sync_val_compare_and_swap(&state->empty_at, seen, copy.empty_at) != seen)
			continue;
		if (limit->shared)
			entry_count_shared(limit, entry, packet->now, -(__s64)cost, 0);
		return 0;
	}
	return 0;
}

#endif
