// SPDX-License-Identifier: GPL-2.0
/* allow, deny, unallow, undeny: entries by hand, and lists of prefixes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/report.h"
#include "cli/ssh_session.h"
#include "gate/gate.h"
#include "gate/change.h"
#include "gate/list_change.h"
#include "gate/rules.h"
#include "rules/list_file.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "rules/value.h"

#define SPAN_TEXT (UNITS_TEXT + sizeof(" for "))

/* What was there of the prefixes that are allowed or denied by hand. */
struct tally {
	unsigned int fresh;
	unsigned int same;
	unsigned int other; /* had the other access */
	unsigned int cut;   /* would have ended later, or not at all */
	struct was {
		enum sl_list access;
		uint32_t until;
	} * was; /* of each entry */
};

/* --- Words ---------------------------------------------------------------------------------- */

#define TIME_MIN_NS 1000000

struct list_args {
	struct operands prefixes;
	const char *file;
	const char *time;
	const char *until;
	const char *name;
	bool replace;
	bool force;
	bool skip;
};

struct list_request {
	enum sl_list access; /* SL_LIST_NONE: either */
	const char *file;    /* NULL: the prefixes */
	const char *name;    /* of the list; NULL: not given */
	uint64_t ns;	     /* how long, by `for` or `until`; 0: without an end */
	uint32_t until;	     /* the end, by `until`; 0: it counts from the change */
	bool replace;
	bool force;
	bool skip;
	bool ends_entries;	/* the end belongs to each entry, not to the list */
	unsigned int skipped;	/* lines of the file that were left out */
	uint64_t written;	/* when the file was, in seconds since 1970 */
	struct ruleset entries; /* the prefixes, without access */
	struct ruleset absent;	/* of them, those that undeny did not find */
	char file_name[SL_LIST_NAME];
};

/*
 * Reads the words that allow, deny, unallow and undeny share. The caller frees `entries`, also on
 * failure.
 */
static int prefixes_take(const struct command *command, const struct list_args *args,
			 struct list_request *request)
{
	int status = OK;

	*request = (struct list_request){.file = args->file, .name = args->name};
	if (args->file && args->prefixes.count)
		return unexpected(command, args->prefixes.words[0]);
	if (!args->file && !args->prefixes.count)
		return misuse("%s: which address, prefix or -f FILE? See 'sluice help %s'",
			      command->name, command->name);
	if (args->name)
		status = list_name_check(args->name);
	for (unsigned int i = 0; !status && i < args->prefixes.count; i++) {
		const struct rule entry = {0};

		status = ruleset_add_words(&request->entries, &entry, args->prefixes.words[i]);
	}
	return status;
}

static int moment_take(const char *text, struct list_request *request)
{
	bool ended;
	int status = until_parse(text, &request->until, &ended);

	if (!status && ended)
		status = misuse("until '%s' is past", text);
	if (!status) /* whole seconds, as the moment is */
		request->ns =
			(until_left_ns(request->until) + NS_PER_SEC / 2) / NS_PER_SEC * NS_PER_SEC;
	return status;
}

static int end_parse(const struct command *command, const struct list_args *args,
		     struct list_request *request)
{
	int status;

	if (args->time && args->until)
		return misuse("%s: 'for' and 'until': say one of them", command->name);
	if (args->until)
		return moment_take(args->until, request);
	if (!args->time)
		return OK;
	status = value_parse(&value_time, "for", args->time, &request->ns);
	if (!status && request->ns < TIME_MIN_NS)
		status = misuse("for '%s' is too short: the shortest is 1ms", args->time);
	return status;
}

/* The end of what is changed now; 0: none. */
static uint32_t request_end(const struct list_request *request)
{
	return request->until || !request->ns ? request->until : until_after(request->ns);
}

static int request_parse(const struct command *command, const struct list_args *args,
			 struct list_request *request)
{
	int status = prefixes_take(command, args, request);

