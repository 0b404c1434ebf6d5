/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts how often each new key was seen, in memory of fixed size, and how many new keys a CPU
 * sees. Pure functions; the time is an argument.
 *
 * The sketch is a HeavyKeeper (Gong et al., "HeavyKeeper: An Accurate Algorithm for Finding Top-k
 * Elephant Flows", USENIX ATC 2018) with one row. A slot stores the fingerprint of one key and its
 * count. If a packet of another key selects the slot, it lowers the count by one with probability
 * 2^-count. If the count would become 0, the other key gets the slot with count 1.
 *
 * Errors. A spoofed source is taken for a source that was seen before if its 24-bit fingerprint is
 * in a slot whose count has reached FLOOD_MIN_HITS. The hash is strongly universal and its secret
 * random (digest_key()), so the chance is at most 2^-24 for each packet. That is once in 17 s at 1
 * million packets/s, and 3 times a second at 50 million. Each time the sender gains one state. With
 * n slots on a CPU and r new keys a second, a key that was seen once is remembered for 2n/r on
 * average. With 65,536 slots that is 131 ms at 1 million new keys a second, and 13 ms at 10
 * million.
 *
 * Each CPU has its own slots and updates them without atomics: cache lines that all CPUs write to
 * in a flood make a packet cost 1.6 times as much on some machines. On PREEMPT_RT a race may lose a
 * count, or a slot.
 */
#ifndef SLUICE_SKETCH_H
#define SLUICE_SKETCH_H

#include "identity.h"

#define SKETCH_COUNT 0xffU /* mask of the count in a slot; other bits: fingerprint of the key */

/*
 * Largest count of a slot. It exceeds FLOOD_MIN_HITS, but is low, so the slot of an idle key is
 * soon free.
 */
#define SKETCH_MOST 16

/*
 * A packet of another key lowers a count with probability 2^-count, or 2^-8 if the count exceeds 8.
 */
#define SKETCH_COIN 8

/* Returns the index in map `sketches` of the cache line in which this CPU counts a key. */
static inline __u32 sketch_line(const struct sl_params *params, struct digest digest, __u32 cpu)
{
	return cpu * (params->sketch_mask + 1) + (digest.place & params->sketch_mask);
}

/* Returns a key's slot in its line, from digest bits that select neither line nor fingerprint. */
static inline __u32 sketch_slot(struct digest digest)
{
	return digest.place >> 28;
}

_Static_assert(SL_SKETCH_SLOTS == 1 << (32 - 28), "a slot is four bits of a place");

static inline __u32 sketch_print(struct digest digest)
{
	return digest.mark & ~SKETCH_COUNT;
}

/*
 * Returns all ones if `coin` is 0, otherwise 0. Uses no branch, because the CPU could not predict
 * it.
 */
static inline __u32 coin_wins(__u32 coin)
{
	__u64 below = (__u64)coin - 1;

	__asm__ volatile("" : "+r"(below)); /* the asm keeps clang from compiling a branch */
	return below >> 32;
}

/*
 * Counts a packet of a key. Returns the key's count, including this packet. coin: a number that
 * differs from packet to packet. It is mixed with the 8 bits of the digest that are not in the
 * fingerprint.
 */
static inline __u32 sketch_hit(__u32 *slot, struct digest digest, __u32 coin)
{
	__u32 held = *slot, count = held & SKETCH_COUNT, next;

	if (count && (held & ~SKETCH_COUNT) == sketch_print(digest)) {
		*slot = held + (count < SKETCH_MOST);
		return count + (count < SKETCH_MOST);
	}
	next = count > 1 ? held - 1 : sketch_print(digest) | 1;
	coin = (coin ^ digest.mark) & ((1U << (count < SKETCH_COIN ? count : SKETCH_COIN)) - 1);
	*slot = held ^ ((held ^ next) & coin_wins(coin));
	return 1;
}

/* Returns a key's count from its slot. Returns 1 if the slot belongs to another key. */
static inline __u32 sketch_hits(__u32 slot, struct digest digest)
{
	return (slot & ~SKETCH_COUNT) == sketch_print(digest) && slot & SKETCH_COUNT
		       ? slot & SKETCH_COUNT
		       : 1;
}

/* Clears a key's slot if the slot belongs to the key. */
static inline void sketch_clear(__u32 *slot, struct digest digest)
{
	if ((*slot & ~SKETCH_COUNT) == sketch_print(digest))
		*slot = 0;
}

/* --- The rate of new keys on one CPU -------------------------------------------------------- */

/*
 * Returns the number of the interval that contains a jiffy. An interval is about 64 ms. Never
 * returns 0.
 */
static inline __u64 flood_interval(const struct sl_params *params, __u64 jiffy)
{
	return (jiffy >> params->interval_shift) + 1;
}

/* During a flood, a key gets an entry only after it was seen more than FLOOD_MIN_HITS times. */
#define FLOOD_MIN_HITS 2

/*
 * Returns whether a CPU sees a flood of new keys. budgeted: true for keys under policies with a
 * budget.
 */
static inline bool flood_is_on(const struct sl_admission *here, bool budgeted, __u64 jiffy)
{
	return jiffy < here->flood_until[budgeted];
}

/* Returns whether a CPU sees a flood of new keys, under policies with or without a budget. */
static inline bool flood_is_any(const struct sl_admission *here, __u64 jiffy)
{
	return flood_is_on(here, false, jiffy) || flood_is_on(here, true, jiffy);
}

/* Adds the new keys of an interval to the event counts. Call it when the interval has ended. */
static inline void flood_count_interval(struct sl_admission *here)
{
	for (int budgeted = 0; budgeted < 2; budgeted++) {
		here->event[SL_EVENT_NEW_KEY].total += here->new_keys[budgeted];
		here->event[SL_EVENT_NEW_KEY].now += here->new_keys[budgeted];
		here->new_keys[budgeted] = 0;
	}
}

/*
 * Begins a new second of the event rates. Drops the counts of seconds before the previous second.
 */
static inline void flood_turn(struct sl_admission *here, __u32 second)
{
	if (second == here->second)
		return;
	for (int i = 0; i < SL_EVENTS; i++) {
		here->event[i].last = second == here->second + 1 ? here->event[i].now : 0;
		here->event[i].now = 0;
	}
	here->second = second;
}

#endif
