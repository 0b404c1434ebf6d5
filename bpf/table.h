/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of ledgers, on its maps: include/ways.h says what it is and what it forgets.
 *
 *   line_first     the line where most keys of a digest are, and
 *   line_fetch     begins to fetch it
 *   table_find     the line of a key
 *   table_insert   makes a line for a key, in the place of the one that loses least
 *
 * One writer inserts into a set at a time. It takes the lock of the set by one compare-and-swap, or
 * waits for as long as an insertion takes and tries once more. Where it does not get it its packet
 * is judged as a newcomer's. Under the lock it looks again, so no key has two ledgers. Nothing is
 * tried without a bound.
 *
 * A lock is held for longer if its CPU does something else meanwhile: on PREEMPT_RT a program can
 * be scheduled out, and a virtual CPU may stand still. A packet that meets such a lock waits for
 * 8 us, and is then judged as a newcomer's.
 */
#ifndef SLUICE_TABLE_H
#define SLUICE_TABLE_H

#include "clocks.h"
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

static __always_inline struct sl_line *line_get(__u32 line)
{
	return bpf_map_lookup_elem(&ledgers, &line);
}

/* No line: beyond every table. */
#define LINE_NONE (~0U)

/*
 * Finds a key in one set, and returns the index of its line or LINE_NONE. tag: as it is there. By
 * branches, which a CPU predicts for a key that comes often, and for one that has no ledger: nothing
 * waits for the tags then.
 */
static __always_inline __u32 way_find(const struct sl_set *set, __u32 index, __u16 tag,
				      const struct ledger_key *key)
{
	if (!set_has_tag(set, tag))
		return LINE_NONE;
#pragma unroll
	for (int way = 0; way < SL_WAYS; way++) {
		struct sl_line *line;

		if (read_once(set->tag[way]) != tag)
			continue;
		line = line_get(index * SL_WAYS + way);
		if (line && line_is(line, key))
			return index * SL_WAYS + way;
	}
	return LINE_NONE;
}

/*
 * The line where most keys of this digest are: at the first way at home. Whether it is that of the
 * key, line_is() tells. A key that has none is told by its set for less.
 */
static __always_inline struct sl_line *line_first(const struct sl_meeting *meeting,
						  struct digest digest)
{
	struct spot spot = spot_of(meeting, digest);

	return line_get(spot.home * SL_WAYS + way_first(spot.tag));
}

/*
 * Lets the CPU fetch a line while it reads the clock, which waits for all loads and for no store:
 * BPF has no other way to prefetch. The byte is 0 in every line, whosever it is.
 */
static __always_inline void line_fetch(const struct sl_gate *gate, struct sl_line *line)
{
	if (gate->next_limit <= LINE_FETCH_LIMITS)
		write_once(((__u8 *)&line->limit)[LINE_ZERO_BYTE], 0);
}

/* The index of the line of a key whose digest this is, or LINE_NONE. */
static __always_inline __u32 table_index(const struct sl_meeting *meeting, struct digest digest,
					 const struct ledger_key *key)
{
	struct spot spot = spot_of(meeting, digest);
	const struct sl_set *home = set_get(spot.home), *set;
	__u32 index, other;

	if (!home)
		return LINE_NONE;
	index = way_find(home, spot.home, spot.tag, key);
	if (index != LINE_NONE || read_once(home->away) < 2)
		return index;
	other = set_other(meeting, spot.home, spot.tag);
	set = set_get(other);
	return set ? way_find(set, other, spot.tag | TAG_AWAY, key) : LINE_NONE;
}

/* The line of a key whose digest this is. NULL: it has none. */
static __always_inline struct sl_line *
table_find(const struct sl_meeting *meeting, struct digest digest, const struct ledger_key *key)
{
	return line_get(table_index(meeting, digest, key));
}

/* --- Inserting ------------------------------------------------------------------------------ */

/* A key that asks for a ledger, and what it brings. */
struct entrant {
	struct ledger_key key;
	struct digest digest; /* of the key */
	struct sl_ledger ledger;
	__u64 now;
	__s64 loss; /* set by table_insert(): what was forgotten for it, as line_loss() tells */
	__u16 span; /* as in struct sl_line */
	__u16 made;
	__u8 flood;  /* newcomers are a crowd */
	__u8 evicts; /* it has been seen before, so it may evict a ledger that is not full */
	__u16 pad;
};

static __always_inline bool set_lock(struct sl_set *set)
{
	__u32 seen = read_once(set->away);

	return !(seen & 1) && __sync_val_compare_and_swap(&set->away, seen, seen | 1) == seen;
}

static __always_inline void set_unlock(struct sl_set *set)
{
	__sync_fetch_and_add(&set->away, -1);
}

