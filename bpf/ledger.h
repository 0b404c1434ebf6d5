/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ledgers: the shared, true state of each limit for each key, and of each budget.
 *
 *   ledger_charge   draws a packet's cost from a ledger: one try, by compare-and-swap
 *   line_tell       counts it for the machines that share the limit
 *   window_tell     notes of a window how much of it counts, and when a packet came
 *   line_block      begins a block
 *   ledger_refund   gives back a cost
 */
#ifndef SLUICE_LEDGER_H
#define SLUICE_LEDGER_H

#include "clocks.h"
#include "kinds.h"
#include "newcomer.h"

/*
 * A lost round means that the draw of another CPU went through. To lose this many in a row takes
 * many CPUs on one small limit; the packet is dropped then, and counted as SL_DROP_CONTENDED.
 */
#define LEDGER_TRIES 16

/* credit_times() at a moment. */
static __always_inline __u32 limit_times(const struct sl_limit *limit, __u64 at)
{
	const struct sl_gate *gate = limit->shared ? gate_get() : NULL;

	return gate ? credit_times(read_once(gate->divide_at), read_once(gate->nodes), at) : 1;
}

static __always_inline __u64 cost_times(__u64 cost, __u32 times)
{
	return times > 1 ? credit_owed(cost, times) : cost;
}

/* times: how often the packet is charged */
static __always_inline struct draw packet_draw(struct packet *packet, const struct sl_limit *limit,
					       __u32 times)
{
	return (struct draw){
		.cost = cost_times(credit_cost(limit, packet->packets, packet->bytes), times),
		.now = packet_now(packet),
		.earliest = packet->departure,
		.jiffy = packet->jiffy,
	};
}

/* Moves a moment of the ledger forward, never back. */
static __always_inline void moment_advance(__u64 *moment, __u64 to)
{
	if (credit_span(read_once(*moment), to) > 0)
		write_once(*moment, to);
}

static __always_inline struct sl_ledger ledger_read(const struct sl_ledger *ledger)
{
	return (struct sl_ledger){
		.zero = read_once(ledger->zero),
		.born = read_once(ledger->born),
		.drawn = read_once(ledger->drawn),
		.blocked = read_once(ledger->blocked),
	};
}

/*
 * Publishes what a draw made of a ledger. seen: the ledger that the draw began with; next: what
 * became of it. False: the ledger has changed since it was seen.
 *
 * Races and their cost. `born` and `drawn` are stored before `zero` is swapped, so a CPU that sees
 * the new `zero` sees them too. A store that comes late, after the draw of another CPU, can raise
 * the level above `refill` by the time between the two clock readings at most. The line of a ledger
 * may be handed to another key before the swap: line_write() in table.h.
 */
static __always_inline bool ledger_publish(enum sl_kind kind, struct sl_ledger *ledger,
					   const struct sl_ledger *seen,
					   const struct sl_ledger *next)
{
	if (kind == SL_BUCKET)
		moment_advance(&ledger->born, next->born);
	if (kind != SL_WINDOW) /* there it tells the sub-window: ledger_turn() */
		moment_advance(&ledger->drawn, next->drawn);
	return next->zero == seen->zero ||
	       __sync_val_compare_and_swap(&ledger->zero, seen->zero, next->zero) == seen->zero;
}

/*
 * Results beside the reasons. LOST: another CPU was faster, try again. OVER: the sub-window is
 * over, try again after ledger_turn().
 */
#define LEDGER_LOST SL_REASONS
#define LEDGER_OVER (SL_REASONS + 1)

/*
 * A source whose ledger was drawn from so short a time ago, a quarter of a millisecond, is hot: a
 * bucket spares it more than the cache lines of a bucket cost.
 */
#define HOT_TICKS ((__s64)SL_TICKS_PER_SEC / 4000)

/*
 * Charges a packet to a ledger in one try: draws on copies, then publishes them. `purse`, or NULL,
 * receives what was drawn, or the refusal; it is untouched if the try is lost. The packet receives
 * its departure. Returns an enum sl_reason, LEDGER_LOST or LEDGER_OVER.
 */
static __always_inline int ledger_try(enum sl_kind kind, struct packet *packet,
				      const struct sl_limit *limit, struct sl_purse *purse,
				      struct sl_ledger *ledger)
{
	struct sl_purse copy = {0};
	struct sl_ledger seen, next;
	struct draw draw;
	__u32 times;
	bool passes;

