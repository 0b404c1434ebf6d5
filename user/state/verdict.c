// SPDX-License-Identifier: GPL-2.0
#include "state/verdict.h"

#include <stddef.h>
#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/error.h"
#include "context.h"
#include "gate/policy.h"
#include "sketch.h"
#include "state/pressure.h"

/* --- New keys ------------------------------------------------------------------------------- */

/*
 * Computes the lowest eviction cost in a set of map `states`, like table_choose() (bpf/table.h).
 * Stores it in *least if it is lower than *least.
 */
static int set_weigh(const struct gate *gate, uint32_t set, uint64_t now, bool flood,
		     int64_t *least)
{
	struct sl_set ways;
	int err = bpf_map_lookup_elem(gate->map[MAP_SETS], &set, &ways);

	for (uint32_t way = 0; !err && way < SL_WAYS; way++) {
		struct sl_entry entry;
		int64_t cost = -1; /* eviction cost of a way that is free */

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

/*
 * Computes how the gate would treat the next packet of a key that has no state. flood: new sources
 * must wait. A reader lacks the hash secret that locates the key's hits and sets. For a reader,
 * this assumes one hit and a free way.
 */
static int newcomer_read(const struct gate *gate, const struct sl_limit *limit,
			 const struct sl_prefix *address, uint64_t now, bool flood,
			 struct newcomer *ret)
{
	const struct sl_params params = gate->state->params;
	struct state_key key = state_key_for(limit, address);
	struct digest digest = state_digest(gate->secret, &key);
	struct slot_ref ref = slot_ref_of(&params, digest);
	int64_t least = INT64_MAX;
	int err;

	*ret = (struct newcomer){.shown = 1, .has_room = true};
	if (!gate->has_secret)
		return 0;
	err = set_weigh(gate, ref.primary, now, flood, &least)
		      ?: set_weigh(gate, set_alternate(&params, ref.primary, ref.tag), now, flood,
				   &least);
	/*
	 * use the hits of the CPU that saw the key most often; random number 0 does not affect them
	 */
	for (uint32_t cpu = 0; !err && cpu < gate->machine.cpu_ids; cpu++) {
		uint32_t line = sketch_line(&params, digest, cpu), hits;
		struct sl_sketch sketch;

		err = bpf_map_lookup_elem(gate->map[MAP_SKETCHES], &line, &sketch);
		hits = err ? 0 : sketch_hit(&sketch.slot[sketch_slot(digest)], digest, 0);
		if (hits > ret->shown)
			ret->shown = hits;
	}
	ret->has_room = least < EVICT_PART ||
			ret->shown > 1; /* from its second hit on, a key may evict any state */
	ret->is_refused = evict_is_deep(least);
	return err ? gate_map_unread(gate, MAP_SKETCHES, err) : 0;
}

/* --- Reading the state ---------------------------------------------------------------------- */

/* Reads whether new sources must wait. Fills the `newcomers` of all keys that have no state. */
static int newcomers_read(const struct gate *gate, struct check_verdict *verdict)
{
	const struct sl_policy *policy = verdict->source.policy;
	const struct packet_args *packet = &verdict->packet;
	struct pressure pressure;
	int err = pressure_read(gate, &pressure);

	if (err)
		return err;
	verdict->flooded = pressure.flooded_by[policy && policy->newcomers.burst];
	for (unsigned int i = 0; !err && i < verdict->count; i++) {
		const struct sl_limit *limit = &verdict->limits[i];

		if (verdict->states[i].matches && verdict->states[i].fresh)
			err = newcomer_read(gate, limit,
					    limit->key_dst ? &packet->destination : &packet->source,
					    uptime_ticks(), verdict->flooded,
					    &verdict->newcomers[i]);
	}
	if (!err && pressure.flooded_by[false] && policy)
		err = policy_passed_by(gate, policy, &verdict->passes_by);
	return err;
}

static int budget_read(struct check_verdict *verdict, bool waits)
{
	const struct sl_policy *policy = verdict->source.policy;

	verdict->budget.reason = SL_PASS_NEWCOMER;
	if (!policy || !policy->newcomers.burst)
		return 0;
	return budget_state_read(verdict->gate, policy, verdict->packet.bytes, uptime_ticks(),
				 waits, &verdict->budget);
}

/* --- What a charge would do: the functions that decide.h requires ----------------------------- */

/* A packet and its verdict. */
struct check {
	struct packet packet;
	struct check_verdict *verdict;
	bool budget_is_read;
	int err;
};

static struct check *check_of(struct packet *packet)
{
	return (struct check *)((char *)packet - offsetof(struct check, packet));
}

static bool limit_is_for(const struct sl_policy *policy, const struct sl_limit *limit,
			 const struct packet *packet)
{
	const struct check *check = check_of((struct packet *)packet);

	return packet_args_match(&check->verdict->packet, policy, limit);
}

/* Refuses a packet. Stores which limit drops the packet, unless the limit only observes. */
static enum charge_result check_refuse(struct check_verdict *check, const struct sl_limit *limit,
				       struct verdict *verdict, enum sl_reason reason)
{
	if (!limit->observe)
		check->by = limit;
	return charge_refuse(verdict, reason);
}

/*
 * Returns the result for a key that gets no state. It is a refusal if the limit has `start empty`.
 */
static enum charge_result check_wait(struct check_verdict *check, const struct sl_limit *limit,
				     struct verdict *verdict)
{
	return limit->start_empty ? check_refuse(check, limit, verdict, SL_DROP_OVER_LIMIT)
				  : CHARGE_NO_STATE;
}

static enum charge_result limit_charge_new(struct packet *packet, const struct sl_limit *limit,
					   struct sl_bucket *bucket, struct verdict *verdict)
{
	struct check_verdict *check = check_of(packet)->verdict;
	unsigned int i = limit - check->limits;
	const struct newcomer *newcomer = &check->newcomers[i];

	(void)bucket;
	if (newcomer->is_refused) { /* all states in both sets lack at least half a burst */
		check->lacks_room |= !limit->observe;
		return check_refuse(check, limit, verdict, kind_refusal(limit, 0));
	}
	if (!newcomer->has_room)
		return check_wait(check, limit, verdict);
	if (check->states[i].reason >= SL_FIRST_DROP)
		return check_refuse(check, limit, verdict, check->states[i].reason);
	return CHARGE_PASSED;
}

static enum charge_result limit_charge(struct packet *packet, const struct sl_limit *limit,
				       struct sl_bucket *bucket, struct verdict *verdict)
{
	struct check_verdict *check = check_of(packet)->verdict;
	unsigned int i = limit - check->limits;
	const struct newcomer *newcomer = &check->newcomers[i];
	const struct limit_state *state = &check->states[i];
	bool waits;

	if (!state->fresh) {
		if (!state->age)
			verdict->is_new |= limit_if_new(limit);
		if (state->reason >= SL_FIRST_DROP)
			return check_refuse(check, limit, verdict, state->reason);
		return CHARGE_PASSED;
	}
	check->newcomer = true;
	waits = check->flooded && newcomer->shown <= FLOOD_MIN_HITS;
	if (!limit->observe && (waits || (!newcomer->has_room && !newcomer->is_refused))) {
		check->waits = true;
		check->lacks_room |= !newcomer->has_room;
	}
	if (waits)
		return check_wait(check, limit, verdict);
	return limit->budgeted ? CHARGE_ADMITTED : limit_charge_new(packet, limit, bucket, verdict);
}

static enum sl_reason budget_charge(struct packet *packet, const struct sl_policy *policy,
				    struct verdict *verdict)
{
	struct check *check = check_of(packet);

	(void)policy;
	check->budget_is_read = true;
	check->err = budget_read(check->verdict, verdict->is_waiting);
	return check->verdict->budget.reason;
}

/*
 * Returns whether a source is established. Uses the age of the source's oldest state, and only
 * limits whose key is the source. The age must suffice for each limit under which the packet's key
 * is not established.
 */
static bool source_is_established(struct packet *packet, const struct sl_policy *policy,
				  uint32_t limits, uint32_t is_new)
{
	const struct check_verdict *check = check_of(packet)->verdict;
	enum sl_family family = prefix_family(&check->source.prefix);
	uint32_t age = 0, due = 0;

	(void)limits, (void)is_new;
	for (unsigned int i = 0; i < check->count; i++) {
		const struct sl_limit *limit = &check->limits[i];
		const struct limit_state *state = &check->states[i];

		if (!state->matches || limit->observe)
			continue;
		if (!state->age && due < span_due(limit->span))
			due = span_due(limit->span);
		else if (age < state->age && policy->by_source[family] & 1 << limit->slot)
			age = state->age;
	}
	return age >= due;
}

/* Refunds nothing, because `check` charges nothing. */
static int policy_refund(const struct packet *packet, const struct sl_policy *policy,
			 struct sl_bucket *bucket, uint32_t limits, uint32_t is_new)
{
	(void)packet, (void)policy, (void)bucket, (void)limits, (void)is_new;
	return 0;
}

#include "decide.h"

/* --- Deciding ------------------------------------------------------------------------------- */

static int limits_decide(struct check_verdict *verdict)
{
	const struct packet_args *args = &verdict->packet;
	const struct sl_policy *policy = verdict->source.policy;
	struct check check = {
		.packet = {.packets = 1,
			   .bytes = args->bytes,
			   .source = args->source,
			   .egress = args->egress,
			   .facts = args->facts},
		.verdict = verdict,
	};
	struct verdict decided = {.version = verdict->source.rule.version};

	check.packet.source.bits = SL_FAMILY_BITS + (prefix_is_ipv4(&args->source) ? 32 : 128);
	policy_decide(&check.packet, policy, NULL, &decided, 0);
	verdict->reason = decided.reason;
	verdict->pays =
		policy->newcomers.burst && !source_is_established(&check.packet, policy, 0, 0);
	verdict->newcomer |= verdict->pays;
	if (!check.budget_is_read)
		check.err = budget_read(verdict, verdict->waits);
	return check.err;
}

int verdict_find(const struct gate *gate, const struct packet_args *packet,
		 struct check_verdict *ret)
{
	struct check_verdict verdict = {.gate = gate, .packet = *packet};
	const struct judgement *rule = &verdict.source.rule;
	int err = source_read(gate, NULL, &verdict.packet.source, &verdict.source);

	if (err)
		return err;
	verdict.limits = verdict.source.limits;
	verdict.count = verdict.source.limit_count;
	err = source_states_read(gate, &verdict.source, &verdict.packet, verdict.states);
	for (unsigned int i = 0; !err && i < verdict.count; i++)
		if (verdict.states[i].matches && !verdict.states[i].known)
			err = error_misuse(
				"no-destination", "check",
				"limit '%s' counts by destination; write 'to ADDRESS'",
				source_limit(&verdict.source, &verdict.limits[i]).spec.name);
	err = err ?: newcomers_read(gate, &verdict);
	if (!err && verdict.source.policy)
		err = limits_decide(&verdict);
	else if (!rule->found)
		verdict.reason = SL_PASS_NO_RULE;
	else
		verdict.reason = rule->access == SL_ACCESS_ALLOW ? SL_PASS_ALLOWED : SL_DROP_DENIED;
	if (err) {
		source_free(&verdict.source);
		return err;
	}
	for (unsigned int i = 0; !verdict.empty && i < verdict.count; i++)
		if (verdict.limits[i].start_empty && !verdict.limits[i].observe &&
		    verdict.states[i].matches && verdict.states[i].fresh)
			verdict.empty = &verdict.limits[i];
	*ret = verdict;
	return 0;
}
