// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "gate.h"
#include "prefix.h"
#include "rules.h"
#include "units.h"

static json_t *rule_json(const struct sl_policy *policy)
{
	const struct sl_limit_spec *spec = &policy->limit.spec;
	char prefix[PREFIX_TEXT], rate[UNITS_TEXT], burst[UNITS_TEXT];

	return json_pack("{s:s, s:s, s:s}", "prefix", prefix_format(&policy->prefix, prefix),
			 "rate", rate_format(spec, rate), "burst", burst_format(spec, burst));
}

/* The command that makes the rule. */
static void rule_print(const struct gate *gate, const struct sl_policy *policy)
{
	const struct sl_limit_spec *spec = &policy->limit.spec;
	char prefix[PREFIX_TEXT], rate[UNITS_TEXT], burst[UNITS_TEXT];
	bool named = strcmp(gate->name, "main");

	printf("sluice %s%s%sset %s rate %s burst %s\n", named ? "-g " : "",
	       named ? gate->name : "", named ? " " : "", prefix_format(&policy->prefix, prefix),
	       rate_format(spec, rate), burst_format(spec, burst));
}

static enum status rules_print(const struct context *context, const struct gate *gate)
{
	const struct sl_policy *policies[SL_POLICIES_MAX];
	unsigned int count = rules_list(gate, policies);
	json_t *list = context->json ? json_array() : NULL;

	for (unsigned int i = 0; i < count; i++) {
		if (list)
			json_array_append_new(list, rule_json(policies[i]));
		else
			rule_print(gate, policies[i]);
	}
	if (context->json)
		return json_print(json_pack("{s:s, s:o}", "gate", gate->name, "rules", list));
	return OK;
}

enum status cmd_show(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	enum status status;

	if (argc > 1)
		return unexpected(argv[0], argv[1]);
	status = gate_open(&gate, context->gate);
	if (!status)
		status = rules_print(context, &gate);
	gate_close(&gate);
	return status;
}
