/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Charges a packet to the limits of its source's policy. A limit is decided by the slice that this
 * CPU holds if the slice suffices, otherwise by the shared state. If the limits pass a packet of a
 * new source, it is charged to the newcomers' budget as well. If the budget passes it, too, keys
 * without a state get one.
 */
#ifndef SLUICE_CHARGE_H
#define SLUICE_CHARGE_H

#include "budget.h"

struct verdict {
	enum sl_reason reason;
	__u32 version; /* the policy version that decides about the source */
	__u32 refused; /* marks of the limits without credit, including those that observe */
};

/* Results of limit_ask() beside the reasons. The key has no state: */
#define STATE_NONE   0x100
#define STATE_ENTERS 0x101 /* and gets one if the packet passes */

/*
 * Bits by slot: the limits that a packet was charged to, the limits that drop and have no state for
 * its key (_NEWCOMER), and the limits under which its key gets a state (_ENTERS). The verifier must
 * not know the value, otherwise it would walk the rest of the program for each value.
 */
#define CHARGE(limit)	       (1U << (limit)->slot % SL_LIMITS_MAX)
#define CHARGE_NEWCOMER(limit) (CHARGE(limit) << SL_LIMITS_MAX)
#define CHARGE_ENTERS(limit)   (CHARGE(limit) << 2 * SL_LIMITS_MAX)
#define CHARGE_ASKED	       (1U << 3 * SL_LIMITS_MAX) /* a limit matched */
#define CHARGES		       ((1U << SL_LIMITS_MAX) - 1)
#define CHARGES_NEWCOMER       (CHARGES << SL_LIMITS_MAX)
#define CHARGES_ENTERS	       (CHARGES << 2 * SL_LIMITS_MAX)
/* the limits that drop, and under which the key gets no state yet */
#define CHARGES_WAITING(charged) ((charged)&CHARGES_NEWCOMER & ~((charged) >> SL_LIMITS_MAX))

/* Returns the bit of a limit in packet->is_new: 0 if no budget pays for its new keys. */
static __always_inline __u32 charge_if_new(const struct sl_limit *limit)
{
	return (limit->budgeted && !limit->observe) * CHARGE(limit);
}

/*
 * A slice that remembers a refusal decides alone, except in one of this many jiffies. Then the
 * state is charged, so that the entry of a long-refused source stores that its key came back. More
 * often for a shared limit, because nodes exchange refusals every 100 ms.
 */
#define ASK_JIFFIES  64
#define TELL_JIFFIES 4

/* Returns the slice of a limit in a bucket. NULL: no bucket, or its addresses have own states. */
static __always_inline struct sl_slice *limit_slice(const struct sl_limit *limit,
						    struct sl_bucket *bucket)
{
	if (!bucket || limit->apart)
		return NULL;
	/* clang 19 would add the offset before the test for NULL, which the verifier refuses */
	__asm__ volatile("" : "+r"(bucket));
	return &bucket->slice[limit->slot % SL_LIMITS_MAX];
}

/* Returns the credit in a slice; 0 for a refusal. */
static __always_inline __s64 slice_holds(const struct sl_slice *slice)
{
	return slice ? credit_max(slice->credit, 0) : 0;
}

/* Returns whether the refusal in a slice still holds for a packet of this cost. */
static __always_inline bool slice_must_wait(struct packet *packet, const struct sl_limit *limit,
					    const struct sl_slice *slice, __u64 cost)
{
	__u64 now = packet_now(packet);

	return credit_must_wait(slice, cost_times(cost, limit_times(limit, now)), now);
}

/*
 * Stores the index of a limit's state in a bucket, for readers that know only the address. If a
 * state moves to its other set, its index is stored again with the next policy version.
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
 * Updates the marks of an entry whose key is not established. Sets packet->is_new if the key is
 * still not established and a budget pays for the packet.
 */
static __always_inline void entry_return(struct packet *packet, const struct sl_limit *limit,
					 struct sl_entry *entry)
{
	__u64 now = packet_now(packet);
	__u16 made = read_once(entry->made);

