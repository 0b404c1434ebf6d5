/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Charges a packet to the limits of its source's policy, and if the source is new, to the policy's
 * budget for new sources. The calls are five levels deep:
 *
 *   policy_decide()              each limit that matches, and the budget (include/decide.h)
 *     limit_charge()             one limit: the slice that this CPU holds, if the slice can decide
 *       limit_charge_state()     otherwise the entry of the key in the table of states
 *         state_charge_KIND()    one state, by compare-and-swap (state.h)
 *           kind_charge()        the arithmetic of the kind (include/kinds.h)
 *
 * A budget is a token bucket whose state is never evicted. Its last eighth is reserved for packets
 * whose keys get a state. So if each source of a flood sends a single packet, new sources that send
 * again can still use the budget.
 */
#ifndef SLUICE_CHARGE_H
#define SLUICE_CHARGE_H

#include "context.h"
#include "state.h"

/* --- Slices ---------------------------------------------------------------------------------- */

/*
 * If a slice stores a refusal, it refuses packets without reading the state. In one of 64 jiffies,
 * packets are charged to the state, so that its entry shows that the key still sends. A shared
 * limit charges its state in one of 4 jiffies, because nodes exchange refusals every 100 ms.
 */
#define REFUSED_ALONE_JIFFIES	     64
#define REFUSED_ALONE_JIFFIES_SHARED 4

/*
 * Returns this CPU's slice for a limit. Returns NULL if the source has no bucket, or if two packets
 * of the source may have different keys under the limit.
 */
static __always_inline struct sl_slice *limit_slice(const struct sl_limit *limit,
						    struct sl_bucket *bucket)
{
	if (!bucket || limit->apart)
		return NULL;
	/*
	 * Without this asm, clang 19 adds the offset before the NULL test, and the verifier rejects
	 * the program.
	 */
	__asm__ volatile("" : "+r"(bucket));
	return &bucket->slice[limit->slot % SL_LIMITS_MAX];
}

/* Returns the credit in a slice. Returns 0 if the slice is NULL or stores a refusal. */
static __always_inline __s64 slice_credit(const struct sl_slice *slice)
{
	return slice ? credit_max(slice->credit, 0) : 0;
}

/*
 * Returns true if the slice stores a valid refusal of such a packet. Then the packet is refused,
 * and the state must not be charged. The refusal stays valid for the rest of the jiffy.
 */
static __always_inline bool slice_refuses(struct packet *packet, const struct sl_limit *limit,
					  struct sl_slice *slice, __u64 cost)
{
	__u32 unasked,
		jiffies = limit->shared ? REFUSED_ALONE_JIFFIES_SHARED : REFUSED_ALONE_JIFFIES;
	__u64 now;

	if (!slice || !(packet->jiffy % jiffies))
		return false;
	now = packet_now(packet);
	if (!credit_must_wait(slice, cost_times(cost, limit_times(limit, now)), now))
		return false;
	unasked = credit_unasked(slice);
	credit_refuse_jiffy(limit, slice, packet->jiffy);
	if (limit->shared)
		credit_count_unasked(slice, unasked + packet->packets);
	return true;
}

/* --- One limit ------------------------------------------------------------------------------- */

/*
 * Stores in a bucket the index of the source's state under a limit. Commands that know only the
 * source use this index. If the state moves to another entry, the index is wrong until the policy
 * version changes.
 */
BPF_GLOBAL int bucket_set_state(const struct packet *packet, const struct sl_limit *limit,
				struct sl_bucket *bucket)
{
	const struct sl_gate *gate = gate_get();
	struct state_key key;
	__u32 index;

	if (!packet || !limit || !bucket || !gate)
		return 0;
	key = packet_key(packet, limit);
	index = table_index(&gate->params, state_digest(hash_secret, &key), &key);
	if (index != ENTRY_NONE)
		bucket->state[limit->slot % SL_LIMITS_MAX] = index;
	return 0;
}

/*
 * Returns the entry of a key, or NULL if the key has no entry. If there is no flood, also
 * prefetches the entry and reads the clock.
 */
static __always_inline struct sl_entry *entry_find(struct packet *packet,
						   const struct sl_limit *limit,
						   const struct sl_gate *gate, struct digest digest,
						   const struct state_key *key)
{
	struct sl_entry *entry = NULL;

	if (!flood_is_for(packet, limit))
		entry = entry_first(&gate->params, digest);
	if (entry) {
		entry_fetch(gate, entry);
		packet_now(packet);
	}
	return entry && entry_is(entry, key) ? entry : table_find(&gate->params, digest, key);
}

