/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of states, in its maps. include/ways.h describes its layout and its evictions.
 *
 * Only one writer at a time inserts into a set. The writer locks the set by one compare-and-swap
 * and searches the set again, so no key gets two states. If another CPU has locked the set, the
 * writer waits for the time that an insertion takes and tries once more. If the set is still
 * locked, the writer treats its packet like a packet of a new source without a state. A set stays
 * locked for longer if the CPU of the writer is interrupted. On PREEMPT_RT a program can be
 * preempted. A virtual CPU may be descheduled.
 */
#ifndef SLUICE_TABLE_H
#define SLUICE_TABLE_H

#include "base.h"
#include "maps.h"
#include "ways.h"

#define ENOMEM 12
#define EBUSY  16
#define EEXIST 17
#define ENOSPC 28

static __always_inline struct sl_set *set_get(__u32 set)
{
	return bpf_map_lookup_elem(&sets, &set);
}

static __always_inline struct sl_entry *entry_get(__u32 entry)
{
	return bpf_map_lookup_elem(&states, &entry);
}

/* The index of no entry. It means that a key has no entry. */
#define ENTRY_NONE (~0U)

/*
 * Returns the index of a key's entry in a set, or ENTRY_NONE. tag: the key's tag as the set stores
 * it. Uses branches, because CPUs predict these branches well.
 */
static __always_inline __u32 way_find(const struct sl_set *set, __u32 index, __u16 tag,
				      const struct state_key *key)
{
	if (!set_has_tag(set, tag))
		return ENTRY_NONE;
#pragma unroll
	for (int way = 0; way < SL_WAYS; way++) {
		struct sl_entry *entry;

		if (read_once(set->tag[way]) != tag)
			continue;
		entry = entry_get(index * SL_WAYS + way);
		if (entry && entry_is(entry, key))
			return index * SL_WAYS + way;
	}
	return ENTRY_NONE;
}

/*
 * Returns the entry at the first way of the primary set. Most keys with this digest have this
 * entry. The caller compares the key by entry_is().
 */
static __always_inline struct sl_entry *entry_first(const struct sl_params *params,
						    struct digest digest)
{
	struct slot_ref ref = slot_ref_of(params, digest);

	return entry_get(ref.primary * SL_WAYS + way_first(ref.tag));
}

/*
 * Prefetches an entry while the CPU reads the clock. That read waits for loads, but not for stores.
 * BPF has no prefetch instruction, so the function stores 0 to a byte that is 0 in every entry.
 */
static __always_inline void entry_fetch(const struct sl_gate *gate, struct sl_entry *entry)
{
	if (gate->next_limit <= ENTRY_FETCH_LIMITS)
		write_once(((__u8 *)&entry->limit)[ENTRY_ZERO_BYTE], 0);
}

/* Returns the index of a key's entry in the table, or ENTRY_NONE. */
static __always_inline __u32 table_index(const struct sl_params *params, struct digest digest,
					 const struct state_key *key)
{
	struct slot_ref ref = slot_ref_of(params, digest);
	const struct sl_set *primary = set_get(ref.primary), *set;
	__u32 index, secondary;

	if (!primary)
		return ENTRY_NONE;
	index = way_find(primary, ref.primary, ref.tag, key);
	if (index != ENTRY_NONE || read_once(primary->displaced) < 2)
		return index;
	secondary = set_alternate(params, ref.primary, ref.tag);
	set = set_get(secondary);
	return set ? way_find(set, secondary, ref.tag | TAG_DISPLACED, key) : ENTRY_NONE;
}

/* Returns the entry of a key, or NULL. */
static __always_inline struct sl_entry *
table_find(const struct sl_params *params, struct digest digest, const struct state_key *key)
{
	return entry_get(table_index(params, digest, key));
}

/* --- Inserting ------------------------------------------------------------------------------ */

/* A new entry, to be inserted into the table of states. */
struct new_entry {
	struct state_key key;
	struct digest digest; /* digest of `key`; it selects the two sets */
	struct sl_state state;
	__u64 left; /* kind_left() of the new state, before it is charged for earlier packets */
	__u64 now;
	__s64 evict_cost; /* eviction cost of the replaced entry; table_insert() sets it */
	__u16 span;	  /* value for `span` of struct sl_entry */
	__u16 made;
	__u8 flood;  /* 1 if this CPU sees a flood of new keys */
	__u8 evicts; /* 1 if the key may replace a state that is not full */
	__u16 pad;
};

static __always_inline bool set_lock(struct sl_set *set)
{
	__u32 seen = read_once(set->displaced);

	return !(seen & 1) && __sync_val_compare_and_swap(&set->displaced, seen, seen | 1) == seen;
}

static __always_inline void set_unlock(struct sl_set *set)
{
	__sync_fetch_and_add(&set->displaced, -1);
}

/*
 * If another CPU holds a lock, read the lock up to 1024 times: at most 8 us, four times as long as
 * an insertion without cache hits. Usually both CPUs have a packet of the same new source. If the
 * second CPU did not wait, it would find no state, and pass packets beyond the burst.
 */
