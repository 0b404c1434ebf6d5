// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/kept.h"
#include "cli/warnings.h"
#include "program/print_rules.h"
#include "gate/gate.h"
#include "gate/policy.h"
#include "gate/records.h"
#include "gate/rulemap.h"
#include "gate/rules.h"
#include "rules/prefix.h"
#include "cli/report.h"
#include "rules/limit_words.h"
#include "rules/value.h"

struct request {
	struct sl_prefix prefix;
	bool none; /* there is to be no budget */
	struct limit budget;
	/* What holds where there is none. */
	bool passes; /* a flood */
	bool inherits;
	struct sl_prefix home; /* of the budget that holds instead */
	struct rule replaced;  /* the budget that the request changes or removes */
};

/* --- Words ---------------------------------------------------------------------------------- */

struct newcomers_args {
	const char *prefix;
	const char *rate;
	const char *burst;
	bool none;
};

static int request_parse(const struct newcomers_args *args, struct request *ret)
{
	struct request request = {.none = args->none};
	int status = prefix_parse(args->prefix, &request.prefix);

	if (status)
		return status;
	if (args->none && (args->rate || args->burst))
		return misuse("newcomers: 'none' says that there is no budget: write it alone, or "
			      "leave it out");
	if (!args->none && !args->rate)
		return misuse("newcomers: a budget needs a rate: write 'rate 10kpps', or 'none'");
	if (!args->none)
		status = spec_parse_budget(args->rate, args->burst, NULL, NULL, &request.budget);
	if (!status)
		*ret = request;
	return status;
}

/* --- Changing the rule ---------------------------------------------------------------------- */

static void budget_look(const struct gate *gate, struct request *request)
{
	const struct sl_policy *policy;
	struct sl_rule rule;

	if (rulemap_get(gate, &request->prefix, &rule) <= 0)
		return;
	policy = record_read(gate, rule.cur.version);
	request->passes = policy_lacks_budget(policy);
	request->inherits = policy->newcomers_origin;
	if (request->inherits)
		request->home = *inherit_home(gate, SL_ORIGIN(policy->newcomers_origin, 0));
}

static int request_apply(struct gate *gate, struct request *request)
{
	struct limit *budget = request->none ? NULL : &request->budget;
	struct rule rule = {.prefix = request->prefix};
	int status = rules_get(gate, &request->prefix, &rule);
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&request->prefix, text);
	struct losses losses;

	if (!status && !rule.limits) {
		return failure(
			"gate '%s' has no limits for %s, whose newcomers these could be: set "
			"one first, with 'sluice %sset %s rate RATE'",
			gate->name, prefix, gate_option(gate->name), prefix);
	}
	request->replaced.prefix = request->prefix;
	if (!status && rule.newcomers && !(budget && limit_equal(budget, rule.newcomers)))
		status = rule_set_newcomers(&request->replaced, rule.newcomers);
	if (!status)
		status = rule_set_newcomers(&rule, budget);
	if (!status)
		status = rule_replace(gate, &rule, &losses);
	if (!status)
		warn_newcomers(&rule, 1);
	if (!status)
		warn_losses(gate, &losses, false);
	if (!status)
		budget_look(gate, request);
	rule_free(&rule);
	return status;
}

/* --- Report --------------------------------------------------------------------------------- */

/* Prints what holds where the policy has no budget of its own. */
static void none_print(const struct request *request)
{
	char text[PREFIX_TEXT];

	if (request->inherits)
		printf("have no budget of their own: that of %s holds\n",
		       prefix_format(&request->home, text));
	else if (request->passes)
		puts("have no budget: in a flood they pass");
	else
		puts("have no budget, and need none: no limit drops, or one starts empty");
}

static int report(const struct context *context, const struct request *request)
{
	const struct sl_limit_spec *spec = &request->budget.spec;
	const struct limit *replaced = request->replaced.newcomers;
	char text[PREFIX_TEXT], home[PREFIX_TEXT], rate[UNITS_TEXT], burst[UNITS_TEXT];
	const char *prefix = prefix_format(&request->prefix, text);

	if (context->json)
		return json_print(json_pack(
			"{s:s, s:s, s:o, s:s*, s:o*}", "gate", context->gate, "prefix", prefix,
			"newcomers", request->none ? json_null() : budget_json(&request->budget),
			"inherited_from",
			request->inherits ? prefix_format(&request->home, home) : NULL, "replaced",
			replaced ? budget_json(replaced) : NULL));
	printf("%s: newcomers ", prefix);
	if (request->none)
		none_print(request);
	else
		printf("together %s, burst %s\n", rate_format(spec, rate),
		       burst_format(spec, burst));
	print_commands(&request->replaced, NULL, NULL, context->gate, "replaced: ");
	return OK;
}

static int newcomers_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	struct request request = {0};
	int status = request_parse(args, &request);

	if (!status)
		status = gate_open_to_try(&gate, context);
	if (!status)
		status = request_apply(&gate, &request);
	gate_close(&gate);
	if (!status)
		kept_note_limits(context->gate);
	if (!status)
		status = report(context, &request);
	rule_free(&request.replaced);
	return status;
}

static const struct word newcomers_words[] = {
	{"default|PREFIX", OPERAND, VALUE_TEXT("default|PREFIX"),
	 offsetof(struct newcomers_args, prefix), NULL},
	{"rate", KEYWORD, VALUE_TEXT("RATE", .extent = VALUE_NUMBERS),
	 offsetof(struct newcomers_args, rate), "as in 'sluice help set'. Needed, but for none"},
	{"burst", KEYWORD, VALUE_TEXT("BURST", .extent = VALUE_NUMBERS),
	 offsetof(struct newcomers_args, burst), "the same"},
	{"none", KEYWORD, NULL, offsetof(struct newcomers_args, none),
	 "no budget, the default: new sources pass. Without other words"},
	WORD_CONFIRM,
};

static const char newcomers_details[] =
	"New sources pass together at most burst + rate x t, whatever they send. A source is new\n"
	"until its level has existed for the time in which its burst refills, at least a second\n"
	"and at most a minute. Until then its packets are charged to its limits and to this\n"
	"budget, and dropped as over-budget if the budget has no credit. Set it to twice what new\n"
	"sources send without a flood; 'sluice status' shows how much is used.\n"
	"The prefix must have limits; the budget is removed with the last limit.\n"
	"The command that restores the old budget is printed.";

const struct command command_newcomers = {
	.name = "newcomers",
	.brief = "limit all new sources in a prefix together",
	.details = newcomers_details,
	.question = "default, or which prefix?",
	COMMAND_WORDS(newcomers_words, struct newcomers_args),
	.run = newcomers_run,
};