/*
 * Prepares an entry for a charge. Updates the time in which its state refills, and whether its key
 * is established. If the key is not established and new keys are charged to a budget, sets the
 * limit's bit in verdict->is_new.
 */
static __always_inline void entry_update(struct packet *packet, const struct sl_limit *limit,
					 struct sl_entry *entry, struct verdict *verdict)
{
	__u16 made = read_once(entry->made);
	__u64 now;

	if (entry->span != limit->span) /* the limit was changed after the entry's last charge */
		write_once(entry->span, limit->span);
	if (made & ENTRY_ESTABLISHED)
		return;
	now = packet_now(packet);
	if (entry_age(entry, now) >= ENTRY_BACK_AGE)
		made |= ENTRY_CAME_BACK;
	if (entry_is_due(entry, now))
		made |= ENTRY_ESTABLISHED;
	else
		verdict->is_new |= limit_if_new(limit);
	if (made != entry->made)
		write_once(entry->made, made);
}

/*
 * Charges a packet to its state under a limit. bucket: NULL if the bucket has slices of another
 * policy.
 */
BPF_GLOBAL enum charge_result limit_charge_state(struct packet *packet,
						 const struct sl_limit *limit,
						 struct sl_bucket *bucket, struct verdict *verdict)
{
	const struct sl_gate *gate = gate_get();
	struct sl_slice *slice;
	struct sl_entry *entry;
	struct state_key key;
	struct digest digest;
	__u32 unasked;
	__s64 held;
	__u64 cost;

	if (!packet || !limit || !verdict || !gate)
		return CHARGE_LOST;
	slice = limit_slice(limit, bucket);
	cost = credit_cost(limit, packet->packets, packet->bytes);
	unasked = slice ? credit_unasked(slice) : 0;
	if (slice_refuses(packet, limit, slice, cost))
		return charge_refuse(verdict, kind_refusal(limit, cost));
	key = packet_key(packet, limit);
	digest = state_digest(hash_secret, &key);
	entry = entry_find(packet, limit, gate, digest, &key);
	if (!entry) /* limits that observe do not charge the budget */
		return sketch_admits(packet, limit->budgeted && !limit->observe, &gate->params,
				     digest, verdict)
			       ? CHARGE_ADMITTED
			       : CHARGE_NO_STATE;
	verdict->is_charged = true;
	if (bucket && !bucket->state[limit->slot % SL_LIMITS_MAX])
		bucket_set_state(packet, limit, bucket);
	entry_update(packet, limit, entry, verdict);
	held = slice_credit(slice);
	for (int i = 0; i < STATE_TRIES; i++) {
		struct sl_state *state = entry_state(entry);
		enum charge_result result;

		if (limit->kind == SL_SHAPE)
			result = state_charge_shape(packet, limit, slice, state, verdict);
		else if (limit->kind == SL_TOKEN_BUCKET)
			result = state_charge_bucket(packet, limit, slice, state, verdict);
		else
			result = state_charge_window(packet, limit, slice, state, verdict);
		if (result == CHARGE_LOST && !entry_is(entry, &key))
			return CHARGE_NO_STATE; /* another key has got the entry */
		if (result == CHARGE_LOST)
			continue;
		if (limit->kind == SL_WINDOW)
			verdict->is_hot |= entry_count_window(limit, entry, packet->now);
		if (limit->shared) {
			bool passes = result == CHARGE_PASSED;
			__u64 refused = passes ? 0 : cost;

			if (unasked) /* usually 0: then no division is needed */
				refused += credit_multiply(cost / packet->packets, unasked);
			entry_count_shared(limit, entry, packet->now,
					   slice_credit(slice) - held + (passes ? cost : 0),
					   refused);
		}
		if (result == CHARGE_REFUSED && verdict->refusal != SL_DROP_BLOCKED &&
		    kind_blocks(limit, cost))
			entry_block(packet, limit, slice, entry);
		return result;
	}
	return charge_refuse(verdict, SL_DROP_CONTENDED);
}

