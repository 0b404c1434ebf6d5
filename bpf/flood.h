/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Admission of new sources: which keys without a state get an entry in the table of states.
 *
 * While new keys are few, each gets an entry with its first packet. If its policy has a budget,
 * every packet of the key is charged to the budget until the key is established (entry_is_due()).
 * So a flood of spoofed sources passes no more than the budget, and establishes no more sources
 * than the budget passes.
 *
 * In a flood nearly every packet has a new key. An entry for each key would cost ten times as much
 * as the rest of the packet path, and would evict the real sources. A flood begins when a budget
 * refuses a packet. Without a budget, it begins when a CPU sees more than `flood_threshold` packets
 * of new keys in an interval. During a flood a key gets an entry only after the CPU has seen it
 * more than FLOOD_MIN_HITS times (include/sketch.h). Packets that it sent before are then charged
 * to its state, unless they charged a budget. Packets that other CPUs saw, at most FLOOD_MIN_HITS
 * on each CPU, are not charged. The sketch stores no time, so up to FLOOD_MIN_HITS packets of an
 * earlier flood may be charged too.
 */
#ifndef SLUICE_FLOOD_H
#define SLUICE_FLOOD_H

#include "packet.h"
#include "sketch.h"
#include "table.h"

/* Counts an event on this CPU. Uses no atomics, so a race on PREEMPT_RT may lose a count. */
static __always_inline void event_count(struct sl_admission *here, enum sl_event event)
{
	here->event[event].total++;
	here->event[event].now++;
}

/*
 * Returns whether this CPU sees a flood of new keys under policies like the limit's: with or
 * without a budget.
 */
static __always_inline bool flood_is_for(const struct packet *packet, const struct sl_limit *limit)
{
	const struct sl_admission *here = admission_get();

	return here && flood_is_on(here, limit->budgeted, packet->jiffy);
}

/* Counts the new keys of the previous interval, and begins a new interval on this CPU. */
BPF_GLOBAL int flood_begin_interval(struct sl_admission *here, __u64 interval)
{
	if (!here)
		return 0;
	flood_count_interval(here);
	here->interval = interval;
	flood_turn(here, clock_second());
	return 0;
}

/* Begins a flood on this CPU. The flood lasts until the next interval ends. */
static __always_inline void flood_begin(struct sl_admission *here, bool budgeted,
					const struct sl_params *params, __u64 jiffy)
{
	here->flood_until[budgeted] = (flood_interval(params, jiffy) + 1) << params->interval_shift;
}

/*
 * Counts a packet of a new key. A packet is counted only once, even if its keys under several
 * limits are new. budgeted: 1 if the policy has a budget.
 */
static __always_inline void flood_count_new(const struct packet *packet, struct sl_admission *here,
					    bool budgeted, const struct sl_params *params,
					    struct verdict *verdict)
{
	__u64 interval = flood_interval(params, packet->jiffy);

	if (here->interval != interval)
		flood_begin_interval(here, interval);
	if (verdict->is_counted)
		return;
	verdict->is_counted = true;
	if (++here->new_keys[budgeted] > params->flood_threshold && !budgeted)
		flood_begin(here, false, params, packet->jiffy);
}

/* Returns the time of a packet, in ticks. Reads the clock only at the first call for a packet. */
static __always_inline __u64 packet_now(struct packet *packet)
{
	if (!packet->now)
		packet->now = clock_ticks();
	return packet->now;
}

/* Returns the key of the state to which a limit charges a packet. */
static __always_inline struct state_key packet_key(const struct packet *packet,
						   const struct sl_limit *limit)
{
	const __u8 *addr = limit->key_dst ? packet->destination : packet->source.addr;

	return state_key_of(limit, (const __u64 *)addr, packet_is_ipv4(packet));
}

/*
 * Returns the slot of a key in this CPU's sketch. The result is never NULL, but the verifier
 * requires a test.
 */
static __always_inline __u32 *sketch_here(const struct sl_params *params, struct digest digest)
{
	__u32 line = sketch_line(params, digest, bpf_get_smp_processor_id());
	struct sl_sketch *sketch = bpf_map_lookup_elem(&sketches, &line);

	return sketch ? &sketch->slot[sketch_slot(digest)] : NULL;
}

