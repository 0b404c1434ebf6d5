/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ledgers: the shared, true token buckets, in maps ledgers4 and ledgers6.
 *
 *   ledger_charge   draws a packet's cost from its ledger: one try, by compare-and-swap
 *   ledger_refund   gives back a cost
 *
 * Used by: charge.h, budget.h (what it has of ledgers that are not in an LRU map),
 * carry_programs.h. Uses: include/credit.h, which has the arithmetic; ledger_key.h; newcomer.h;
 * clocks.h; maps.h.
 */
#ifndef SLUICE_LEDGER_H
#define SLUICE_LEDGER_H

#include "clocks.h"
#include "credit.h"
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

/* What one packet asks of a ledger, and when. */
struct claim {
	__u64 cost;
	__u64 fill; /* the most that may be drawn into a purse on top of the cost */
	__u64 owed; /* the cost of earlier packets that no ledger was charged for */
	__u64 now;
	bool begins; /* whether a ledger is made where there is none */
};

/*
 * A lost round means that the draw of another CPU went through. To lose this many in a row takes
 * many CPUs on one small limit; the packet is dropped then, and counted as SL_DROP_CONTENDED.
 */
#define LEDGER_TRIES 16

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

/* Draws on copies of a ledger and a purse. */
static __always_inline bool claim_draw(const struct packet *packet, const struct claim *claim,
				       const struct sl_limit *limit, struct sl_ledger *copy,
				       struct sl_purse *purse)
{
	return credit_draw(limit, copy, purse, claim->fill, claim->cost, claim->now, packet->jiffy);
}

/*
 * Publishes what a draw made of a ledger. seen: the ledger that the draw began with; next: what
 * became of it. False: the ledger has changed since it was seen. ret_block: the end of the block
 * that this draw began, or 0.
 *
 * Races and their cost. `born` and `drawn` are stored before `zero` is swapped, so a CPU that sees
 * the new `zero` sees them too. A store that comes late, after the draw of another CPU, can raise
 * the level above `refill` by the time between the two clock readings at most. An LRU map may hand
 * the entry to another key before the swap: then one draw is charged to a foreign key.
 */
static __always_inline bool ledger_publish(struct sl_ledger *ledger, const struct sl_ledger *seen,
					   const struct sl_ledger *next, __u64 *ret_block)
{
	moment_advance(&ledger->born, next->born);
	moment_advance(&ledger->drawn, next->drawn);
	*ret_block = 0;
	if (next->blocked != seen->blocked &&
	    __sync_val_compare_and_swap(&ledger->blocked, seen->blocked, next->blocked) ==
		    seen->blocked)
		*ret_block = next->blocked;
	return next->zero == seen->zero ||
	       __sync_val_compare_and_swap(&ledger->zero, seen->zero, next->zero) == seen->zero;
}

/*
 * Results beside the reasons. LOST: another CPU was faster, try again. NONE: no ledger exists, and
 * none was made.
 */
#define LEDGER_LOST SL_REASONS
#define LEDGER_NONE (SL_REASONS + 1)

/*
 * Inserts a new ledger, from which its first packet has drawn. Returns 0, LEDGER_LOST or
 * LEDGER_NONE.
 */
static __always_inline int ledger_begin(const struct packet *packet, const union ledger_key *key,
					struct sl_ledger *fresh, const struct claim *claim)
{
	long err;

	if (!admission_take(SL_POOL_LEDGERS))
		return LEDGER_NONE;
	fresh->zero += claim->owed;
	err = ledger_insert(packet, key, fresh);
	admission_note(err);
	if (err == -EEXIST) /* another CPU has just made it: draw from that one */
		return LEDGER_LOST;
	return err ? LEDGER_NONE : 0;
}

/*
 * Makes sure that a block began on a ledger that still belongs to the key. The LRU map may have
 * handed the entry to another key meanwhile, which would then be blocked for a foreign overrun: the
 * block is taken back. What remains: another CPU that reads the ledger in between refuses packets
 * of that key for the rest of the jiffy.
 */
static __always_inline void block_confirm(const struct packet *packet, const union ledger_key *key,
					  struct sl_ledger *ledger, __u64 block)
{
	const struct sl_ledger *again = ledger_find(packet, key);

	if (!again || read_once(again->blocked) != block)
		__sync_val_compare_and_swap(&ledger->blocked, block, 0);
}

/*
 * Publishes the draw on a ledger that exists, and charges what is owed to it. Returns 0 or
 * LEDGER_LOST.
 */
static __always_inline int ledger_update(const struct packet *packet, const union ledger_key *key,
					 struct sl_ledger *ledger, const struct sl_ledger *seen,
					 const struct sl_ledger *next, const struct claim *claim)
{
	__u64 block;
	bool published = ledger_publish(ledger, seen, next, &block);

	if (block)
		block_confirm(packet, key, ledger, block);
	if (!published)
		return LEDGER_LOST;
	if (claim->owed)
		__sync_fetch_and_add(&ledger->zero, credit_debit(ledger, claim->owed, claim->now));
	return 0;
}

/*
 * Charges a packet to its ledger in one try: draws on copies, then publishes them. Makes the ledger
 * where there is none and the claim says so. `purse` receives what was drawn, or the refusal; it is
 * untouched if the try is lost or there is no ledger. Returns an enum sl_reason, LEDGER_LOST or
 * LEDGER_NONE.
 */
BPF_GLOBAL int ledger_charge(const struct packet *packet, const struct sl_limit *limit,
			     struct sl_purse *purse, const struct claim *claim)
{
	struct sl_ledger *ledger, seen, next;
	union ledger_key key;
	struct sl_purse copy;
	bool passes;
	int err;

	if (!packet || !limit || !purse || !claim)
		return LEDGER_NONE;
	copy = *purse;
	ledger_key(packet, limit, &key);
	ledger = ledger_find(packet, &key);
	if (!ledger && !claim->begins)
		return LEDGER_NONE;
	seen = ledger ? ledger_read(ledger) : credit_birth(limit, claim->now);
	next = seen;
	passes = claim_draw(packet, claim, limit, &next, &copy);
	err = ledger ? ledger_update(packet, &key, ledger, &seen, &next, claim)
		     : ledger_begin(packet, &key, &next, claim);
	if (err)
		return err;
	*purse = copy;
	if (passes)
		return SL_PASS_WITHIN;
	return credit_blocked(limit, &seen, claim->now) ? SL_DROP_BLOCKED : SL_DROP_OVER_LIMIT;
}

/*
 * Gives back the cost of a packet that another limit refuses. If the level has reached `refill`
 * meanwhile, it exceeds it afterwards by the time that the packet took at most.
 */
static __always_inline void ledger_refund(const struct packet *packet, const struct sl_limit *limit,
					  __u64 cost)
{
	struct sl_ledger *ledger;
	union ledger_key key;

	ledger_key(packet, limit, &key);
	ledger = ledger_find(packet, &key);
	if (ledger)
		__sync_fetch_and_add(&ledger->zero, -cost);
}

#endif
