// SPDX-License-Identifier: GPL-2.0
/* allow, deny: entries by hand, and lists of prefixes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/ssh_session.h"
#include "gate/rules.h"
#include "gate/lists.h"
#include "gate/transaction.h"
#include "program/writer.h"
#include "rules/list_file.h"
#include "rules/lists.h"
#include "rules/prefix.h"

#define FORCE "say 'force'" /* the hint of what `force` accepts */

struct allow_args {
	struct operands prefixes;
	const char *file;
	uint64_t for_ns;
	uint32_t until; /* 0: not given */
	const char *name;
	bool replace;
	bool force;
	bool skip;
};

struct listing {
	const struct allow_args *args;
	enum sl_access access;
	const char *name;	 /* of the list; NULL: by hand */
	uint64_t ns;		 /* how long, by `for` or `until`; 0: without an end */
	bool ends_entries;	 /* each entry has the end; otherwise the list has it */
	unsigned int skipped;	 /* lines of the file that were left out */
	struct ruleset *entries; /* the prefixes, without access */
	char file_name[SL_LIST_NAME];
};

/* The access and the end of an entry or a list before the change. */
struct was {
	enum sl_access access;
	uint32_t until;
};

/* --- Words ---------------------------------------------------------------------------------- */

int entries_parse(const struct command *command, const struct operands *prefixes, const char *file,
		  const char *name, struct ruleset *entries)
{
	int err = 0;

	if (file && prefixes->count)
		return unexpected(command, prefixes->words[0]);
	if (!file && !prefixes->count)
		return error_misuse("no-operand", command->name,
				    "which address, prefix or -f FILE? See 'sluice help %s'",
				    command->name);
	if (name)
		err = list_name_check(name);
	for (unsigned int i = 0; !err && i < prefixes->count; i++)
		err = ruleset_add_words(entries, &(struct rule){0}, prefixes->words[i]);
	return err;
}

static int listing_parse(const struct command *command, struct listing *listing)
{
	const struct allow_args *args = listing->args;
	int err = entries_parse(command, &args->prefixes, args->file, args->name, listing->entries);

	if (err)
		return err;
	if (args->for_ns && args->until)
		return error_misuse("conflict", command->name,
				    "'for' and 'until' exclude each other; write one of them");
	listing->access = command == &command_allow ? SL_ACCESS_ALLOW : SL_ACCESS_DENY;
	listing->ns = args->for_ns;
	if (args->until) /* in whole seconds, as the moment is */
		listing->ns =
			(until_left_ns(args->until) + NS_PER_SEC / 2) / NS_PER_SEC * NS_PER_SEC;
	listing->name = args->name;
	if (args->file && !args->name) {
		err = list_name_of(args->file, listing->file_name);
		listing->name = listing->file_name;
	}
	listing->ends_entries = listing->ns && !args->file && !args->replace;
	if (err)
		return err;
	if (args->replace && !listing->name)
		return error_misuse("no-list", command->name,
				    "'replace' is for a list; write -f FILE, or 'as LIST'");
	if (args->skip && !args->file)
		return error_misuse("no-list", command->name,
				    "'skip' is for a file of prefixes; write -f FILE");
	return 0;
}

/*
 * Reads the file. A file without an entry is refused, because a download may have failed; only with
 * `replace` and `force` it empties its list.
 */
static int file_take(const struct context *context, struct listing *listing)
{
	const struct allow_args *args = listing->args;
	int err = list_read(args->file, &(struct rule){0}, args->force ? NULL : FORCE,
			    args->skip ? &listing->skipped : NULL, listing->entries);

	if (err || listing->entries->count)
		return err;
	if (!args->replace || listing->skipped)
		return error_misuse("no-entry", name_shown(args->file), "it has no entry%s",
				    listing->skipped ? ", only lines that are not understood" : "");
	if (args->force)
		return 0;
	return error_misuse("no-entry", name_shown(args->file),
			    "it has no entry, so list '%s' stays as it is; say 'force' if it is to "
			    "become empty, or take it back with 'sluice %sdel -f %s'",
			    listing->name, gate_option(context->gate), word_typed(listing->name));
}

/* Returns the end of what is changed now; 0: none. */
static uint32_t listing_end(const struct listing *listing)
{
	uint32_t until = listing->args->until;

	return until || !listing->ns ? until : until_after(listing->ns);
}

/* Prints " (was denied for 3h more)". always: also if the entry would not have ended later. */
static void was_print(const struct was *was, uint32_t until, bool always)
{
	bool is_longer = was->access && until_is_cut(was->until, until);
	char left[UNITS_TEXT];

	if (!is_longer && !(always && was->access))
		return;
	print_text(" (was %s", access_done[was->access]);
	if (is_longer && was->until)
		print_text(" for %s more", left_format(until_left_ns(was->until), left));
	else if (is_longer)
		print_text(" without an end");
	print_text(")");
}

/* --- By hand -------------------------------------------------------------------------------- */