/* Counts a packet whose key has no state. Returns whether the key may get an entry. */
static __always_inline bool sketch_admits(const struct packet *packet, bool budgeted,
					  const struct sl_params *params, struct digest digest,
					  struct verdict *verdict)
{
	struct sl_admission *here = admission_get();
	__u32 *slot = sketch_here(params, digest), hits;

	if (!here || !slot)
		return false;
	flood_count_new(packet, here, budgeted, params, verdict);
	hits = sketch_hit(slot, digest, here->new_keys[budgeted]);
	return !flood_is_on(here, budgeted, packet->jiffy) || hits > FLOOD_MIN_HITS;
}

/* Counts the result of an insertion. evict_cost: eviction cost of the replaced entry. */
static __always_inline void flood_count_insert(struct sl_admission *here, int err, __s64 evict_cost)
{
	if (err) {
		if (err != -EEXIST)
			event_count(here, err == -EBUSY ? SL_EVENT_BUSY : SL_EVENT_NO_ROOM);
		return;
	}
	event_count(here, SL_EVENT_INSERTED);
	if (evict_parts(evict_cost)) {
		event_count(here, SL_EVENT_EVICTED);
		here->evicted += evict_parts(evict_cost);
	}
}

/*
 * Sets the key and the state of a new entry. The sketch has counted earlier packets of the key.
 * They are charged to the new state, unless they were charged to a budget.
 */
BPF_GLOBAL int new_entry_fill(const struct packet *packet, const struct sl_limit *limit,
			      struct new_entry *ret)
{
	const struct sl_gate *gate = gate_get();
	__u64 cost, owed;
	__u32 *slot, seen;

	if (!packet || !limit || !ret || !gate)
		return 0;
	ret->key = packet_key(packet, limit);
	ret->digest = state_digest(hash_secret, &ret->key);
	ret->state = kind_new(limit->kind, limit, gate->nodes, packet->now);
	ret->left = kind_left(limit, &ret->state, packet->now);
	slot = sketch_here(&gate->params, ret->digest);
	seen = slot ? sketch_hits(*slot, ret->digest) : 1;
	ret->evicts = seen > 1;
	if (seen < 2 || !limit->charge_hits)
		return 0;
	/* cost of one packet, because the buffer may contain several packets */
	cost = credit_cost(limit, packet->packets, packet->bytes);
	owed = credit_multiply(cost / packet->packets, seen - 1);
	ret->state.empty_at += kind_debit(limit, &ret->state, owed, packet->now);
	return 0;
}

enum insertion {
	INSERT_NONE, /* the key has no entry: a set is locked, or the key may not evict */
	INSERT_DONE, /* the key has an entry, which this CPU or another CPU has inserted */
	/*
	 * the key has no entry, because each state of its sets has less than half of its burst left
	 */
	INSERT_EMPTY,
};

/* Inserts an entry for the key of the packet under a limit. */
BPF_GLOBAL enum insertion new_entry_insert(struct packet *packet, const struct sl_limit *limit)
{
	const struct sl_gate *gate = gate_get();
	struct sl_admission *here = admission_get();
	struct new_entry new_entry = {0};
	__u32 *slot;
	int err;

	if (!packet || !limit || !here || !gate)
		return INSERT_NONE;
	packet_now(packet);
	new_entry_fill(packet, limit, &new_entry);
	new_entry.span = limit->span;
	new_entry.now = packet->now;
	new_entry.made = entry_moment(packet->now);
	new_entry.flood = flood_is_any(here, packet->jiffy);
	err = table_insert(&new_entry);
	if (err == -EBUSY && table_wait(&gate->params, new_entry.digest))
		err = table_insert(&new_entry);
	flood_count_insert(here, err, new_entry.evict_cost);
	if (!err) { /* clear the sketch slot of the key on this CPU, because it has an entry */
		slot = sketch_here(&gate->params, new_entry.digest);
		if (slot)
			sketch_clear(slot, new_entry.digest);
	}
	if (err == -ENOSPC && evict_is_deep(new_entry.evict_cost))
		return INSERT_EMPTY;
	return !err || err == -EEXIST ? INSERT_DONE : INSERT_NONE;
}

#endif
