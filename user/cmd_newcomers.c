// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "advice.h"
#include "command.h"
#include "gate.h"
#include "prefix.h"
#include "rule_json.h"
#include "rules.h"
#include "spec.h"
#include "units.h"

struct request {
	struct sl_prefix prefix;
	bool none; /* there is to be no budget */
	struct limit budget;
};

/* --- Words ---------------------------------------------------------------------------------- */

static enum status budget_parse(int argc, char **argv, struct limit *ret)
{
	const char *const keywords[] = {spec_names[SPEC_RATE], spec_names[SPEC_BURST], "none"};
	const char *rate = NULL, *burst = NULL;

	for (int i = 2; i < argc; i++) {
		bool is_rate = !strcmp(argv[i], spec_names[SPEC_RATE]);
		const char **value = is_rate ? &rate : &burst;

		if (!is_rate && strcmp(argv[i], spec_names[SPEC_BURST]))
			return unexpected_for(argv[0], argv[i], keywords, 3);
		if (*value)
			return misuse("newcomers: '%s' is given twice", argv[i]);
		*value = keyword_value(argc, argv, &i);
		if (!*value)
			return MISUSED;
	}
	if (!rate)
		return misuse("newcomers: a budget needs a rate: write 'rate 10kpps', or 'none'");
	return spec_parse_budget(rate, burst, NULL, NULL, ret);
}

static enum status request_parse(int argc, char **argv, struct request *ret)
{
	struct request request = {0};
	enum status status;

	if (argc < 2)
		return misuse("newcomers: default, or which prefix? See 'sluice help newcomers'");
	status = prefix_parse(argv[1], &request.prefix);
	if (status)
		return status;
	request.none = argc > 2 && !strcmp(argv[2], "none");
	if (request.none && argc > 3)
		return unexpected(argv[0], argv[3]);
	if (!request.none)
		status = budget_parse(argc, argv, &request.budget);
	if (!status)
		*ret = request;
	return status;
}

/* --- The rule ------------------------------------------------------------------------------- */

static enum status refuse_without_limits(const struct gate *gate, const struct sl_prefix *prefix)
{
	char buffer[PREFIX_TEXT];
	const char *text = prefix_format(prefix, buffer);

	return fail("gate '%s' has no limits for %s, whose newcomers these could be: set one "
		    "first, with 'sluice set %s rate RATE'",
		    gate->name, text, text);
}

static enum status request_apply(struct gate *gate, struct request *request)
{
	struct limit *budget = request->none ? NULL : &request->budget;
	struct rule rule = {.prefix = request->prefix};
	enum status status = rules_get(gate, &request->prefix, &rule);

	if (!status && !rule.limits)
		status = refuse_without_limits(gate, &request->prefix);
	if (!status)
		status = rule_set_newcomers(&rule, budget);
	if (!status)
		status = rules_change(gate, &rule, 1);
	if (!status)
		advice_newcomers(&rule, 1);
	rule_free(&rule);
	return status;
}

/* --- What happened -------------------------------------------------------------------------- */

static enum status report_json(const struct context *context, const struct request *request)
{
	char text[PREFIX_TEXT];

	return json_print(json_pack("{s:s, s:s, s:o}", "gate", context->gate, "prefix",
				    prefix_format(&request->prefix, text), "newcomers",
				    request->none ? json_null() : budget_json(&request->budget)));
}

static enum status report(const struct context *context, const struct request *request)
{
	const struct sl_limit_spec *spec = &request->budget.spec;
	char text[PREFIX_TEXT], rate[UNITS_TEXT], burst[UNITS_TEXT];

	if (context->json)
		return report_json(context, request);
	printf("%s: newcomers ", prefix_format(&request->prefix, text));
	if (request->none)
		puts("have no budget: they pass");
	else
		printf("together %s, burst %s\n", rate_format(spec, rate),
		       burst_format(spec, burst));
	return OK;
}

enum status cmd_newcomers(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct request request;
	enum status status = request_parse(argc, argv, &request);

	if (!status)
		status = gate_open_to_change(&gate, context->gate);
	if (!status)
		status = request_apply(&gate, &request);
	gate_close(&gate);
	return status ? status : report(context, &request);
}