	if (!packet || !limit || !ledger)
		return LEDGER_LOST;
	times = kind == SL_BUCKET ? limit_times(limit, packet_now(packet)) : 1;
	draw = packet_draw(packet, limit, times);
	if (purse)
		copy = *purse;
	seen = ledger_read(ledger);
	/* a turn in a block would move `drawn`, which tells when the block began */
	if (kind == SL_WINDOW && window_is_over(limit, &seen, draw.now) &&
	    !block_holds(limit, &seen, kind_now(kind, &seen, draw.now)))
		return LEDGER_OVER;
	if (kind != SL_WINDOW) /* there it tells the sub-window: window_tell() */
		packet->hot |= credit_span(seen.drawn, draw.now) < HOT_TICKS;
	/*
	 * Not of a source that may lose its bucket soon, and with it what its purse holds. What a
	 * purse holds is charged once.
	 */
	if (purse && packet->hot && times == 1)
		draw.fill = limit->purse;
	next = seen;
	passes = kind_draw(kind, limit, &next, &copy, &draw);
	if (!ledger_publish(kind, ledger, &seen, &next))
		return LEDGER_LOST;
	if (purse)
		*purse = copy;
	if (passes && kind == SL_SHAPE)
		packet->departure = copy.at;
	if (passes)
		return SL_PASS_WITHIN;
	return block_holds(limit, &seen, draw.now) ? SL_DROP_BLOCKED
						   : kind_refusal(limit, draw.cost);
}

/* One function a kind: the verifier walks each once, and none has the stack of all. */
BPF_GLOBAL int bucket_charge(struct packet *packet, const struct sl_limit *limit,
			     struct sl_purse *purse, struct sl_ledger *ledger)
{
	return ledger_try(SL_BUCKET, packet, limit, purse, ledger);
}

BPF_GLOBAL int window_charge(struct packet *packet, const struct sl_limit *limit,
			     struct sl_purse *purse, struct sl_ledger *ledger)
{
	return ledger_try(SL_WINDOW, packet, limit, purse, ledger);
}

BPF_GLOBAL int shape_charge(struct packet *packet, const struct sl_limit *limit,
			    struct sl_purse *purse, struct sl_ledger *ledger)
{
	return ledger_try(SL_SHAPE, packet, limit, purse, ledger);
}

/*
 * Begins a sub-window on the ledger of a window, in the steps that include/window.h explains. Where
 * another CPU was faster the caller looks again. `past` is read first, and swapped even for itself:
 * so it was the same when `window` was read.
 */
BPF_GLOBAL int ledger_turn(const struct sl_limit *limit, struct sl_ledger *ledger, __u64 now)
{
	struct sl_ledger seen, next;
	__u64 past;

	if (!limit || !ledger)
		return 0;
	past = read_once(ledger->past);
	seen = ledger_read(ledger);
	seen.past = past;
	next = seen;
	window_roll(limit, &next, now);
	past = window_settle(&seen, &next);
	if (__sync_val_compare_and_swap(&ledger->past, seen.past, past) == seen.past &&
	    __sync_val_compare_and_swap(&ledger->drawn, seen.drawn, next.drawn) == seen.drawn &&
	    __sync_val_compare_and_swap(&ledger->window, seen.window, next.window) == seen.window)
		__sync_val_compare_and_swap(&ledger->past, past, next.past);
	return 0;
}

/* ledger_try() by the kind of the limit. now: the moment of the packet */
static __always_inline int ledger_charge(struct packet *packet, const struct sl_limit *limit,
					 struct sl_purse *purse, struct sl_ledger *ledger)
{
	int reason;

	if (limit->kind == SL_SHAPE)
		return shape_charge(packet, limit, purse, ledger);
	if (limit->kind == SL_BUCKET)
		return bucket_charge(packet, limit, purse, ledger);
	reason = window_charge(packet, limit, purse, ledger);
	if (reason != LEDGER_OVER)
		return reason;
	ledger_turn(limit, ledger, packet->now);
	return LEDGER_LOST;
}

/* --- Ledgers of the table ------------------------------------------------------------------- */

