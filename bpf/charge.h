/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Charging: a packet against the limits of its source's policy. A limit is decided by the purse if
 * it can tell, else by the ledger; where it has none, by the newcomers' budget.
 *
 *   policy_charge   all limits of a policy, in their order
 *   limit_charge    one limit
 */
#ifndef SLUICE_CHARGE_H
#define SLUICE_CHARGE_H

#include "budget.h"

/* What becomes of a packet. */
struct verdict {
	enum sl_reason reason;
	__u32 record;  /* that decides about its source */
	__u32 refused; /* marks of the limits that had no credit, those that observe included */
};

/*
 * Beside the reasons: the key has no ledger, and has shown itself so often (newcomer_show()), which
 * is added.
 */
#define LEDGER_NONE 0x100

/*
 * In one of so many jiffies a ledger is asked also where the purse knows of a refusal: so the line
 * of a source that is refused for long tells that it comes back. Of a shared limit in more of them,
 * as machines tell each other every tenth of a second what was refused.
 */
#define ASK_JIFFIES  64
#define TELL_JIFFIES 4

/* The purse of a limit in a bucket. NULL: no bucket, or the purse would tell nothing. */
static __always_inline struct sl_purse *limit_purse(const struct sl_limit *limit,
						    struct sl_bucket *bucket)
{
	if (!bucket || limit->apart)
		return NULL;
	/* clang 19 would add the offset before the test for NULL, which the verifier refuses */
	__asm__ volatile("" : "+r"(bucket));
	return &bucket->slice[limit->slot % SL_LIMITS_MAX];
}

/* The credit in a purse; a refusal is none. */
static __always_inline __s64 purse_holds(const struct sl_purse *purse)
{
	return purse ? credit_max(purse->credit, 0) : 0;
}

/* Whether the refusal in a purse still holds for a packet of this cost. */
static __always_inline bool purse_must_wait(struct packet *packet, const struct sl_limit *limit,
					    const struct sl_purse *purse, __u64 cost)
{
	__u64 now = packet_now(packet);

	return credit_must_wait(purse, cost_times(cost, limit_times(limit, now)), now);
}

/*
 * Stores in a bucket where the state of a limit is, for a reader who has the address alone. A state
 * that moves to its other set later is stored again with the next policy version.
 */
BPF_GLOBAL int bucket_set_state(const struct packet *packet, const struct sl_limit *limit,
				struct sl_bucket *bucket)
{
	const struct sl_gate *gate = gate_get();
	struct ledger_key key;
	__u32 index;

	if (!packet || !limit || !bucket || !gate)
		return 0;
	key = packet_key(packet, limit);
	index = table_index(&gate->meeting, ledger_digest(&gate->meeting, &key), &key);
	if (index != LINE_NONE)
		bucket->state[limit->slot % SL_LIMITS_MAX] = index;
	return 0;
}

/*
 * Charges the ledger, when there is no purse or it cannot tell. bucket: as policy_charge() has it.
 * Returns an enum sl_reason, or LEDGER_NONE and what is added to it.
 */
BPF_GLOBAL int limit_ask(struct packet *packet, const struct sl_limit *limit,
			 struct sl_bucket *bucket)
{
	const struct sl_gate *gate = gate_get();
	struct sl_purse *purse;
	struct ledger_key key;
	struct digest digest;
	struct sl_line *line;
	__u32 unasked;
	__s64 held;
	__u64 cost;

	if (!packet || !limit || !gate)
		return SL_DROP_OVER_LIMIT;
	purse = limit_purse(limit, bucket);
	cost = credit_cost(limit, packet->packets, packet->bytes);
	unasked = purse ? credit_unasked(purse) : 0;
	if (purse && packet->jiffy % (limit->shared ? TELL_JIFFIES : ASK_JIFFIES) &&
	    purse_must_wait(packet, limit, purse, cost)) {
		credit_refuse_jiffy(limit, purse, packet->jiffy);
		if (limit->shared)
			credit_count_unasked(purse, unasked + packet->packets);
		return kind_refusal(limit, cost);
	}
	key = packet_key(packet, limit);
	digest = ledger_digest(&gate->meeting, &key);
	line = newcomers_crowd(packet) ? NULL : line_first(&gate->meeting, digest);
	if (line) {
		line_fetch(gate, line);
		packet_now(packet);
	}
	if (!line || !line_is(line, &key))
		line = table_find(&gate->meeting, digest, &key);
	if (!line)
		return LEDGER_NONE + newcomer_show(packet, &gate->meeting, digest);
	packet->asked = true;
	if (bucket && !bucket->state[limit->slot % SL_LIMITS_MAX])
		bucket_set_state(packet, limit, bucket);
	if (line->span != limit->span) /* the limit has changed: it is whole at another moment */
		write_once(line->span, limit->span);
	if (line_comes_back(line, packet_now(packet)))
		write_once(line->made, line->made | LINE_CAME_BACK);
	held = purse_holds(purse);
	for (int i = 0; i < LEDGER_TRIES; i++) {
		int reason = ledger_charge(packet, limit, purse, line_ledger(line));

		if (reason == LEDGER_LOST && !line_is(line, &key))
			return LEDGER_NONE; /* it was forgotten just now */
		if (reason == LEDGER_LOST)
			continue;
		if (limit->kind == SL_WINDOW)
			window_tell(packet, limit, line);
		if (limit->shared) {
			bool passes = reason < SL_FIRST_DROP;
			__u64 refused = passes ? 0 : cost;

			if (unasked) /* a division costs more than all the rest */
				refused += credit_owed(cost / packet->packets, unasked);
			line_tell(limit, line, packet->now,
				  purse_holds(purse) - held + (passes ? cost : 0), refused);
		}
		if (reason >= SL_FIRST_DROP && reason != SL_DROP_BLOCKED &&
		    kind_blocks(limit, cost))
			line_block(packet, limit, purse, line);
		return reason;
	}
	return SL_DROP_CONTENDED;
}

