/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ledgers: the shared, true state of each limit for each key, in maps ledgers4 and ledgers6.
 *
 *   ledger_charge   draws a packet's cost from its ledger: one try, by compare-and-swap
 *   ledger_turn     begins a sub-window of a window
 *   ledger_block    begins a block
 *   ledger_refund   gives back a cost
 *
 * Used by: charge.h, budget.h (what it has of ledgers that are not in an LRU map),
 * carry_programs.h. Uses: include/kinds.h, which has the arithmetic; ledger_key.h; newcomer.h;
 * clocks.h; maps.h.
 */
#ifndef SLUICE_LEDGER_H
#define SLUICE_LEDGER_H

#include "clocks.h"
#include "kinds.h"
#include "ledger_key.h"
#include "newcomer.h"

/* Made once for all lookups of a packet, because the stack is short here (BPF_GLOBAL). */
static __always_inline void ledger_key(const struct packet *packet, const struct sl_limit *limit,
				       union ledger_key *ret)
{
	const __u8 *addr = limit->key_dst ? packet->destination : packet->source.addr;

	ledger_key_make(limit, (const __u64 *)addr, packet_is_ipv4(packet), ret);
}

static __always_inline struct sl_ledger *ledger_find(const struct packet *packet,
						     const union ledger_key *key)
{
	if (packet_is_ipv4(packet))
		return map_lookup(ledgers4, &key->ipv4);
	return map_lookup(ledgers6, &key->ipv6);
}

/*
 * Always BPF_NOEXIST: an update of an existing key of an LRU map takes a free entry first, and so
 * evicts another key.
 */
static __always_inline long ledger_insert(const struct packet *packet, const union ledger_key *key,
					  const struct sl_ledger *ledger)
{
	if (packet_is_ipv4(packet))
		return bpf_map_update_elem(&ledgers4, &key->ipv4, ledger, BPF_NOEXIST);
	return bpf_map_update_elem(&ledgers6, &key->ipv6, ledger, BPF_NOEXIST);
}

/* What one packet asks of a ledger, and what else it is charged. */
struct claim {
	__u64 cost;
	__u64 fill;  /* the most that may be drawn into a purse on top of the cost */
	__u64 owed;  /* the cost of earlier packets that no ledger was charged for */
	bool begins; /* whether a ledger is made where there is none */
};

/*
 * A lost round means that the draw of another CPU went through. To lose this many in a row takes
 * many CPUs on one small limit; the packet is dropped then, and counted as SL_DROP_CONTENDED.
 */
#define LEDGER_TRIES 16

/* The moment of a packet under all of its limits: that at which a ledger is first asked. */
static __always_inline __u64 packet_now(struct packet *packet)
{
	if (!packet->now)
		packet->now = clock_ticks();
	return packet->now;
}

