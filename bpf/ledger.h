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
#include "packet.h"

/*
 * Each lost round means that another CPU's draw went through. A CPU that loses as many rounds as
 * this is one of a crowd on one small limit; it drops, and counts that it did.
 */
#define LEDGER_TRIES 16

#define EEXIST 17

static __always_inline struct sl_ledger_key4 ledger_key4(const struct packet *packet, __u32 limit)
{
	struct sl_ledger_key4 key = {.limit = limit};

	__builtin_memcpy(key.addr, packet->source.addr, 4);
	return key;
}

static __always_inline struct sl_ledger_key6 ledger_key6(const struct packet *packet, __u32 limit)
{
	struct sl_ledger_key6 key = {.limit = limit};

	__builtin_memcpy(key.addr, packet->source.addr, 8);
	return key;
}

static __always_inline struct sl_ledger *ledger_find(const struct packet *packet, __u32 limit)
{
	if (packet->source.bits == SL_FAMILY_BITS + 32) {
		struct sl_ledger_key4 key = ledger_key4(packet, limit);

		return map_lookup(ledgers4, &key);
	} else {
		struct sl_ledger_key6 key = ledger_key6(packet, limit);

		return map_lookup(ledgers6, &key);
	}
}

/*
 * Only ever BPF_NOEXIST: an update of an existing LRU key takes a free node first, and so evicts
 * somebody.
 */
static __always_inline long ledger_insert(const struct packet *packet, __u32 limit,
					  const struct sl_ledger *ledger)
{
	if (packet->source.bits == SL_FAMILY_BITS + 32) {
		struct sl_ledger_key4 key = ledger_key4(packet, limit);

		return bpf_map_update_elem(&ledgers4, &key, ledger, BPF_NOEXIST);
	} else {
		struct sl_ledger_key6 key = ledger_key6(packet, limit);

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

/*
 * Charges a packet to its ledger, making the ledger where there is none. `ret_purse` receives what
 * was drawn, or the refusal; it is untouched when the ledger could not be asked.
 */
static __always_inline enum sl_reason ledger_charge(const struct packet *packet,
						    const struct sl_limit *limit,
						    struct sl_purse *ret_purse,
						    const struct claim *claim)
{
	bool passes = false;

	for (int i = 0; i < LEDGER_TRIES; i++) {
		struct sl_ledger *ledger = ledger_find(packet, limit->id);
		struct sl_purse purse = *ret_purse;

		if (!ledger) {
			struct sl_ledger fresh = credit_birth(limit, claim->now);
			long err;

			purse.credit = 0; /* what was drawn from a forgotten ledger is void */
			credit_draw(limit, &fresh, &purse, claim->fill, claim->cost, claim->now,
				    claim->tick);
			err = ledger_insert(packet, limit->id, &fresh);
			if (err == -EEXIST) /* made by another CPU just now: use that one */
				continue;
			if (err)
				return SL_DROP_NO_MEMORY;
			passes = true;
		} else if (!ledger_try(ledger, limit, &purse, claim, &passes)) {
			continue;
		}
		*ret_purse = purse;
		return passes ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT;
	}
	return SL_DROP_CONTENDED;
}

#endif