#define LOCK_LOOKS 1024

struct lock_watch {
	const struct sl_set *set;
	bool is_free;
};

static long lock_look(__u32 look, void *ctx)
{
	struct lock_watch *watch = ctx;

	(void)look;
	watch->is_free = !(read_once(watch->set->displaced) & 1);
	return watch->is_free;
}

/*
 * Waits until a set is unlocked. Returns false if the set is still locked at the end of the wait.
 */
static __always_inline bool set_wait(const struct sl_set *set)
{
	struct lock_watch watch = {.set = set};

	bpf_loop(LOCK_LOOKS, lock_look, &watch, 0);
	return watch.is_free;
}

/*
 * Waits until both sets of a key are unlocked. Returns false if a set is still locked at the end of
 * the wait.
 */
static __always_inline bool table_wait(const struct sl_params *params, struct digest digest)
{
	struct slot_ref ref = slot_ref_of(params, digest);
	const struct sl_set *primary = set_get(ref.primary);
	const struct sl_set *secondary = set_get(set_alternate(params, ref.primary, ref.tag));

	return primary && secondary && set_wait(primary) && set_wait(secondary);
}

/*
 * EVICT_FREE is the cost of a free way, below the cost of any entry. EVICT_ANY is above the cost of
 * any entry.
 */
#define EVICT_FREE (-(1LL << 62))
#define EVICT_ANY  (EVICT_BLOCKED * 2 * EVICT_PROTECTED)

BPF_GLOBAL __u64 entry_weigh(__u32 index, __u64 now, __u32 flood)
{
	struct sl_entry *entry = entry_get(index);
	struct sl_state state;

	if (!entry)
		return EVICT_ANY;
	if (!read_once(entry->limit))
		return EVICT_FREE;
	state = *entry_state(entry);
	return entry_evict_cost(entry, &state, now, flood);
}

/*
 * A way of a set that a new key may get: a free way, or the way of the entry with the lowest
 * eviction cost.
 */
struct candidate {
	__s64 evict_cost;
	__u32 entry;
	__u32 room; /* number of ways in the set that are free or have a full state */
};

/*
 * Returns the way of a set that a new key may get: a free way, or the way of the entry with the
 * lowest eviction cost.
 */
static __always_inline struct candidate set_choose(const struct sl_set *set, __u32 index,
						   const struct new_entry *new_entry)
{
	__u16 tag = digest_tag(new_entry->digest);
	__u32 entries = index * SL_WAYS, way = way_free(set, tag);
	struct candidate candidate = {EVICT_ANY, entries, 0};

	if (ways_free(set) >= WAYS_SPARE && way < SL_WAYS)
		return (struct candidate){EVICT_FREE, entries + way, SL_WAYS};
	way = way_first(tag);
	for (int i = 0; i < SL_WAYS; i++) {
		__u32 entry = entries + (way + i) % SL_WAYS;
		__s64 evict_cost = entry_weigh(entry, new_entry->now, new_entry->flood);

		/*
		 * Count the ways that are free or have a full state. Only these ways have a
		 * negative cost.
		 */
		candidate.room += (__u64)(evict_cost - 1) >> 63;
		if (evict_cost < candidate.evict_cost) {
			candidate.evict_cost = evict_cost;
			candidate.entry = entry;
		}
	}
	return candidate;
}

/*
 * Chooses the entry that a new key replaces in its two sets (include/ways.h). Returns the index of
 * the entry, or -ENOSPC if the new key may replace no entry.
 */
BPF_GLOBAL __s64 table_choose(struct new_entry *new_entry, __u32 in, __u32 secondary)
{
	const struct sl_set *primary, *set;
	struct candidate best, next;

	if (!new_entry)
		return -ENOSPC;
	primary = set_get(in);
	set = set_get(secondary);
	if (!primary || !set)
		return -ENOSPC;
	best = set_choose(primary, in, new_entry);
	/* Store the cost in `new_entry`, because `best` is on the stack. */
	write_once(new_entry->evict_cost, best.evict_cost);
	if (best.room < WAYS_SPARE ||
	    (best.evict_cost != EVICT_FREE && way_free(set, 0) < SL_WAYS)) {
		next = set_choose(set, secondary, new_entry);
		if (next.room == best.room ? next.evict_cost < read_once(new_entry->evict_cost)
					   : next.room > best.room) {
			best.entry = next.entry;
			new_entry->evict_cost = next.evict_cost;
		}
	}
	if (new_entry->evict_cost >= EVICT_PART && !new_entry->evicts)
		return -ENOSPC;
	return best.entry;
}