/* claim: NULL: the cost alone */
static __always_inline struct draw claim_draw(struct packet *packet, const struct sl_limit *limit,
					      const struct claim *claim)
{
	return (struct draw){
		.cost = claim ? claim->cost : credit_cost(limit, packet->packets, packet->bytes),
		.fill = claim ? claim->fill : 0,
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
 * the level above `refill` by the time between the two clock readings at most. An LRU map may hand
 * the entry to another key before the swap: then one draw is charged to a foreign key.
 */
static __always_inline bool ledger_publish(enum sl_kind kind, struct sl_ledger *ledger,
					   const struct sl_ledger *seen,
					   const struct sl_ledger *next)
{
	if (kind == SL_BUCKET)
		moment_advance(&ledger->born, next->born);
	if (kind != SL_WINDOW) /* there it tells the sub-window: ledger_touch(), ledger_turn() */
		moment_advance(&ledger->drawn, next->drawn);
	return next->zero == seen->zero ||
	       __sync_val_compare_and_swap(&ledger->zero, seen->zero, next->zero) == seen->zero;
}

/*
 * Results beside the reasons. LOST: another CPU was faster, try again. NONE: no ledger exists, and
 * none was made. OVER: the sub-window is over, try again after ledger_turn().
 */
#define LEDGER_LOST SL_REASONS
#define LEDGER_NONE (SL_REASONS + 1)
#define LEDGER_OVER (SL_REASONS + 2)

/*
 * Added to a reason: the ledger is new, or was not drawn from in this span of a second, so its key
 * is to be marked as known. To do so for each packet would cost as much as the charge.
 */
#define LEDGER_MARK	0x100
#define MARK_SPAN_SHIFT 34 /* 1.07 s in ticks: shorter than an epoch of the filter of known keys */

static __always_inline int ledger_mark(const struct sl_ledger *seen, bool is_new, __u64 now)
{
	return is_new || seen->drawn >> MARK_SPAN_SHIFT != now >> MARK_SPAN_SHIFT ? LEDGER_MARK : 0;
}

/* Moves `drawn` of a window on, in the sub-window in which it was seen. */
static __always_inline void ledger_touch(struct sl_ledger *ledger, const struct sl_ledger *seen,
					 __u64 now)
{
	if (credit_span(seen->drawn, now) > 0)
		__sync_val_compare_and_swap(&ledger->drawn, seen->drawn, now);
}

/*
 * Inserts a new ledger, from which its first packet has drawn. Returns 0, LEDGER_LOST or
 * LEDGER_NONE.
 */
static __always_inline int ledger_begin(const struct packet *packet, const struct sl_limit *limit,
					const union ledger_key *key, struct sl_ledger *fresh,
					const struct claim *claim)
{
	long err;

	if (!admission_take(SL_POOL_LEDGERS))
		return LEDGER_NONE;
	fresh->zero += claim ? kind_owed(limit, fresh, claim->owed, packet->now) : 0;
	err = ledger_insert(packet, key, fresh);
	admission_note(err);
	if (err == -EEXIST) /* another CPU has just made it: draw from that one */
		return LEDGER_LOST;
	return err ? LEDGER_NONE : 0;
}

/*
 * Publishes the draw on a ledger that exists, and charges what is owed to it. Returns 0 or
 * LEDGER_LOST.
 */
static __always_inline int ledger_update(enum sl_kind kind, const struct packet *packet,
					 const struct sl_limit *limit, struct sl_ledger *ledger,
					 const struct sl_ledger *seen, const struct sl_ledger *next,
					 const struct claim *claim)
{
	if (!ledger_publish(kind, ledger, seen, next))
		return LEDGER_LOST;
	if (claim && claim->owed)
		__sync_fetch_and_add(&ledger->zero,
				     kind_owed(limit, ledger, claim->owed, packet->now));
	return 0;
}

/*
 * Charges a packet to its ledger in one try: draws on copies, then publishes them. Makes the ledger
 * where there is none and the claim says so. claim: NULL: the packet's cost, and no more. `purse`,
 * or NULL, receives what was drawn, or the refusal; it is untouched if the try is lost or there is
 * no ledger. The packet receives its departure. Returns an enum sl_reason, perhaps with
 * LEDGER_MARK, or LEDGER_LOST, LEDGER_NONE or LEDGER_OVER.
 */
static __always_inline int ledger_try(enum sl_kind kind, struct packet *packet,
				      const struct sl_limit *limit, struct sl_purse *purse,
				      const struct claim *claim)
{
	struct sl_ledger *ledger, seen, next;
	union ledger_key key;
	struct sl_purse copy = {0};
	struct draw draw;
	bool passes;
	int err, mark;

	if (!packet || !limit)
		return LEDGER_NONE;
	draw = claim_draw(packet, limit, claim);
	if (purse)
		copy = *purse;
	ledger_key(packet, limit, &key);
	ledger = ledger_find(packet, &key);
	if (!ledger && !(claim && claim->begins))
		return LEDGER_NONE;
	seen = ledger ? ledger_read(ledger) : kind_birth(kind, limit, draw.now);
	if (kind == SL_WINDOW && window_is_over(limit, &seen, draw.now))
		return LEDGER_OVER;
	next = seen;
	passes = kind_draw(kind, limit, &next, &copy, &draw);
	err = ledger ? ledger_update(kind, packet, limit, ledger, &seen, &next, claim)
		     : ledger_begin(packet, limit, &key, &next, claim);
	if (err)
		return err;
	if (purse)
		*purse = copy;
	if (passes && kind == SL_SHAPE)
		packet->departure = copy.at;
	mark = ledger_mark(&seen, !ledger, draw.now);
	if (kind == SL_WINDOW && ledger && mark)
		ledger_touch(ledger, &seen, draw.now);
	if (passes)
		return mark | SL_PASS_WITHIN;
	return mark | (block_holds(limit, &seen, draw.now) ? SL_DROP_BLOCKED
							   : kind_refusal(limit, draw.cost));
}

/* One function a kind: the verifier walks each once, and none has the stack of all. */
BPF_GLOBAL int bucket_charge(struct packet *packet, const struct sl_limit *limit,
			     struct sl_purse *purse, const struct claim *claim)
{
	return ledger_try(SL_BUCKET, packet, limit, purse, claim);
}

BPF_GLOBAL int window_charge(struct packet *packet, const struct sl_limit *limit,
			     struct sl_purse *purse, const struct claim *claim)
{
	return ledger_try(SL_WINDOW, packet, limit, purse, claim);
}

BPF_GLOBAL int shape_charge(struct packet *packet, const struct sl_limit *limit,
			    struct sl_purse *purse, const struct claim *claim)
{
	return ledger_try(SL_SHAPE, packet, limit, purse, claim);
}

/* ledger_try() by the kind of the limit */
static __always_inline int ledger_charge(struct packet *packet, const struct sl_limit *limit,
					 struct sl_purse *purse, const struct claim *claim)
{
	if (limit->kind == SL_WINDOW)
		return window_charge(packet, limit, purse, claim);
	if (limit->kind == SL_SHAPE)
		return shape_charge(packet, limit, purse, claim);
	return bucket_charge(packet, limit, purse, claim);
}

/*
 * Begins a sub-window on the ledger of a window, in the steps that include/window.h explains. Where
 * another CPU was faster the caller looks again. `past` is read first, and swapped even for itself:
 * so it was the same when `window` was read.
 */
BPF_GLOBAL int ledger_turn(const struct packet *packet, const struct sl_limit *limit)
{
	struct sl_ledger *ledger, seen, next;
	union ledger_key key;
	__u64 past;

	if (!packet || !limit)
		return 0;
	ledger_key(packet, limit, &key);
	ledger = ledger_find(packet, &key);
	if (!ledger)
		return 0;
	past = read_once(ledger->past);
	seen = ledger_read(ledger);
	seen.past = past;
	next = seen;
	window_roll(limit, &next, packet->now);
	past = window_settle(&seen, &next);
	if (__sync_val_compare_and_swap(&ledger->past, seen.past, past) == seen.past &&
	    __sync_val_compare_and_swap(&ledger->drawn, seen.drawn, next.drawn) == seen.drawn &&
	    __sync_val_compare_and_swap(&ledger->window, seen.window, next.window) == seen.window)
		__sync_val_compare_and_swap(&ledger->past, past, next.past);
	return 0;
}

/*
 * Begins a block on the ledger of a packet that was refused, unless another CPU has just begun one.
 * purse: remembers it; or NULL.
 *
 * The LRU map may hand the entry to another key before the swap. That key would be blocked for a
 * foreign overrun, so the ledger is looked up again, and the block taken back. What remains:
 * another CPU that reads the ledger in between refuses packets of that key for the rest of the
 * jiffy.
 */
BPF_GLOBAL int ledger_block(const struct packet *packet, const struct sl_limit *limit,
			    struct sl_purse *purse)
{
	struct sl_ledger *ledger, seen;
	const struct sl_ledger *again;
	union ledger_key key;
	__u64 block, now;

	if (!packet || !limit)
		return 0;
	ledger_key(packet, limit, &key);
	ledger = ledger_find(packet, &key);
	if (!ledger)
		return 0;
	seen = ledger_read(ledger);
	now = kind_now(limit->kind, &seen, packet->now);
	if (block_holds(limit, &seen, now))
		return 0;
	block = block_next(limit, &seen, now);
	if (__sync_val_compare_and_swap(&ledger->blocked, seen.blocked, block) != seen.blocked)
		return 0;
	again = ledger_find(packet, &key);
	if (!again || read_once(again->blocked) != block)
		__sync_val_compare_and_swap(&ledger->blocked, block, seen.blocked);
	else if (purse)
		credit_refuse_block(purse, now, packet->jiffy);
	return 0;
}

/*
 * Gives back a cost to a window. The charge stays if its sub-window is over, or if other CPUs win
 * every try.
 */
BPF_GLOBAL int ledger_give_back(const struct packet *packet, const struct sl_limit *limit,
				__u64 cost)
{
	struct sl_ledger *ledger, copy = {0};
	union ledger_key key;
	__u64 seen;

	if (!packet || !limit)
		return 0;
	ledger_key(packet, limit, &key);
	ledger = ledger_find(packet, &key);
	for (int i = 0; ledger && i < LEDGER_TRIES; i++) {
		seen = read_once(ledger->zero);
		copy.zero = seen;
		if (!kind_give_back(limit, &copy, cost, packet->now) ||
		    __sync_val_compare_and_swap(&ledger->zero, seen, copy.zero) == seen)
			return 0;
	}
	return 0;
}

/*
 * Gives back the cost of a packet that another limit refuses. A bucket's level may have reached
 * `refill` meanwhile: it exceeds it afterwards by the time that the packet took at most.
 */
static __always_inline void ledger_refund(const struct packet *packet, const struct sl_limit *limit,
					  __u64 cost)
{
	struct sl_ledger *ledger;
	union ledger_key key;

	if (limit->kind == SL_WINDOW) {
		ledger_give_back(packet, limit, cost);
		return;
	}
	ledger_key(packet, limit, &key);
	ledger = ledger_find(packet, &key);
	if (ledger)
		__sync_fetch_and_add(&ledger->zero, -cost);
}

#endif