	if (entry_age(entry, now) >= ENTRY_BACK_AGE)
		made |= ENTRY_CAME_BACK;
	if (entry_is_due(entry, now))
		made |= ENTRY_ESTABLISHED;
	else
		packet->is_new |= charge_if_new(limit);
	if (made != entry->made)
		write_once(entry->made, made);
}

/*
 * Charges the shared state, if there is no slice or the slice cannot decide. bucket: as in
 * policy_charge(). Returns an enum sl_reason, STATE_NONE or STATE_ENTERS.
 */
BPF_GLOBAL int limit_ask(struct packet *packet, const struct sl_limit *limit,
			 struct sl_bucket *bucket)
{
	const struct sl_gate *gate = gate_get();
	struct sl_slice *slice;
	struct state_key key;
	struct digest digest;
	struct sl_entry *entry;
	__u32 unasked;
	__s64 held;
	__u64 cost;

	if (!packet || !limit || !gate)
		return SL_DROP_OVER_LIMIT;
	slice = limit_slice(limit, bucket);
	cost = credit_cost(limit, packet->packets, packet->bytes);
	unasked = slice ? credit_unasked(slice) : 0;
	if (slice && packet->jiffy % (limit->shared ? TELL_JIFFIES : ASK_JIFFIES) &&
	    slice_must_wait(packet, limit, slice, cost)) {
		credit_refuse_jiffy(limit, slice, packet->jiffy);
		if (limit->shared)
			credit_count_unasked(slice, unasked + packet->packets);
		return kind_refusal(limit, cost);
	}
	key = packet_key(packet, limit);
	digest = state_digest(hash_secret, &key);
	entry = flood_is_for(packet, limit) ? NULL : entry_first(&gate->params, digest);
	if (entry) {
		entry_fetch(gate, entry);
		packet_now(packet);
	}
	if (!entry || !entry_is(entry, &key))
		entry = table_find(&gate->params, digest, &key);
	if (!entry) /* a budget does not pay for a limit that observes */
		return STATE_NONE + sketch_admits(packet, limit->budgeted && !limit->observe,
						  &gate->params, digest);
	packet->asked = true;
	if (bucket && !bucket->state[limit->slot % SL_LIMITS_MAX])
		bucket_set_state(packet, limit, bucket);
	if (entry->span != limit->span) /* the limit has changed, and so has the time to refill */
		write_once(entry->span, limit->span);
	if (!(read_once(entry->made) & ENTRY_ESTABLISHED))
		entry_return(packet, limit, entry);
	held = slice_holds(slice);
	for (int i = 0; i < STATE_TRIES; i++) {
		int reason = state_charge(packet, limit, slice, entry_state(entry));

		if (reason == STATE_LOST && !entry_is(entry, &key))
			return STATE_NONE; /* the entry was evicted just now */
		if (reason == STATE_LOST)
			continue;
		if (limit->kind == SL_WINDOW)
			window_tell(packet, limit, entry);
		if (limit->shared) {
			bool passes = reason < SL_FIRST_DROP;
			__u64 refused = passes ? 0 : cost;

			if (unasked) /* a division costs more than the rest */
				refused += credit_multiply(cost / packet->packets, unasked);
			entry_tell(limit, entry, packet->now,
				   slice_holds(slice) - held + (passes ? cost : 0), refused);
		}
		if (reason >= SL_FIRST_DROP && reason != SL_DROP_BLOCKED &&
		    kind_blocks(limit, cost))
			entry_block(packet, limit, slice, entry);
		return reason;
	}
	return SL_DROP_CONTENDED;
}

/* Makes the state of a new key and charges it. Returns a result of limit_ask(). */
static __always_inline int newcomer_begin(struct packet *packet, const struct sl_limit *limit,
					  struct sl_bucket *bucket)
{
	int inserted = newcomer_insert(packet, limit), reason = STATE_NONE;

	if (inserted < 0) /* its state would be empty */
		return kind_refusal(limit, 0);
	if (inserted)
		reason = limit_ask(packet, limit, bucket);
	packet->hot = false; /* a new state does not show that the source is hot */
	return reason;
}

