// SPDX-License-Identifier: GPL-2.0
#include "state/verdict.h"

#include "base/clock.h"
#include "gate/policy.h"
#include "admission.h"
#include "state/pressure.h"

/* --- Reading the state ---------------------------------------------------------------------- */

static int limit_states_read(const struct gate *gate, struct verdict *verdict)
{
	int err = source_states_read(gate, &verdict->source, &verdict->packet, verdict->states);

	for (unsigned int i = 0; !err && i < verdict->count; i++)
		if (verdict->states[i].matches && !verdict->states[i].known)
			err = error_misuse(
				"no-destination", "check",
				"limit '%s' counts by destination; say 'to ADDRESS'",
				source_limit(&verdict->source, &verdict->limits[i]).spec.name);
	return err;
}

/* Reads how the packet is handled under each limit under which its key has no state. */
static int newcomers_read(const struct gate *gate, struct verdict *verdict)
{
	const struct sl_policy *policy = verdict->source.policy;
	const struct packet_args *packet = &verdict->packet;
	struct pressure pressure;
	int err = pressure_read(gate, &pressure);

	if (err)
		return err;
	verdict->flooded = pressure.crowded[policy && policy->newcomers.burst];
	for (unsigned int i = 0; !err && i < verdict->count; i++) {
		const struct sl_limit *limit = &verdict->limits[i];

		if (verdict->states[i].matches && verdict->states[i].fresh)
			err = newcomer_read(gate, limit,
					    limit->key_dst ? &packet->destination : &packet->source,
					    uptime_ticks(), verdict->flooded,
					    &verdict->newcomers[i]);
	}
	if (!err && pressure.crowded[false] && policy)
		err = policy_passed_by(gate, policy, &verdict->passes_by);
	return err;
}

/* --- Deciding ------------------------------------------------------------------------------- */

static bool limit_is_fresh(const struct verdict *verdict, unsigned int index)
{
	return verdict->states[index].matches && verdict->states[index].fresh;
}

/*
 * Returns whether the packet gets no state under a limit, as sketch_admits() and new_entry_insert()
 * in bpf/flood.h decide: in a flood if the key has too few hits, or if no entry can be evicted.
 */
static bool limit_lets_wait(const struct verdict *verdict, unsigned int index)
{
	const struct newcomer *newcomer = &verdict->newcomers[index];

	return limit_is_fresh(verdict, index) &&
	       ((verdict->flooded && newcomer->shown <= FLOOD_MIN_HITS) ||
		(!newcomer->has_room && !newcomer->is_refused));
}

/* Returns whether the budget pays for the packet: policy_charge_new() in bpf/charge.h. */
static bool budget_pays(const struct verdict *verdict)
{
	const struct sl_policy *policy = verdict->source.policy;
	enum sl_family family = prefix_is_ipv4(&verdict->source.prefix) ? SL_IPV4 : SL_IPV6;
	uint32_t age = 0, due = 0;

	for (unsigned int i = 0; i < verdict->count; i++) {
		const struct sl_limit *limit = &verdict->limits[i];
		const struct limit_state *state = &verdict->states[i];

		if (!state->matches || limit->observe)
			continue;
		if (!state->age && due < span_due(limit->span))
			due = span_due(limit->span);
		else if (age < state->age && policy->by_source[family] & 1 << limit->slot)
			age = state->age;
	}
	return due > age && policy->newcomers.burst;
}

/* A limit refuses a packet, unless it only observes. */
static void limit_refuses(struct verdict *verdict, unsigned int index, enum sl_reason reason)
{
	verdict->reason = reason;
	verdict->by = &verdict->limits[index];
}

/* Decides by the state that a key gets by the packet under a limit, if it gets one. */
static void newcomer_judge_limit(struct verdict *verdict, unsigned int index)
{
	const struct sl_limit *limit = &verdict->limits[index];

	if (!limit_is_fresh(verdict, index) || limit_lets_wait(verdict, index) || limit->observe)
		return;
	if (verdict->newcomers[index].is_refused) { /* any state in its sets is spent */
		verdict->lacks_room = true;
		limit_refuses(verdict, index, kind_refusal(limit, 0));
	} else if (verdict->states[index].reason >= SL_FIRST_DROP) {
		limit_refuses(verdict, index, verdict->states[index].reason);
	}
}

