// SPDX-License-Identifier: GPL-2.0
#include "state/verdict.h"

#include "base/clock.h"
#include "gate/policy.h"
#include "state/pressure.h"

/* --- Reading -------------------------------------------------------------------------------- */

static enum status standings_read(const struct gate *gate, struct answer *answer)
{
	uint64_t now = uptime_ticks();

	for (unsigned int i = 0; i < answer->count; i++) {
		const struct sl_limit *limit = &answer->limits[i];
		struct standing *standing = &answer->standings[i];
		enum status status =
			standing_read(gate, &answer->source, limit, &answer->probe, now, standing);

		if (status)
			return status;
		if (standing->matches && !standing->known)
			return misuse("check: limit '%s' counts by destination: say 'to ADDRESS'",
				      source_limit(&answer->source, limit).spec.name);
	}
	return OK;
}

/* Whether the source is known where newcomers wait, and to which limits. */
static enum status known_read(const struct gate *gate, uint64_t jiffy, struct answer *answer)
{
	const struct probe *probe = &answer->probe;
	enum status status = heard_read(gate, NULL, &probe->source, jiffy, &answer->known);

	for (unsigned int i = 0; !status && i < answer->count; i++) {
		const struct sl_limit *limit = &answer->limits[i];

		status = heard_read(gate, limit,
				    limit->key_dst ? &probe->destination : &probe->source, jiffy,
				    &answer->known_to[i]);
	}
	return status;
}

static enum status newcomers_read(const struct gate *gate, struct answer *answer)
{
	const struct sl_policy *policy = answer->source.policy;
	struct pressure pressure;
	enum status status = pressure_read(gate, &pressure);

	if (status)
		return status;
	status = known_read(gate, pressure.jiffy, answer);
	if (status)
		return status;
	answer->flooded = pressure.flooded;
	answer->crowded = pressure.crowded;
	if (pressure.flooded && policy)
		status = policy_passed_by(gate, policy, &answer->passes_by);
	if (status)
		return status;
	answer->budget.reason = SL_PASS_NEWCOMER;
	if (!policy || !policy->newcomers.burst)
		return OK;
	return standing_read_budget(gate, policy, answer->probe.bytes, uptime_ticks(),
				    &answer->budget);
}

static enum status answer_read(const struct gate *gate, struct answer *answer)
{
	enum status status = source_read(gate, &answer->probe.source, &answer->source);

	if (status)
		return status;
	answer->limits = source_limits(&answer->source, &answer->count);
	status = standings_read(gate, answer);
	return status ?: newcomers_read(gate, answer);
}

/* --- Judging -------------------------------------------------------------------------------- */

static bool limit_is_fresh(const struct answer *answer, unsigned int index)
{
	return answer->standings[index].matches && answer->standings[index].fresh;
}

/* bucket_get() of bpf/bucket.h, on a CPU in a flood */
static bool bucket_is_found(const struct answer *answer)
{
	return answer->source.remembered && (!answer->crowded || answer->known);
}

/*
 * limit_charge() and limit_admit() of bpf/charge.h, on a CPU in a flood. A source that has a bucket need not pass the bar,
 * except for limits that keep the addresses of a bucket apart, and for those under which its key is new. Without a bucket
 * the ledger of a known key alone is looked up.
 */
static bool limit_lets_wait(const struct answer *answer, unsigned int index)
{
	const struct standing *standing = &answer->standings[index];
	const struct sl_limit *limit = &answer->limits[index];

	if (!answer->flooded || !standing->matches)
		return false;
	if (!limit->apart && bucket_is_found(answer))
		return limit->shared && standing->fresh;
	return standing->fresh || !answer->known_to[index];
}

/* An empty bucket needs no ledger to refuse. */
static void limit_wait(struct answer *answer, unsigned int index)
{
	answer->waits = true;
	if (answer->limits[index].start_empty) {
		answer->reason = SL_DROP_OVER_LIMIT;
		answer->by = &answer->limits[index];
	}
}

/*
 * policy_charge() of bpf/charge.h: the first limit that refuses decides, unless it only observes. A limit that the source
 * has to wait for does not decide; the budget decides in its place.
 */
static void limits_judge(struct answer *answer)
{
	answer->reason = SL_PASS_NO_LIMIT;
	for (unsigned int i = 0; !answer->by && i < answer->count; i++) {
		const struct standing *standing = &answer->standings[i];

		if (standing->matches)
			answer->reason = SL_PASS_WITHIN;
		answer->newcomer |= limit_is_fresh(answer, i);
		if (answer->limits[i].observe)
			continue;
		if (limit_lets_wait(answer, i)) {
			answer->unheard |= !standing->fresh;
			limit_wait(answer, i);
		} else if (standing->matches && standing->reason >= SL_FIRST_DROP) {
			answer->reason = standing->reason;
			answer->by = &answer->limits[i];
		}
	}
	answer->newcomer |= answer->waits;
	if (answer->waits && !answer->by)
		answer->reason = answer->budget.reason;
}

/* The limit that drops what comes while the source waits; NULL: there is none. */
static const struct sl_limit *limit_from_empty(const struct answer *answer)
{
	for (unsigned int i = 0; i < answer->count; i++) {
		const struct sl_limit *limit = &answer->limits[i];

		if (limit->start_empty && !limit->observe &&
		    (limit_is_fresh(answer, i) || limit_lets_wait(answer, i)))
			return limit;
	}
	return NULL;
}

static void answer_judge(struct answer *answer)
{
	const struct judgement *rule = &answer->source.rule;

	if (answer->source.policy)
		limits_judge(answer);
	else if (!rule->found)
		answer->reason = SL_PASS_NO_RULE;
	else
		answer->reason = rule->list == SL_LIST_ALLOW ? SL_PASS_ALLOWED : SL_DROP_DENIED;
	answer->empty = limit_from_empty(answer);
}

/* --- The answer ----------------------------------------------------------------------------- */

enum status answer_find(const struct gate *gate, const struct probe *probe, struct answer *ret)
{
	struct answer answer = {.gate = gate, .probe = *probe};
	enum status status = answer_read(gate, &answer);

	if (status) {
		answer_free(&answer);
		return status;
	}
	answer_judge(&answer);
	*ret = answer;
	return OK;
}

void answer_free(struct answer *answer)
{
	source_free(&answer->source);
}

const char *answer_verdict(const struct answer *answer)
{
	return answer->reason < SL_FIRST_DROP ? "pass" : "drop";
}