/* Makes the state of a new key, and charges the packet to this state. */
static __always_inline enum charge_result limit_charge_new(struct packet *packet,
							   const struct sl_limit *limit,
							   struct sl_bucket *bucket,
							   struct verdict *verdict)
{
	enum insertion insertion = new_entry_insert(packet, limit);
	enum charge_result result = CHARGE_NO_STATE;

	if (insertion == INSERT_EMPTY) /* a new state would have no credit */
		return charge_refuse(verdict, kind_refusal(limit, 0));
	if (insertion == INSERT_DONE)
		result = limit_charge_state(packet, limit, bucket, verdict);
	/* Each new state was charged just now. That does not mean that the source is hot. */
	verdict->is_hot = false;
	return result;
}

/*
 * Charges a packet to one limit: to the slice if the slice can decide, otherwise to the shared
 * state. A slice belongs to one CPU and is updated without atomics. On PREEMPT_RT a packet may
 * interrupt another packet. Each interruption can spend the credit of a slice at most twice.
 */
static __always_inline enum charge_result limit_charge(struct packet *packet,
						       const struct sl_limit *limit,
						       struct sl_bucket *bucket,
						       struct verdict *verdict)
{
	struct sl_slice *slice = limit_slice(limit, bucket);
	enum charge_result result;

	if (slice) {
		__u64 cost = credit_cost(limit, packet->packets, packet->bytes);
		enum credit_answer answer = credit_spend(slice, cost, packet->jiffy);

		if (answer == CREDIT_PASS)
			return CHARGE_PASSED;
		if (answer == CREDIT_REFUSE) {
			/* read `shared` again instead of keeping it on the stack */
			if (limit->shared)
				credit_count_unasked(slice, read_once(packet->packets));
			return charge_refuse(verdict, limit->block ? SL_DROP_BLOCKED
								   : kind_refusal(limit, 0));
		}
	}
	result = limit_charge_state(packet, limit, bucket, verdict);
	if (result == CHARGE_ADMITTED && !limit->budgeted)
		result = limit_charge_new(packet, limit, bucket, verdict);
	return result;
}

/* --- The budget ------------------------------------------------------------------------------ */

/* Begins a flood on this CPU, because a budget refuses a packet. Returns the reason to drop. */
static __always_inline enum sl_reason budget_refuse(const struct packet *packet)
{
	struct sl_admission *here = admission_get();
	const struct sl_gate *gate = gate_get();

	if (here && gate)
		flood_begin(here, true, &gate->params, packet->jiffy);
	return SL_DROP_OVER_BUDGET;
}

/* Charges a packet to the budget of policy `number`. own: the slice of this CPU. */
BPF_GLOBAL enum sl_reason budget_charge_state(struct packet *packet, const struct sl_limit *budget,
					      struct sl_budget_slice *own, __u32 number,
					      struct verdict *verdict)
{
	struct sl_state *state = bpf_map_lookup_elem(&budgets, &number);
	struct sl_state seen;
	__u64 cost;

	if (!packet || !budget || !own || !state || !verdict)
		return SL_DROP_OVER_BUDGET;
	seen = state_read(state);
	if (verdict->is_waiting && credit_is_low(budget, &seen, packet_now(packet))) {
		if (budget->refuse_by_jiffy)
			own->low_at = packet->jiffy;
		return budget_refuse(packet);
	}
	cost = credit_cost(budget, packet->packets, packet->bytes);
	if (credit_must_wait(&own->slice, cost, packet_now(packet))) {
		credit_refuse_jiffy(budget, &own->slice, packet->jiffy);
		return budget_refuse(packet);
	}
	for (int i = 0; i < STATE_TRIES; i++) {
		enum charge_result result =
			state_charge_bucket(packet, budget, &own->slice, state, verdict);

		if (result == CHARGE_PASSED)
			return SL_PASS_NEWCOMER;
		if (result != CHARGE_LOST)
			return budget_refuse(packet);
	}
	return SL_DROP_CONTENDED;
}