/*
 * How often a packet looks at a lock that another CPU has: for 8 us at most. An insertion that
 * finds nothing in the caches takes a quarter of that. Two CPUs that meet a source at once are the
 * usual case: what the second one let pass as a newcomer would come on top of the burst.
 */
#define LOCK_LOOKS 1024

struct lock_watch {
	const struct sl_set *set;
	bool is_free;
};

/* Returns 1 to end the wait. */
static long lock_look(__u32 look, void *ctx)
{
	struct lock_watch *watch = ctx;

	(void)look;
	watch->is_free = !(read_once(watch->set->away) & 1);
	return watch->is_free;
}

/* By a helper, as the verifier would walk each look of a loop. */
static __always_inline bool set_wait(const struct sl_set *set)
{
	struct lock_watch watch = {.set = set};

	bpf_loop(LOCK_LOOKS, lock_look, &watch, 0);
	return watch.is_free;
}

/* Waits until neither set of a key is locked. False: one still is. */
static __always_inline bool table_wait(const struct sl_meeting *meeting, struct digest digest)
{
	struct spot spot = spot_of(meeting, digest);
	const struct sl_set *home = set_get(spot.home);
	const struct sl_set *other = set_get(set_other(meeting, spot.home, spot.tag));

	return home && other && set_wait(home) && set_wait(other);
}

/* The loss of a way that is free: none that is taken loses less; and more than any loses. */
#define LOSS_FREE (-(1LL << 62))
#define LOSS_ANY  (LOSS_BLOCKED * 2 * LOSS_PROTECTED)

/* line_loss() of one line, or LOSS_FREE. */
BPF_GLOBAL __u64 line_weigh(__u32 index, __u64 now, __u32 flood)
{
	struct sl_line *line = line_get(index);
	struct sl_ledger ledger;

	if (!line)
		return LOSS_ANY;
	if (!read_once(line->limit))
		return LOSS_FREE;
	ledger = *line_ledger(line);
	return line_loss(line, &ledger, now, flood);
}

/* Of what is looked at, the line to take. */
struct candidate {
	__s64 loss;
	__u32 line;
	__u32 room; /* ways of its set that are free or whole */
};

/* Finds the line of a set to take: a free one, else the one that loses least. */
static __always_inline struct candidate set_choose(const struct sl_set *set, __u32 index,
						   const struct entrant *entrant)
{
	__u16 tag = digest_tag(entrant->digest);
	__u32 lines = index * SL_WAYS, way = way_free(set, tag);
	struct candidate candidate = {LOSS_ANY, lines, 0};

	if (ways_free(set) >= WAYS_SPARE && way < SL_WAYS)
		return (struct candidate){LOSS_FREE, lines + way, SL_WAYS};
	way = way_first(tag);
	for (int i = 0; i < SL_WAYS; i++) {
		__u32 line = lines + (way + i) % SL_WAYS;
		__s64 loss = line_weigh(line, entrant->now, entrant->flood);

		candidate.room += (__u64)(loss - 1) >> 63; /* 1 for none; see ways_free() */
		if (loss < candidate.loss) {
			candidate.loss = loss;
			candidate.line = line;
		}
	}
	return candidate;
}

/* Whether to look at the other set, too. */
static __always_inline bool home_is_short(const struct candidate *home, const struct sl_set *other)
{
	return home->room < WAYS_SPARE || (home->loss != LOSS_FREE && way_free(other, 0) < SL_WAYS);
}

/* Chooses between both sets of a key, as ways.h says. Returns its line, or -ENOSPC. */
BPF_GLOBAL __s64 table_choose(struct entrant *entrant, __u32 in, __u32 other)
{
	const struct sl_set *home, *set;
	struct candidate best, next;

	if (!entrant)
		return -ENOSPC;
	home = set_get(in);
	set = set_get(other);
	if (!home || !set)
		return -ENOSPC;
	best = set_choose(home, in, entrant);
	write_once(entrant->loss, best.loss); /* kept there, as the stack is short */
	if (home_is_short(&best, set)) {
		next = set_choose(set, other, entrant);
		if (next.room == best.room ? next.loss < read_once(entrant->loss)
					   : next.room > best.room) {
			best.line = next.line;
			entrant->loss = next.loss;
		}
	}
	if (entrant->loss >= LOSS_PART && !entrant->evicts)
		return -ENOSPC;
	return best.line;
}

