// SPDX-License-Identifier: GPL-2.0
#include "state/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/gate.h"
#include "gate/policy.h"
#include "rules/prefix.h"
#include "ways.h"

int source_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
		struct source *ret)
{
	struct source source = {.prefix = prefix_source(address), .table = table};
	int err = rules_judge(gate, address, &source.rule)
			  ?: buckets_read(gate, &source.prefix, &source.buckets, &source.count);
	uint32_t rules, owner;

	if (err)
		return err;
	/* the conditions are those of source_is_split() in bpf/rules.h */
	source.split = prefix_is_ipv6(&source.prefix) &&
		       source.prefix.bits == SL_FAMILY_BITS + 64 && gate->state->split_rules &&
		       !bpf_map_lookup_elem(gate->map[MAP_SPLITS], source.prefix.addr, &rules);
	owner = SL_POLICY(source.rule.version);
	if (source.rule.version) {
		enum sl_family family = prefix_family(&source.prefix);

		source.policy = policy_version(gate, source.rule.version);
		source.limits = source.policy->limit[family];
		source.limit_count = source.policy->limits[family];
	}
	for (unsigned int i = 0; i < source.count; i++) {
		struct sl_bucket *bucket = &source.buckets[i];

		cell_add_to(&source.passed, &bucket->passed);
		cell_add_to(&source.dropped, &bucket->dropped);
		cell_add_to(&source.observed, &bucket->observed);
		/* a /64 that contains longer rules uses no slices */
		if (source.split || owner < SL_POLICY_FIRST)
			memset(bucket->slice, 0, sizeof(bucket->slice));
		else
			slices_fit(bucket, source.policy, owner);
	}
	*ret = source;
	return 0;
}

void source_free(struct source *source)
{
	free(source->buckets);
	source->buckets = NULL;
	source->count = 0;
}

struct limit source_limit(const struct source *source, const struct sl_limit *limit)
{
	return (struct limit){
		.spec = source->policy->spec[limit->slot],
		.match = source->policy->match[limit->slot],
	};
}

struct packet_args packet_args_of_source(const struct source *source, unsigned int bytes)
{
	return (struct packet_args){
		.source = source->prefix,
		.facts.facts = SL_FACT_ANY,
		.bytes = bytes,
	};
}

uint64_t burst_units(const struct sl_limit *limit)
{
	if (limit->kind == SL_WINDOW)
		return limit->most;
	/* add the packet that departs exactly at the horizon, because kind_decide() passes it */
	return credit_units(limit, limit->burst) + (limit->kind == SL_SHAPE);
}

struct state_key state_key_for(const struct sl_limit *limit, const struct sl_prefix *address)
{
	__u64 addr[2];

	memcpy(addr, address->addr, sizeof(addr));
	return state_key_of(limit, addr, prefix_is_ipv4(address));
}

/* --- A trial charge ------------------------------------------------------------------------- */

/*
 * The data that decide whether a packet would pass: the packet, and copies of a state and its
 * slices.
 */
struct charge_question {
	const struct sl_limit *limit;
	struct sl_state state;
	uint64_t cost;
	unsigned int times; /* factor by which `cost` is multiplied: credit_times() */
	uint64_t now;
	const struct sl_bucket *buckets; /* buckets whose slices belong to `state` */
	unsigned int count;
	unsigned int cpus; /* number of CPUs; a CPU without a bucket has an empty slice */
};

/*
 * Returns the slice in the bucket at `index`, or an empty slice if there is no such bucket. A slice
 * with more credit than possible counts as empty, because the gate's owner can write any value to a
 * map.
 */
static struct sl_slice slice_of(const struct charge_question *q, unsigned int index)
{
	const int64_t max = SL_BURST_TICKS_MAX;
	struct sl_slice slice = {0};

	if (index < q->count)
		slice = q->buckets[index].slice[q->limit->slot];
	if (slice.credit > max || slice.credit < -max)
		slice.credit = 0;
	return slice;
}

/*
 * Returns whether at least one CPU would pass the packet. Decides like limit_charge()
 * (bpf/charge.h).
 */
static bool charge_passes(const struct charge_question *q)
{
	for (unsigned int i = 0; i < q->cpus && i <= q->count; i++) {
		struct sl_slice slice = slice_of(q, i);
		struct sl_state state = q->state;
		struct kind_charge charge = {.cost = q->cost, .now = q->now};

		if (credit_must_wait(&slice, q->cost, q->now))
			continue;
		kind_roll(q->limit, &state, q->now);
		if (kind_charge(q->limit->kind, q->limit, &state, &slice, &charge))
			return true;
	}
	return false;
}

/* Converts ticks to milliseconds. Rounds up, so that the packet passes after this time. */
static uint64_t ms_of(uint64_t ticks)
{
	const uint64_t per_ms = SL_TICKS_PER_SEC / 1000;

	return ticks / per_ms + !!(ticks % per_ms);
}

