// SPDX-License-Identifier: GPL-2.0
/* unallow, undeny: remove entries by hand, entries of lists, and lists. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "gate/rules.h"
#include "gate/lists.h"
#include "gate/transaction.h"
#include "program/writer.h"
#include "rules/lists.h"
#include "rules/prefix.h"

struct unallow_args {
	struct operands prefixes;
	const char *file;
	const char *name;
	bool force;
};

struct unlisting {
	const struct unallow_args *args;
	enum sl_access access;	/* SL_ACCESS_NONE: either */
	struct ruleset entries; /* the prefixes, and then the rules that change */
	struct ruleset absent;	/* the prefixes without such an entry */
};

static void unlisting_free(struct unlisting *unlisting)
{
	ruleset_free(&unlisting->entries);
	ruleset_free(&unlisting->absent);
}

/* --- By hand -------------------------------------------------------------------------------- */

static int no_such_access(const struct gate *gate, const struct rule *rule, enum sl_access access)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text), *option = gate_option(gate->name);
	const struct sl_list_info *list;

	if (rule->access)
		return error_add(ENOENT, "no-entry", prefix,
				 "it is %s by hand, and not %s; 'sluice %sun%s %s' takes that back",
				 access_done[rule->access], access_done[access], option,
				 access_words[rule->access], prefix);
	if (!rule->lists)
		return error_add(ENOENT, "no-entry", prefix,
				 "it is not %s by hand; see 'sluice %sshow'", access_done[access],
				 option);
	lists_copy(gate, lists);
	list = &lists[__builtin_ctzll(rule->lists)];
	return error_add(
		ENOENT, "no-entry", prefix,
		"it is not %s by hand, but on list '%s'; 'sluice %sun%s %s as %s' takes it "
		"off",
		access_done[access], list->name, option, access_words[list->access], prefix,
		operand_typed(list->name));
}

/* Removes the entries. With `force`, prefixes without an entry move to `absent`. */
static int hands_remove(struct gate *gate, struct unlisting *unlisting)
{
	struct ruleset *entries = &unlisting->entries;
	unsigned int found = 0;
	int err = 0;

	ruleset_unique(entries);
	for (unsigned int i = 0; !err && i < entries->count; i++) {
		struct rule rule, absent = {.prefix = entries->rules[i].prefix};

		err = rules_get(gate, &absent.prefix, &rule);
		if (err)
			break;
		if (rule.access == unlisting->access) {
			rule.access = SL_ACCESS_NONE;
			entries->rules[found++] = rule;
			continue;
		}
		err = unlisting->args->force ? ruleset_add(&unlisting->absent, &absent)
					     : no_such_access(gate, &rule, unlisting->access);
		rule_free(&rule);
	}
	entries->count = found;
	return err || !found
		       ? err
		       : rules_change(gate,
				      &(struct ruleset){.rules = entries->rules, .count = found},
				      NULL);
}

static void prefixes_print(const char *key, const struct ruleset *entries, const char *what,
			   enum sl_access access)
{
	char text[PREFIX_TEXT];

	print_array(key);
	for (unsigned int i = 0; i < entries->count; i++) {
		print_string(NULL, "%s: ", prefix_format(&entries->rules[i].prefix, text));
		print_text("%s %s by hand\n", what, access_done[access]);
	}
	print_end();
}

static int hands_take_back(const struct context *context, struct gate *gate,
			   struct unlisting *unlisting)
{
	int err = hands_remove(gate, unlisting);

	if (err)
		return err;
	print_object(NULL);
	print_string("gate", NULL, context->gate);
	print_string("list", NULL, access_words[unlisting->access]);
	prefixes_print("prefixes", &unlisting->entries, "no longer", unlisting->access);
	prefixes_print("absent", &unlisting->absent, "was not", unlisting->access);
	print_end();
	return 0;
}

/* --- Lists ---------------------------------------------------------------------------------- */

