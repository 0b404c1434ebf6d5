// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/processes.h"
#include "cli/warnings.h"
#include "gate/rules.h"
#include "gate/transaction.h"
#include "program/writer.h"
#include "rules/lists.h"
#include "rules/prefix.h"

struct del_args {
	struct sl_prefix prefix;
	const char *name; /* of the limit; NULL: the policy */
	const char *file;
};

/* What was deleted. */
struct deleted {
	char names[SL_LIMITS_MAX][SL_NAME];
	unsigned int limits;
	bool newcomers;
	enum sl_access access; /* of an entry by hand, if there was no policy */
};

/* --- Deleting ------------------------------------------------------------------------------- */

/* Refuses a rule without a policy and without an entry by hand. */
static int refuse_absent(const struct gate *gate, const struct rule *rule)
{
	const char *option = gate_option(gate->name);
	struct sl_list_info lists[SL_LIST_PLACES];
	const struct sl_list_info *list;
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text);

	if (!rule->lists)
		return error_add(ENOENT, "no-rule", NULL,
				 "gate '%s' has no rule for %s; see 'sluice %sshow'", gate->name,
				 prefix, option);
	lists_copy(gate, lists);
	list = &lists[__builtin_ctzll(rule->lists)];
	return error_add(ENOENT, "no-rule", NULL,
			 "gate '%s' has a rule for %s only by list '%s'; 'sluice %sun%s %s as %s' "
			 "takes it off, 'sluice %sdel -f %s' takes all the list back",
			 gate->name, prefix, list->name, option, access_words[list->access], prefix,
			 operand_typed(list->name), option, word_typed(list->name));
}

static int limit_remove(const struct gate *gate, struct rule *rule, const char *name,
			struct deleted *deleted)
{
	struct limit *limit = rule_find_limit(rule, name);
	char text[PREFIX_TEXT];

	if (!limit)
		return error_add(ENOENT, "no-limit", NULL,
				 "gate '%s' has no limit '%s' for %s; see 'sluice %sshow'",
				 gate->name, name, prefix_format(&rule->prefix, text),
				 gate_option(gate->name));
	memcpy(deleted->names[deleted->limits++], limit->spec.name, SL_NAME);
	memmove(limit, limit + 1, (char *)&rule->limit[rule->limits] - (char *)(limit + 1));
	if (--rule->limits)
		return 0;
	deleted->newcomers = rule->newcomers; /* the budget goes with the last limit */
	rule_free(rule);
	return 0;
}

/* Removes what the arguments name from the rule. */
static int rule_remove(const struct gate *gate, const struct del_args *args, struct rule *rule,
		       struct deleted *deleted)
{
	const char *option = gate_option(gate->name);
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text);

	if (args->name)
		return limit_remove(gate, rule, args->name, deleted);
	if (rule->limits && rule->access)
		return error_add(EEXIST, "two-rules", prefix,
				 "it is %s by hand, and has limits as well; 'sluice %sun%s %s' "
				 "takes the entry back, 'sluice %sdel %s name LIMIT' a limit",
				 access_done[rule->access], option, access_words[rule->access],
				 prefix, option, prefix);
	if (rule->limits) {
		for (; deleted->limits < rule->limits; deleted->limits++)
			memcpy(deleted->names[deleted->limits],
			       rule->limit[deleted->limits].spec.name, SL_NAME);
		deleted->newcomers = rule->newcomers;
		rule_free(rule);
		return 0;
	}
	if (!rule->access)
		return refuse_absent(gate, rule);
	deleted->access = rule->access;
	rule->access = SL_ACCESS_NONE;
	return 0;
}

static int del_apply(struct gate *gate, const struct del_args *args, struct deleted *deleted)
{
	_cleanup_(rule_free) struct rule rule = {.prefix = args->prefix};
	struct shadowed shadowed;
	int err = rules_get(gate, &args->prefix, &rule)
		  ?: rule_remove(gate, args, &rule, deleted)
		  ?: rule_change(gate, &rule, &shadowed);

	if (err)
		return err;
	warn_rules(gate, &rule, &rule, 1);
	warn_shadowed(gate, &shadowed, false);
	return 0;
}

static void deleted_print(const char *gate, const struct del_args *args,
			  const struct deleted *deleted)
{
	char text[PREFIX_TEXT];

	print_object(NULL);
	print_string("gate", NULL, gate);
	print_string("prefix", "%s: ", prefix_format(&args->prefix, text));
	if (args->name)
		print_string("name", NULL, args->name);
	print_array("limits");
	for (unsigned int i = 0; i < deleted->limits; i++)
		print_string(NULL, i ? ", %s" : "limit %s", deleted->names[i]);
	print_end();
	print_bool("newcomers", deleted->newcomers);
	if (deleted->access) {
		print_string("list", NULL, access_words[deleted->access]);
		print_text("no longer %s by hand\n", access_done[deleted->access]);
	} else {
		print_text("%s deleted\n", deleted->newcomers ? " and the newcomers' budget" : "");
	}
	print_end();
}

static int del_run(const struct context *context, const void *data)
{
	const struct del_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct deleted deleted = {0};
	char text[PREFIX_TEXT];
	int err;

	if (args->file && (context->operands || args->name))
		return unexpected(context->command,
				  context->operands ? prefix_format(&args->prefix, text) : "name");
	if (args->file)
		return list_of_file_remove(context, args->file);
	if (!context->operands)
		return error_misuse("no-operand", "del",
				    "default, or which prefix? See 'sluice help del'");
	err = gate_open_to_try(&gate, context) ?: del_apply(&gate, args, &deleted);
	if (err)
		return err;
	if (!deleted.access)
		kept_note(context->gate, KEPT_LIMITS, NULL);
	deleted_print(context->gate, args, &deleted);
	return 0;
}

static const struct word del_words[] = {
	{"default|PREFIX", OPERAND, &value_prefix, offsetof(struct del_args, prefix), NULL},
	{"name", KEYWORD, VALUE_TEXT("LIMIT"), offsetof(struct del_args, name),
	 "only the limit of that name"},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct del_args, file),
	 "instead: remove all the list of that file, or of that name"},
	WORD_CONFIRM,
};

static const char del_details[] =
	"Without a name all limits of exactly this prefix are deleted, and its newcomers'\n"
	"budget; if it has none, its entry by hand. If it has both, del refuses: see 'sluice\n"
	"help undeny'.";

const struct command command_del = {
	.name = "del",
	.brief = "delete the limits of a prefix, or one of them",
	.details = del_details,
	COMMAND_WORDS(del_words, struct del_args),
	.run = del_run,
};
