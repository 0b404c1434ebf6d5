// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "gate.h"
#include "list.h"
#include "plural.h"
#include "prefix.h"
#include "rules.h"
#include "units.h"
#include "uptime.h"

#define TIME_MIN_NS 1000000

/* Up to so many prefixes are looked up one by one; for more, all rules are read at once. */
#define LOOKUPS_MAX 512

static const char *const verbs[] = {[SL_LIST_ALLOW] = "allow", [SL_LIST_DENY] = "deny"};
static const char *const done[] = {[SL_LIST_ALLOW] = "allowed", [SL_LIST_DENY] = "denied"};
static const char *const other_done[] = {[SL_LIST_ALLOW] = "denied", [SL_LIST_DENY] = "allowed"};

#define SPAN_TEXT (UNITS_TEXT + sizeof(" for "))

struct request {
	enum sl_list list;
	const char *what; /* a prefix, or a file of prefixes */
	bool is_file;
	uint64_t ns; /* 0: for good */
};

/* What was there of the prefixes that a request names. */
struct tally {
	unsigned int fresh;
	unsigned int same;
	unsigned int other; /* on the other list */
};

/* --- Words ---------------------------------------------------------------------------------- */

static enum status time_take(int argc, char **argv, int *index, struct request *request)
{
	const char *time = keyword_value(argc, argv, index);
	enum status status;

	if (!time)
		return MISUSED;
	status = time_parse("for", time, &request->ns);
	if (!status && request->ns < TIME_MIN_NS)
		status = misuse("for '%s' is too short: the shortest is 1ms", time);
	return status;
}

static enum status request_parse(const struct context *context, int argc, char **argv,
				 struct request *request)
{
	int i = 1;

	request->is_file = context->file;
	request->what = context->file;
	if (!context->file && argc > 1)
		request->what = argv[i++];
	if (!request->what)
		return misuse("%s: which address, prefix or -f FILE? See 'sluice help %s'", argv[0],
			      argv[0]);
	for (; i < argc; i++) {
		enum status status;

		if (strcmp(argv[i], "for"))
			return unexpected(argv[0], argv[i]);
		if (request->ns)
			return misuse("%s: 'for' is given twice", argv[0]);
		status = time_take(argc, argv, &i, request);
		if (status)
			return status;
	}
	return OK;
}

static enum status entries_read(const struct request *request, struct ruleset *entries)
{
	struct rule rule = {
		.list = request->list,
		.until = request->ns ? until_after(request->ns) : 0,
	};
	enum status status;

	if (request->is_file)
		return list_read(request->what, rule.list, rule.until, entries);
	status = prefix_parse(request->what, &rule.prefix);
	return status ? status : ruleset_add(entries, &rule);
}

/* --- Rules ---------------------------------------------------------------------------------- */

/* The policy of the rule that has been there stays, its list entry is replaced. */
static void entry_merge(struct rule *entry, struct rule *old, struct tally *tally)
{
	rule_take_policy(entry, old);
	if (!old->list)
		tally->fresh++;
	else if (old->list == entry->list)
		tally->same++;
	else
		tally->other++;
}

static enum status entries_merge_few(const struct gate *gate, struct ruleset *entries,
				     struct tally *tally)
{
	for (unsigned int i = 0; i < entries->count; i++) {
		struct rule old = {0};
		enum status status = rules_get(gate, &entries->rules[i].prefix, &old);

		if (status)
			return status;
		entry_merge(&entries->rules[i], &old, tally);
		rule_free(&old);
	}
	return OK;
}

static enum status entries_merge_many(const struct gate *gate, struct ruleset *entries,
				      struct tally *tally)
{
	struct ruleset all = {0};
	enum status status = rules_read(gate, &all);
	unsigned int j = 0;

	ruleset_sort(entries);
	for (unsigned int i = 0; !status && i < entries->count; i++) {
		struct rule none = {0}, *entry = &entries->rules[i];

		while (j < all.count && prefix_compare(&all.rules[j].prefix, &entry->prefix) < 0)
			j++;
		if (j < all.count && prefix_equal(&all.rules[j].prefix, &entry->prefix))
			entry_merge(entry, &all.rules[j], tally);
		else
			entry_merge(entry, &none, tally);
	}
	ruleset_free(&all);
	return status;
}

static enum status entries_apply(struct gate *gate, struct ruleset *entries, struct tally *tally)
{
	enum status status;

	if (entries->count <= LOOKUPS_MAX)
		status = entries_merge_few(gate, entries, tally);
	else
		status = entries_merge_many(gate, entries, tally);
	if (status || !entries->count)
		return status;
	return rules_change(gate, entries->rules, entries->count);
}

/* --- What happened -------------------------------------------------------------------------- */

static enum status report_json(const struct context *context, const struct request *request,
			       const struct ruleset *entries, const struct tally *tally)
{
	json_t *object =
		json_pack("{s:s, s:s, s:i, s:i, s:i, s:i}", "gate", context->gate, "list",
			  verbs[request->list], "entries", (int)entries->count, "new",
			  (int)tally->fresh, "same", (int)tally->same, "other", (int)tally->other);
	char text[PREFIX_TEXT];

	if (!request->is_file)
		json_object_set_new(object, "prefix",
				    json_string(prefix_format(&entries->rules->prefix, text)));
	if (request->ns)
		json_object_set_new(object, "seconds", json_real(request->ns / 1e9));
	return json_print(object);
}

/* " for 1h"; nothing of an entry for good. */
static const char *span_format(const struct request *request, char text[SPAN_TEXT])
{
	char time[UNITS_TEXT];

	*text = '\0';
	if (request->ns)
		snprintf(text, SPAN_TEXT, " for %s", time_format(request->ns, time));
	return text;
}

static void report_file(const struct request *request, const struct ruleset *entries,
			const struct tally *tally)
{
	char span[SPAN_TEXT];

	printf("%u %s %s%s: %u new, %u %s there", entries->count,
	       plural(entries->count, "entry", "entries"), done[request->list],
	       span_format(request, span), tally->fresh, tally->same,
	       plural(tally->same, "was", "were"));
	if (tally->other)
		printf(", %u %s %s", tally->other, plural(tally->other, "was", "were"),
		       other_done[request->list]);
	putchar('\n');
}

static void report_entry(const struct request *request, const struct sl_prefix *prefix,
			 const struct tally *tally)
{
	char text[PREFIX_TEXT], span[SPAN_TEXT];

	printf("%s: %s%s", prefix_format(prefix, text), done[request->list],
	       span_format(request, span));
	if (!tally->fresh)
		printf(" (was %s)", (tally->same ? done : other_done)[request->list]);
	putchar('\n');
}

static enum status report(const struct context *context, const struct request *request,
			  const struct ruleset *entries, const struct tally *tally)
{
	if (context->json)
		return report_json(context, request, entries, tally);
	if (request->is_file)
		report_file(request, entries, tally);
	else
		report_entry(request, &entries->rules->prefix, tally);
	return OK;
}

static enum status list_change(const struct context *context, enum sl_list list, int argc,
			       char **argv)
{
	struct request request = {.list = list};
	struct ruleset entries = {0};
	struct gate gate = GATE_CLOSED;
	struct tally tally = {0};
	enum status status = request_parse(context, argc, argv, &request);

	if (!status)
		status = entries_read(&request, &entries);
	if (!status)
		status = gate_open_to_change(&gate, context->gate);
	if (!status)
		status = entries_apply(&gate, &entries, &tally);
	if (!status)
		status = report(context, &request, &entries, &tally);
	ruleset_free(&entries);
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