/* Prints what was removed. gone: the entries that the list no longer has. */
static void gone_print(const struct context *context, enum sl_access access, const char *name,
		       unsigned int gone, bool is_whole)
{
	print_object(NULL);
	print_string("gate", NULL, context->gate);
	print_string("list", NULL, access_words[access]);
	print_string("name", "list %s: ", name);
	print_number("gone", NULL, gone);
	print_bool("taken_back", is_whole);
	print_end();
}

static int list_take_back(const struct context *context, struct gate *gate,
			  struct unlisting *unlisting)
{
	const struct unallow_args *args = unlisting->args;
	const char *name = args->file ?: args->name;
	bool is_whole = args->file;
	struct list_counts counts;
	struct sl_list_info list;
	unsigned int mark = error_count();
	int err;

	err = is_whole ? list_of_file(gate, name, &list) : list_named(gate, name, &list);
	if (err == -ENOENT && args->force) {
		error_drop(mark);
		gone_print(context, unlisting->access, name, 0, false);
		print_text("there was none\n");
		return 0;
	}
	if (err)
		return err;
	if (unlisting->access && unlisting->access != list.access)
		return error_add(ENOENT, "other-access", NULL,
				 "list '%s' %s; 'sluice %sun%s' takes that back", list.name,
				 access_verb(list.access), gate_option(gate->name),
				 access_words[list.access]);
	err = is_whole ? list_drop(gate, list.name, &counts)
		       : list_take(gate, list.name, &unlisting->entries, args->force, &counts);
	if (err)
		return err;
	gone_print(context, list.access, list.name, counts.gone, is_whole);
	print_text("%s%u %s no longer %s by it\n", is_whole ? "taken back: " : "", counts.gone,
		   plural(counts.gone, "entry is", "entries are"), access_done[list.access]);
	return 0;
}

/* --- The commands --------------------------------------------------------------------------- */

static int take_back(const struct context *context, struct unlisting *unlisting)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err = gate_open_to_try(&gate, context);

	if (err)
		return err;
	return unlisting->args->file || unlisting->args->name
		       ? list_take_back(context, &gate, unlisting)
		       : hands_take_back(context, &gate, unlisting);
}

int list_of_file_remove(const struct context *context, const char *file)
{
	return take_back(context,
			 &(struct unlisting){.args = &(struct unallow_args){.file = file}});
}

static int unallow_run(const struct context *context, const void *data)
{
	const struct unallow_args *args = data;
	_cleanup_(unlisting_free) struct unlisting unlisting = {
		.args = args,
		.access = context->command == &command_unallow ? SL_ACCESS_ALLOW : SL_ACCESS_DENY,
	};
	int err = entries_parse(context->command, &args->prefixes, args->file, args->name,
				&unlisting.entries);

	if (err)
		return err;
	if (args->file && args->name)
		return error_misuse("conflict", context->command->name,
				    "-f FILE and 'as LIST' both name the list; write one of them");
	return take_back(context, &unlisting);
}

static const struct word unallow_words[] = {
	{"default|PREFIX", OPERANDS_ANYWHERE, NULL, offsetof(struct unallow_args, prefixes),
	 "its entry by hand; its limits stay, and its entries on lists. One or more, or -f FILE"},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct unallow_args, file),
	 "all the list of that file, or of that name, without as; the file is not read"},
	{"as", KEYWORD, VALUE_TEXT("LIST"), offsetof(struct unallow_args, name),
	 "its entry on that list instead"},
	{"force", KEYWORD, NULL, offsetof(struct unallow_args, force),
	 "succeed although an entry, or the list, does not exist"},
	WORD_CONFIRM,
};

const struct command command_unallow = {
	.name = "unallow",
	.brief = "remove what allow added",
	COMMAND_WORDS(unallow_words, struct unallow_args),
	.run = unallow_run,
};

const struct command command_undeny = {
	.name = "undeny",
	.brief = "remove what deny added",
	COMMAND_WORDS(unallow_words, struct unallow_args),
	.run = unallow_run,
};