	request->replace = args->replace;
	request->force = args->force;
	request->skip = args->skip;
	if (!status)
		status = end_parse(command, args, request);
	if (!status && request->file && !request->name) {
		status = list_name_of(request->file, request->file_name);
		request->name = request->file_name;
	}
	if (status)
		return status;
	request->ends_entries = request->ns && !request->file && !request->replace;
	if (request->replace && !request->name)
		return misuse("%s: 'replace' is for a list: say -f FILE, or 'as LIST'",
			      command->name);
	if (request->skip && !request->file)
		return misuse("%s: 'skip' is for a file of prefixes: say -f FILE", command->name);
	return OK;
}

#define FORCE "say 'force'"

/* An allow by hand cannot lock out the operator. */
static int widths_check(const struct list_request *request)
{
	bool is_free = request->force || (request->access == SL_LIST_ALLOW && !request->name);
	int status = OK;

	for (unsigned int i = 0; !status && !is_free && i < request->entries.count; i++)
		status = entry_check_width(&request->entries.rules[i].prefix, FORCE);
	return status;
}

/*
 * Reads the file. A file without an entry is refused, because a download may have failed; only with
 * `replace` and `force` it empties its list.
 */
static int file_take(const struct context *context, struct list_request *request)
{
	const struct rule entry = {.access = SL_LIST_NONE};
	const struct stamp stamp = stamp_of(request->file);
	int status = list_read(request->file, &entry, request->force ? NULL : FORCE,
			       request->skip ? &request->skipped : NULL, &request->entries);
	bool is_empty = !status && !request->entries.count;

	if (strcmp(request->file, "-"))
		request->written = stamp_written(&stamp);
	if (is_empty && (!request->replace || request->skipped))
		return misuse("%s has no entry%s", request->file,
			      request->skipped ? ", only lines that are not understood" : "");
	if (is_empty && !request->force)
		status = misuse("%s has no entry: list '%s' stays as it is; say 'force' if it is "
				"to become empty, or take it back with 'sluice %sdel -f %s'",
				request->file, request->name, gate_option(context->gate),
				word_typed(request->name));
	return status;
}

/* --- allow, deny: by hand ------------------------------------------------------------------- */

static int hand_take(const struct gate *gate, enum sl_list access, struct rule *entry,
		     struct was *ret_was)
{
	struct rule rule;
	int status = rules_get(gate, &entry->prefix, &rule);

	if (status)
		return status;
	*ret_was = (struct was){rule.access, rule.until};
	rule.access = access;
	rule.until = entry->until;
	*entry = rule;
	return OK;
}

/* Whether an entry would have ended more than a second after `until`, or never. */
static bool was_longer(const struct was *was, uint32_t until)
{
	return was->access && until_is_cut(was->until, until);
}

static int hands_apply(struct gate *gate, struct list_request *request, struct tally *tally)
{
	struct ruleset *entries = &request->entries;
	uint32_t until = request_end(request);
	int status = OK;

	ruleset_unique(entries);
	tally->was = calloc(entries->count, sizeof(*tally->was));
	if (!tally->was)
		return failure("out of memory");
	for (unsigned int i = 0; !status && i < entries->count; i++) {
		entries->rules[i].until = until;
		status = hand_take(gate, request->access, &entries->rules[i], &tally->was[i]);
		tally->fresh += !tally->was[i].access;
		tally->same += tally->was[i].access == request->access;
		tally->other += tally->was[i].access && tally->was[i].access != request->access;
		tally->cut += was_longer(&tally->was[i], until);
	}
	return status ? status : rules_change(gate, entries->rules, entries->count);
}

/* " for 1h"; "" for an entry without an end. */
static const char *span_format(const struct list_request *request, char text[SPAN_TEXT])
{
	char time[UNITS_TEXT];

	*text = '\0';
	if (request->ns)
		snprintf(text, SPAN_TEXT, " for %s", time_format(request->ns, time));
	return text;
}

static void hand_print(const struct list_request *request, const struct rule *entry,
		       const struct was *was)
{
	char text[PREFIX_TEXT], span[SPAN_TEXT], left[UNITS_TEXT];

	printf("%s: %s%s", prefix_format(&entry->prefix, text), access_done[request->access],
	       span_format(request, span));
	if (was->access)
		printf(" (was %s", access_done[was->access]);
	if (was_longer(was, entry->until) && was->until)
		printf(" for %s more", left_format(until_left_ns(was->until), left));
	else if (was_longer(was, entry->until))
		printf(" without an end");
	if (was->access)
		putchar(')');
	putchar('\n');
}

