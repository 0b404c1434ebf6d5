// SPDX-License-Identifier: GPL-2.0
#include "state/states.h"

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
	int status = table_read_in(gate, table, &key, &found);

	if (status)
		return status;
	*ret = found.is_found ? *entry_state(&found.entry)
			      : kind_new(limit->kind, limit, gate->state->nodes, now);
	*ret_found = found.is_found;
	*ret_age = 0;
	if (found.is_found &&
	    (found.entry.made & ENTRY_ESTABLISHED || entry_is_due(&found.entry, now)))
		*ret_age = entry_age(&found.entry, now);
	return OK;
}

/* --- Newcomers ------------------------------------------------------------------------------ */

/* Lowers `least` to the least eviction cost in a set: table_choose() in bpf/table.h. */
static int set_weigh(const struct gate *gate, uint32_t set, const struct sl_set *ways, uint64_t now,
		     bool flood, int64_t *least)
{
	for (uint32_t way = 0; way < SL_WAYS; way++) {
		struct sl_entry entry;
		int64_t loss = -1; /* a free way */
		int err = 0;

		if (ways->tag[way])
			err = array_value_read(gate, MAP_STATES, NULL, set * SL_WAYS + way, &entry);
		if (err)
			return err;
		if (ways->tag[way])
			loss = entry_evict_cost(&entry, entry_state(&entry), now, flood);
		if (loss < *least)
			*least = loss;
	}
	return 0;
}

/*
 * How often a key will have shown itself with its next packet, on the CPU where it did most. The
 * coin decides only about other keys. Returns 0 or a negative errno.
 */
static int newcomer_shown(const struct gate *gate, struct digest digest, uint32_t *ret)
{
	const struct sl_params params = gate->state->params;
	struct sl_sketch sketch;
	int err = 0;

	for (uint32_t cpu = 0; !err && cpu < gate->machine.cpu_ids; cpu++) {
		uint32_t seen;

		err = array_value_read(gate, MAP_NEWCOMERS, NULL, sketch_line(&params, digest, cpu),
				       &sketch);
		seen = err ? 0 : sketch_hit(&sketch.slot[sketch_slot(digest)], digest, 0);
		if (seen > *ret)
			*ret = seen;
	}
	return err;
}

static int newcomer_look(const struct gate *gate, const struct state_key *key, uint64_t now,
			 bool flood, struct newcomer *ret)
{
	const struct sl_params params = gate->state->params;
	struct digest digest = state_digest(gate->secret, key);
	struct slot_ref ref = slot_ref_of(&params, digest);
	uint32_t other = set_alternate(&params, ref.primary, ref.tag);
	struct sl_set home, away;
	int64_t least = INT64_MAX;
	int err = array_value_read(gate, MAP_SETS, NULL, ref.primary, &home);

	if (!err)
		err = array_value_read(gate, MAP_SETS, NULL, other, &away);
	if (!err)
		err = newcomer_shown(gate, digest, &ret->shown);
	if (!err)
		err = set_weigh(gate, ref.primary, &home, now, flood, &least);
	if (!err)
		err = set_weigh(gate, other, &away, now, flood, &least);
	ret->has_room =
		least < EVICT_PART || ret->shown > 1; /* one that has shown itself takes any */
	ret->is_refused = evict_is_deep(least);
	return err;
}

int newcomer_read(const struct gate *gate, const struct sl_limit *limit,
		  const struct sl_prefix *address, uint64_t now, bool flood, struct newcomer *ret)
{
	struct state_key key = key_of(limit, address);
	struct newcomer newcomer = {.shown = 1, .has_room = true}; /* what a reader assumes */
	int err = !gate->has_secret ? 0 : newcomer_look(gate, &key, now, flood, &newcomer);

	if (err)
		return failure("cannot read the newcomers of gate '%s': %s", gate->name, why(err));
	*ret = newcomer;
	return OK;
}

/* --- Filling a state ----------------------------------------------------------------------- */

/* The number of tries. In each that fails a packet was charged meanwhile. */
#define FILL_TRIES 4096

/*
 * Empties a window in its current sub-window. First `past` gets a tag that is wrong, so that no
 * count there counts, and a count that no turn has seen. So a turn that another CPU has under way
 * fails at its next step, and cannot write counts that would count again at the next turn. A window
 * without counts in `past` forgets later, never sooner. The next turn clears it: window_settle().
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
 * The state of a bucket that nothing was drawn from since it was full, for so long that its entry
 * counts as whole (entry_full_at()). A entry says its span rounded up.
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
 * Writes the words of a full state, in one try. The first word decides. `full_at` follows: until then
 * a packet finds the state filled to `refill`. A block ends last: before, a packet that finds the
 * state empty would begin the next one.
 *
 * The state of a bucket is whole at once, as a new one is: what was drawn before is spent or void,
 * and the caller empties the slices. So its `charged_at` goes back, before the first word: a draw that
 * comes between makes the swap of that fail. Where it was at rest, slices may be out still, and a
 * draw between both finds the full state that the caller is to make.
 *
 * Packets may hand the entry to another key at any moment. Until that the words are those of this
 * key, as the caller has seen; after it the swaps fail, since the words of two states are equal
 * only if both count the same: then the other key loses no more than it. What is stored to `full_at`,
 * or to `charged_at` of a shape, is then a moment before that key came, and changes nothing.
 */
bool state_try_fill(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, uint64_t now)
{
	struct sl_state *state = entry_state(entry);
	struct sl_state full = limit->kind == SL_TOKEN_BUCKET ? bucket_rested(limit, entry, now)
							      : kind_full(limit, now);
	__u64 first = __atomic_load_n(&state->empty_at, __ATOMIC_SEQ_CST);
	__u64 drawn = __atomic_load_n(&state->charged_at, __ATOMIC_SEQ_CST);
	__u64 blocked = __atomic_load_n(&state->blocked_until, __ATOMIC_SEQ_CST);
	__u64 *told = (__u64 *)&entry->taken;
	__u64 was_told = __atomic_load_n(told, __ATOMIC_SEQ_CST);

	if (!entry_is(entry, key))
		return true; /* what has no state is full */
	if (limit->kind == SL_TOKEN_BUCKET && credit_span(full.charged_at, drawn) > 0 &&
	    !word_swap(&state->charged_at, drawn, full.charged_at))
		return false;
	if (limit->kind == SL_WINDOW ? !window_empty(state)
				     : !word_swap(&state->empty_at, first, full.empty_at))
		return false;
	if (limit->kind == SL_WINDOW) /* else the next packet tells it */
		word_swap(told, was_told, was_told >> 32 << 32 | ENTRY_HAS_HALF);
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
	int status = table_read(gate, &key, &found);
	bool is_full = false;

	if (!status && found.is_found)
		status = table_open(gate, &table);
	if (status || !found.is_found)
		return status;
	for (int i = 0; !is_full && i < FILL_TRIES; i++)
		is_full = state_try_fill(limit, &table.entries[found.index], &key, uptime_ticks());
	table_close(&table);
	return is_full ? OK
		       : failure("cannot fill a bucket of gate '%s': its source sends too fast: "
				 "try again",
				 gate->name);
}
