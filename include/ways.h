/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of states is set-associative, with two sets for each key, in maps `sets` and `states`.
 *
 * A key has a primary set, and a secondary set that follows from the primary set and the key's tag.
 * If a key is inserted into a set, it gets the way that its tag selects if that way is free,
 * otherwise another way. `displaced` of a primary set counts its keys that are in their secondary
 * sets. So reading half a cache line usually shows that a key has no state. Reading a state costs
 * the cache line of its entry, and half a line more if the entry is at another way. If the primary
 * set has few ways to spare, a new key is inserted into the set that has more ways to spare, so
 * sets fill evenly.
 *
 * Eviction. A full state (refilled, not blocked, without valid slices) is like a new state, so its
 * eviction costs nothing. The eviction of any other state costs the part of the burst that the
 * state lacks. If a set has no free way, it evicts the state that has been full for longest; the
 * states of established keys are evicted later (EVICT_ESTABLISHED). If no state in both sets is
 * full, the state that costs least is evicted, but only for a key that was seen before. States are
 * protected if they have less than half of their burst or are blocked. In a flood, states are also
 * protected if they were charged within the last minute, unless they are full and their keys are
 * not established. A protected state is evicted only if all ways of both sets are protected. A new
 * state lacks what the evicted state lacked (evict_inherited()). If a limit starts empty, an
 * evicted key returns to a stricter state, never to a milder one.
 *
 * Only BPF programs insert while packets use the table: a command that is killed while it holds a
 * lock would lock the set forever. Commands refill, charge and block existing states, without a
 * lock.
 */
#ifndef SLUICE_WAYS_H
#define SLUICE_WAYS_H

#include "identity.h"
#include "kinds.h"

#define table_once(x) (*(const volatile __typeof__(x) *)&(x))

/* --- Keys ----------------------------------------------------------------------------------- */

struct state_key {
	__u64 addr[2];
	__u32 limit; /* id, kind and family of the limit, as in `limit` of struct sl_entry */
};

/* Returns the key of the state to which a limit charges packets from or to an address. */
static inline struct state_key state_key_of(const struct sl_limit *limit, const __u64 addr[2],
					    bool ipv4)
{
	struct state_key key = {.limit = limit->id << 3 | limit->kind << 1 | ipv4};

	if (ipv4)
		key.addr[0] = (__u32)addr[0] & (__u32)limit->mask[0];
	else
		identity_key(addr, limit->mask, key.addr);
	return key;
}

static inline struct digest state_digest(const __u64 secret[SL_SECRETS],
					 const struct state_key *key)
{
	return digest_key(secret, key->addr, key->limit);
}

/*
 * entry_fetch() in bpf/table.h stores 0 to the upper byte of `limit`. That byte is 0 if the id is
 * below 2^21. The function no longer stores 0 after the first id of 2^20, so no packet still in
 * progress can find an id above 2^21.
 */
#define ENTRY_FETCH_LIMITS (1U << 20)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ENTRY_ZERO_BYTE 3
#else
#define ENTRY_ZERO_BYTE 0
#endif

/* Returns the kind of a limit from `limit` of struct sl_entry. */
static inline enum sl_kind entry_kind_of(__u32 limit)
{
	return limit >> 1 & 3;
}

static inline enum sl_kind entry_kind(const struct sl_entry *entry)
{
	return entry_kind_of(entry->limit);
}

/*
 * Returns whether an entry belongs to a key. Reads `limit` last, because `limit` is 0 while a CPU
 * gives the entry to another key. If a CPU reorders the loads, the result may be wrong:
 * entry_write() in bpf/table.h describes this race.
 */
static inline bool entry_is(const struct sl_entry *entry, const struct state_key *key)
{
	return table_once(entry->addr[0]) == key->addr[0] &&
	       table_once(entry->addr[1]) == key->addr[1] && table_once(entry->limit) == key->limit;
}

