// SPDX-License-Identifier: GPL-2.0
#include "state/states.h"

#include <errno.h>
#include <bpf/bpf.h>
#include <string.h>

#include "base/clock.h"
#include "rules/prefix.h"
#include "sketch.h"

static struct state_key key_of(const struct sl_limit *limit, const struct sl_prefix *address)
{
	__u64 addr[2];

	memcpy(addr, address->addr, sizeof(addr));
	return state_key_of(limit, addr, prefix_is_ipv4(address));
}

int state_read(const struct gate *gate, const struct table *table, const struct sl_limit *limit,
	       const struct sl_prefix *address, uint64_t now, struct sl_state *ret, bool *ret_found,
	       uint32_t *ret_age)
{
	struct state_key key = key_of(limit, address);
	struct found_entry found;
	struct sl_entry *entry = &found.entry;
	int err = table_read(gate, table, &key, &found);

	if (err)
		return err;
	*ret_found = found.is_found;
	*ret_age = 0;
	if (!found.is_found) {
		*ret = kind_new(limit->kind, limit, gate->state->nodes, now);
		return 0;
	}
	*ret = *entry_state(entry);
	if (entry->made & ENTRY_ESTABLISHED || entry_is_due(entry, now))
		*ret_age = entry_age(entry, now);
	return 0;
}

/* --- New keys ------------------------------------------------------------------------------- */

/* Lowers `least` to the least eviction cost in a set: table_choose() in bpf/table.h. */
static int set_weigh(const struct gate *gate, uint32_t set, uint64_t now, bool flood,
		     int64_t *least)
{
	struct sl_set ways;
	int err = bpf_map_lookup_elem(gate->map[MAP_SETS], &set, &ways);

	for (uint32_t way = 0; !err && way < SL_WAYS; way++) {
		struct sl_entry entry;
		int64_t cost = -1; /* a free way */

		if (ways.tag[way]) {
			uint32_t index = set * SL_WAYS + way;

			err = bpf_map_lookup_elem(gate->map[MAP_STATES], &index, &entry);
			if (err)
				return err;
			cost = entry_evict_cost(&entry, entry_state(&entry), now, flood);
		}
		if (cost < *least)
			*least = cost;
	}
	return err;
}

/* Returns 0 or a negative errno. */
static int newcomer_look(const struct gate *gate, const struct state_key *key, uint64_t now,
			 bool flood, struct newcomer *ret)
{
	const struct sl_params params = gate->state->params;
	struct digest digest = state_digest(gate->secret, key);
	struct slot_ref ref = slot_ref_of(&params, digest);
	int64_t least = INT64_MAX;
	int err = set_weigh(gate, ref.primary, now, flood, &least)
			  ?: set_weigh(gate, set_alternate(&params, ref.primary, ref.tag), now,
				       flood, &least);

	/* the hits on the CPU that saw most; the coin decides only about other keys */
	for (uint32_t cpu = 0; !err && cpu < gate->machine.cpu_ids; cpu++) {
		struct sl_sketch sketch;
		uint32_t hits, line;

		line = sketch_line(&params, digest, cpu);
		err = bpf_map_lookup_elem(gate->map[MAP_NEWCOMERS], &line, &sketch);
		hits = err ? 0 : sketch_hit(&sketch.slot[sketch_slot(digest)], digest, 0);
		if (hits > ret->shown)
			ret->shown = hits;
	}
	ret->has_room = least < EVICT_PART || ret->shown > 1; /* a key seen before evicts any */
	ret->is_refused = evict_is_deep(least);
	return err;
}

int newcomer_read(const struct gate *gate, const struct sl_limit *limit,
		  const struct sl_prefix *address, uint64_t now, bool flood, struct newcomer *ret)
{
	struct state_key key = key_of(limit, address);
	int err;

	*ret = (struct newcomer){.shown = 1, .has_room = true}; /* what a reader assumes */
	err = gate->has_secret ? newcomer_look(gate, &key, now, flood, ret) : 0;
	if (err)
		return error_add(err, "map-read", NULL,
				 "cannot read the newcomers of gate '%s': %s", gate->name,
				 why(err));
	return 0;
}

/* --- Filling a state ----------------------------------------------------------------------- */

#define FILL_TRIES 4096 /* a try fails if a packet is charged meanwhile */

/*
 * Empties a window in its current sub-window. First `past` gets a wrong tag, so that its counts do
 * not count, and a count that no turn has seen. So a turn that another CPU has begun fails at its
 * next step, and cannot write counts that would count again at the next turn. A window without
 * counts in `past` keeps its counts longer, never shorter. The next turn clears it:
 * window_settle().
 */