static json_t *prefixes_json(const struct ruleset *entries)
{
	json_t *prefixes = json_array();
	char text[PREFIX_TEXT];

	for (unsigned int i = 0; i < entries->count; i++)
		json_array_append_new(prefixes,
				      json_string(prefix_format(&entries->rules[i].prefix, text)));
	return prefixes;
}

static json_t *hands_json(const struct context *context, const struct list_request *request,
			  const struct tally *tally)
{
	const struct ruleset *entries = &request->entries;
	json_t *prefixes = prefixes_json(entries);
	json_t *object =
		json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "gate", context->gate, "list",
			  access_words[request->access], "entries", (int)entries->count, "new",
			  (int)tally->fresh, "same", (int)tally->same, "other", (int)tally->other,
			  "shortened", (int)tally->cut);

	if (entries->count == 1)
		json_object_set(object, "prefix", json_array_get(prefixes, 0));
	json_object_set_new(object, "prefixes", prefixes);
	if (request->ns)
		json_object_set_new(object, "seconds", json_real(request->ns / 1e9));
	return object;
}

static int hands_change(const struct context *context, struct gate *gate,
			struct list_request *request)
{
	struct tally tally = {0};
	int status = hands_apply(gate, request, &tally);

	if (!status && context->json)
		status = json_print(hands_json(context, request, &tally));
	else if (!status)
		for (unsigned int i = 0; i < request->entries.count; i++)
			hand_print(request, &request->entries.rules[i], &tally.was[i]);
	free(tally.was);
	return status;
}

/* --- allow, deny: lists --------------------------------------------------------------------- */

static json_t *list_json(const struct context *context, const struct list_request *request,
			 const struct sl_list_info *list, const struct list_counts *counts)
{
	json_t *object =
		json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "gate", context->gate,
			  "list", access_words[request->access], "name", request->name, "entries",
			  (int)(counts->fresh + counts->same), "new", (int)counts->fresh, "same",
			  (int)counts->same, "gone", (int)counts->gone, "shortened",
			  (int)counts->cut, "ended", (int)counts->ended);
	uint64_t ns = request->ns ?: list->until ? until_left_ns(list->until) : 0;

	if (ns)
		json_object_set_new(object, "seconds", json_real(ns / 1e9));
	if (request->skip)
		json_object_set_new(object, "skipped", json_integer(request->skipped));
	return object;
}

/* Prints the change of a list. The end of the list is printed if its entries end with it. */
static void list_print(const struct list_request *request, const struct sl_list_info *list,
		       const struct sl_list_info *before, const struct list_counts *counts)
{
	const struct was was = {before->list, before->until};
	unsigned int named = counts->fresh + counts->same;
	char span[SPAN_TEXT], left[UNITS_TEXT];

	printf("list %s: %u %s %s%s", request->name, named, plural(named, "entry", "entries"),
	       access_done[request->access], span_format(request, span));
	if (list->until &&
	    (!request->ns || (request->ends_entries && until_left_ns(list->until) < request->ns)))
		printf(", until the list ends in %s",
		       left_format(until_left_ns(list->until), left));
	if (was_longer(&was, list->until) && was.until)
		printf(" (was %s for %s more)", access_done[was.access],
		       left_format(until_left_ns(was.until), left));
	else if (was_longer(&was, list->until))
		printf(" (was %s without an end)", access_done[was.access]);
	printf(": %u new, %u %s there", counts->fresh, counts->same,
	       plural(counts->same, "was", "were"));
	if (request->replace)
		printf(", %u gone", counts->gone);
	if (counts->cut)
		printf(", %u shortened", counts->cut);
	if (counts->ended)
		printf(", %u %s ended already", counts->ended,
		       plural(counts->ended, "has", "have"));
	if (request->skipped)
		printf(", %u %s skipped", request->skipped,
		       plural(request->skipped, "line", "lines"));
	putchar('\n');
}