static inline struct sl_state *entry_state(struct sl_entry *entry)
{
	return (struct sl_state *)&entry->state;
}

/* --- Sets and ways -------------------------------------------------------------------------- */

/* The lowest bit of a tag in a set. The bit is 1 if the key is in its secondary set. */
#define TAG_DISPLACED 1

struct slot_ref {
	__u32 primary;
	__u16 tag; /* tag of the key in its primary set; never 0, and its lowest bit is 0 */
};

static inline __u16 digest_tag(struct digest digest)
{
	__u16 tag = digest.mark >> 16 & ~TAG_DISPLACED;

	return tag ? tag : 2;
}

static inline struct slot_ref slot_ref_of(const struct sl_params *params, struct digest digest)
{
	return (struct slot_ref){digest.place & params->set_mask, digest_tag(digest)};
}

/*
 * If `set` is the primary set of a key, returns its secondary set. If `set` is the secondary set,
 * returns the primary set.
 */
static inline __u32 set_alternate(const struct sl_params *params, __u32 set, __u16 tag)
{
	return (set ^ ((__u32)(tag >> 1) * 0x9e3779b1U >> 8 | 1)) & params->set_mask;
}

/* Returns the way that a tag selects. Most keys are at this way, so the set need not be read. */
static inline __u32 way_first(__u16 tag)
{
	return tag / (TAG_DISPLACED + 1) % SL_WAYS;
}

/* Returns the free way that a new key with this tag gets, or SL_WAYS if no way is free. */
static inline __u32 way_free(const struct sl_set *set, __u16 tag)
{
	__u32 first = way_first(tag);

	for (__u32 way = 0; way < SL_WAYS; way++)
		if (!set->tag[(first + way) % SL_WAYS])
			return (first + way) % SL_WAYS;
	return SL_WAYS;
}

/*
 * Returns whether a way of a set has this tag. Compares four tags at a time, by Mycroft's test for
 * a zero lane in a word (Warren, "Hacker's Delight", 2nd edition, 6-1).
 */
static inline bool set_has_tag(const struct sl_set *set, __u16 tag)
{
	const __u64 *words = (const __u64 *)set->tag, ones = 0x0001000100010001ULL;
	__u64 lower = table_once(words[0]) ^ tag * ones, upper = table_once(words[1]) ^ tag * ones;

	return (((lower - ones) & ~lower) | ((upper - ones) & ~upper)) & ones << 15;
}

/* A set has few ways to spare if fewer than WAYS_SPARE ways are free or have a full state. */
#define WAYS_SPARE 3

/*
 * Returns the number of free ways of a set. Uses no branches, which would multiply the verifier's
 * paths.
 */
static inline __u32 ways_free(const struct sl_set *set)
{
	__u32 free = 0;

	for (__u32 way = 0; way < SL_WAYS; way++)
		free += (set->tag[way] - 1U) >> 31;
	return free;
}

/* --- 16-bit floating point ------------------------------------------------------------------ */

/*
 * A 16-bit float: 6 bits of exponent, 10 bits of mantissa. Numbers are rounded up by at most 0.2 %.
 */
#define SHORT_BITS 10

static inline __u16 short_make(__u64 number)
{
	__u32 shift = 0;

	while (number >> shift >> SHORT_BITS)
		shift++;
	if (shift && number & ((1ULL << shift) - 1)) {
		number += 1ULL << shift;
		shift += number >> shift >> SHORT_BITS;
	}
	return shift << SHORT_BITS | number >> shift;
}

static inline __u64 short_value(__u16 number)
{
	return (__u64)(number & ((1 << SHORT_BITS) - 1)) << (number >> SHORT_BITS);
}

/* --- Refill and age of an entry ------------------------------------------------------------- */

/* Returns the time in which an empty state of this limit refills, in ticks. */
static inline __u64 limit_span(const struct sl_limit *limit)
{
	if (limit->kind == SL_WINDOW)
		return (limit->groups + 1) * limit->period;
	return limit->kind == SL_SHAPE ? limit->horizon : limit->burst;
}