/*
 * Writes a key to a way of a locked set. The tag is stored last, so a packet that finds the tag
 * finds the complete entry.
 *
 * Race: a packet on another CPU that found the old key just before may still charge the entry. If
 * that CPU swaps before this function stores the new state, its charge is lost with the old key,
 * and so is a block that began after the eviction cost was computed. If that CPU swaps later, it
 * charges the new key. If it stores `full_at` later, the new key gets a `full_at` that has just
 * passed. In a window this word has the counts of sub-windows, so the new key may be miscounted for
 * the span of the window. Each case is limited to one packet per other CPU.
 *
 * The exchanges order the stores on every CPU. The loads of entry_is() and of the state are ordered
 * on x86-64. A CPU that reorders loads, such as arm64, may match a half-written entry to its key,
 * which also costs one charge.
 */
static __always_inline void entry_write(struct sl_set *set, struct sl_entry *entry, __u32 way,
					__u16 tag, const struct new_entry *new_entry)
{
	struct sl_state *state = entry_state(entry);

	write_once(set->tag[way % SL_WAYS], 0);
	__sync_lock_test_and_set(&entry->limit, 0);
	write_once(entry->addr[0], new_entry->key.addr[0]);
	write_once(entry->addr[1], new_entry->key.addr[1]);
	entry->span = new_entry->span;
	entry->made = new_entry->made;
	entry->count.window.half = 0;
	entry->count.window.seen =
		entry_kind_of(new_entry->key.limit) == SL_WINDOW ? entry_seen(new_entry->now) : 0;
	write_once(state->empty_at,
		   new_entry->state.empty_at + evict_inherited(new_entry->evict_cost,
							       new_entry->left, new_entry->flood));
	write_once(state->full_at, new_entry->state.full_at);
	write_once(state->charged_at, new_entry->state.charged_at);
	write_once(state->blocked_until, new_entry->state.blocked_until);
	/* Other CPUs see all stores above before they see the exchange, and then the tag. */
	__sync_lock_test_and_set(&entry->limit, new_entry->key.limit);
	write_once(set->tag[way % SL_WAYS], tag);
}

/* Writes a new key to the chosen way of a locked set, and updates `displaced`. */
static __always_inline void way_take(const struct sl_params *params, __u32 index,
				     const struct slot_ref *ref, const struct new_entry *new_entry)
{
	__u32 way = index % SL_WAYS, in = index / SL_WAYS;
	struct sl_entry *entry = entry_get(index);
	struct sl_set *set = set_get(in), *primary;
	__u16 old, tag = ref->tag;

	if (!entry || !set)
		return;
	old = set->tag[way];
	if (old & TAG_DISPLACED) {
		primary = set_get(set_alternate(params, in, old));
		if (primary)
			__sync_fetch_and_add(&primary->displaced, -2);
	}
	if (in != ref->primary) {
		primary = set_get(ref->primary);
		if (primary)
			__sync_fetch_and_add(&primary->displaced, 2);
		tag |= TAG_DISPLACED;
	}
	entry_write(set, entry, way, tag, new_entry);
}

/*
 * Returns whether the key may still get the chosen way. Another CPU may have changed the set after
 * the choice and before the lock.
 */
static __always_inline bool choice_holds(const struct sl_set *set, __u32 entry,
					 const struct new_entry *new_entry)
{
	if (new_entry->evict_cost == EVICT_FREE)
		return !read_once(set->tag[entry % SL_WAYS]);
	return (__s64)entry_weigh(entry, new_entry->now, new_entry->flood) <= new_entry->evict_cost;
}

/*
 * Inserts a key. This CPU has locked the primary set of the key. Returns the result of
 * table_insert().
 */
static __always_inline int table_insert_locked(const struct sl_params *params,
					       const struct slot_ref *ref,
					       struct new_entry *new_entry)
{
	struct sl_set *set;
	int err = -EBUSY;
	__s64 entry;

	if (table_find(params, new_entry->digest, &new_entry->key))
		return -EEXIST;
	entry = table_choose(new_entry, ref->primary,
			     set_alternate(params, ref->primary, ref->tag));
	if (entry < 0)
		return entry;
	if (entry / SL_WAYS == ref->primary) {
		way_take(params, entry, ref, new_entry);
		return 0;
	}
	set = set_get(entry / SL_WAYS);
	if (!set || !set_lock(set))
		return -EBUSY;
	if (choice_holds(set, entry, new_entry)) {
		way_take(params, entry, ref, new_entry);
		err = 0;
	}
	set_unlock(set);
	return err;
}

/*
 * Inserts an entry. Returns 0, -EEXIST if the key has an entry, -EBUSY if another CPU has locked a
 * set, or -ENOSPC if the key may not evict any entry of its sets.
 */
BPF_GLOBAL int table_insert(struct new_entry *new_entry)
{
	const struct sl_gate *gate = gate_get();
	struct sl_set *primary;
	struct slot_ref ref;
	int err;

	if (!new_entry || !gate)
		return -ENOSPC;
	ref = slot_ref_of(&gate->params, new_entry->digest);
	primary = set_get(ref.primary);
	if (!primary)
		return -ENOSPC;
	if (!set_lock(primary))
		return -EBUSY;
	err = table_insert_locked(&gate->params, &ref, new_entry);
	set_unlock(primary);
	return err;
}

#endif
