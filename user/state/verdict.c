// SPDX-License-Identifier: GPL-2.0
#include "state/verdict.h"

#include "base/clock.h"
#include "gate/policy.h"
#include "state/pressure.h"

/* --- Reading the state ---------------------------------------------------------------------- */

static enum status limit_states_read(const struct gate *gate, struct verdict *verdict)
{
	uint64_t now = uptime_ticks();

	for (unsigned int i = 0; i < verdict->count; i++) {
		const struct sl_limit *limit = &verdict->limits[i];
		struct limit_state *state = &verdict->states[i];
		enum status status = limit_state_read(gate, &verdict->source, limit,
						      &verdict->packet, now, state);

		if (status)
			return status;
		if (state->matches && !state->known)
			return misuse("check: limit '%s' counts by destination: say 'to ADDRESS'",
				      source_limit(&verdict->source, limit).spec.name);
	}
	return OK;
}

/*
 * Reads whether the filter of known sources has the source, and the packet's key under each limit.
 */
static enum status known_read(const struct gate *gate, uint64_t jiffy, struct verdict *verdict)
{
	const struct packet_args *packet = &verdict->packet;
	enum status status = known_source_read(gate, NULL, &packet->source, jiffy, &verdict->known);

	for (unsigned int i = 0; !status && i < verdict->count; i++) {
		const struct sl_limit *limit = &verdict->limits[i];

		status = known_source_read(gate, limit,
					   limit->key_dst ? &packet->destination : &packet->source,
					   jiffy, &verdict->known_to[i]);
	}
	return status;
}

static enum status newcomers_read(const struct gate *gate, struct verdict *verdict)
{
	const struct sl_policy *policy = verdict->source.policy;
	struct pressure pressure;
	enum status status = pressure_read(gate, &pressure);

	if (status)
		return status;
	status = known_read(gate, pressure.jiffy, verdict);
	if (status)
		return status;
	verdict->flooded = pressure.flooded;
	verdict->crowded = pressure.crowded;
	if (pressure.flooded && policy)
		status = policy_passed_by(gate, policy, &verdict->passes_by);
	if (status)
		return status;
	verdict->budget.reason = SL_PASS_NEWCOMER;
	if (!policy || !policy->newcomers.burst)
		return OK;
	return budget_state_read(gate, policy, verdict->packet.bytes, uptime_ticks(),
				 &verdict->budget);
}

static enum status verdict_read(const struct gate *gate, struct verdict *verdict)
{
	enum status status = source_read(gate, &verdict->packet.source, &verdict->source);

	if (status)
		return status;
	verdict->limits = source_limits(&verdict->source, &verdict->count);
	status = limit_states_read(gate, verdict);
	return status ?: newcomers_read(gate, verdict);
}

/* --- Deciding ------------------------------------------------------------------------------- */

static bool limit_is_fresh(const struct verdict *verdict, unsigned int index)
{
	return verdict->states[index].matches && verdict->states[index].fresh;
}

/*
 * Whether the packet has to wait as a newcomer, as limit_charge() and limit_admit() in bpf/charge.h
 * decide on a CPU in a flood. A source with a bucket entry need not pass the bar, except under
 * limits with longer keys than the bucket, and where its key is new. Without a bucket entry only
 * the ledger of a known key is looked up.
 */
static bool limit_lets_wait(const struct verdict *verdict, unsigned int index)
{
	/* bucket_get() in bpf/bucket.h, on a CPU in a crowd */
	bool has_bucket = verdict->source.remembered && (!verdict->crowded || verdict->known);
	const struct limit_state *state = &verdict->states[index];
	const struct sl_limit *limit = &verdict->limits[index];

	if (!verdict->flooded || !state->matches)
		return false;
	if (!limit->apart && has_bucket)
		return limit->shared && state->fresh;
	return state->fresh || !verdict->known_to[index];
}

/*
 * Decides as policy_charge() in bpf/charge.h does. The first limit that refuses decides, unless it
 * only observes. Where the packet waits as a newcomer, the budget decides in the place of the
 * limit.
 */
static void limits_judge(struct verdict *verdict)
{
	verdict->reason = SL_PASS_NO_LIMIT;
	for (unsigned int i = 0; !verdict->by && i < verdict->count; i++) {
		const struct limit_state *state = &verdict->states[i];

		if (state->matches)
			verdict->reason = SL_PASS_WITHIN;
		verdict->newcomer |= limit_is_fresh(verdict, i);
		if (verdict->limits[i].observe)
			continue;
		if (limit_lets_wait(verdict, i)) {
			verdict->silent |= !state->fresh;
			verdict->waits = true;
			if (verdict->limits[i].start_empty) {
				/* an empty bucket refuses before there is a ledger */
				verdict->reason = SL_DROP_OVER_LIMIT;
				verdict->by = &verdict->limits[i];
			}
		} else if (state->matches && state->reason >= SL_FIRST_DROP) {
			verdict->reason = state->reason;
			verdict->by = &verdict->limits[i];
		}
	}
	verdict->newcomer |= verdict->waits;
	if (verdict->waits && !verdict->by)
		verdict->reason = verdict->budget.reason;
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

static void verdict_judge(struct verdict *verdict)
{
	const struct judgement *rule = &verdict->source.rule;

	if (verdict->source.policy)
		limits_judge(verdict);
	else if (!rule->found)
		verdict->reason = SL_PASS_NO_RULE;
	else
		verdict->reason = rule->access == SL_LIST_ALLOW ? SL_PASS_ALLOWED : SL_DROP_DENIED;
	verdict->empty = limit_from_empty(verdict);
}

/* --- The verdict ---------------------------------------------------------------------------- */

enum status verdict_find(const struct gate *gate, const struct packet_args *packet,
			 struct verdict *ret)
{
	struct verdict verdict = {.gate = gate, .packet = *packet};
	enum status status = verdict_read(gate, &verdict);

	if (status) {
		verdict_free(&verdict);
		return status;
	}
	verdict_judge(&verdict);
	*ret = verdict;
	return OK;
}

void verdict_free(struct verdict *verdict)
{
	source_free(&verdict->source);
}

const char *verdict_word(const struct verdict *verdict)
{
	return verdict->reason < SL_FIRST_DROP ? "pass" : "drop";
}