/* Charges a packet of a new source to the budget. Returns SL_PASS_NEWCOMER, or a reason to drop. */
static __always_inline enum sl_reason
budget_charge(struct packet *packet, const struct sl_policy *policy, struct verdict *verdict)
{
	const struct sl_limit *budget = &policy->newcomers;
	__u32 number = policy->newcomers_origin ?: SL_POLICY(verdict->version);
	struct sl_budget_slice *slice = bpf_map_lookup_elem(&budget_slices, &number);
	enum credit_answer answer;
	__u64 cost;

	if (!slice)
		return SL_DROP_OVER_BUDGET;
	/*
	 * If the policy has a new budget, discard the credit that was borrowed from the old budget.
	 */
	if (slice->since != policy->newcomers_since)
		*slice = (struct sl_budget_slice){.since = policy->newcomers_since};
	if (verdict->is_waiting && slice->low_at == (__u32)packet->jiffy)
		return SL_DROP_OVER_BUDGET;
	cost = credit_cost(budget, packet->packets, packet->bytes);
	answer = credit_spend(&slice->slice, cost, packet->jiffy);
	if (answer == CREDIT_PASS)
		return SL_PASS_NEWCOMER;
	if (answer == CREDIT_REFUSE)
		return SL_DROP_OVER_BUDGET;
	return budget_charge_state(packet, budget, slice, number, verdict);
}

/* --- A policy -------------------------------------------------------------------------------- */

/* Returns whether a limit of the policy matches a packet. The packet must be inspected. */
BPF_GLOBAL int limit_is_for(const struct sl_policy *policy, const struct sl_limit *limit,
			    const struct packet *packet)
{
	if (!policy || !limit || !packet)
		return false;
	return match_limit(limit, &policy->match[limit->slot % SL_LIMITS_MAX], &packet->facts,
			   (const __be32 *)packet->destination, packet->egress);
}

/*
 * Refunds a packet to the limits that passed it, because a later limit or the budget has refused
 * it. So a dropped packet costs nothing. limits: the LIMIT_PASSED() bits of the limits to refund.
 */
BPF_GLOBAL int policy_refund(const struct packet *packet, const struct sl_policy *policy,
			     struct sl_bucket *bucket, __u32 limits, __u32 is_new)
{
	enum sl_family family;

	if (!packet || !policy)
		return 0;
	family = packet_family(packet);
	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		struct sl_slice *slice = limit_slice(limit, bucket);
		__u64 cost = credit_cost(limit, packet->packets, packet->bytes);
		__u32 times;

		if (!(limits & LIMIT_PASSED(limit)))
			continue;
		/*
		 * The credit of a slice was charged to the state when it was borrowed. So refund
		 * the slice if it has room. If the source is new, refund the state, because a slice
		 * passes packets without charging the budget.
		 */
		times = limit_times(limit, slice ? slice->at.borrowed : packet->now);
		if (!slice || is_new & LIMIT_PASSED(limit) || limit->kind != SL_TOKEN_BUCKET ||
		    times > 1 || !credit_give_back(limit, slice, cost))
			entry_refund(packet, limit, cost, times);
	}
	return 0;
}

/*
 * Returns whether a limit establishes the source. The key of this limit must be the source. The
 * entry of this key must be old enough for all limits with bits in `is_new`. `made` wraps, so an
 * old entry may look too young in the first minute of every 4.9 hours.
 */
BPF_GLOBAL bool source_is_established(struct packet *packet, const struct sl_policy *policy,
				      __u32 limits, __u32 is_new)
{
	const struct sl_gate *gate = gate_get();
	__u32 age = 0, due = 0;
	enum sl_family family;

	if (!packet || !policy || !gate)
		return false;
	family = packet_family(packet);
	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		const struct sl_entry *entry;
		struct state_key key;

		if (is_new & LIMIT_PASSED(limit) && due < span_due(limit->span))
			due = span_due(limit->span);
		if (!(limits & policy->by_source[family] & ~is_new & LIMIT_PASSED(limit)))
			continue;
		key = packet_key(packet, limit);
		entry = table_find(&gate->params, state_digest(hash_secret, &key), &key);
		if (entry && age < entry_age(entry, packet_now(packet)))
			age = entry_age(entry, packet_now(packet));
	}
	return age >= due;
}

#include "decide.h"

/*
 * Charges a packet to the limits of its policy. bucket: NULL if no bucket has slices of the policy.
 */
static __always_inline void policy_charge(struct packet *packet, const struct sl_policy *policy,
					  struct sl_bucket *bucket, struct verdict *verdict)
{
	const struct sl_gate *gate = gate_get();

	/*
	 * The last argument is always 0. If the verifier knew this, it would walk the loop several
	 * times.
	 */
	policy_decide(packet, policy, bucket, verdict, gate ? gate->opaque_zero : 0);
}

#endif
