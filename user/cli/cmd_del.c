// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/kept.h"
#include "cli/report.h"
#include "cli/warnings.h"
#include "gate/gate.h"
#include "gate/change.h"
#include "gate/rules.h"
#include "rules/lists.h"
#include "rules/prefix.h"

/* What to delete: a policy, or one limit of it. */
struct request {
	struct sl_prefix prefix;
	const char *name; /* of the limit; NULL: the policy */
};

/* What was deleted. */
struct deleted {
	char names[SL_LIMITS_MAX][SL_NAME];
	unsigned int limits;
	bool newcomers;
	enum sl_access access; /* the word of an entry by hand, where there was no policy */
};

struct del_args {
	const char *prefix;
	const char *name;
	const char *file;
};

/* --- Deleting ------------------------------------------------------------------------------- */

static void limit_note(struct deleted *deleted, const struct limit *limit)
{
	memcpy(deleted->names[deleted->limits++], limit->spec.name, SL_NAME);
}

static int limit_remove(const struct gate *gate, struct rule *rule, const char *name,
			struct deleted *deleted)
{
	struct limit *limit = rule_find_limit(rule, name);
	char text[PREFIX_TEXT];
	size_t behind;

	if (!limit)
		return failure("gate '%s' has no limit '%s' for %s: see 'sluice %sshow'",
			       gate->name, name, prefix_format(&rule->prefix, text),
			       gate_option(gate->name));
	limit_note(deleted, limit);
	behind = &rule->limit[rule->limits] - (limit + 1);
	memmove(limit, limit + 1, behind * sizeof(*limit));
	if (--rule->limits)
		return OK;
	deleted->newcomers = rule->newcomers; /* the budget goes with the last limit */
	rule_free(rule);
	return OK;
}

static int refuse_both(const struct gate *gate, const struct rule *rule)
{
	const char *option = gate_option(gate->name);
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text);

	return failure(
		"%s is %s by hand, and has limits as well: 'sluice %sun%s %s' takes the entry "
		"back, 'sluice %sdel %s name LIMIT' a limit",
		prefix, access_done[rule->access], option, access_words[rule->access], prefix,
		option, prefix);
}

static int refuse_listed(const struct gate *gate, const struct rule *rule)
{
	const char *option = gate_option(gate->name);
	struct sl_list_info lists[SL_LIST_PLACES];
	char text[PREFIX_TEXT];
	const struct sl_list_info *list;
	const char *prefix = prefix_format(&rule->prefix, text);

	lists_copy(gate, lists);
	list = &lists[__builtin_ctzll(rule->lists)];
	return failure(
		"gate '%s' has no rule for %s but by list '%s': 'sluice %sun%s %s as %s' takes it "
		"off, 'sluice %sdel -f %s' takes all the list back",
		gate->name, prefix, list->name, option, access_words[list->access], prefix,
		operand_typed(list->name), option, word_typed(list->name));
}

/* Takes from the rule what the request names, and no more. */
static int rule_remove(const struct gate *gate, const struct request *request, struct rule *rule,
		       struct deleted *deleted)
{
	char text[PREFIX_TEXT];

	if (request->name)
		return limit_remove(gate, rule, request->name, deleted);
	if (rule->limits && rule->access)
		return refuse_both(gate, rule);
	if (rule->limits) {
		for (unsigned int i = 0; i < rule->limits; i++)
			limit_note(deleted, &rule->limit[i]);
		deleted->newcomers = rule->newcomers;
		rule_free(rule);
	} else if (rule->access) {
		deleted->access = rule->access;
		rule->access = SL_ACCESS_NONE;
	} else if (rule->lists) {
		return refuse_listed(gate, rule);
	} else {
		return failure("gate '%s' has no rule for %s: see 'sluice %sshow'", gate->name,
			       prefix_format(&request->prefix, text), gate_option(gate->name));
	}
	return OK;
}

static int request_apply(struct gate *gate, const struct request *request, struct deleted *deleted)
{
	struct rule rule = {.prefix = request->prefix};
	struct losses losses;
	int status = rules_get(gate, &request->prefix, &rule);

	if (!status)
		status = rule_remove(gate, request, &rule, deleted);
	if (!status)
		status = rule_replace(gate, &rule, &losses);
	if (!status)
		warn_newcomers(&rule, 1);
	if (!status)
		warn_losses(gate, &losses, false);
	rule_free(&rule);
	return status;
}

/* --- Report --------------------------------------------------------------------------------- */

static int report_json(const struct context *context, const struct request *request,
		       const struct deleted *deleted)
{
	json_t *limits = json_array();
	char text[PREFIX_TEXT];

	for (unsigned int i = 0; i < deleted->limits; i++)
		json_array_append_new(limits, json_string(deleted->names[i]));
	return json_print(json_pack("{s:s, s:s, s:s*, s:o, s:b, s:s*}", "gate", context->gate,
				    "prefix", prefix_format(&request->prefix, text), "name",
				    request->name, "limits", limits, "newcomers",
				    deleted->newcomers, "list",
				    deleted->access ? access_words[deleted->access] : NULL));
}

static void report(const struct request *request, const struct deleted *deleted)
{
	char text[PREFIX_TEXT];

	printf("%s: ", prefix_format(&request->prefix, text));
	if (deleted->access) {
		printf("no longer %s by hand\n", access_done[deleted->access]);
		return;
	}
	for (unsigned int i = 0; i < deleted->limits; i++)
		printf("%s%s", i ? ", " : "limit ", deleted->names[i]);
	printf("%s deleted\n", deleted->newcomers ? " and the newcomers' budget" : "");
}

static int del_run(const struct context *context, const void *data)
{
	const struct del_args *args = data;
	struct gate gate = GATE_CLOSED;
	struct deleted deleted = {0};
	struct request request = {0};
	int status;

	if (args->file && (args->prefix || args->name))
		return unexpected(context->command, args->prefix ?: "name");
	if (args->file)
		return list_of_file_remove(context, args->file);
	if (!args->prefix)
		return misuse("del: default, or which prefix? See 'sluice help del'");
	request.name = args->name;
	status = prefix_parse(args->prefix, &request.prefix);
	if (!status)
		status = gate_open_to_try(&gate, context);
	if (!status)
		status = request_apply(&gate, &request, &deleted);
	gate_close(&gate);
	if (status)
		return status;
	if (!deleted.access)
		kept_note_limits(context->gate);
	if (context->json)
		return report_json(context, &request, &deleted);
	report(&request, &deleted);
	return OK;
}

static const struct word del_words[] = {
	{"default|PREFIX", OPERAND, VALUE_TEXT("default|PREFIX"), offsetof(struct del_args, prefix),
	 NULL},
	{"name", KEYWORD, VALUE_TEXT("LIMIT"), offsetof(struct del_args, name),
	 "only the limit of that name"},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct del_args, file),
	 "instead: take all the list of that file, or of that name, back"},
	WORD_CONFIRM,
};

static const char del_details[] =
	"Without a name all limits of just this prefix go, and its newcomers' budget; where it\n"
	"has none, its entry by hand. Where it has both, del refuses: see 'sluice help undeny'.";

const struct command command_del = {
	.name = "del",
	.brief = "delete the limits of a prefix, or one of them",
	.details = del_details,
	COMMAND_WORDS(del_words, struct del_args),
	.run = del_run,
};