/*
 * Returns 2 S (credit.h): the time in which all slices expire and their credit refills. S <= span /
 * 16.
 */
static inline __u64 span_slices(__u64 span)
{
	return span / 8 + 1;
}

/* `made` of struct sl_entry has units of 2^34 ticks, 1.07 s, and wraps after 4.9 hours. */
#define ENTRY_MOMENT_SHIFT 34
#define ENTRY_MOMENTS	   0x4000

/* Bit of `made`: the key sent a packet when the entry was at least ENTRY_BACK_AGE units old. */
#define ENTRY_CAME_BACK ENTRY_MOMENTS
#define ENTRY_BACK_AGE	2

/* Bit of `made`: the key of the entry is established (entry_is_due()). */
#define ENTRY_ESTABLISHED (2 * ENTRY_MOMENTS)

static inline __u16 entry_moment(__u64 now)
{
	return now >> ENTRY_MOMENT_SHIFT & (ENTRY_MOMENTS - 1);
}

/*
 * Returns an entry's age in units of `made`. Returns 0 if `made` is later than `now`, because CPU
 * clocks differ.
 */
static inline __u16 entry_age(const struct sl_entry *entry, __u64 now)
{
	__u16 age = (entry_moment(now) - entry->made) & (ENTRY_MOMENTS - 1);

	return age == ENTRY_MOMENTS - 1 ? 0 : age;
}

/* Longest time that a key must have an entry to be established, in units of `made`: 64 s. */
#define ENTRY_DUE_MAX 60

/*
 * Returns the age, in units of `made`, at which a key is established. A key is established when its
 * entry has existed for the time in which an empty state refills, but not before one unit, and not
 * after ENTRY_DUE_MAX units. Until then the budget is charged for the key. So the key gets no more
 * than the budget passes, plus what an empty state passes. The maximum is for limits that refill
 * slowly: until a key is established, floods compete with it for the budget. span: as in struct
 * sl_entry.
 */
static inline __u32 span_due(__u16 span)
{
	__u64 units = short_value(span) >> ENTRY_MOMENT_SHIFT;

	/*
	 * Add 1 to round up. Add 1 more, because the time of n units of age may be as short as n -
	 * 1 units.
	 */
	return 2 + (units < ENTRY_DUE_MAX ? units : ENTRY_DUE_MAX - 1);
}

/* Returns whether a packet at `now` makes the entry's key established. */
static inline bool entry_is_due(const struct sl_entry *entry, __u64 now)
{
	return entry_age(entry, now) >= span_due(entry->span);
}

/*
 * Returns the time until which the escalation steps of a block count. block_steps() drops one step
 * after each time that is as long as the last block. The entry does not store that length, so it is
 * estimated: from the last charge to the end of the block, or if the state was charged after the
 * block, from the insertion to the end of the block. Most estimates are too long, except for
 * entries that are hours old.
 */
static inline __u64 entry_block_counts(const struct sl_entry *entry, const struct sl_state *state)
{
	__u64 steps = state->blocked_until & BLOCK_STEPS_MAX,
	      length = state->blocked_until - state->charged_at;

	if (credit_span(state->charged_at, state->blocked_until) <= 0)
		length = (entry_age(entry, state->blocked_until) + 1ULL) << ENTRY_MOMENT_SHIFT;
	if (length > SL_BURST_TICKS_MAX / (BLOCK_STEPS_MAX + 1))
		return state->blocked_until + SL_BURST_TICKS_MAX;
	return state->blocked_until + length * (steps + 1) + 1;
}

/*
 * Returns the time at which a state is full if nothing is charged until then. The time is never too
 * early. It may be too late by an eighth of the span, because the entry does not store whether its
 * limit has slices.
 */
