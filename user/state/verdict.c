// SPDX-License-Identifier: GPL-2.0
#include "state/verdict.h"

#include "base/clock.h"
#include "gate/policy.h"
#include "state/pressure.h"

/* --- Reading -------------------------------------------------------------------------------- */

static enum status standings_read(const struct gate *gate, struct verdict *verdict)
{
	uint64_t now = uptime_ticks();

	for (unsigned int i = 0; i < verdict->count; i++) {
		const struct sl_limit *limit = &verdict->limits[i];
		struct standing *standing = &verdict->standings[i];
		enum status status = standing_read(gate, &verdict->source, limit, &verdict->packet,
						   now, standing);

		if (status)
			return status;
		if (standing->matches && !standing->known)
			return misuse("check: limit '%s' counts by destination: say 'to ADDRESS'",
				      source_limit(&verdict->source, limit).spec.name);
	}
	return OK;
}

/* Whether the source is known where newcomers wait, and to which limits. */
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
	return standing_read_budget(gate, policy, verdict->packet.bytes, uptime_ticks(),
				    &verdict->budget);
}

static enum status verdict_read(const struct gate *gate, struct verdict *verdict)
{
	enum status status = source_read(gate, &verdict->packet.source, &verdict->source);

	if (status)
		return status;
	verdict->limits = source_limits(&verdict->source, &verdict->count);
	status = standings_read(gate, verdict);
	return status ?: newcomers_read(gate, verdict);
}

/* --- Judging -------------------------------------------------------------------------------- */

static bool limit_is_fresh(const struct verdict *verdict, unsigned int index)
{
	return verdict->standings[index].matches && verdict->standings[index].fresh;
}

/* bucket_get() of bpf/bucket.h, on a CPU in a flood */
static bool bucket_is_found(const struct verdict *verdict)
{
	return verdict->source.remembered && (!verdict->crowded || verdict->known);
}

/*
 * limit_charge() and limit_admit() of bpf/charge.h, on a CPU in a flood. A source that has a bucket need not pass the bar,
 * except for limits that keep the addresses of a bucket apart, and for those under which its key is new. Without a bucket
 * the ledger of a known key alone is looked up.
 */
static bool limit_lets_wait(const struct verdict *verdict, unsigned int index)
{
	const struct standing *standing = &verdict->standings[index];
	const struct sl_limit *limit = &verdict->limits[index];

	if (!verdict->flooded || !standing->matches)
		return false;
	if (!limit->apart && bucket_is_found(verdict))
		return limit->shared && standing->fresh;
	return standing->fresh || !verdict->known_to[index];
}

/* An empty bucket needs no ledger to refuse. */
static void limit_wait(struct verdict *verdict, unsigned int index)
{
	verdict->waits = true;
	if (verdict->limits[index].start_empty) {
		verdict->reason = SL_DROP_OVER_LIMIT;
		verdict->by = &verdict->limits[index];
	}
}

/*
 * policy_charge() of bpf/charge.h: the first limit that refuses decides, unless it only observes. A limit that the source
 * has to wait for does not decide; the budget decides in its place.
 */
static void limits_judge(struct verdict *verdict)
{
	verdict->reason = SL_PASS_NO_LIMIT;
	for (unsigned int i = 0; !verdict->by && i < verdict->count; i++) {
		const struct standing *standing = &verdict->standings[i];

		if (standing->matches)
			verdict->reason = SL_PASS_WITHIN;
		verdict->newcomer |= limit_is_fresh(verdict, i);
		if (verdict->limits[i].observe)
			continue;
		if (limit_lets_wait(verdict, i)) {
			verdict->unheard |= !standing->fresh;
			limit_wait(verdict, i);
		} else if (standing->matches && standing->reason >= SL_FIRST_DROP) {
			verdict->reason = standing->reason;
			verdict->by = &verdict->limits[i];
		}
	}
	verdict->newcomer |= verdict->waits;
	if (verdict->waits && !verdict->by)
		verdict->reason = verdict->budget.reason;
}

/* The limit that drops what comes while the source waits; NULL: there is none. */
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