/*
 * Counts on the line of a shared limit, for the machines that share it, what was taken from the
 * ledger and what was refused. What passes takes its cost, what a purse draws is taken, and what it
 * gives back is not: `taken` may be negative. A packet that another limit refuses takes nothing,
 * and this one has not refused it. What was offered is the sum of both.
 *
 * Units are 2^unit_shift ticks. A part of a unit counts as a whole one as often as it is its part:
 * the nanoseconds of the moment decide. So what a packet took and gives back adds up to 0. Both are
 * one word, `taken` below, whose carries a reader undoes.
 */
static __always_inline void line_tell(const struct sl_limit *limit, struct sl_line *line, __u64 now,
				      __s64 taken, __u64 refused)
{
	__u32 shift = limit->unit_shift % 64;
	__u64 part = now / SL_TICKS_PER_NS & ((1ULL << shift) - 1);
	__u64 units = taken < 0 ? -((part - taken) >> shift) : (taken + part) >> shift;

	__sync_fetch_and_add((__u64 *)&line->taken, ((refused + part) >> shift << 32) + units);
}

/*
 * Notes on the line of a window whether at most half of N counts, and that a packet was judged; and
 * on the packet whether one was just before. If another key has just got the line, and under a
 * shared limit, its counts are wrong: once.
 */
static __always_inline void window_tell(struct packet *packet, const struct sl_limit *limit,
					struct sl_line *line)
{
	__u32 half = window_half(limit, line), seen = line_seen(packet->now);

	packet->hot |= line_rest(line, line_ledger(line), packet->now) < HOT_TICKS;
	if (read_once(line->taken) != half)
		write_once(line->taken, half);
	if (read_once(line->refused) != seen)
		write_once(line->refused, seen);
}

/*
 * Begins a block on the line of a packet that was refused, unless another CPU has just begun one.
 * purse: remembers it; or NULL.
 *
 * The line may be handed to another key before the swap. That key would be blocked for a foreign
 * overrun, so the key is read again, and the block taken back. What remains: another CPU that reads
 * the ledger in between refuses packets of that key for the rest of the jiffy.
 */
BPF_GLOBAL int line_block(const struct packet *packet, const struct sl_limit *limit,
			  struct sl_purse *purse, struct sl_line *line)
{
	struct sl_ledger *ledger, seen;
	struct ledger_key key;
	__u64 block, now;

	if (!packet || !limit || !line)
		return 0;
	ledger = line_ledger(line);
	seen = ledger_read(ledger);
	now = kind_now(limit->kind, &seen, packet->now);
	if (block_holds(limit, &seen, now))
		return 0;
	block = block_next(limit, &seen, now);
	if (__sync_val_compare_and_swap(&ledger->blocked, seen.blocked, block) != seen.blocked)
		return 0;
	key = packet_key(packet, limit);
	if (!line_is(line, &key))
		__sync_val_compare_and_swap(&ledger->blocked, block, seen.blocked);
	else if (purse)
		credit_refuse_block(purse, now, packet->jiffy);
	return 0;
}

/*
 * Gives back the cost of a packet that another limit refuses. A bucket's level may have reached
 * `refill` meanwhile: it exceeds it afterwards by the time that the packet took at most. The charge
 * stays if the ledger was forgotten since, if its sub-window is over, or if other CPUs win every
 * try. times: how often the cost was charged.
 */
BPF_GLOBAL int ledger_refund(const struct packet *packet, const struct sl_limit *limit, __u64 cost,
			     __u32 times)
{
	const struct sl_gate *gate = gate_get();
	struct sl_ledger *ledger, copy = {0};
	struct ledger_key key;
	struct sl_line *line;
	__u64 seen;

	if (!packet || !limit || !gate)
		return 0;
	key = packet_key(packet, limit);
	line = table_find(&gate->meeting, ledger_digest(&gate->meeting, &key), &key);
	if (!line)
		return 0;
	ledger = line_ledger(line);
	for (int i = 0; i < LEDGER_TRIES; i++) {
		seen = read_once(ledger->zero);
		copy.zero = seen;
		if (!kind_give_back(limit, &copy, cost_times(cost, times), packet->now))
			return 0;
		if (__sync_val_compare_and_swap(&ledger->zero, seen, copy.zero) != seen)
			continue;
		if (limit->shared)
			line_tell(limit, line, packet->now, -(__s64)cost, 0);
		return 0;
	}
	return 0;
}

#endif