static inline __u64 entry_full_at(const struct sl_entry *entry, const struct sl_state *state)
{
	__u64 span = short_value(entry->span), at;

	switch (entry_kind(entry)) {
	case SL_WINDOW:
		at = state->charged_at + span;
		break;
	case SL_SHAPE:
		at = credit_latest(state->ready_at, state->charged_at);
		break;
	default:
		at = credit_latest(state->empty_at + span, state->charged_at + span_slices(span));
	}
	return state->blocked_until ? credit_latest(at, entry_block_counts(entry, state)) : at;
}

/*
 * An eviction cost. If the state is full, the cost is negative: minus the ticks since it became
 * full. Otherwise it consists, from the highest bits down, of the class, which may protect the
 * state; in the lowest class the deficit, in 1/16 of a burst; the age of the entry; and the deficit
 * again, which evict_parts() returns.
 *
 * If two entries are equal otherwise, the younger is evicted, so keys from before a flood stay. But
 * among entries that lack more than half of their burst, keys that did not send again are evicted
 * first. The oldest of these keys is evicted first, because a younger key may still send again.
 * Otherwise spoofed keys would stay forever, and a later abuser would always be the youngest.
 *
 * A full state counts as full for longer, by EVICT_ESTABLISHED, if its key is not established.
 * Otherwise spoofed keys would evict all established keys that are idle, as soon as a budget has
 * passed as many spoofed keys as the table has ways.
 */
#define EVICT_PARTS	  16
#define EVICT_AGE_SHIFT	  8
#define EVICT_PART	  (1LL << 48)
#define EVICT_PROTECTED	  (1LL << 58)
#define EVICT_RECENT	  (60 * (__s64)SL_TICKS_PER_SEC)
#define EVICT_ESTABLISHED (3600 * (__s64)SL_TICKS_PER_SEC)

enum evict_class {
	EVICT_LITTLE,  /* at least half of the state's burst is left */
	EVICT_KNOWN,   /* only during a flood: the state was charged within the last minute */
	EVICT_DEEP,    /* less than half of the burst is left, or the next block may be longer */
	EVICT_BLOCKED, /* the state is blocked */
};

/*
 * Value of `half`: at the key's last packet, at most half of the window was used. The value 0 means
 * that more than half was used, or that the use is not known.
 */
#define ENTRY_HAS_HALF 1

/*
 * Unit of `seen`, the time of a key's last packet: 2^22 ticks (0.26 ms). `seen` wraps in 13 days.
 */
#define ENTRY_SEEN_SHIFT 22

static inline __u32 entry_seen(__u64 now)
{
	return now >> ENTRY_SEEN_SHIFT;
}

/*
 * Returns how long a key has been idle, in ticks, rounded down. For a window, uses the time in
 * `seen`, because `charged_at` only identifies the sub-window.
 */
static inline __s64 entry_idle(const struct sl_entry *entry, const struct sl_state *state,
			       __u64 now)
{
	/* Add 1 unit. Otherwise the difference wraps if another CPU's clock is slightly ahead. */
	__u32 seen = entry_seen(now) - table_once(entry->count.window.seen) + 1;

	if (entry_kind(entry) == SL_WINDOW)
		return ((__s64)seen - 2) * (1LL << ENTRY_SEEN_SHIFT);
	return credit_span(state->charged_at, now);
}

static inline __u32 entry_window_half(const struct sl_limit *limit, const struct sl_entry *entry)
{
	return 2 * window_total(table_once(entry->state.empty_at)) <= limit->most ? ENTRY_HAS_HALF
										  : 0;
}

/*
 * Returns the deficit of a state that is not full, in sixteenths of a burst: at least 1, and above
 * EVICT_PARTS in debt. For a window, only two results are possible, because its entry stores only
 * whether over half of the burst was used.
 */