/*
 * Decides as policy_charge() in bpf/charge.h does. The first limit that refuses decides, unless it
 * only observes. If the source is not established, the budget decides as well, before its states
 * are made.
 */
static int limits_judge(const struct gate *gate, struct verdict *verdict)
{
	int err = 0;

	verdict->reason = SL_PASS_NO_LIMIT;
	verdict->pays = budget_pays(verdict);
	for (unsigned int i = 0; !verdict->by && i < verdict->count; i++) {
		const struct limit_state *state = &verdict->states[i];

		if (state->matches)
			verdict->reason = SL_PASS_WITHIN;
		verdict->newcomer |= limit_is_fresh(verdict, i);
		if (verdict->limits[i].observe)
			continue;
		if (limit_lets_wait(verdict, i)) {
			verdict->waits = true;
			verdict->lacks_room |= !verdict->newcomers[i].has_room;
			/* an empty bucket refuses before there is a state */
			if (verdict->limits[i].start_empty)
				limit_refuses(verdict, i, SL_DROP_OVER_LIMIT);
		} else if (state->matches && !state->fresh && state->reason >= SL_FIRST_DROP) {
			limit_refuses(verdict, i, state->reason);
		} else if (!verdict->source.policy->newcomers.burst) {
			newcomer_judge_limit(verdict, i);
		}
	}
	verdict->newcomer |= verdict->pays;
	verdict->budget.reason = SL_PASS_NEWCOMER;
	if (verdict->source.policy->newcomers.burst)
		err = budget_state_read(gate, verdict->source.policy, verdict->packet.bytes,
					uptime_ticks(), verdict->waits, &verdict->budget);
	if (err || verdict->by)
		return err;
	if (verdict->pays || verdict->waits)
		verdict->reason = verdict->pays ? verdict->budget.reason : SL_PASS_NEWCOMER;
	for (unsigned int i = 0; verdict->reason < SL_FIRST_DROP && i < verdict->count; i++)
		newcomer_judge_limit(verdict, i);
	return 0;
}

/* The limit that drops packets while their source waits; NULL: none. */
static const struct sl_limit *limit_from_empty(const struct verdict *verdict)
{
	for (unsigned int i = 0; i < verdict->count; i++) {
		const struct sl_limit *limit = &verdict->limits[i];

		if (limit->start_empty && !limit->observe &&
		    (limit_is_fresh(verdict, i) || limit_lets_wait(verdict, i)))
			return limit;
	}
	return NULL;
}

/* --- The verdict ---------------------------------------------------------------------------- */

int verdict_find(const struct gate *gate, const struct packet_args *packet, struct verdict *ret)
{
	struct verdict verdict = {.gate = gate, .packet = *packet};
	const struct judgement *rule = &verdict.source.rule;
	int err = source_read(gate, NULL, &verdict.packet.source, &verdict.source);

	if (err)
		return err;
	verdict.limits = verdict.source.limits;
	verdict.count = verdict.source.limit_count;
	err = limit_states_read(gate, &verdict) ?: newcomers_read(gate, &verdict);
	if (!err && verdict.source.policy)
		err = limits_judge(gate, &verdict);
	else if (!rule->found)
		verdict.reason = SL_PASS_NO_RULE;
	else if (!verdict.source.policy)
		verdict.reason = rule->access == SL_ACCESS_ALLOW ? SL_PASS_ALLOWED : SL_DROP_DENIED;
	if (err) {
		verdict_free(&verdict);
		return err;
	}
	verdict.empty = limit_from_empty(&verdict);
	*ret = verdict;
	return 0;
}

void verdict_free(struct verdict *verdict)
{
	source_free(&verdict->source);
}

const char *verdict_word(const struct verdict *verdict)
{
	return verdict->reason < SL_FIRST_DROP ? "pass" : "drop";
}