static void charge_ask(const struct charge_question *q, struct limit_state *state)
{
	bool is_bucket = q->limit->kind == SL_TOKEN_BUCKET;
	bool is_blocked = block_holds(q->limit, &q->state, q->now);
	int64_t debt = is_bucket ? credit_span(q->now, q->state.empty_at) : 0;
	struct decision decision;
	uint64_t held = 0; /* sum of the credit in valid slices */

	for (unsigned int i = 0; is_bucket && i < q->count; i++) {
		struct sl_slice slice = slice_of(q, i);

		if (slice.credit > 0 && credit_span(q->state.full_at, slice.at.borrowed) >= 0)
			held += slice.credit;
	}
	decision = kind_decide(q->limit, &q->state, held, q->cost, q->now);
	state->reason = is_blocked	   ? SL_DROP_BLOCKED
			: charge_passes(q) ? SL_PASS_WITHIN
					   : kind_refusal(q->limit, q->cost);
	state->remaining = decision.remaining / q->times;
	/* causes of debt: a large packet, packets at other nodes, or a burst that was divided */
	if (debt > 0)
		state->owed = credit_units(q->limit, credit_min(debt, 2 * SL_BURST_TICKS_MAX));
	state->remaining_after_waiting = decision.remaining_then / q->times;
	state->full_in_ms = ms_of(decision.full_in);
	state->never = decision.retry_after == KIND_NEVER;
	if (is_blocked)
		state->blocked_ms = ms_of(credit_span(q->now, block_end(q->limit, &q->state)));
	if (state->reason == SL_PASS_WITHIN)
		state->remaining_after_waiting = state->remaining;
	else if (!state->never)
		state->retry_after_ms = ms_of(decision.retry_after) ?: 1;
}

/*
 * Reads the state of a limit for an address. If there is no state, computes the state that a packet
 * at `now` would create. Sets ret->age to the age of the entry if the key is established, or if a
 * packet at `now` would make it established (entry_is_due()).
 */
static int source_state_find(const struct gate *gate, const struct table *table,
			     const struct sl_limit *limit, const struct sl_prefix *address,
			     uint64_t now, struct sl_state *ret_state, struct limit_state *ret)
{
	struct state_key key = state_key_for(limit, address);
	struct found_entry found;
	struct sl_entry *entry = &found.entry;
	int err = table_read(gate, table, &key, &found);

	if (err)
		return err;
	ret->fresh = !found.is_found;
	*ret_state = ret->fresh ? kind_new(limit->kind, limit, gate->state->nodes, now)
				: *entry_state(entry);
	if (found.is_found && (entry->made & ENTRY_ESTABLISHED || entry_is_due(entry, now)))
		ret->age = entry_age(entry, now);
	return 0;
}

bool packet_args_match(const struct packet_args *packet, const struct sl_policy *policy,
		       const struct sl_limit *limit)
{
	const struct sl_prefix *to = &packet->destination;

	return match_limit(limit, &policy->match[limit->slot], &packet->facts,
			   to->bits ? (const __be32 *)to->addr : NULL, packet->egress);
}

int limit_state_read(const struct gate *gate, const struct source *source,
		     const struct sl_limit *limit, const struct packet_args *packet, uint64_t now,
		     struct limit_state *ret)
{
	const struct sl_prefix *address = limit->key_dst ? &packet->destination : &packet->source;
	struct charge_question q = {
		.limit = limit,
		.times = limit->shared ? gate_divided_by(gate, now) : 1,
		.buckets = source->buckets,
		.count = limit->apart ? 0 : source->count,
		.cpus = gate->machine.cpus,
	};
	/* if keys are longer than /64, a /64 has many keys, so the packet's key is unknown */
	bool is_part = prefix_is_ipv6(address) && address->bits < SL_FAMILY_BITS + 128;
	int err;

	*ret = (struct limit_state){
		.matches = packet_args_match(packet, source->policy, limit),
		.known = is_part ? !limit->mask[1] : address->bits,
	};
	if (!ret->known)
		return 0;
	err = source_state_find(gate, source->table, limit, address, now, &q.state, ret);
	if (err)
		return err;
	q.cost = credit_multiply(credit_cost(limit, 1, packet->bytes), q.times);
	q.now = kind_now(limit->kind, &q.state, now);
	charge_ask(&q, ret);
	return 0;
}

int source_states_read(const struct gate *gate, const struct source *source,
		       const struct packet_args *packet, struct limit_state ret[SL_LIMITS_MAX])
{
	uint64_t now = uptime_ticks();
	int err = 0;

	for (unsigned int i = 0; !err && i < source->limit_count; i++)
		err = limit_state_read(gate, source, &source->limits[i], packet, now, &ret[i]);
	return err;
}

