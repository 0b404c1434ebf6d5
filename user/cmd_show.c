// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>

#include "command.h"
#include "gate.h"
#include "rule_json.h"
#include "rules.h"

/* One rule at a time: there can be millions, and as one document they would take gigabytes. */
static enum status rules_print_json(const struct gate *gate, const struct ruleset *set)
{
	printf("{\n  \"gate\": \"%s\",\n  \"rules\": [", gate->name);
	for (unsigned int i = 0; i < set->count; i++) {
		json_t *rule = rule_json(&set->rules[i], set->lists);
		int err;

		fputs(i ? ",\n    " : "\n    ", stdout);
		err = rule ? json_dumpf(rule, stdout, JSON_REAL_PRECISION(12)) : -1;
		json_decref(rule);
		if (err)
			return fail("cannot write JSON: %s", why(rule ? errno : ENOMEM));
	}
	fputs(set->count ? "\n  ]\n}\n" : "]\n}\n", stdout);
	return OK;
}

static void rules_print(const struct gate *gate, const struct ruleset *set)
{
	uint64_t ends = 0;

	for (unsigned int i = 0; i < set->count; i++)
		rule_print(&set->rules[i], set->lists, &ends, gate->name, "");
}

enum status cmd_show(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct ruleset set = {0};
	enum status status;

	if (argc > 1)
		return unexpected(argv[0], argv[1]);
	status = gate_open_for_rules(&gate, context);
	if (!status)
		status = rules_read(&gate, &set);
	if (!status && context->json)
		status = rules_print_json(&gate, &set);
	else if (!status)
		rules_print(&gate, &set);
	ruleset_free(&set);
	gate_close(&gate);
	return status;
}
