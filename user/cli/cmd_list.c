// SPDX-License-Identifier: GPL-2.0
/* allow, deny: words by hand, and lists. */
#include "cli/cmd_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "gate/gate.h"
#include "gate/change.h"
#include "gate/list_change.h"
#include "gate/rules.h"
#include "migrate/session.h"
#include "rules/list_file.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "rules/units.h"

static const char *const done[] = {[SL_LIST_ALLOW] = "allowed", [SL_LIST_DENY] = "denied"};
static const char *const other_done[] = {[SL_LIST_ALLOW] = "denied", [SL_LIST_DENY] = "allowed"};

#define SPAN_TEXT (UNITS_TEXT + sizeof(" for "))

/* What was there of the prefixes that are listed by hand. */
struct tally {
	unsigned int fresh;
	unsigned int same;
	unsigned int other; /* the other word */
	enum sl_list *was;  /* of each entry */
};

/* --- What list and unlist share ------------------------------------------------------------- */

#define TIME_MIN_NS 1000000

static enum status time_take(int argc, char **argv, int *index, struct list_request *request)
{
	const char *time;
	enum status status;

	if (request->ns)
		return misuse("%s: 'for' is given twice", argv[0]);
	time = keyword_value(argc, argv, index);
	if (!time)
		return MISUSED;
	status = time_parse("for", time, &request->ns);
	if (!status && request->ns < TIME_MIN_NS)
		status = misuse("for '%s' is too short: the shortest is 1ms", time);
	return status;
}

static enum status name_take(int argc, char **argv, int *index, struct list_request *request)
{
	if (request->name)
		return misuse("%s: 'as' is given twice", argv[0]);
	request->name = keyword_value(argc, argv, index);
	return request->name ? list_name_check(request->name) : MISUSED;
}

static enum status keyword_take(int argc, char **argv, int *index, struct list_request *request)
{
	const char *word = argv[*index];

	if (!strcmp(word, "for"))
		return time_take(argc, argv, index, request);
	if (!strcmp(word, "as"))
		return name_take(argc, argv, index, request);
	if (!strcmp(word, "replace"))
		request->replace = true;
	else
		request->force = true;
	return OK;
}

static enum status prefix_take(const char *word, struct list_request *request)
{
	struct rule rule = {0};
	enum status status = prefix_parse(word, &rule.prefix);

	return status ? status : ruleset_add(&request->entries, &rule);
}

enum status list_request_parse(const struct context *context, int argc, char **argv,
			       const char *const keywords[], size_t count,
			       struct list_request *request)
{
	enum status status = OK;

	request->file = context->file;
	for (int i = 1; !status && i < argc; i++) {
		size_t keyword = 0;

		while (keyword < count && strcmp(argv[i], keywords[keyword]))
			keyword++;
		if (keyword < count)
			status = keyword_take(argc, argv, &i, request);
		else if (request->file || keyword_is_meant(argv[i], keywords, count))
			status = unexpected_for(argv[0], argv[i], keywords, count);
		else
			status = prefix_take(argv[i], request);
	}
	if (!status && !request->file && !request->entries.count)
		status = misuse("%s: which address, prefix or -f FILE? See 'sluice help %s'",
				argv[0], argv[0]);
	return status;
}

/* --- Words ---------------------------------------------------------------------------------- */

static enum status request_parse(const struct context *context, int argc, char **argv,
				 struct list_request *request)
{
	static const char *const keywords[] = {"for", "as", "replace", "force"};
	enum status status = list_request_parse(context, argc, argv, keywords, 4, request);

	if (status)
		return status;
	if (request->file && !request->name) {
		status = list_name_of(request->file, request->file_name);
		request->name = request->file_name;
	}
	if (request->replace && !request->name)
		return misuse("%s: 'replace' is for a list: say -f FILE, or 'as NAME'", argv[0]);
	if (request->force && !request->file)
		return misuse("%s: 'force' is for a file of prefixes: say -f FILE", argv[0]);
	return status;
}

/* A download that failed must not take a list back. */
static enum status file_take(const struct context *context, struct list_request *request)
{
	const struct rule entry = {.access = SL_LIST_NONE};
	enum status status = list_read(request->file, &entry, request->force ? NULL : "say 'force'",
				       &request->entries);

	if (!status && request->replace && !request->force && !request->entries.count)
		status = misuse("%s has no entry: list '%s' stays as it is; say 'force' if it is "
				"to become empty, or take it back with 'sluice %sdel -f %s'",
				request->file, request->name, gate_option(context->gate),
				request->name);
	return status;
}

/* --- By hand -------------------------------------------------------------------------------- */

static enum status hand_take(const struct gate *gate, enum sl_list list, struct rule *entry,
			     enum sl_list *ret_was)
{
	struct rule rule;
	enum status status = rules_get(gate, &entry->prefix, &rule);

	if (status)
		return status;
	*ret_was = rule.access;
	rule.access = list;
	rule.until = entry->until;
	*entry = rule;
	return OK;
}

static enum status hands_apply(struct gate *gate, struct list_request *request, struct tally *tally)
{
	uint32_t until = request->ns ? until_after(request->ns) : 0;
	struct ruleset *entries = &request->entries;
	enum status status = OK;