/*
 * Charges one limit: its slice if the slice can decide, otherwise the shared state. A slice belongs
 * to one CPU and is updated without atomics. On PREEMPT_RT other packets may interrupt this one,
 * and spend the same credit: each interruption spends at most the credit of a slice twice.
 */
static __always_inline int limit_charge(struct packet *packet, const struct sl_limit *limit,
					struct sl_bucket *bucket)
{
	struct sl_slice *slice = limit_slice(limit, bucket);
	int reason;

	if (slice) {
		__u64 cost = credit_cost(limit, packet->packets, packet->bytes);
		enum credit_answer answer = credit_spend(slice, cost, packet->jiffy);

		if (answer == CREDIT_PASS)
			return SL_PASS_WITHIN;
		if (answer == CREDIT_REFUSE) {
			if (limit->shared) /* read again, to save stack */
				credit_count_unasked(slice, read_once(packet->packets));
			return limit->block ? SL_DROP_BLOCKED : kind_refusal(limit, 0);
		}
	}
	reason = limit_ask(packet, limit, bucket);
	if (reason == STATE_ENTERS && !limit->budgeted)
		reason = newcomer_begin(packet, limit, bucket);
	return reason;
}

/* Returns whether a limit of the policy matches the packet, which is inspected. */
BPF_GLOBAL int limit_is_for(const struct sl_policy *policy, const struct sl_limit *limit,
			    const struct packet *packet)
{
	if (!policy || !limit || !packet)
		return false;
	return match_limit(limit, &policy->match[limit->slot % SL_LIMITS_MAX], &packet->facts,
			   packet->egress);
}

/* Takes back the charges of a packet that a later limit refused: a dropped packet costs nothing. */
BPF_GLOBAL int policy_refund(const struct packet *packet, const struct sl_policy *policy,
			     struct sl_bucket *bucket, __u32 charged)
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

		if (!(charged & CHARGE(limit)))
			continue;
		/*
		 * A slice was charged when it was borrowed. A refund to a new source goes to the
		 * state, because a slice does not charge the budget.
		 */
		times = limit_times(limit, slice ? slice->at : packet->now);
		if (!slice || packet->is_new & CHARGE(limit) || limit->kind != SL_TOKEN_BUCKET ||
		    times > 1 || !credit_give_back(limit, slice, cost))
			state_refund(packet, limit, cost, times);
	}
	return 0;
}

/*
 * Makes the states of a new source and charges the packet to them; the budget has paid for it. Sets
 * the reason if a limit refuses. Returns `charged`, updated.
 */
static __always_inline __u32 newcomer_enter(struct packet *packet, const struct sl_policy *policy,
					    struct sl_bucket *bucket, struct verdict *verdict,
					    __u32 charged)
{
	enum sl_family family = packet_family(packet);

	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		int reason;

		if (!(charged & CHARGE_ENTERS(limit)))
			continue;
		reason = newcomer_begin(packet, limit, bucket);
		if (reason >= STATE_NONE && !limit->start_empty)
			continue;
		charged &= ~CHARGE_NEWCOMER(limit);
		if (reason < SL_FIRST_DROP) {
			charged |= CHARGE(limit);
			continue;
		}
		verdict->refused |= limit->mark;
		if (limit->observe)
			continue;
		verdict->reason = reason < STATE_NONE ? reason : SL_DROP_OVER_LIMIT;
		break;
	}
	return charged;
}

/*
 * Returns whether the source is established by another limit than those under which it is new: one
 * with the source as its key, whose entry is old enough for all of them. `made` wraps, so in the
 * first minute of each 4.9 hours an old entry may look too young.
 */
BPF_GLOBAL int source_is_established(struct packet *packet, const struct sl_policy *policy,
				     __u32 charged)
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

		if (packet->is_new & CHARGE(limit) && due < span_due(limit->span))
			due = span_due(limit->span);
		if (!(charged & policy->by_source[family] & ~packet->is_new & CHARGE(limit)))
			continue;
		key = packet_key(packet, limit);
		entry = table_find(&gate->params, state_digest(hash_secret, &key), &key);
		if (entry && age < entry_age(entry, packet_now(packet)))
			age = entry_age(entry, packet_now(packet));
	}
	return age >= due;
}