static bool window_empty(struct sl_state *state)
{
	__u64 past = __atomic_load_n(&state->past, __ATOMIC_SEQ_CST);
	__u64 window = __atomic_load_n(&state->window, __ATOMIC_SEQ_CST);
	__u64 void_past = window_past((window >> WINDOW_TOTAL_BITS) + WINDOW_TAG_MASK / 2, 1);

	return word_swap(&state->past, past, void_past) &&
	       word_swap(&state->window, window, window & ~WINDOW_TOTAL_MASK) &&
	       __atomic_load_n(&state->past, __ATOMIC_SEQ_CST) == void_past;
}

/*
 * Returns the state of a token bucket that nothing was charged to since it was full, for so long
 * that its entry counts as full (entry_full_at()). An entry has its span rounded up.
 */
static struct sl_state bucket_rested(const struct sl_limit *limit, const struct sl_entry *entry,
				     uint64_t now)
{
	uint64_t span = credit_max(short_value(table_once(entry->span)), limit->burst);
	struct sl_state full = credit_full(limit, now - (span - limit->burst) - 1);

	full.charged_at -= span_slices(span);
	return full;
}

/*
 * Writes the words of a full state, in one try. The first word decides. `full_at` follows: until
 * then a packet finds the state filled to `refill`. A block ends last: otherwise a packet that
 * finds the state empty would begin the next block.
 *
 * The state of a token bucket is full at once, as a new state is: what was charged before is spent
 * or void, and the caller empties the slices. So its `charged_at` goes back, before the first word:
 * if a packet is charged between, the swap of that word fails. If the bucket was idle, slices may
 * still be out, and a charge between both finds the full state that the caller is to make.
 *
 * The entry may get another key at any time. Until then the words belong to this key; after it
 * the swaps fail, because the words of two states are equal only if both count the same: then the
 * other key loses no more than this key. `full_at`, or `charged_at` of a shape, is then a time
 * before that key was inserted, and changes nothing.
 */
bool state_try_fill(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, uint64_t now)
{
	struct sl_state *state = entry_state(entry);
	struct sl_state full = limit->kind == SL_TOKEN_BUCKET ? bucket_rested(limit, entry, now)
							      : kind_full(limit, now);
	__u64 first = __atomic_load_n(&state->empty_at, __ATOMIC_SEQ_CST);
	__u64 charged = __atomic_load_n(&state->charged_at, __ATOMIC_SEQ_CST);
	__u64 blocked = __atomic_load_n(&state->blocked_until, __ATOMIC_SEQ_CST);
	__u64 *taken = (__u64 *)&entry->taken;
	__u64 was_taken = __atomic_load_n(taken, __ATOMIC_SEQ_CST);

	if (!entry_is(entry, key))
		return true; /* no state is a full one */
	if (limit->kind == SL_TOKEN_BUCKET && credit_span(full.charged_at, charged) > 0 &&
	    !word_swap(&state->charged_at, charged, full.charged_at))
		return false;
	if (limit->kind == SL_WINDOW ? !window_empty(state)
				     : !word_swap(&state->empty_at, first, full.empty_at))
		return false;
	if (limit->kind == SL_WINDOW) /* if the swap fails, the next packet sets it */
		word_swap(taken, was_taken, was_taken >> 32 << 32 | ENTRY_HAS_HALF);
	if (limit->kind == SL_TOKEN_BUCKET)
		moment_advance(&state->full_at, full.full_at);
	if (limit->kind == SL_SHAPE)
		moment_advance(&state->charged_at, full.charged_at);
	return !blocked || word_swap(&state->blocked_until, blocked, 0);
}

int state_fill(const struct gate *gate, const struct sl_limit *limit,
	       const struct sl_prefix *address)
{
	struct state_key key = key_of(limit, address);
	struct table table = TABLE_CLOSED;
	struct found_entry found;
	int err = table_read(gate, NULL, &key, &found);
	bool is_full = false;

	if (err || !found.is_found)
		return err;
	err = table_open(gate, &table);
	if (err)
		return err;
	for (int i = 0; !is_full && i < FILL_TRIES; i++)
		is_full = state_try_fill(limit, &table.entries[found.index], &key, uptime_ticks());
	table_close(&table);
	if (!is_full)
		return error_add(EBUSY, "contended", NULL,
				 "cannot fill a bucket of gate '%s': its source sends too fast; "
				 "try again",
				 gate->name);
	return 0;
}