/* The list of that name; all 0 if there is none. */
static struct sl_list_info list_before(const struct gate *gate, const char *name)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	int place;

	lists_copy(gate, lists);
	place = lists_find(lists, name);
	return place < 0 ? (struct sl_list_info){0} : lists[place];
}

static int named_change(const struct context *context, struct gate *gate,
			struct list_request *request)
{
	const uint32_t end = request_end(request);
	struct sl_list_info list = {
		.list = request->access,
		.until = request->ends_entries ? 0 : end,
		.replaced = request->written ?: (uint64_t)time(NULL),
	};
	struct list_counts counts = {0};
	struct sl_list_info before;
	int status;

	snprintf(list.name, sizeof(list.name), "%s", request->name);
	before = list_before(gate, list.name);
	for (unsigned int i = 0; request->ends_entries && i < request->entries.count; i++)
		request->entries.rules[i].list_until = end;
	status = list_put(gate, &list, request->replace, &request->entries, &counts);
	if (!status && context->json)
		status = json_print(list_json(context, request, &list, &counts));
	else if (!status)
		list_print(request, &list, &before, &counts);
	return status;
}

/* --- allow, deny: the commands -------------------------------------------------------------- */

static int list_run(const struct context *context, const void *args)
{
	struct list_request request;
	struct gate gate = GATE_CLOSED;
	int status = request_parse(context->command, args, &request);

	request.access = context->command == &command_allow ? SL_LIST_ALLOW : SL_LIST_DENY;
	if (!status)
		status = request.file ? file_take(context, &request) : widths_check(&request);
	if (!status)
		status = gate_open_to_try(&gate, context);
	if (!status && request.access == SL_LIST_DENY && !request.force && !context->trial_ns)
		status = ssh_check_denies(&gate, &request.entries, request.name);
	if (!status)
		status = request.name ? named_change(context, &gate, &request)
				      : hands_change(context, &gate, &request);
	ruleset_free(&request.entries);
	gate_close(&gate);
	return status;
}

static const struct word list_arguments[] = {
	{"default|PREFIX", OPERANDS_ANYWHERE, NULL, offsetof(struct list_args, prefixes),
	 "one or more, also ranges A-B; or -f FILE"},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct list_args, file),
	 "puts the file's entries on its list. A line is an address, a prefix or a\n"
	 "range A-B, and may end with for TIME, which begins when the file is written, or\n"
	 "until MOMENT; #, ; and // begin comments; also what ipset save and list print\n"
	 "of one set, and lines of JSON with a cidr, prefix, ip or ip_prefix. - is\n"
	 "standard input.\n"
	 "All or nothing. The list has the file's absolute path as its name"},
	{"as", KEYWORD, VALUE_TEXT("LIST"), offsetof(struct list_args, name),
	 "the list of that name instead; also for prefixes: deny A B as LIST"},
	{"for", KEYWORD, VALUE_TEXT("TIME", .extent = VALUE_NUMBERS),
	 offsetof(struct list_args, time),
	 "30s, 10min, 1h30m, 2 days: the entry then ends. Default: never. With -f or replace\n"
	 "the list ends then, and an entry ends with its list at the latest. A prefix can\n"
	 "have a time of its own on one list only"},
	{"until", KEYWORD, VALUE_TEXT("MOMENT"), offsetof(struct list_args, until),
	 "the same, by the end: 2026-11-22T13:00:00Z, or with an offset, +02:00"},
	{"replace", KEYWORD, NULL, offsetof(struct list_args, replace),
	 "with -f or as: entries that are not named are removed from the list, in the same\n"
	 "step. A file without entries is refused"},
	{"force", KEYWORD, NULL, offsetof(struct list_args, force),
	 "accept prefixes shorter than /8 (IPv6: /16), a deny of this ssh session and, with\n"
	 "replace, an empty file. An allow by hand needs no force"},
	{"skip", KEYWORD, NULL, offsetof(struct list_args, skip),
	 "with -f: leave out lines that are not understood, and print their number"},
	WORD_CONFIRM,
};

