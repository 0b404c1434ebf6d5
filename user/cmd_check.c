// SPDX-License-Identifier: GPL-2.0
#include "answer.h"
#include "answer_text.h"
#include "command.h"
#include "counters.h"
#include "gate.h"
#include "inherit.h"
#include "prefix.h"
#include "probe.h"
#include "report.h"
#include "rule_json.h"

/* What the limit says of the packet; null: it is for others. */
static json_t *verdict_json(const struct sl_limit *limit, const struct standing *standing)
{
	if (!standing->matches)
		return json_null();
	if (standing->reason < SL_FIRST_DROP)
		return json_string("pass");
	return json_string(limit->observe ? "would-drop" : "drop");
}

/* The policy that an inherited limit is written in; null: it is the source's own. */
static json_t *home_json(const struct gate *gate, uint32_t home)
{
	char text[PREFIX_TEXT];

	if (!home)
		return json_null();
	return json_string(prefix_format(inherit_home(gate, home), text));
}

static json_t *limits_json(const struct gate *gate, const struct answer *answer)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < answer->count; i++) {
		const struct standing *standing = &answer->standings[i];
		const struct sl_limit *limit = &answer->limits[i];
		json_t *object = standing_json(&answer->source, limit, standing);

		json_object_set_new(object, "inherited_from",
				    home_json(gate, answer->source.policy->home[limit->slot]));
		json_object_set_new(object, "matches", json_boolean(standing->matches));
		json_object_set_new(object, "verdict", verdict_json(limit, standing));
		json_array_append_new(list, object);
	}
	return list;
}

/* The budget that judges newcomers, in a flood; null: none does. */
static json_t *budget_standing_json(const struct gate *gate, const struct answer *answer)
{
	const struct sl_policy *policy = answer->source.policy;
	const struct limit budget = {.spec = policy->newcomers_spec};
	json_t *object;

	if (!policy->newcomers.burst)
		return json_null();
	object = budget_json(&budget);
	json_object_set_new(object, "inherited_from",
			    home_json(gate, SL_HOME(policy->newcomers_home, 0)));
	json_object_set_new(object, "remaining", json_integer(answer->budget.remaining));
	json_object_set_new(object, "unit", json_string(unit_name(&policy->newcomers)));
	json_object_set_new(object, "reason", json_string(reason_names[answer->budget.reason]));
	return object;
}

/* null: the source is none. */
static json_t *newcomer_json(const struct gate *gate, const struct answer *answer)
{
	if (!answer->newcomer)
		return json_null();
	return json_pack("{s:b, s:i, s:b, s:o}", "waits", answer->waits, "cpus_flooded",
			 (int)answer->flooded, "passes_by", answer->passes_by, "budget",
			 budget_standing_json(gate, answer));
}

static json_t *answer_json(const struct gate *gate, const struct answer *answer)
{
	char text[PREFIX_TEXT];
	json_t *object = json_pack("{s:s}", "address", prefix_format(&answer->probe.source, text));

	judgement_json(answer->gate, &answer->source.rule, object);
	json_object_set_new(object, "verdict", json_string(answer_verdict(answer)));
	json_object_set_new(object, "reason", json_string(reason_names[answer->reason]));
	json_object_set_new(object, "newcomer", newcomer_json(gate, answer));
	json_object_set_new(object, "limits", limits_json(gate, answer));
	return object;
}

enum status cmd_check(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct answer answer = {0};
	struct probe probe;
	enum status status = probe_parse(argc, argv, &probe);

	if (!status)
		status = gate_open_to_look(&gate, context);
	if (!status)
		status = answer_find(&gate, &probe, &answer);
	if (!status && context->json)
		status = json_print(answer_json(&gate, &answer));
	else if (!status)
		answer_print(&gate, &answer);
	answer_free(&answer);
	gate_close(&gate);
	return status;
}