static void hands_print(const struct context *context, const struct listing *listing,
			const struct was *was)
{
	unsigned int fresh = 0, same = 0, other = 0, cut = 0;
	const struct ruleset *entries = listing->entries;
	char text[PREFIX_TEXT], time[UNITS_TEXT];

	print_object(NULL);
	print_string("gate", NULL, context->gate);
	print_string("list", NULL, access_words[listing->access]);
	if (entries->count == 1)
		print_string("prefix", NULL, prefix_format(&entries->rules[0].prefix, text));
	print_array("prefixes");
	for (unsigned int i = 0; i < entries->count; i++) {
		const struct rule *entry = &entries->rules[i];

		print_string(NULL, "%s: ", prefix_format(&entry->prefix, text));
		print_text("%s", access_done[listing->access]);
		if (listing->ns)
			print_text(" for %s", time_format(listing->ns, time));
		was_print(&was[i], entry->until, true);
		print_text("\n");
		fresh += !was[i].access;
		same += was[i].access == listing->access;
		other += was[i].access && was[i].access != listing->access;
		cut += was[i].access && until_is_cut(was[i].until, entry->until);
	}
	print_end();
	print_number("entries", NULL, entries->count);
	print_number("new", NULL, fresh);
	print_number("same", NULL, same);
	print_number("other", NULL, other);
	print_number("shortened", NULL, cut);
	if (listing->ns)
		print_real("seconds", listing->ns / 1e9);
	print_end();
}

static int hands_change(const struct context *context, struct gate *gate, struct listing *listing)
{
	struct ruleset *entries = listing->entries;
	uint32_t until = listing_end(listing);
	_cleanup_free_ struct was *was = NULL;
	int err = 0;

	ruleset_unique(entries);
	was = calloc(entries->count, sizeof(*was));
	if (!was)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory");
	for (unsigned int i = 0; !err && i < entries->count; i++) {
		struct rule rule;

		err = rules_get(gate, &entries->rules[i].prefix, &rule);
		if (err)
			break;
		was[i] = (struct was){rule.access, rule.until};
		rule.access = listing->access;
		rule.until = until;
		entries->rules[i] = rule;
	}
	err = err
		      ?: rules_change(gate,
				      &(struct ruleset){.rules = entries->rules,
							.count = entries->count},
				      NULL);
	if (!err)
		hands_print(context, listing, was);
	return err;
}

/* --- Lists ---------------------------------------------------------------------------------- */

static void list_print(const struct context *context, const struct listing *listing,
		       const struct sl_list_info *list, const struct was *was,
		       const struct list_counts *counts)
{
	unsigned int named = counts->fresh + counts->same;
	uint64_t left_ns = list->until ? until_left_ns(list->until) : 0;
	uint64_t ns = listing->ns ?: left_ns;
	char left[UNITS_TEXT], time[UNITS_TEXT];

	print_object(NULL);
	print_string("gate", NULL, context->gate);
	print_string("list", NULL, access_words[listing->access]);
	print_string("name", "list %s: ", listing->name);
	print_number("entries", "%" PRIu64, named);
	print_text(" %s %s", plural(named, "entry", "entries"), access_done[listing->access]);
	if (listing->ns)
		print_text(" for %s", time_format(listing->ns, time));
	if (list->until && (!listing->ns || (listing->ends_entries && left_ns < listing->ns)))
		print_text(", until the list ends in %s", left_format(left_ns, left));
	was_print(was, list->until, false);
	print_number("new", ": %" PRIu64 " new", counts->fresh);
	print_number("same", ", %" PRIu64, counts->same);
	print_text(" %s there", plural(counts->same, "was", "were"));
	print_number("gone", listing->args->replace ? ", %" PRIu64 " gone" : NULL, counts->gone);
	print_number("shortened", counts->cut ? ", %" PRIu64 " shortened" : NULL, counts->cut);
	print_number("ended", NULL, counts->ended);
	if (counts->ended)
		print_text(", %u %s ended already", counts->ended,
			   plural(counts->ended, "has", "have"));
	if (ns)
		print_real("seconds", ns / 1e9);
	if (listing->args->skip)
		print_number("skipped", NULL, listing->skipped);
	if (listing->skipped)
		print_text(", %u %s skipped", listing->skipped,
			   plural(listing->skipped, "line", "lines"));
	print_text("\n");
	print_end();
}

static int list_change(const struct context *context, struct gate *gate, struct listing *listing,
		       const struct stamp *stamp)
{
	const uint32_t end = listing_end(listing);
	struct sl_list_info lists[SL_LIST_PLACES],
		list = {
			.access = listing->access,
			.until = listing->ends_entries ? 0 : end,
			.replaced = stamp_written(stamp) ?: (uint64_t)time(NULL),
		};
	struct list_counts counts = {0};
	struct was was = {0};
	int err, place;

	snprintf(list.name, sizeof(list.name), "%s", listing->name);
	lists_copy(gate, lists);
	place = lists_find(lists, list.name);
	if (place >= 0)
		was = (struct was){lists[place].access, lists[place].until};
	for (unsigned int i = 0; listing->ends_entries && i < listing->entries->count; i++)
		listing->entries->rules[i].list_until = end;
	err = list_put(gate, &list, listing->args->replace, listing->entries, &counts);
	if (!err)
		list_print(context, listing, &list, &was, &counts);
	return err;
}