static const char list_details[] =
	"Of all rules, entries and limits alike, the longest prefix decides. By hand a prefix is\n"
	"allowed or denied, the later word counts; its limits stay, and decide again when the\n"
	"entry is over. A file's entries are a list with a name of its own, beside what is said\n"
	"by hand and beside other lists: an entry stays while any of them names it. By hand\n"
	"beats lists at the same prefix, and what is allowed by hand no list denies, however\n"
	"long its prefix. Where two lists differ on a prefix, allow counts.\n"
	"'sluice lists' tells of all lists. What takes an entry or a list back: 'sluice undeny',\n"
	"'sluice unallow', 'sluice del -f FILE'.";

const struct command command_allow = {
	.name = "allow",
	.brief = "let every packet of a prefix pass",
	.details = list_details,
	COMMAND_WORDS(list_arguments, struct list_args),
	.run = list_run,
};

const struct command command_deny = {
	.name = "deny",
	.brief = "drop every packet of a prefix",
	.details = list_details,
	COMMAND_WORDS(list_arguments, struct list_args),
	.run = list_run,
};

/* --- Taking back: by hand ------------------------------------------------------------------- */

static int no_such_access(const struct gate *gate, const struct rule *rule, enum sl_list access)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text), *option = gate_option(gate->name);

	if (rule->access)
		return failure("%s is %s by hand, and not %s: 'sluice %sun%s %s' takes that back",
			       prefix, access_done[rule->access], access_done[access], option,
			       access_words[rule->access], prefix);
	lists_copy(gate, lists);
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (rule->lists >> place & 1)
			return failure(
				"%s is not %s by hand: it is on list '%s'; 'sluice %sun%s %s as "
				"%s' takes it off",
				prefix, access_done[access], lists[place].name, option,
				access_words[lists[place].list], prefix,
				operand_typed(lists[place].name));
	return failure("%s is not %s by hand: see 'sluice %sshow'", prefix, access_done[access],
		       option);
}

/* With `force`, entries that do not exist move to `absent`. */
static int hands_undo(struct gate *gate, struct list_request *request)
{
	struct ruleset *entries = &request->entries;
	unsigned int found = 0;
	int status = OK;

	ruleset_unique(entries);
	for (unsigned int i = 0; !status && i < entries->count; i++) {
		struct rule rule, absent = {.prefix = entries->rules[i].prefix};

		status = rules_get(gate, &absent.prefix, &rule);
		if (status)
			break;
		if (rule.access == request->access) {
			rule.access = SL_LIST_NONE;
			entries->rules[found++] = rule;
			continue;
		}
		status = request->force ? ruleset_add(&request->absent, &absent)
					: no_such_access(gate, &rule, request->access);
		rule_free(&rule);
	}
	entries->count = found;
	return status || !found ? status : rules_change(gate, entries->rules, found);
}

static int hands_take_back(const struct context *context, struct gate *gate,
			   struct list_request *request)
{
	int status = hands_undo(gate, request);
	char text[PREFIX_TEXT];

	if (!status && context->json)
		return json_print(json_pack("{s:s, s:s, s:o, s:o}", "gate", context->gate, "list",
					    access_words[request->access], "prefixes",
					    prefixes_json(&request->entries), "absent",
					    prefixes_json(&request->absent)));
	for (unsigned int i = 0; !status && i < request->entries.count; i++)
		printf("%s: no longer %s by hand\n",
		       prefix_format(&request->entries.rules[i].prefix, text),
		       access_done[request->access]);
	for (unsigned int i = 0; !status && i < request->absent.count; i++)
		printf("%s: was not %s by hand\n",
		       prefix_format(&request->absent.rules[i].prefix, text),
		       access_done[request->access]);
	return status;
}

/* --- Taking back: lists --------------------------------------------------------------------- */

static int taken_print(const struct context *context, const struct sl_list_info *list,
		       const struct list_counts *counts, bool whole)
{
	if (context->json)
		return json_print(json_pack("{s:s, s:s, s:s, s:i, s:b}", "gate", context->gate,
					    "list", access_words[list->list], "name", list->name,
					    "gone", (int)counts->gone, "taken_back", whole));
	printf("list %s: %s%u %s no longer %s by it\n", list->name, whole ? "taken back: " : "",
	       counts->gone, plural(counts->gone, "entry is", "entries are"),
	       access_done[list->list]);
	return OK;
}