	ruleset_unique(entries);
	tally->was = calloc(entries->count, sizeof(*tally->was));
	if (!tally->was)
		return failure("out of memory");
	for (unsigned int i = 0; !status && i < entries->count; i++) {
		entries->rules[i].until = until;
		status = hand_take(gate, request->list, &entries->rules[i], &tally->was[i]);
		tally->fresh += !tally->was[i];
		tally->same += tally->was[i] == request->list;
		tally->other += tally->was[i] && tally->was[i] != request->list;
	}
	return status ? status : rules_change(gate, entries->rules, entries->count);
}

/* " for 1h"; nothing of an entry for good. */
static const char *span_format(const struct list_request *request, char text[SPAN_TEXT])
{
	char time[UNITS_TEXT];

	*text = '\0';
	if (request->ns)
		snprintf(text, SPAN_TEXT, " for %s", time_format(request->ns, time));
	return text;
}

static void hand_print(const struct list_request *request, const struct sl_prefix *prefix,
		       enum sl_list was)
{
	char text[PREFIX_TEXT], span[SPAN_TEXT];

	printf("%s: %s%s", prefix_format(prefix, text), done[request->list],
	       span_format(request, span));
	if (was)
		printf(" (was %s)", (was == request->list ? done : other_done)[request->list]);
	putchar('\n');
}

static json_t *hands_json(const struct context *context, const struct list_request *request,
			  const struct tally *tally)
{
	const struct ruleset *entries = &request->entries;
	json_t *prefixes = json_array();
	char text[PREFIX_TEXT];
	json_t *object =
		json_pack("{s:s, s:s, s:i, s:i, s:i, s:i}", "gate", context->gate, "list",
			  access_words[request->list], "entries", (int)entries->count, "new",
			  (int)tally->fresh, "same", (int)tally->same, "other", (int)tally->other);

	for (unsigned int i = 0; i < entries->count; i++)
		json_array_append_new(prefixes,
				      json_string(prefix_format(&entries->rules[i].prefix, text)));
	if (entries->count == 1)
		json_object_set(object, "prefix", json_array_get(prefixes, 0));
	json_object_set_new(object, "prefixes", prefixes);
	if (request->ns)
		json_object_set_new(object, "seconds", json_real(request->ns / 1e9));
	return object;
}

static enum status hands_change(const struct context *context, struct gate *gate,
				struct list_request *request)
{
	struct tally tally = {0};
	enum status status = hands_apply(gate, request, &tally);

	if (!status && context->json)
		status = json_print(hands_json(context, request, &tally));
	else if (!status)
		for (unsigned int i = 0; i < request->entries.count; i++)
			hand_print(request, &request->entries.rules[i].prefix, tally.was[i]);
	free(tally.was);
	return status;
}

/* --- Lists ---------------------------------------------------------------------------------- */

static json_t *list_json(const struct context *context, const struct list_request *request,
			 const struct sl_list_info *list, const struct list_counts *counts)
{
	json_t *object =
		json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i}", "gate", context->gate, "list",
			  access_words[request->list], "name", request->name, "entries",
			  (int)(counts->fresh + counts->same), "new", (int)counts->fresh, "same",
			  (int)counts->same, "gone", (int)counts->gone);
	uint64_t ns = request->ns ?: list->until ? until_left_ns(list->until) : 0;

	if (ns)
		json_object_set_new(object, "seconds", json_real(ns / 1e9));
	return object;
}

/* An end that was not asked for is the one that the list has. */
static void list_print(const struct list_request *request, const struct sl_list_info *list,
		       const struct list_counts *counts)
{
	unsigned int named = counts->fresh + counts->same;
	char span[SPAN_TEXT], left[UNITS_TEXT];

	printf("list %s: %u %s %s%s", request->name, named, plural(named, "entry", "entries"),
	       done[request->list], span_format(request, span));
	if (list->until && !request->ns)
		printf(", until the list ends in %s",
		       left_format(until_left_ns(list->until), left));
	printf(": %u new, %u %s there", counts->fresh, counts->same,
	       plural(counts->same, "was", "were"));
	if (request->replace)
		printf(", %u gone", counts->gone);
	putchar('\n');
}

static enum status named_change(const struct context *context, struct gate *gate,
				struct list_request *request)
{
	struct sl_list_info list = {
		.list = request->list,
		.until = request->ns ? until_after(request->ns) : 0,
		.replaced = time(NULL),
	};
	struct list_counts counts = {0};
	enum status status = OK;

	snprintf(list.name, sizeof(list.name), "%s", request->name);
	if (request->entries.count || request->replace)
		status = list_put(gate, &list, request->replace, &request->entries, &counts);
	if (!status && context->json)
		status = json_print(list_json(context, request, &list, &counts));
	else if (!status)
		list_print(request, &list, &counts);
	return status;
}

/* --- The commands --------------------------------------------------------------------------- */

static enum status list_change(const struct context *context, enum sl_list list, int argc,
			       char **argv)
{
	struct list_request request = {.list = list};
	struct gate gate = GATE_CLOSED;
	enum status status = request_parse(context, argc, argv, &request);

	if (!status && request.file)
		status = file_take(context, &request);
	if (!status)
		status = gate_open_to_change(&gate, context->gate);
	if (!status)
		status = request.name ? named_change(context, &gate, &request)
				      : hands_change(context, &gate, &request);
	ruleset_free(&request.entries);
	gate_close(&gate);
	return status;
}

enum status cmd_allow(const struct context *context, int argc, char **argv)
{
	return list_change(context, SL_LIST_ALLOW, argc, argv);
}

enum status cmd_deny(const struct context *context, int argc, char **argv)
{
	return list_change(context, SL_LIST_DENY, argc, argv);
}
