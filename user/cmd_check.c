// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "counters.h"
#include "gate.h"
#include "heard.h"
#include "prefix.h"
#include "pressure.h"
#include "probe.h"
#include "report.h"
#include "rule_json.h"
#include "spec.h"
#include "uptime.h"

/* What would come of the packet, and how its source stands. */
struct answer {
	struct probe probe;
	struct source source;
	enum sl_reason reason;
	const struct sl_limit *by;     /* the limit that drops it; NULL: none does */
	const struct sl_limit *limits; /* in the order of asking */
	unsigned int count;
	struct standing standings[SL_LIMITS_MAX];
	bool newcomer;	      /* it has no ledger under a limit that matches, or waits */
	bool waits;	      /* the packet path takes it for new there, and does not let it in */
	bool unheard;	      /* although it has a ledger: it was silent for too long */
	unsigned int flooded; /* CPUs on which newcomers wait */
	unsigned int crowded; /* those on which no bucket is looked for, unless it is known */
	bool known;
	bool known_to[SL_LIMITS_MAX]; /* by limit: to some it is another's key that is */
	struct standing budget;
};

/* --- The answer ----------------------------------------------------------------------------- */

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

static bool limit_is_fresh(const struct answer *answer, unsigned int index)
{
	return answer->standings[index].matches && answer->standings[index].fresh;
}

/* As the packet path's bucket_get, on a CPU in a flood. */
static bool bucket_is_found(const struct answer *answer)
{
	return answer->source.remembered && (!answer->crowded || answer->known);
}

/*
 * As the packet path's limit_charge and limit_meet, on a CPU in a flood: a source that has a bucket need not show
 * itself, but to limits that keep the addresses of a bucket apart, and to those under which its key is new. Else a
 * ledger is looked for only of who is known.
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
 * As the packet path's policy_charge: the first that refuses ends it, unless it only observes. What a source has to
 * wait for says nothing, and then the budget decides.
 */