/*
 * Charges one limit: its purse if that can tell, else its ledger. A purse belongs to one CPU and is
 * updated plainly. On PREEMPT_RT another packet may interrupt this one, and both may spend the same
 * credit: one packet too many.
 */
static __always_inline enum sl_reason
limit_charge(struct packet *packet, const struct sl_limit *limit, struct sl_bucket *bucket)
{
	struct sl_purse *purse = limit_purse(limit, bucket);
	int reason;

	if (purse) {
		__u64 cost = credit_cost(limit, packet->packets, packet->bytes);
		enum credit_answer answer = credit_spend(purse, cost, packet->jiffy);

		if (answer == CREDIT_PASS)
			return SL_PASS_WITHIN;
		if (answer == CREDIT_REFUSE) {
			reason = limit->block ? SL_DROP_BLOCKED : kind_refusal(limit, 0);
			if (limit->shared) /* read again, or stack would hold it */
				credit_count_unasked(purse, read_once(packet->packets));
			return reason;
		}
	}
	reason = limit_ask(packet, limit, bucket);
	/* a newcomer that gets a ledger now is charged like any other key */
	if (reason > LEDGER_NONE && newcomer_insert(packet, limit, reason - LEDGER_NONE)) {
		reason = limit_ask(packet, limit, bucket);
		packet->hot = false; /* that its ledger was made just now tells nothing */
	}
	return reason >= LEDGER_NONE ? SL_PASS_NEWCOMER : (enum sl_reason)reason;
}

/* Whether a limit of the policy is for the packet, which is inspected. */
BPF_GLOBAL int limit_is_for(const struct sl_policy *policy, const struct sl_limit *limit,
			    const struct packet *packet)
{
	if (!policy || !limit || !packet)
		return false;
	return match_limit(limit, &policy->match[limit->slot % SL_LIMITS_MAX], &packet->facts,
			   packet->egress);
}

/*
 * A set of limits that a packet was charged to, and of those in whose place the budget is asked.
 * Bits by slot, which the verifier does not know: else it walks what follows for each set.
 */
#define CHARGE(limit)	       (1U << (limit)->slot % SL_LIMITS_MAX)
#define CHARGE_NEWCOMER(limit) (CHARGE(limit) << SL_LIMITS_MAX)
#define CHARGE_ASKED	       (1U << 2 * SL_LIMITS_MAX) /* a limit matched */
#define CHARGES_ANY	       (CHARGE_ASKED - 1)
#define CHARGES_NEWCOMER       (CHARGES_ANY & CHARGES_ANY << SL_LIMITS_MAX)

/*
 * Takes back the charges of a packet that a later limit refuses: a dropped packet costs nothing
 * under any limit.
 */
BPF_GLOBAL int policy_refund(const struct packet *packet, const struct sl_policy *policy,
			     struct sl_bucket *bucket, __u32 charged)
{
	enum sl_family family;

	if (!packet || !policy)
		return 0;
	family = packet_family(packet);
	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		struct sl_purse *purse = limit_purse(limit, bucket);
		__u64 cost = credit_cost(limit, packet->packets, packet->bytes);
		__u32 times;

		if (!(charged & CHARGE(limit)))
			continue;
		/* what was spent from a purse was charged when that was drawn */
		times = limit_times(limit, purse ? purse->at : packet->now);
		if (!purse || limit->kind != SL_BUCKET || times > 1 ||
		    !credit_give_back(limit, purse, cost))
			ledger_refund(packet, limit, cost, times);
	}
	return 0;
}

/*
 * Charges each limit that matches the packet, until one refuses it. Limits that observe come last
 * and see what the others let pass. Where a limit has no ledger for the packet yet, the newcomers'
 * budget is charged in its place, last of all. bucket: NULL if it holds no purses of this policy.
 */
static __always_inline void policy_charge(struct packet *packet, const struct sl_policy *policy,
					  struct sl_bucket *bucket, struct verdict *verdict)
{
	enum sl_family family = packet_family(packet);
	const struct sl_gate *gate = gate_get();
	/* A 0 that the verifier cannot know: else it walks the loop for each set of limits. */
	__u32 charged = gate ? gate->opaque_zero : 0;

	verdict->reason = SL_PASS_WITHIN;
	verdict->refused = charged;
	for (int i = 0; i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		enum sl_reason reason;

		if (policy->deep ? !limit_is_for(policy, limit, packet)
				 : !packet->egress && match_is_egress(limit))
			continue;
		charged |= CHARGE_ASKED;
		reason = limit_charge(packet, limit, bucket);
		if (reason == SL_PASS_NEWCOMER && limit->start_empty)
			reason = SL_DROP_OVER_LIMIT; /* a ledger that starts empty refuses */
		if (reason == SL_PASS_NEWCOMER) {
			charged |= limit->observe ? 0 : CHARGE_NEWCOMER(limit);
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
	if (charged & CHARGES_NEWCOMER && verdict->reason < SL_FIRST_DROP) {
		verdict->reason = budget_charge(packet, policy, SL_POLICY(verdict->record));
		/* only limits that observe are marked, and they count no drops of the budget */
		if (verdict->reason >= SL_FIRST_DROP)
			verdict->refused = 0;
	}
	if (charged & CHARGES_ANY && verdict->reason >= SL_FIRST_DROP)
		policy_refund(packet, policy, bucket, charged);
}

#endif