/* Whether a list has that name, or is that of the file. */
static bool list_exists(const struct gate *gate, const struct list_request *request)
{
	const char *name = request->file ?: request->name;
	struct sl_list_info lists[SL_LIST_PLACES];

	lists_copy(gate, lists);
	return *name && (lists_find(lists, name) >= 0 ||
			 (request->file && lists_find_file(lists, name) >= 0));
}

/* With `force` a list that does not exist is no error. */
static int absent_print(const struct context *context, const struct list_request *request)
{
	const char *name = request->file ?: request->name;

	if (context->json)
		return json_print(json_pack("{s:s, s:s, s:s, s:i, s:b}", "gate", context->gate,
					    "list", access_words[request->access], "name", name,
					    "gone", 0, "taken_back", false));
	printf("list %s: there was none\n", name);
	return OK;
}

static int named_take_back(const struct context *context, struct gate *gate,
			   struct list_request *request)
{
	bool whole = request->file;
	struct list_counts counts;
	struct sl_list_info list;
	int status;

	if (request->force && !list_exists(gate, request))
		return absent_print(context, request);
	status = whole ? list_of_file(gate, request->file, &list)
		       : list_named(gate, request->name, &list);
	if (!status && request->access && request->access != list.list)
		status = failure("list '%s' %s: 'sluice %sun%s' takes that back", list.name,
				 access_verb(list.list), gate_option(gate->name),
				 access_words[list.list]);
	if (!status)
		status = whole ? list_drop(gate, list.name, &counts)
			       : list_take(gate, list.name, &request->entries, request->force,
					   &counts);
	return status ? status : taken_print(context, &list, &counts, whole);
}

/* --- unallow, undeny, del -f ---------------------------------------------------------------- */

static int take_back(const struct context *context, struct list_request *request)
{
	struct gate gate = GATE_CLOSED;
	int status = gate_open_to_try(&gate, context);

	if (!status)
		status = request->file || request->name ? named_take_back(context, &gate, request)
							: hands_take_back(context, &gate, request);
	gate_close(&gate);
	return status;
}

int list_take_back(const struct context *context, const char *file)
{
	return take_back(context, &(struct list_request){.file = file});
}

static int unlist_run(const struct context *context, const void *args)
{
	struct list_request request;
	int status = prefixes_take(context->command, args, &request);

	request.access = context->command == &command_unallow ? SL_LIST_ALLOW : SL_LIST_DENY;
	if (!status && request.file && request.name)
		status = misuse("%s: -f FILE and 'as LIST' both say which list: write one of them",
				context->command->name);
	request.force = ((const struct list_args *)args)->force;
	if (!status)
		status = take_back(context, &request);
	ruleset_free(&request.entries);
	ruleset_free(&request.absent);
	return status;
}

static const struct word unlist_words[] = {
	{"default|PREFIX", OPERANDS_ANYWHERE, NULL, offsetof(struct list_args, prefixes),
	 "its entry by hand; its limits stay, and so does what lists say of it. One or\n"
	 "more, or else -f FILE"},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct list_args, file),
	 "all the list of that file, or of that name, without as; the file is not read"},
	{"as", KEYWORD, VALUE_TEXT("LIST"), offsetof(struct list_args, name),
	 "its entry on that list instead"},
	{"force", KEYWORD, NULL, offsetof(struct list_args, force),
	 "succeed although an entry, or the list, does not exist"},
	WORD_CONFIRM,
};

const struct command command_unallow = {
	.name = "unallow",
	.brief = "take back what allow said",
	COMMAND_WORDS(unlist_words, struct list_args),
	.run = unlist_run,
};

const struct command command_undeny = {
	.name = "undeny",
	.brief = "take back what deny said",
	COMMAND_WORDS(unlist_words, struct list_args),
	.run = unlist_run,
};
