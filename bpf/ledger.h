/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shared token buckets: find, make, draw. The slow tier; include/credit.h has the
 * arithmetic.
 */
#ifndef SLUICE_LEDGER_H
#define SLUICE_LEDGER_H

#include "clock.h"
#include "credit.h"
#include "maps.h"

#define EEXIST 17

static __always_inline struct sl_ledger_key4 ledger_key4(const struct sl_prefix *source,
							 __u32 limit)
{
	struct sl_ledger_key4 key = {.limit = limit};

	__builtin_memcpy(key.addr, source->addr, 4);
	return key;
}

static __always_inline struct sl_ledger_key6 ledger_key6(const struct sl_prefix *source,
							 __u32 limit)
{
	struct sl_ledger_key6 key = {.limit = limit};

	__builtin_memcpy(key.addr, source->addr, 8);
	return key;
}

static __always_inline struct sl_ledger *ledger_find(const struct sl_prefix *source, __u32 limit)
{
	if (source->bits == SL_FAMILY_BITS + 32) {
		struct sl_ledger_key4 key = ledger_key4(source, limit);

		return map_lookup(ledgers4, &key);
	} else {
		struct sl_ledger_key6 key = ledger_key6(source, limit);

		return map_lookup(ledgers6, &key);
	}
}

/*
 * Only ever BPF_NOEXIST: an update of an existing LRU key takes a free node first, and so evicts
 * somebody.
 */
static __always_inline long ledger_insert(const struct sl_prefix *source, __u32 limit,
					  const struct sl_ledger *ledger)
{
	if (source->bits == SL_FAMILY_BITS + 32) {
		struct sl_ledger_key4 key = ledger_key4(source, limit);

		return bpf_map_update_elem(&ledgers4, &key, ledger, BPF_NOEXIST);
	} else {
		struct sl_ledger_key6 key = ledger_key6(source, limit);

		return bpf_map_update_elem(&ledgers6, &key, ledger, BPF_NOEXIST);
	}
}

/* What one packet asks of a ledger, and when. */
struct claim {
	__u64 cost;
	__u64 fill; /* the most that may be drawn on top, into a purse */
	__u64 now;
	__u64 tick;
};

#define read_once(x)	     (*(const volatile typeof(x) *)&(x))
#define write_once(x, value) (*(volatile typeof(x) *)&(x) = (value))

/* Moves a moment of the ledger forward, never back. */
static __always_inline void moment_advance(__u64 *moment, __u64 to)
{
	if (credit_span(read_once(*moment), to) > 0)
		write_once(*moment, to);
}

/*
 * One round: draw on a copy, then publish the copy if nobody was faster. False: somebody was.
 *
 * Races, and what they cost. `born` and `drawn` are stored before `zero` is swapped: whoever sees the
 * new `zero` sees them, too. A store that comes too late, after another CPU's draw, can let the level
 * stand above `refill` by the time between the two clock readings at most. An LRU map may hand the
 * node to another key under our hands: then one draw is charged to a stranger.
 */
static __always_inline bool ledger_try(struct sl_ledger *ledger, const struct sl_limit *limit,
				       struct sl_purse *purse, const struct claim *claim,
				       bool *passes)
{
	struct sl_ledger seen, next;

	seen.zero = read_once(ledger->zero);
	seen.born = read_once(ledger->born);
	seen.drawn = read_once(ledger->drawn);
	next = seen;
	*passes =
		credit_draw(limit, &next, purse, claim->fill, claim->cost, claim->now, claim->tick);
	moment_advance(&ledger->born, next.born);
	moment_advance(&ledger->drawn, next.drawn);
	return next.zero == seen.zero ||
	       __sync_val_compare_and_swap(&ledger->zero, seen.zero, next.zero) == seen.zero;
}

/* Not a reason: another CPU was faster, so try again. */
#define LEDGER_LOST SL_REASONS

/* The first packet of a source: its ledger begins full, less what this packet draws. */
static __always_inline int ledger_begin(const struct sl_prefix *source,
					const struct sl_limit *limit, struct sl_purse *purse,
					const struct claim *claim)
{
	struct sl_ledger fresh = credit_birth(limit, claim->now);
	long err;

	purse->credit = 0; /* what was drawn from a forgotten ledger is void */
	credit_draw(limit, &fresh, purse, claim->fill, claim->cost, claim->now, claim->tick);
	err = ledger_insert(source, limit->id, &fresh);
	if (err == -EEXIST) /* made by another CPU just now: use that one */
		return LEDGER_LOST;
	return err ? SL_DROP_NO_MEMORY : SL_PASS_WITHIN;
}

/*
 * Charges a packet to its ledger, making the ledger where there is none: one try. `purse` receives what
 * was drawn, or the refusal; unless the answer is final, it is untouched. Returns an enum sl_reason, or
 * LEDGER_LOST.
 *
 * A global function: the verifier checks it once, and not again on every path and in every round that
 * leads to it. It holds that any pointer may be NULL.
 */
__noinline int ledger_charge(const struct sl_prefix *source, const struct sl_limit *limit,
			     struct sl_purse *purse, const struct claim *claim)
{
	struct sl_ledger *ledger;
	struct sl_purse copy;
	bool passes = false;
	int answer;

	if (!source || !limit || !purse || !claim)
		return SL_DROP_NO_MEMORY;
	copy = *purse;
	ledger = ledger_find(source, limit->id);
	if (!ledger)
		answer = ledger_begin(source, limit, &copy, claim);
	else if (ledger_try(ledger, limit, &copy, claim, &passes))
		answer = passes ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT;
	else
		answer = LEDGER_LOST;
	if (answer == SL_PASS_WITHIN || answer == SL_DROP_OVER_LIMIT)
		*purse = copy;
	return answer;
}

#endif
