/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shared token buckets: find, make, draw. The slow tier; include/credit.h has the
 * arithmetic.
 */
#ifndef SLUICE_LEDGER_H
#define SLUICE_LEDGER_H

#include "clock.h"
#include "credit.h"
#include "newcomer.h"

/* One of the two, made once for all that a packet does with a ledger: the stack is short here. */
union ledger_key {
	struct sl_ledger_key4 ipv4;
	struct sl_ledger_key6 ipv6;
};

static __always_inline void ledger_key(const struct packet *packet, const struct sl_limit *limit,
				       union ledger_key *ret)
{
	const __u64 *addr =
		(const __u64 *)(limit->key_dst ? packet->destination : packet->source.addr);
	__u64 cut[2];

	if (packet_is_ipv4(packet)) {
		ret->ipv4.addr = *(const __u32 *)addr & (__u32)limit->mask[0];
		ret->ipv4.limit = limit->id;
	} else {
		identity_key(addr, limit->mask, cut);
		__builtin_memcpy(ret->ipv6.addr, cut, sizeof(cut));
		ret->ipv6.limit = limit->id;
	}
}

static __always_inline struct sl_ledger *ledger_find(const struct packet *packet,
						     const union ledger_key *key)
{
	if (packet_is_ipv4(packet))
		return map_lookup(ledgers4, &key->ipv4);
	return map_lookup(ledgers6, &key->ipv6);
}

/*
 * Only ever BPF_NOEXIST: an update of an existing LRU key takes a free node first, and so evicts
 * somebody.
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
	__u64 fill; /* the most that may be drawn on top, into a purse */
	__u64 owed; /* of packets before it, which were not charged */
	__u64 now;
	bool begins; /* a ledger is made where there is none */
};

/*
 * Each lost round means that another CPU's draw went through. A CPU that loses as many rounds as this
 * is one of a crowd on one small limit; it drops, and counts that it did.
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

/* Draws on a copy of a ledger. */
static __always_inline bool claim_draw(const struct packet *packet, const struct claim *claim,
				       const struct sl_limit *limit, struct sl_ledger *copy,
				       struct sl_purse *purse)
{
	return credit_draw(limit, copy, purse, claim->fill, claim->cost, claim->now, packet->jiffy);
}

/*
 * Publishes what a draw has made of a ledger that was seen, if nobody was faster. False: somebody was.
 *
 * Races, and what they cost. `born` and `drawn` are stored before `zero` is swapped: whoever sees the
 * new `zero` sees them, too. A store that comes too late, after another CPU's draw, can let the level
 * stand above `refill` by the time between the two clock readings at most. An LRU map may hand the
 * node to another key under our hands: then one draw is charged to a stranger. `ret_block`: the end of the block that
 * this draw began, or 0.
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

/* Not reasons: another CPU was faster, so try again; there is no ledger, and none was made. */
#define LEDGER_LOST SL_REASONS
#define LEDGER_NONE (SL_REASONS + 1)

/* The first packet of a source has drawn from a ledger that was born for it: into the map with it. 0, or as ledger_charge. */
static __always_inline int ledger_begin(const struct packet *packet, const union ledger_key *key,
					struct sl_ledger *fresh, const struct claim *claim)
{
	long err;

	if (!admission_take(SL_POOL_LEDGERS))
		return LEDGER_NONE;
	fresh->zero += claim->owed;
	err = ledger_insert(packet, key, fresh);
	admission_note(err);
	if (err == -EEXIST) /* made by another CPU just now: use that one */
		return LEDGER_LOST;
	return err ? LEDGER_NONE : 0;
}

/*
 * Whether the ledger was still the key's when its block began. If the map had handed the node to another key by then, that
 * one would be blocked for a stranger's overrun: such a block is taken back. What remains: another CPU that reads the
 * ledger in between refuses packets of that key until its jiffy is over.
 */
static __always_inline void block_confirm(const struct packet *packet, const union ledger_key *key,
					  struct sl_ledger *ledger, __u64 block)
{
	const struct sl_ledger *again = ledger_find(packet, key);

	if (!again || read_once(again->blocked) != block)
		__sync_val_compare_and_swap(&ledger->blocked, block, 0);
}

/* 0, or as ledger_charge. */
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
 * Charges a packet to its ledger, making the ledger where there is none and it may: one try, which draws on a copy
 * and then publishes it. `purse` receives what was drawn, or the refusal; unless the answer is final, it is untouched.
 * Returns an enum sl_reason, LEDGER_LOST or LEDGER_NONE.
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
 * Gives back what a packet was charged that another limit refuses. In between the level may have reached
 * `refill`: then it stands above it by the time that the packet took, at most.
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