/*
 * Writes a key to a way, whose set is locked. A packet that finds the tag finds the whole line.
 *
 * A packet that found the old key just before may still charge the line. What it swapped before
 * this is lost: its key, which was among those that lose least, begins anew. So is a block that it
 * began after the line was weighed. What it swaps after this is charged to the new key. A `born`
 * that it stores after this is the new key's, too: a moment that has just passed; but to a window
 * it is what its sub-windows counted, so that one T may count wrong. Each of these is of one packet
 * on each other CPU at most, and happens only within the time of that packet.
 *
 * The stores are in order on any CPU, by the exchanges. The loads of line_is() and of the ledger
 * are plain, which x86-64 does in order. A CPU that loads out of order, such as arm64, may take a
 * line that is half written for that of its key: this costs one draw, too.
 */
static __always_inline void line_write(struct sl_set *set, struct sl_line *line, __u32 way,
				       __u16 tag, const struct entrant *entrant)
{
	struct sl_ledger *ledger = line_ledger(line);

	write_once(set->tag[way % SL_WAYS], 0);
	__sync_lock_test_and_set(&line->limit, 0);
	write_once(line->addr[0], entrant->key.addr[0]);
	write_once(line->addr[1], entrant->key.addr[1]);
	line->span = entrant->span;
	line->made = entrant->made;
	line->taken = 0;
	line->refused = line_kind_of(entrant->key.limit) == SL_WINDOW ? line_seen(entrant->now) : 0;
	write_once(ledger->zero, entrant->ledger.zero);
	write_once(ledger->born, entrant->ledger.born);
	write_once(ledger->drawn, entrant->ledger.drawn);
	write_once(ledger->blocked, entrant->ledger.blocked);
	/* both are seen by other CPUs in this order, and after what is before them */
	__sync_lock_test_and_set(&line->limit, entrant->key.limit);
	write_once(set->tag[way % SL_WAYS], tag);
}

/* Takes a way that was chosen, in a set that is locked: forgets its key, and writes the new one. */
static __always_inline void way_take(const struct sl_meeting *meeting, __u32 index,
				     const struct spot *spot, const struct entrant *entrant)
{
	__u32 way = index % SL_WAYS, in = index / SL_WAYS;
	struct sl_line *line = line_get(index);
	struct sl_set *set = set_get(in), *home;
	__u16 old, tag = spot->tag;

	if (!line || !set)
		return;
	old = set->tag[way];
	if (old & TAG_AWAY) {
		home = set_get(set_other(meeting, in, old));
		if (home)
			__sync_fetch_and_add(&home->away, -2);
	}
	if (in != spot->home) {
		home = set_get(spot->home);
		if (home)
			__sync_fetch_and_add(&home->away, 2);
		tag |= TAG_AWAY;
	}
	line_write(set, line, way, tag, entrant);
}

/*
 * Whether a way that was chosen before its set was locked may be taken still: another CPU may have
 * put a key there, or charged the line.
 */
static __always_inline bool choice_holds(const struct sl_set *set, __u32 line,
					 const struct entrant *entrant)
{
	if (entrant->loss == LOSS_FREE)
		return !read_once(set->tag[line % SL_WAYS]);
	return (__s64)line_weigh(line, entrant->now, entrant->flood) <= entrant->loss;
}

/* Inserts a key whose home is locked. */
static __always_inline int table_insert_locked(const struct sl_meeting *meeting,
					       const struct spot *spot, struct entrant *entrant)
{
	struct sl_set *set;
	int err = -EBUSY;
	__s64 line;

	if (table_find(meeting, entrant->digest, &entrant->key))
		return -EEXIST;
	line = table_choose(entrant, spot->home, set_other(meeting, spot->home, spot->tag));
	if (line < 0)
		return line;
	if (line / SL_WAYS == spot->home) {
		way_take(meeting, line, spot, entrant);
		return 0;
	}
	set = set_get(line / SL_WAYS);
	if (!set || !set_lock(set))
		return -EBUSY;
	if (choice_holds(set, line, entrant)) {
		way_take(meeting, line, spot, entrant);
		err = 0;
	}
	set_unlock(set);
	return err;
}

/*
 * Makes a line for a key. Returns 0, -EEXIST where there is one, -EBUSY where another CPU has a
 * lock, -ENOSPC where each line tells too much.
 */
BPF_GLOBAL int table_insert(struct entrant *entrant)
{
	const struct sl_gate *gate = gate_get();
	struct sl_set *home;
	struct spot spot;
	int err;

	if (!entrant || !gate)
		return -ENOSPC;
	spot = spot_of(&gate->meeting, entrant->digest);
	home = set_get(spot.home);
	if (!home)
		return -ENOSPC;
	if (!set_lock(home))
		return -EBUSY;
	err = table_insert_locked(&gate->meeting, &spot, entrant);
	set_unlock(home);
	return err;
}

#endif
