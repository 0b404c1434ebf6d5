// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "advice.h"
#include "command.h"
#include "gate.h"
#include "prefix.h"
#include "rules.h"

/* What to delete: a rule, or one limit of it. */
struct request {
	struct sl_prefix prefix;
	const char *name; /* of the limit; NULL: the rule */
};

static enum status request_parse(int argc, char **argv, struct request *ret)
{
	struct request request = {0};
	int i = 2;
	enum status status;

	if (argc < 2)
		return misuse("del: default, or which prefix? See 'sluice help del'");
	status = prefix_parse(argv[1], &request.prefix);
	if (status)
		return status;
	if (argc > 2) {
		if (strcmp(argv[2], "name"))
			return unexpected(argv[0], argv[2]);
		request.name = keyword_value(argc, argv, &i);
		if (!request.name)
			return MISUSED;
	}
	if (argc > 4)
		return unexpected(argv[0], argv[4]);
	*ret = request;
	return OK;
}

static enum status limit_remove(const struct gate *gate, struct rule *rule, const char *name)
{
	struct limit *limit = rule_find_limit(rule, name);
	char text[PREFIX_TEXT];
	size_t behind;

	if (!limit)
		return fail("gate '%s' has no limit '%s' for %s: see 'sluice show'", gate->name,
			    name, prefix_format(&rule->prefix, text));
	behind = &rule->limit[rule->limits] - (limit + 1);
	memmove(limit, limit + 1, behind * sizeof(*limit));
	if (!--rule->limits) /* a budget goes with the last one */
		rule_free(rule);
	return OK;
}

static enum status request_apply(struct gate *gate, const struct request *request)
{
	struct rule rule = {.prefix = request->prefix};
	char text[PREFIX_TEXT];
	enum status status = rules_get(gate, &request->prefix, &rule);

	if (status)
		return status;
	if (!rule.list && !rule.limits) {
		status = fail("gate '%s' has no rule for %s: see 'sluice show'", gate->name,
			      prefix_format(&request->prefix, text));
	} else if (request->name) {
		status = limit_remove(gate, &rule, request->name);
	} else {
		rule.list = SL_LIST_NONE;
		rule_free(&rule);
	}
	if (!status)
		status = rules_change(gate, &rule, 1);
	if (!status)
		advice_newcomers(&rule, 1);
	rule_free(&rule);
	return status;
}

static enum status report(const struct context *context, const struct request *request)
{
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&request->prefix, text);

	if (context->json)
		return json_print(json_pack("{s:s, s:s, s:s*}", "gate", context->gate, "prefix",
					    prefix, "name", request->name));
	if (request->name)
		printf("%s %s: limit deleted\n", prefix, request->name);
	else
		printf("%s: rule deleted\n", prefix);
	return OK;
}

enum status cmd_del(const struct context *context, int argc, char **argv)
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