/* --- The commands --------------------------------------------------------------------------- */

static int allow_run(const struct context *context, const void *data)
{
	const struct allow_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(ruleset_free) struct ruleset entries = {0};
	struct listing listing = {.args = args, .entries = &entries};
	struct stamp stamp = {0};
	bool is_free;
	int err = listing_parse(context->command, &listing);

	if (err)
		return err;
	/* an allow by hand is accepted with any prefix, because it cannot lock out the operator */
	is_free = args->force || (listing.access == SL_ACCESS_ALLOW && !listing.name);
	for (unsigned int i = 0; !err && !is_free && i < entries.count; i++)
		err = entry_check_width(&entries.rules[i].prefix, FORCE);
	if (args->file && strcmp(args->file, "-"))
		stamp = stamp_of(args->file);
	if (args->file)
		err = file_take(context, &listing);
	if (err)
		return err;
	err = gate_open_to_try(&gate, context);
	if (err)
		return err;
	if (listing.access == SL_ACCESS_DENY && !args->force && !context->trial_ns) {
		err = ssh_check_denies(&gate, &entries, listing.name);
		if (err)
			return err;
	}
	return listing.name ? list_change(context, &gate, &listing, &stamp)
			    : hands_change(context, &gate, &listing);
}

static int future_parse(const struct value_type *type, const char *what, const char *text,
			void *ret)
{
	struct value_end end;
	int err = value_parse(&value_moment, what, text, &end);

	(void)type;
	if (err)
		return err;
	if (end.has_passed)
		return error_misuse("past", object_of(what, text), "this moment is past");
	*(uint32_t *)ret = end.until;
	return 0;
}

static const struct value_type future_moment = {.name = "MOMENT", .parse = future_parse};

/* The shortest time, and two years. */
static const struct value_type for_time = VALUE_TIME(1000000, 730 * 86400 * NS_PER_SEC);

static const struct word allow_words[] = {
	{"default|PREFIX", OPERANDS_ANYWHERE, NULL, offsetof(struct allow_args, prefixes),
	 "one or more, also ranges A-B; or -f FILE"},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct allow_args, file),
	 "puts the file's entries on its list. A line is an address, a prefix or a range A-B,\n"
	 "and may end with for TIME, which begins when the file is written, or with until\n"
	 "MOMENT; #, ; and // begin comments. Also accepted: the output of ipset save and ipset\n"
	 "list for one set, and lines of JSON with a cidr, prefix, ip or ip_prefix. - is\n"
	 "standard input.\n"
	 "All or nothing. The list has the file's absolute path as its name"},
	{"as", KEYWORD, VALUE_TEXT("LIST"), offsetof(struct allow_args, name),
	 "the list of that name instead; also for prefixes: deny A B as LIST"},
	{"for", KEYWORD, &for_time, offsetof(struct allow_args, for_ns),
	 "30s, 10min, 1h30m, 2 days: the entry then ends. Default: never. With -f or replace the\n"
	 "list ends then, and an entry ends with its list at the latest. A prefix can have a\n"
	 "time of its own on one list only"},
	{"until", KEYWORD, &future_moment, offsetof(struct allow_args, until),
	 "the same, by the end: 2026-11-22T13:00:00Z, or with an offset, +02:00"},
	{"replace", KEYWORD, NULL, offsetof(struct allow_args, replace),
	 "with -f or as: entries that are not named are removed from the list, in the same\n"
	 "step. A file without entries is refused"},
	{"force", KEYWORD, NULL, offsetof(struct allow_args, force),
	 "accept prefixes shorter than /8 (IPv6: /16), a deny of this ssh session and, with\n"
	 "replace, an empty file. An allow by hand needs no force"},
	{"skip", KEYWORD, NULL, offsetof(struct allow_args, skip),
	 "with -f: leave out lines that are not understood, and print their number"},
	WORD_CONFIRM,
};

static const char allow_details[] =
	"The longest prefix of all rules, entries and limits alike, decides. A prefix is\n"
	"allowed or denied by hand, and the last command counts; its limits stay, and decide\n"
	"again when the entry ends. The entries of a file are a list with a name, apart from\n"
	"entries by hand and from other lists: an entry stays while any list has it. By hand\n"
	"beats lists at the same prefix, and no list denies what is allowed by hand, whatever\n"
	"the lengths of the prefixes. If two lists differ about a prefix, allow counts.\n"
	"'sluice lists' prints all lists. 'sluice undeny', 'sluice unallow' and 'sluice del -f\n"
	"FILE' remove entries and lists.";

const struct command command_allow = {
	.name = "allow",
	.brief = "let every packet of a prefix pass",
	.details = allow_details,
	COMMAND_WORDS(allow_words, struct allow_args),
	.run = allow_run,
};

const struct command command_deny = {
	.name = "deny",
	.brief = "drop every packet of a prefix",
	.details = allow_details,
	COMMAND_WORDS(allow_words, struct allow_args),
	.run = allow_run,
};