/*
 * Returns whether the budget pays for the packet: a limit that drops has no established state for
 * it, and no other limit establishes the source.
 */
static __always_inline bool newcomer_pays(struct packet *packet, const struct sl_policy *policy,
					  __u32 charged)
{
	return packet->is_new &&
	       (!(charged & policy->by_source[packet_family(packet)] & ~packet->is_new) ||
		!source_is_established(packet, policy, charged));
}

/*
 * Charges a packet of a new source to the budget, if its policy has one. If the packet passes,
 * makes the states of the source. Returns `charged`, updated.
 */
static __always_inline __u32 newcomer_charge(struct packet *packet, const struct sl_policy *policy,
					     struct sl_bucket *bucket, struct verdict *verdict,
					     __u32 charged)
{
	bool pays = policy->newcomers.burst && newcomer_pays(packet, policy, charged);

	if (pays) {
		enum sl_reason reason = budget_charge(packet, policy, SL_POLICY(verdict->version),
						      CHARGES_WAITING(charged));

		if (reason >= SL_FIRST_DROP) {
			verdict->reason = reason;
			/* limits that observe do not count what the budget drops */
			verdict->refused = 0;
			return charged;
		}
	}
	if (charged & CHARGES_ENTERS)
		charged = newcomer_enter(packet, policy, bucket, verdict, charged);
	if ((pays || charged & CHARGES_NEWCOMER) && verdict->reason < SL_FIRST_DROP)
		verdict->reason = SL_PASS_NEWCOMER;
	return charged;
}

/*
 * Charges each limit that matches the packet, until a limit refuses it. Limits that observe are
 * last, and see only what the other limits pass. If a limit has no established state for the
 * packet, the newcomers' budget is charged as well, after all limits. bucket: NULL if it has no
 * slices of this policy.
 */
static __always_inline void policy_charge(struct packet *packet, const struct sl_policy *policy,
					  struct sl_bucket *bucket, struct verdict *verdict)
{
	enum sl_family family = packet_family(packet);
	const struct sl_gate *gate = gate_get();
	/* A 0 that the verifier cannot know, otherwise it walks the loop for each set of limits. */
	__u32 charged = gate ? gate->opaque_zero : 0;

	verdict->reason = SL_PASS_WITHIN;
	verdict->refused = charged;
	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		int reason;

		if (policy->deep ? !limit_is_for(policy, limit, packet)
				 : !packet->egress && match_is_egress(limit))
			continue;
		charged |= CHARGE_ASKED;
		reason = limit_charge(packet, limit, bucket);
		if (reason >= STATE_NONE && limit->start_empty &&
		    !(limit->budgeted && reason == STATE_ENTERS))
			reason = SL_DROP_OVER_LIMIT; /* a state that starts empty refuses */
		if (reason >= STATE_NONE) {
			packet->is_new |= charge_if_new(limit);
			charged |= limit->observe ? 0 : CHARGE_NEWCOMER(limit);
			charged |= reason == STATE_ENTERS ? CHARGE_ENTERS(limit) : 0;
			continue;
		}
		if (reason < SL_FIRST_DROP) {
			charged |= CHARGE(limit);
			continue;
		}
		verdict->refused |= limit->mark;
		if (limit->observe)
			continue;
		verdict->reason = reason;
		break;
	}
	if (!charged)
		verdict->reason = SL_PASS_NO_LIMIT;
	if ((packet->is_new || charged & (CHARGES_NEWCOMER | CHARGES_ENTERS)) &&
	    verdict->reason < SL_FIRST_DROP)
		charged = newcomer_charge(packet, policy, bucket, verdict, charged);
	if (charged & CHARGES && verdict->reason >= SL_FIRST_DROP)
		policy_refund(packet, policy, bucket, charged);
}

#endif