static inline __u64 entry_deficit(const struct sl_entry *entry, const struct sl_state *state,
				  __u64 now)
{
	__u64 span = short_value(entry->span);
	__u64 filled = entry_kind(entry) == SL_SHAPE ? state->ready_at : state->empty_at + span;

	if (entry_kind(entry) == SL_WINDOW)
		return entry->count.window.half == ENTRY_HAS_HALF ? EVICT_PARTS / 2 : EVICT_PARTS;
	return credit_min(credit_max(credit_span(now, filled), 0) / (span / EVICT_PARTS + 1) + 1,
			  (1 << EVICT_AGE_SHIFT) - 1);
}

static inline enum evict_class entry_class(const struct sl_entry *entry,
					   const struct sl_state *state, __u64 parts, __u64 now,
					   bool flood)
{
	if (state->blocked_until && credit_span(now, state->blocked_until) > 0)
		return EVICT_BLOCKED;
	if (parts > EVICT_PARTS / 2 ||
	    (state->blocked_until && credit_span(now, entry_block_counts(entry, state)) > 0))
		return EVICT_DEEP;
	return flood && entry_idle(entry, state, now) < EVICT_RECENT ? EVICT_KNOWN : EVICT_LITTLE;
}

static inline __u64 entry_age_rank(const struct sl_entry *entry, enum evict_class class, __u64 now)
{
	__u16 age = entry_age(entry, now);

	if (class >= EVICT_DEEP && !(entry->made & ENTRY_CAME_BACK))
		return ENTRY_MOMENTS - 1 - age;
	return ENTRY_MOMENTS + age;
}

/* Returns the eviction cost of an entry. */
static inline __s64 entry_evict_cost(const struct sl_entry *entry, const struct sl_state *state,
				     __u64 now, bool flood)
{
	__s64 whole = credit_span(now, entry_full_at(entry, state));
	__u64 parts = whole < 0 ? 0 : entry_deficit(entry, state, now);
	enum evict_class class = entry_class(entry, state, parts, now, flood);
	bool established = entry->made & ENTRY_ESTABLISHED;
	__s64 rank;

	if (whole < 0 && class <= (established ? EVICT_LITTLE : EVICT_KNOWN))
		return whole - (established ? 0 : EVICT_ESTABLISHED);
	rank = class * EVICT_PROTECTED + (class == EVICT_LITTLE) * parts * EVICT_PART;
	return rank + (entry_age_rank(entry, class, now) << EVICT_AGE_SHIFT | parts);
}

/* Returns the deficit that an eviction cost contains, in sixteenths of a burst. */
static inline __u64 evict_parts(__s64 evict_cost)
{
	return evict_cost > 0 ? evict_cost & ((1 << EVICT_AGE_SHIFT) - 1) : 0;
}

static inline bool evict_is_protected(__s64 evict_cost)
{
	return evict_cost >= EVICT_PROTECTED;
}

/* Returns whether an eviction cost is of class EVICT_DEEP or EVICT_BLOCKED. */
static inline bool evict_is_deep(__s64 evict_cost)
{
	return evict_cost >= EVICT_DEEP * EVICT_PROTECTED;
}

/*
 * Returns the deficit that a new state inherits from the evicted state. If evict_is_deep(), the
 * deficit is all of `left`, which is kind_left() of the new state. Otherwise it is the part of
 * `left` that the evicted state lacked, rounded up. So an eviction creates no credit: sources that
 * evict each other from n ways together pass at most n limits. In a flood, only a deep state leaves
 * a deficit. Otherwise spoofed sources that evict each other would soon be protected, and known
 * sources would be evicted instead.
 */
static inline __u64 evict_inherited(__s64 evict_cost, __u64 left, bool flood)
{
	__u64 parts = flood ? 0 : evict_parts(evict_cost), rest = left % EVICT_PARTS * parts;

	if (evict_is_deep(evict_cost))
		return left;
	return left / EVICT_PARTS * parts + (rest + EVICT_PARTS - 1) / EVICT_PARTS;
}

#endif
