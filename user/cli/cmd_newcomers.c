// SPDX-License-Identifier: GPL-2.0
#include <errno.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/processes.h"
#include "cli/warnings.h"
#include "gate/policy.h"
#include "gate/rulemap.h"
#include "gate/rules.h"
#include "gate/transaction.h"
#include "program/print_rules.h"
#include "rules/limit_words.h"
#include "rules/prefix.h"

struct newcomers_args {
	struct sl_prefix prefix;
	struct spec spec; /* rate and burst */
	bool none;
};

static int newcomers_apply(struct gate *gate, const struct sl_prefix *prefix,
			   const struct limit *budget, struct rule *replaced)
{
	_cleanup_(rule_free) struct rule rule = {.prefix = *prefix};
	char text[PREFIX_TEXT];
	const char *name = prefix_format(prefix, text);
	struct shadowed shadowed;
	int err = rules_get(gate, prefix, &rule);

	if (err)
		return err;
	if (!rule.limits)
		return error_add(ENOENT, "no-limits", name,
				 "gate '%s' has no limits for it, whose newcomers these could be; "
				 "set one first, with 'sluice %sset %s rate RATE'",
				 gate->name, gate_option(gate->name), name);
	replaced->prefix = *prefix;
	if (rule.newcomers && !(budget && limit_equal(budget, rule.newcomers))) {
		err = rule_set_newcomers(replaced, rule.newcomers);
		if (err)
			return err;
	}
	err = rule_set_newcomers(&rule, budget) ?: rule_change(gate, &rule, &shadowed);
	if (err)
		return err;
	warn_rules(gate, &rule, &rule, 1);
	warn_shadowed(gate, &shadowed, false);
	return 0;
}

/* Prints what holds if the policy has no budget of its own. */
static void none_print(const struct gate *gate, const struct sl_prefix *prefix)
{
	const struct sl_policy *policy = NULL;
	char text[PREFIX_TEXT];
	struct sl_rule rule;

	if (rulemap_get(gate, prefix, &rule) > 0)
		policy = policy_version(gate, rule.cur.version);
	if (policy && policy->newcomers_origin) {
		const struct sl_prefix *origin =
			limit_origin(gate, SL_ORIGIN(policy->newcomers_origin, 0));

		print_string("inherited_from", "have no budget of their own: that of %s holds\n",
			     prefix_format(origin, text));
	} else if (policy && policy_lacks_budget(policy)) {
		print_text("have no budget: in a flood they pass\n");
	} else {
		print_text("have no budget, and need none: no limit drops, or one starts empty\n");
	}
}

static void newcomers_print(const struct gate *gate, const struct sl_prefix *prefix,
			    const struct limit *budget, const struct rule *replaced)
{
	char text[PREFIX_TEXT], rate[UNITS_TEXT], burst[UNITS_TEXT];

	print_object(NULL);
	print_string("gate", NULL, gate->name);
	print_string("prefix", "%s: newcomers ", prefix_format(prefix, text));
	if (budget) {
		print_object("newcomers");
		print_budget_fields(&budget->spec);
		print_text("together %s, burst %s\n", rate_format(&budget->spec, rate),
			   burst_format(&budget->spec, burst));
		print_end();
	} else {
		print_null("newcomers");
		none_print(gate, prefix);
	}
	if (replaced->newcomers) {
		print_object("replaced");
		print_budget_fields(&replaced->newcomers->spec);
		print_end();
	}
	print_commands(replaced, NULL, NULL, gate->name, "replaced: ");
	print_end();
}

static int newcomers_run(const struct context *context, const void *data)
{
	const struct newcomers_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(rule_free) struct rule replaced = {0};
	struct limit budget;
	enum spec_field at;
	int err = 0;

	if (args->none && args->spec.given)
		return error_misuse("conflict", "newcomers",
				    "'none' means that there is no budget; write it alone, or "
				    "leave it out");
	if (!args->none && !spec_has(&args->spec, SPEC_RATE))
		return error_misuse("no-rate", "newcomers",
				    "a budget needs a rate; write 'rate 10kpps', or 'none'");
	if (!args->none)
		err = spec_make_budget(&args->spec, &budget, &at);
	if (err)
		return err;
	err = gate_open_to_try(&gate, context)
		      ?: newcomers_apply(&gate, &args->prefix, args->none ? NULL : &budget,
					 &replaced);
	if (err)
		return err;
	kept_note(context->gate, KEPT_LIMITS, NULL);
	newcomers_print(&gate, &args->prefix, args->none ? NULL : &budget, &replaced);
	return 0;
}

static const struct value_type rate_type = SPEC_TYPE(SPEC_RATE, "RATE", VALUE_NUMBERS);
static const struct value_type burst_type = SPEC_TYPE(SPEC_BURST, "BURST", VALUE_NUMBERS);

static const struct word newcomers_words[] = {
	{"default|PREFIX", OPERAND, &value_prefix, offsetof(struct newcomers_args, prefix), NULL},
	{"rate", KEYWORD, &rate_type, offsetof(struct newcomers_args, spec),
	 "as in 'sluice help set'. Needed, except with none"},
	{"burst", KEYWORD, &burst_type, offsetof(struct newcomers_args, spec), "the same"},
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
