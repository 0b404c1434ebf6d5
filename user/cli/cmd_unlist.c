// SPDX-License-Identifier: GPL-2.0
/* unallow, undeny, and del -f: what takes an entry back, or a list. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/cmd_list.h"
#include "gate/gate.h"
#include "gate/change.h"
#include "gate/list_change.h"
#include "gate/rules.h"
#include "migrate/session.h"
#include "rules/lists.h"
#include "rules/prefix.h"

static const char *const done[] = {[SL_LIST_ALLOW] = "allowed", [SL_LIST_DENY] = "denied"};

/* --- Words ---------------------------------------------------------------------------------- */

static enum status request_parse(const struct context *context, int argc, char **argv,
				 struct list_request *request)
{
	static const char *const keywords[] = {"as"};
	enum status status = list_request_parse(context, argc, argv, keywords, 1, request);

	if (!status && request->file && request->name)
		status = misuse("%s: -f FILE and 'as NAME' both say which list: write one of them",
				argv[0]);
	return status;
}

/* --- By hand -------------------------------------------------------------------------------- */

static enum status no_such_word(const struct gate *gate, const struct rule *rule, enum sl_list list)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text), *option = gate_option(gate->name);

	if (rule->access)
		return failure("%s is %s by hand, and not %s: 'sluice %sun%s %s' takes that back",
			       prefix, done[rule->access], done[list], option,
			       access_words[rule->access], prefix);
	lists_copy(gate, lists);
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (rule->lists >> place & 1)
			return failure(
				"%s is not %s by hand: it is on list '%s'; 'sluice %sun%s %s as "
				"%s' takes it off",
				prefix, done[list], lists[place].name, option,
				access_words[lists[place].list], prefix, lists[place].name);
	return failure("%s is not %s by hand: see 'sluice %sshow'", prefix, done[list], option);
}

static enum status hands_apply(struct gate *gate, struct list_request *request)
{
	struct ruleset *entries = &request->entries;
	enum status status = OK;

	ruleset_unique(entries);
	for (unsigned int i = 0; !status && i < entries->count; i++) {
		struct rule *rule = &entries->rules[i];

		status = rules_get(gate, &rule->prefix, rule);
		if (!status && rule->access != request->list)
			status = no_such_word(gate, rule, request->list);
		if (!status)
			rule->access = SL_LIST_NONE;
	}
	return status ? status : rules_change(gate, entries->rules, entries->count);
}

static json_t *hands_json(const struct context *context, const struct list_request *request)
{
	json_t *prefixes = json_array();
	char text[PREFIX_TEXT];

	for (unsigned int i = 0; i < request->entries.count; i++)
		json_array_append_new(prefixes, json_string(prefix_format(
							&request->entries.rules[i].prefix, text)));
	return json_pack("{s:s, s:s, s:o}", "gate", context->gate, "list",
			 access_words[request->list], "prefixes", prefixes);
}

static enum status hands_change(const struct context *context, struct gate *gate,
				struct list_request *request)
{
	enum status status = hands_apply(gate, request);
	char text[PREFIX_TEXT];

	if (!status && context->json)
		return json_print(hands_json(context, request));
	for (unsigned int i = 0; !status && i < request->entries.count; i++)
		printf("%s: no longer %s by hand\n",
		       prefix_format(&request->entries.rules[i].prefix, text), done[request->list]);
	return status;
}

/* --- Lists ---------------------------------------------------------------------------------- */

static enum status check_word(const struct gate *gate, const struct list_request *request,
			      const struct sl_list_info *list)
{
	if (!request->list || request->list == list->list)
		return OK;
	return failure("list '%s' %s: 'sluice %sun%s' takes that back", list->name,
		       access_verb(list->list), gate_option(gate->name), access_words[list->list]);
}

static enum status list_report(const struct context *context, const struct sl_list_info *list,
			       const struct list_counts *counts, bool whole)
{
	if (context->json)
		return json_print(json_pack("{s:s, s:s, s:s, s:i, s:b}", "gate", context->gate,
					    "list", access_words[list->list], "name", list->name,
					    "gone", (int)counts->gone, "taken_back", whole));
	printf("list %s: %s%u %s no longer %s by it\n", list->name, whole ? "taken back: " : "",
	       counts->gone, plural(counts->gone, "entry is", "entries are"), done[list->list]);
	return OK;
}

static enum status named_change(const struct context *context, struct gate *gate,
				struct list_request *request)
{
	bool whole = request->file;
	struct list_counts counts;
	struct sl_list_info list;
	enum status status = whole ? list_of_file(gate, request->file, &list)
				   : list_named(gate, request->name, &list);

	if (!status)
		status = check_word(gate, request, &list);
	if (!status)
		status = whole ? list_drop(gate, list.name, &counts)
			       : list_take(gate, list.name, &request->entries, &counts);
	return status ? status : list_report(context, &list, &counts, whole);
}

/* --- The commands --------------------------------------------------------------------------- */

static enum status unlist(const struct context *context, enum sl_list list, int argc, char **argv)
{
	struct list_request request = {.list = list};
	struct gate gate = GATE_CLOSED;
	enum status status = request_parse(context, argc, argv, &request);

	if (!status)
		status = gate_open_to_change(&gate, context->gate);
	if (!status)
		status = request.file || request.name ? named_change(context, &gate, &request)
						      : hands_change(context, &gate, &request);
	ruleset_free(&request.entries);
	gate_close(&gate);
	return status;
}

enum status cmd_unallow(const struct context *context, int argc, char **argv)
{
	return unlist(context, SL_LIST_ALLOW, argc, argv);
}

enum status cmd_undeny(const struct context *context, int argc, char **argv)
{
	return unlist(context, SL_LIST_DENY, argc, argv);
}

enum status cmd_del_list(const struct context *context, int argc, char **argv)
{
	return unlist(context, SL_LIST_NONE, argc, argv);
}