/*
 * Copies the slices of a budget into temporary buckets, because charge_ask() reads slices from
 * buckets.
 */
int budget_state_read(const struct gate *gate, const struct sl_policy *policy, unsigned int bytes,
		      uint64_t now, bool waits, struct limit_state *ret)
{
	uint32_t number = policy->newcomers_origin ?: SL_POLICY(policy_version_index(gate, policy));
	_cleanup_free_ struct sl_budget_slice *slices = calloc(gate->machine.cpus, sizeof(*slices));
	_cleanup_free_ struct sl_bucket *cpus = calloc(gate->machine.cpus, sizeof(*cpus));
	struct charge_question q = {
		.limit = &policy->newcomers,
		.state = gate->budgets[number],
		.cost = credit_cost(&policy->newcomers, 1, bytes),
		.times = 1,
		.buckets = cpus,
		.count = gate->machine.cpus,
		.cpus = gate->machine.cpus,
	};
	int err = -ENOMEM;

	if (slices && cpus)
		err = bpf_map_lookup_elem(gate->map[MAP_BUDGET_SLICES], &number, slices);
	if (err)
		return gate_map_unread(gate, MAP_BUDGET_SLICES, err);
	/* ignore slices from before the budget was set, as budget_charge() does (bpf/charge.h) */
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++)
		if (slices[cpu].since == policy->newcomers_since)
			cpus[cpu].slice[policy->newcomers.slot] = slices[cpu].slice;
	q.now = kind_now(q.limit->kind, &q.state, now);
	*ret = (struct limit_state){.matches = true, .known = true};
	charge_ask(&q, ret);
	if (ret->reason == SL_PASS_WITHIN)
		ret->reason = waits && credit_is_low(q.limit, &q.state, now) ? SL_DROP_OVER_BUDGET
									     : SL_PASS_NEWCOMER;
	else if (ret->reason == SL_DROP_OVER_LIMIT)
		ret->reason = SL_DROP_OVER_BUDGET;
	return 0;
}

/* --- Filling a state ----------------------------------------------------------------------- */

#define FILL_TRIES 4096 /* number of tries to fill a state; a charge makes a try fail */

/*
 * Empties a window, with effect from the current sub-window on. First gives `past` a wrong tag, so
 * that packets ignore its counts. If another CPU has begun to turn the window, its next step fails
 * because `past` has changed. So it cannot write back old counts.
 *
 * While `past` is ignored, the window keeps new counts longer than necessary, never shorter. The
 * next turn clears `past` (window_settle()).
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
 * Computes the state of a token bucket that was full and idle for so long that its entry counts as
 * full (entry_full_at()). Uses the entry's span, which is rounded up.
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
 * Writes the words of a full state, in one try. The first word decides whether the state is full.
 *
 * `full_at` is the second word. Until it is written, a packet finds the state filled only to
 * `refill`. The block is ended last, because otherwise a packet that finds the state empty would
 * begin another block.
 *
 * A token bucket becomes full at once, like a new state. Earlier charges must not count. So the
 * caller empties the slices, and `charged_at` is set back before the first word is written. If a
 * packet is charged between both writes, the write of the first word fails. If the bucket was idle,
 * CPUs may still have slices, and such a packet finds the full state that is about to be written.
 *
 * Packets may give the entry to another key at any time. A write then fails, unless the new key's
 * state has the same word as the old state. In that case, the new key loses no more than the old
 * key would. `full_at`, or `charged_at` of a shaper, is then earlier than the insertion of the new
 * key, and has no effect.
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
	__u64 count = __atomic_load_n(&entry->count.word, __ATOMIC_SEQ_CST);

	if (!entry_is(entry, key))
		return true; /* a key without a state has full credit */
	if (limit->kind == SL_TOKEN_BUCKET && credit_span(full.charged_at, charged) > 0 &&
	    !word_swap(&state->charged_at, charged, full.charged_at))
		return false;
	if (limit->kind == SL_WINDOW ? !window_empty(state)
				     : !word_swap(&state->empty_at, first, full.empty_at))
		return false;
	if (limit->kind == SL_WINDOW) /* on failure, the next packet sets ENTRY_HAS_HALF */
		word_swap(&entry->count.word, count, count >> 32 << 32 | ENTRY_HAS_HALF);
	if (limit->kind == SL_TOKEN_BUCKET)
		moment_advance(&state->full_at, full.full_at);
	if (limit->kind == SL_SHAPE)
		moment_advance(&state->charged_at, full.charged_at);
	return !blocked || word_swap(&state->blocked_until, blocked, 0);
}

int state_fill(const struct gate *gate, const struct sl_limit *limit,
	       const struct sl_prefix *address)
{
	struct state_key key = state_key_for(limit, address);
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
				 "cannot fill a state of gate '%s', because its source sends too "
				 "fast; try again",
				 gate->name);
	return 0;
}