static void limits_judge(struct answer *answer)
{
	answer->reason = SL_PASS_WITHIN;
	for (unsigned int i = 0; !answer->by && i < answer->count; i++) {
		const struct standing *standing = &answer->standings[i];

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

/* Whether the source is known where newcomers wait, and to which limits. */
static enum status known_read(const struct gate *gate, uint32_t tick, struct answer *answer)
{
	const struct probe *probe = &answer->probe;
	enum status status = heard_read(gate, NULL, &probe->source, tick, &answer->known);

	for (unsigned int i = 0; !status && i < answer->count; i++) {
		const struct sl_limit *limit = &answer->limits[i];

		status = heard_read(gate, limit,
				    limit->key_dst ? &probe->destination : &probe->source, tick,
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
	status = known_read(gate, pressure.tick, answer);
	if (status)
		return status;
	answer->flooded = pressure.flooded;
	answer->crowded = pressure.crowded;
	answer->budget.reason = SL_PASS_NEWCOMER;
	if (!policy || !policy->newcomers.burst)
		return OK;
	return standing_read_budget(gate, policy, answer->probe.bytes, uptime_ticks(),
				    &answer->budget);
}

static enum status answer_find(const struct gate *gate, struct answer *answer)
{
	enum status status = source_read(gate, &answer->probe.source, &answer->source);

	if (status)
		return status;
	answer->limits = source_limits(&answer->source, &answer->count);
	status = standings_read(gate, answer);
	if (!status)
		status = newcomers_read(gate, answer);
	if (answer->source.policy)
		limits_judge(answer);
	else if (!answer->source.rule.found)
		answer->reason = SL_PASS_NO_RULE;
	else
		answer->reason = answer->source.rule.list == SL_LIST_ALLOW ? SL_PASS_ALLOWED
									   : SL_DROP_DENIED;
	return status;
}

static const char *answer_verdict(const struct answer *answer)
{
	return answer->reason < SL_FIRST_DROP ? "pass" : "drop";
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* What the limit says of the packet; null: it is for others. */
static json_t *verdict_json(const struct sl_limit *limit, const struct standing *standing)
{
	if (!standing->matches)
		return json_null();
	if (standing->reason < SL_FIRST_DROP)
		return json_string("pass");
	return json_string(limit->observe ? "would-drop" : "drop");
}

static json_t *limits_json(const struct answer *answer)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < answer->count; i++) {
		const struct standing *standing = &answer->standings[i];
		const struct sl_limit *limit = &answer->limits[i];
		json_t *object = standing_json(&answer->source, limit, standing);

		json_object_set_new(object, "matches", json_boolean(standing->matches));
		json_object_set_new(object, "verdict", verdict_json(limit, standing));
		json_array_append_new(list, object);
	}
	return list;
}

/* The budget that judges newcomers, in a flood; null: none does. */
static json_t *budget_standing_json(const struct answer *answer)
{
	const struct sl_policy *policy = answer->source.policy;
	const struct limit budget = {.spec = policy->newcomers_spec};
	json_t *object;

	if (!policy->newcomers.burst)
		return json_null();
	object = budget_json(&budget);
	json_object_set_new(object, "remaining", json_integer(answer->budget.remaining));
	json_object_set_new(object, "unit", json_string(unit_name(&policy->newcomers)));
	json_object_set_new(object, "reason", json_string(reason_names[answer->budget.reason]));
	return object;
}

/* null: the source is none. */
static json_t *newcomer_json(const struct answer *answer)
{
	if (!answer->newcomer)
		return json_null();
	return json_pack("{s:b, s:i, s:o}", "waits", answer->waits, "cpus_flooded",
			 (int)answer->flooded, "budget", budget_standing_json(answer));
}

static json_t *answer_json(const struct answer *answer)
{
	char text[PREFIX_TEXT];
	json_t *object = json_pack("{s:s}", "address", prefix_format(&answer->probe.source, text));

	judgement_json(&answer->source.rule, object);
	json_object_set_new(object, "verdict", json_string(answer_verdict(answer)));
	json_object_set_new(object, "reason", json_string(reason_names[answer->reason]));
	json_object_set_new(object, "newcomer", newcomer_json(answer));
	json_object_set_new(object, "limits", limits_json(answer));
	return object;
}

/* --- Text ----------------------------------------------------------------------------------- */

static void rule_print_line(const struct judgement *rule)
{
	char prefix[PREFIX_TEXT], left[UNITS_TEXT];

	printf("  policy  ");
	if (rule->list)
		printf("%s ", rule->list == SL_LIST_ALLOW ? "allow" : "deny");
	printf("%s", prefix_format(&rule->prefix, prefix));
	if (rule->list && rule->until)
		printf(" for %s more", left_format(until_left_ns(rule->until), left));
	puts(": the longest prefix in force that covers it");
}

static void limit_print(const struct source *source, const struct sl_limit *compiled)
{
	struct limit limit = source_limit(source, compiled);
	char text[SPEC_TEXT];

	printf("  limit   %s:", limit.spec.name);
	for (int field = SPEC_RATE; field < SPEC_FIELDS; field++) {
		const char *words = spec_format(&limit, &source->policy->prefix, field, text);

		if (words)
			printf(" %s %s", spec_names[field], words);
	}
	putchar('\n');
}

static void match_print(const struct sl_limit *limit, const struct probe *probe,
			const struct standing *standing)
{
	if (standing->matches)
		return;
	if (limit->key_dst && !probe->destination.bits)
		puts("  match   no: it is for what is sent, by destination: say 'to ADDRESS'");
	else if (limit->key_dst && !probe->egress)
		puts("  match   no: it is for what is sent: leave out 'hook', or say 'hook "
		     "egress'");
	else
		puts("  match   no: it is for other packets");
}

static void retry_print(const struct sl_limit *limit, const struct standing *standing)
{
	if (standing->reason == SL_PASS_WITHIN)
		return;
	if (standing->retry_after_ms == UINT64_MAX)
		puts("  retry   never: the frame costs more than the burst");
	else
		printf("  retry   after %" PRIu64 " ms\n", standing->retry_after_ms);
	if (limit->observe)
		puts("  observe it would drop the packet, and lets it pass");
}

static void standing_print(const struct sl_limit *limit, const struct standing *standing)
{
	char left[UNITS_TEXT];

	if (!standing->known)
		return;
	printf("  level   %" PRIu64 " of %" PRIu64 " %s left\n", standing->remaining,
	       burst_units(limit), unit_name(limit));
	if (standing->blocked_ms)
		printf("  block   for %s more\n",
		       left_format(standing->blocked_ms * 1000000, left));
	if (standing->matches)
		retry_print(limit, standing);
}

static bool all_observe(const struct answer *answer)
{
	bool observe = true;

	for (unsigned int i = 0; i < answer->count; i++)
		observe &= answer->limits[i].observe;
	return observe;
}

/* The limit that drops what comes while the source waits, so that no budget is asked; NULL: there is none. */
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

static void budget_print(const struct answer *answer)
{
	const struct sl_policy *policy = answer->source.policy;
	const struct sl_limit *budget = &policy->newcomers;
	const struct sl_limit *empty = limit_from_empty(answer);
	char rate[UNITS_TEXT], burst[UNITS_TEXT];

	if (empty) {
		printf("  budget  not asked: limit %s starts empty, and drops what comes while it "
		       "waits\n",
		       source_limit(&answer->source, empty).spec.name);
		return;
	}
	if (!budget->burst) {
		puts("  budget  none: while it waits, it passes");
		return;
	}
	printf("  budget  newcomers together: rate %s burst %s, %s\n",
	       rate_format(&policy->newcomers_spec, rate),
	       burst_format(&policy->newcomers_spec, burst),
	       all_observe(answer) ? "which drops no packet: all limits only observe"
				   : "while they wait");
	printf("  level   %" PRIu64 " of %" PRIu64 " %s left\n", answer->budget.remaining,
	       burst_units(budget), unit_name(budget));
}

static void newcomer_print(const struct answer *answer)
{
	if (!answer->newcomer)
		return;
	if (answer->waits)
		printf("  new     %s: there is a flood of new sources, on %u of the CPUs\n",
		       answer->unheard
			       ? "it was not heard for a minute or longer, and is taken for "
				 "new: it waits"
			       : "it has no bucket yet, and waits for one",
		       answer->flooded);
	else
		puts("  new     it has no bucket yet: its first packet makes one; in a flood of "
		     "new "
		     "sources it waits");
	budget_print(answer);
}

static void answer_print(const struct answer *answer)
{
	char address[PREFIX_TEXT];

	printf("%s: %s", prefix_format(&answer->probe.source, address), answer_verdict(answer));
	if (!answer->source.rule.found) {
		puts(": no rule covers it");
		return;
	}
	printf(": %s", reason_names[answer->reason]);
	if (answer->by)
		printf(", limit %s", source_limit(&answer->source, answer->by).spec.name);
	putchar('\n');
	rule_print_line(&answer->source.rule);
	for (unsigned int i = 0; i < answer->count; i++) {
		limit_print(&answer->source, &answer->limits[i]);
		match_print(&answer->limits[i], &answer->probe, &answer->standings[i]);
		standing_print(&answer->limits[i], &answer->standings[i]);
	}
	newcomer_print(answer);
}

enum status cmd_check(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct answer answer = {0};
	enum status status = probe_parse(argc, argv, &answer.probe);

	if (!status)
		status = gate_open(&gate, context->gate);
	if (!status)
		status = answer_find(&gate, &answer);
	if (!status && context->json)
		status = json_print(answer_json(&answer));
	else if (!status)
		answer_print(&answer);
	source_free(&answer.source);
	gate_close(&gate);
	return status;
}
