// SPDX-License-Identifier: GPL-2.0
/*
 * The commands allow, deny, unallow, undeny and lists, which change and print runtime entries and
 * lists of prefixes.
 */
#include <ctype.h>
#include <time.h>

#include "cli/command.h"
#include "gate/lists.h"
#include "gate/transaction.h"
#include "report/report.h"
#include "rules/list_file.h"

#define FORCE "write 'force'" /* hint for an error that the word `force` would prevent */

struct entry_args {
	struct operands prefixes;
	const char *file;
	uint64_t for_ns;
	uint32_t until; /* end in the unit of until_at(); 0 if not given */
	const char *name;
	bool replace;
	bool force;
	bool skip;
};

/* A change of runtime entries or of a list. */
struct listing {
	const struct context *context;
	const struct entry_args *args;
	enum sl_access access; /* access of the entries; SL_ACCESS_NONE: as in their list */
	const char *name;      /* name of the list; NULL for runtime entries */
	uint64_t ns;	       /* time from now to the end, from `for` or `until`; 0: no end */
	/* true: each entry ends after `ns`; false: the list ends after `ns` */
	bool ends_entries;
	unsigned int skipped; /* number of bad lines of the file that were skipped */
	struct ruleset entries;
	struct ruleset absent; /* unallow and undeny: prefixes that have no entry */
	char file_name[SL_LIST_NAME];
};

static void listing_free(struct listing *listing)
{
	ruleset_free(&listing->entries);
	ruleset_free(&listing->absent);
}

static const struct value_type for_time = VALUE_TIME(NS_PER_MS, TIME_MAX_NS);

/* Returns whether the command is unallow or undeny, which remove entries. */
static bool removes(const struct listing *listing)
{
	return listing->context->command == &command_unallow ||
	       listing->context->command == &command_undeny;
}

/* Parses and adds a prefix or a range. If the text is a time, the error suggests `for`. */
static int prefix_add(struct listing *listing, const char *word)
{
	unsigned int before = error_count(), mark;
	int err = ruleset_add_words(&listing->entries, &(struct rule){0}, word);
	uint64_t ns;

	if (!err || removes(listing) || !isdigit((unsigned char)*word))
		return err;
	mark = error_count();
	if (value_parse(&for_time, NULL, word, &ns)) {
		error_drop(mark);
		return err;
	}
	error_drop(before);
	return error_misuse("bad-address", object_of(NULL, word),
			    "not an address; did you mean 'for %s'?", word);
}

/* Parses the prefixes of the command line. Requires either prefixes or a file. */
static int entries_parse(struct listing *listing)
{
	const struct entry_args *args = listing->args;
	const struct command *command = listing->context->command;
	int err = 0;

	if (args->file && args->prefixes.count)
		return unexpected(command, args->prefixes.words[0]);
	if (!args->file && !args->prefixes.count && args->name && removes(listing))
		return error_misuse("no-operand", command->name,
				    "which address of list '%s'? To remove the list: 'sluice %sdel "
				    "-f %s'",
				    args->name, gate_option(listing->context->gate),
				    word_typed(args->name));
	if (!args->file && !args->prefixes.count)
		return error_misuse("no-operand", command->name,
				    "which address, prefix or -f FILE? See 'sluice help %s'",
				    command->name);
	if (args->name)
		err = list_name_check(args->name);
	for (unsigned int i = 0; !err && i < args->prefixes.count; i++)
		err = prefix_add(listing, args->prefixes.words[i]);
	return err;
}

/* Begins the report: opens a JSON object and, unless `name` is NULL, prints "list NAME: ". */
static void report_begin(const struct listing *listing, enum sl_access access, const char *name)
{
	print_object(NULL);
	print_string("gate", NULL, listing->context->gate);
	print_string("list", NULL, access_words[access]);
	if (name)
		print_string("name", "list %s: ", name);
}

/* --- allow and deny ------------------------------------------------------------------------- */

/* The previous access and end of an entry or a list. */
struct was {
	enum sl_access access;
	uint32_t until;
};

/*
 * Reads a list file. Returns an error if the file has no prefixes, because a download may have
 * failed. With options replace and force, an empty file empties the list.
 */
static int file_take(struct listing *listing)
{
	const struct entry_args *args = listing->args;
	const char *file = name_shown(args->file);
	int err = list_read(args->file, &(struct rule){0}, args->force ? NULL : FORCE,
			    args->skip ? &listing->skipped : NULL, &listing->entries);

	if (err || listing->entries.count)
		return err;
	if (!args->replace || listing->skipped)
		return error_misuse("no-entry", file, "it has no entry%s",
				    listing->skipped ? ", only lines that cannot be parsed" : "");
	if (args->force)
		return 0;
	return error_misuse(
		"no-entry", file,
		"it has no entry, so list '%s' stays as it is; to empty the list, write "
		"'force'; to remove it: 'sluice %sdel -f %s'",
		listing->name, gate_option(listing->context->gate), word_typed(listing->name));
}

static int listing_parse(struct listing *listing)
{
	const struct entry_args *args = listing->args;
	const char *command = listing->context->command->name;
	/* skip the lockout check: an entry that allows packets cannot lock out the operator */
	bool may_be_wide =
		args->force || (listing->access == SL_ACCESS_ALLOW && !args->file && !args->name);
	int err = entries_parse(listing);

	if (err)
		return err;
	if (args->for_ns && args->until)
		return error_misuse("conflict", command,
				    "'for' and 'until' exclude each other; write one of them");
	listing->ns = args->for_ns;
	if (args->until) /* round to seconds, because a MOMENT has whole seconds */
		listing->ns =
			(until_left_ns(args->until) + NS_PER_SEC / 2) / NS_PER_SEC * NS_PER_SEC;
	listing->name = args->name;
	listing->ends_entries =
		listing->ns && !args->replace && (!args->file || !strcmp(args->file, "-"));
	if (args->file && !args->name) {
		err = list_name_of(args->file, listing->file_name);
		listing->name = listing->file_name;
	}
	if (err)
		return err;
	if (args->replace && !listing->name)
		return error_misuse("no-list", command,
				    "'replace' needs a list; write -f FILE, or 'as LIST'");
	if (args->skip && !args->file)
		return error_misuse("no-list", command,
				    "'skip' needs a file of prefixes; write -f FILE");
	for (unsigned int i = 0; !err && !may_be_wide && i < listing->entries.count; i++)
		err = entry_check_width(&listing->entries.rules[i].prefix, FORCE);
	return err;
}

/* Returns the end for the entries in the unit of until_at(), or 0 if they have no end. */
static uint32_t listing_end(const struct listing *listing)
{
	uint32_t until = listing->args->until;

	return until || !listing->ns ? until : until_after(listing->ns);
}

/*
 * Prints the previous entry, such as " (was denied for 3h more)", if its end is later than `until`.
 * If its end is not later and `always` is set, prints only " (was denied)".
 */
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

static void runtime_print(const struct listing *listing, const struct was *was)
{
	unsigned int fresh = 0, same = 0, cut = 0;
	const struct ruleset *entries = &listing->entries;
	char text[PREFIX_TEXT], time[UNITS_TEXT];

	report_begin(listing, listing->access, NULL);
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
		cut += was[i].access && until_is_cut(was[i].until, entry->until);
	}
	print_end();
	print_number("entries", NULL, entries->count);
	print_number("new", NULL, fresh);
	print_number("same", NULL, same);
	print_number("other", NULL, entries->count - fresh - same);
	print_number("shortened", NULL, cut);
	if (listing->ns)
		print_real("seconds", listing->ns / 1e9);
	print_end();
}

static int runtime_change(struct gate *gate, struct listing *listing)
{
	struct ruleset *entries = &listing->entries;
	uint32_t until = listing_end(listing);
	_cleanup_free_ struct was *was = NULL;
	int err = 0;

	ruleset_unique(entries);
	was = calloc(entries->count, sizeof(*was));
	if (!was)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory");
	for (unsigned int i = 0; !err && i < entries->count; i++) {
		struct rule *rule = &entries->rules[i];
		struct sl_prefix prefix = rule->prefix;

		err = rules_get(gate, &prefix, rule);
		was[i] = (struct was){rule->access, rule->until};
		rule->access = listing->access;
		rule->until = until;
	}
	err = err ?: rules_change(gate, entries, NULL);
	if (!err)
		runtime_print(listing, was);
	return err;
}

static void list_print(const struct listing *listing, const struct sl_list_info *list,
		       const struct was *was, const struct list_counts *counts)
{
	unsigned int named = counts->fresh + counts->same;
	uint64_t left_ns = list->until ? until_left_ns(list->until) : 0;
	uint64_t ns = listing->ns ?: left_ns;
	char left[UNITS_TEXT], time[UNITS_TEXT];

	report_begin(listing, listing->access, listing->name);
	print_number("entries", "%" PRIu64, named);
	print_text(" %s %s", plural(named, "entry", "entries"), access_done[listing->access]);
	if (listing->ns)
		print_text(" for %s", time_format(listing->ns, time));
	if (list->until && (!listing->ns || (listing->ends_entries && left_ns < listing->ns)))
		print_text(", until the list ends in %s", left_format(left_ns, left));
	was_print(was, list->until, false);
	print_number("new", ": %" PRIu64 " new", counts->fresh);
	print_number("same", ", %" PRIu64, counts->same);
	print_text(" already on the list");
	print_number("gone", listing->args->replace ? ", %" PRIu64 " removed" : NULL, counts->gone);
	print_number("shortened", counts->cut ? ", %" PRIu64 " shortened" : NULL, counts->cut);
	print_number("ended", NULL, counts->ended);
	if (counts->ended)
		print_text(", %u left out because %s ended", counts->ended,
			   plural(counts->ended, "it has", "they have"));
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

/* Changes a list. written: mtime of the list file in seconds, or 0 for the current time. */
static int list_change(struct gate *gate, struct listing *listing, uint64_t written)
{
	const uint32_t end = listing_end(listing);
	struct sl_list_info lists[SL_LIST_PLACES];
	struct sl_list_info list = {
		.access = listing->access,
		.until = listing->ends_entries ? 0 : end,
		.replaced = written ?: (uint64_t)time(NULL),
	};
	struct list_counts counts = {0};
	struct was was = {0};
	int err, place;

	snprintf(list.name, sizeof(list.name), "%s", listing->name);
	lists_copy(gate, lists);
	place = lists_find(lists, list.name);
	if (place >= 0)
		was = (struct was){lists[place].access, lists[place].until};
	for (unsigned int i = 0; listing->ends_entries && i < listing->entries.count; i++)
		if (!listing->entries.rules[i].list_until)
			listing->entries.rules[i].list_until = end;
	err = list_put(gate, &list, listing->args->replace, &listing->entries, &counts);
	if (!err)
		list_print(listing, &list, &was, &counts);
	return err;
}

static int allow_run(const struct context *context, const void *data)
{
	const struct entry_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(listing_free) struct listing listing = {
		.context = context,
		.args = args,
		.access = context->command == &command_allow ? SL_ACCESS_ALLOW : SL_ACCESS_DENY,
	};
	uint64_t written = 0;
	int err = listing_parse(&listing);

	if (!err && args->file) {
		struct stamp stamp = {0};

		if (strcmp(args->file, "-"))
			stamp = stamp_of(args->file);
		written = stamp_written(&stamp);
		err = file_take(&listing);
	}
	err = err ?: gate_open_to_try(&gate, context);
	if (!err && listing.access == SL_ACCESS_DENY && !args->force && !context->trial_ns)
		err = ssh_check_denies(&gate, &listing.entries, listing.name);
	if (err)
		return err;
	return listing.name ? list_change(&gate, &listing, written)
			    : runtime_change(&gate, &listing);
}

static int future_parse(const struct value_type *type, const char *what, const char *text,
			void *ret)
{
	struct value_end end;
	int err = value_parse(&value_moment, what, text, &end);

	(void)type;
	if (!err && end.has_passed)
		err = error_misuse("past", object_of(what, text), "this moment has passed");
	if (!err)
		*(uint32_t *)ret = end.until;
	return err;
}

static const struct value_type future_moment = {.name = "MOMENT", .parse = future_parse};

static const struct word allow_words[] = {
	{"default|PREFIX", OPERANDS_ANYWHERE, NULL, offsetof(struct entry_args, prefixes),
	 "one or more addresses, prefixes or ranges A-B; or -f FILE"},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct entry_args, file),
	 "the entries of a file, as a list that has the path of the file as its name. A line is\n"
	 "an address, a prefix or a range A-B, and may end with for TIME or until MOMENT. Other\n"
	 "formats are in sluice-limits(7). - is standard input"},
	{"as", KEYWORD, VALUE_TEXT("LIST"), offsetof(struct entry_args, name),
	 "add the entries to the list of this name: deny A B as LIST"},
	{"for", KEYWORD, &for_time, offsetof(struct entry_args, for_ns),
	 "the entry ends after 30s, 10min, 1h30m, 2 days; with -f FILE or replace, the list and\n"
	 "all its entries end. Default: never"},
	{"until", KEYWORD, &future_moment, offsetof(struct entry_args, until),
	 "the entry ends at a moment: 2026-11-22T13:00:00Z, or with an offset, +02:00"},
	{"replace", KEYWORD, NULL, offsetof(struct entry_args, replace),
	 "with -f or as: replace the list in one step, so that other entries are removed. A file\n"
	 "without entries is refused"},
	{"force", KEYWORD, NULL, offsetof(struct entry_args, force),
	 "accept prefixes shorter than /8 (IPv6: /16), a deny of this ssh session and, with\n"
	 "replace, an empty file. 'allow PREFIX' without a list accepts any prefix"},
	{"skip", KEYWORD, NULL, offsetof(struct entry_args, skip),
	 "with -f: skip lines that cannot be parsed, and print their number"},
	WORD_CONFIRM,
};

static const char allow_details[] =
	"The rule with the longest prefix decides, whether it is an entry or has limits. The\n"
	"limits of a prefix stay, and decide again when its entry ends. Without -f and as, the\n"
	"entry is a runtime entry: it overrides lists at the same prefix, and no list denies what\n"
	"a runtime entry allows. If two lists differ about a prefix, it is allowed. 'sluice\n"
	"undeny', 'sluice unallow' and 'sluice del -f FILE' remove entries and lists.";

const struct command command_allow = {
	.name = "allow",
	.brief = "let every packet of a prefix pass",
	.details = allow_details,
	COMMAND_WORDS(allow_words, struct entry_args),
	.run = allow_run,
};

const struct command command_deny = {
	.name = "deny",
	.brief = "drop every packet of a prefix",
	.details = allow_details,
	COMMAND_WORDS(allow_words, struct entry_args),
	.run = allow_run,
};

/* --- unallow and undeny --------------------------------------------------------------------- */

const char *entry_removal(const struct gate *gate, const struct judgement *decides,
			  char text[REMOVAL_TEXT])
{
	struct sl_list_info lists[SL_LIST_PLACES];
	const char *name = NULL;
	char prefix[PREFIX_TEXT];

	lists_copy(gate, lists);
	if (decides->lists)
		name = lists[__builtin_ctzll(decides->lists)].name;
	snprintf(text, REMOVAL_TEXT, "sluice %sun%s %s%s%s", gate_option(gate->name),
		 access_words[decides->access], prefix_format(&decides->prefix, prefix),
		 name ? " as " : "", name ? operand_typed(name) : "");
	return text;
}

/*
 * Adds the error that a prefix has no entry. If a shorter prefix has an entry, the error names it.
 */
static int refuse_uncovered(const struct gate *gate, const struct sl_prefix *prefix,
			    enum sl_access access)
{
	char buffer[PREFIX_TEXT], shorter[PREFIX_TEXT], removal[REMOVAL_TEXT];
	const char *text = prefix_format(prefix, buffer);
	struct judgement decides;
	int err = rules_judge(gate, prefix, &decides);

	if (err)
		return err;
	if (access && decides.access == access)
		return error_add(
			ENOENT, "no-entry", text,
			"it has no runtime entry '%s', but the entry of %s covers it; to remove "
			"that: '%s'",
			access_words[access], prefix_format(&decides.prefix, shorter),
			entry_removal(gate, &decides, removal));
	return error_add(ENOENT, "no-entry", text, "it has no %s%s%s; see 'sluice %sshow'",
			 access ? "runtime entry '" : "rule", access ? access_words[access] : "",
			 access ? "'" : "", gate_option(gate->name));
}

int entry_refuse_absent(const struct gate *gate, const struct rule *rule, enum sl_access access)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text), *option = gate_option(gate->name);
	const struct sl_list_info *list;

	if (rule->access)
		return error_add(
			ENOENT, "no-entry", prefix,
			"its runtime entry is '%s', not '%s'; to remove it: 'sluice %sun%s %s'",
			access_words[rule->access], access_words[access], option,
			access_words[rule->access], prefix);
	if (!rule->lists)
		return refuse_uncovered(gate, &rule->prefix, access);
	lists_copy(gate, lists);
	list = &lists[__builtin_ctzll(rule->lists)];
	return error_add(
		ENOENT, "no-entry", prefix,
		"it is only on list '%s'; to remove it from the list: 'sluice %sun%s %s as "
		"%s'; to remove the list: 'sluice %sdel -f %s'",
		list->name, option, access_words[list->access], prefix, operand_typed(list->name),
		option, word_typed(list->name));
}

/*
 * Prints prefixes as a JSON array, or one per line. format: text that follows each prefix in a
 * line, with %s for "allow" or "deny".
 */
static void __attribute__((format(printf, 3, 0)))
prefixes_print(const char *key, const struct ruleset *entries, const char *format,
	       enum sl_access access)
{
	char text[PREFIX_TEXT];

	print_array(key);
	for (unsigned int i = 0; i < entries->count; i++) {
		print_string(NULL, "%s: ", prefix_format(&entries->rules[i].prefix, text));
		print_text(format, access_words[access]);
	}
	print_end();
}

/*
 * Removes runtime entries. If a prefix has no runtime entry, returns an error. With `force`, adds
 * the prefix to `absent` instead of the error.
 */
static int runtime_remove(struct gate *gate, struct listing *listing)
{
	struct ruleset *entries = &listing->entries;
	enum sl_access access = listing->access;
	unsigned int found = 0;
	int err = 0;

	ruleset_unique(entries);
	for (unsigned int i = 0; !err && i < entries->count; i++) {
		struct rule rule, absent = {.prefix = entries->rules[i].prefix};

		err = rules_get(gate, &absent.prefix, &rule);
		if (err)
			break;
		if (rule.access == access) {
			rule.access = SL_ACCESS_NONE;
			entries->rules[found++] = rule;
			continue;
		}
		err = listing->args->force ? ruleset_add(&listing->absent, &absent)
					   : entry_refuse_absent(gate, &rule, access);
		rule_free(&rule);
	}
	entries->count = found;
	if (!err && found)
		err = rules_change(gate, entries, NULL);
	if (err)
		return err;
	report_begin(listing, access, NULL);
	prefixes_print("prefixes", entries, "runtime entry '%s' removed\n", access);
	prefixes_print("absent", &listing->absent, "had no runtime entry '%s'\n", access);
	print_end();
	return 0;
}

/* Removes prefixes from a list. With -f, removes the whole list. */
static int list_remove(struct gate *gate, struct listing *listing)
{
	const struct entry_args *args = listing->args;
	struct list_counts counts = {0};
	struct sl_list_info list = {0};
	unsigned int mark = error_count();
	int err = args->file ? list_of_file(gate, args->file, &list)
			     : list_named(gate, args->name, &list);
	bool is_absent = err == -ENOENT && args->force;

	if (is_absent) {
		error_drop(mark);
		list.access = listing->access;
	} else if (err) {
		return err;
	} else if (listing->access && listing->access != list.access) {
		return error_add(ENOENT, "other-access", NULL,
				 "list '%s' %s; write 'sluice %sun%s' instead", list.name,
				 access_verbs[list.access], gate_option(gate->name),
				 access_words[list.access]);
	} else {
		err = args->file
			      ? list_drop(gate, list.name, &counts)
			      : list_take(gate, list.name, &listing->entries, args->force, &counts);
	}
	if (err && !is_absent)
		return err;
	report_begin(listing, list.access, is_absent ? args->file ?: args->name : list.name);
	print_number("gone", NULL, counts.gone);
	print_bool("taken_back", args->file && !is_absent);
	print_end();
	if (is_absent)
		print_text("it did not exist\n");
	else
		print_text("%s%u %s no longer %s by it\n", args->file ? "removed: " : "",
			   counts.gone, plural(counts.gone, "entry is", "entries are"),
			   access_done[list.access]);
	return 0;
}

int list_of_file_remove(const struct context *context, const char *file)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct listing listing = {.context = context, .args = &(struct entry_args){.file = file}};

	return gate_open_to_try(&gate, context) ?: list_remove(&gate, &listing);
}

static int unallow_run(const struct context *context, const void *data)
{
	const struct entry_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(listing_free) struct listing listing = {
		.context = context,
		.args = args,
		.access = context->command == &command_unallow ? SL_ACCESS_ALLOW : SL_ACCESS_DENY,
	};
	int err = entries_parse(&listing);

	if (err)
		return err;
	if (args->file && args->name)
		return error_misuse("conflict", context->command->name,
				    "-f FILE and 'as LIST' both name a list; to remove list '%s': "
				    "'sluice %sdel -f %s'",
				    args->name, gate_option(context->gate), word_typed(args->name));
	err = gate_open_to_try(&gate, context);
	if (err)
		return err;
	return args->file || args->name ? list_remove(&gate, &listing)
					: runtime_remove(&gate, &listing);
}

static const struct word unallow_words[] = {
	{"default|PREFIX", OPERANDS_ANYWHERE, NULL, offsetof(struct entry_args, prefixes),
	 "remove the runtime entry of this prefix; its limits and its entries on lists stay. One\n"
	 "or more prefixes, or -f FILE"},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct entry_args, file),
	 "remove the whole list that has the path of this file, or this name. The file is not\n"
	 "read. Without as"},
	{"as", KEYWORD, VALUE_TEXT("LIST"), offsetof(struct entry_args, name),
	 "remove the entry from the list of this name instead"},
	{"force", KEYWORD, NULL, offsetof(struct entry_args, force),
	 "succeed even if an entry, or the list, does not exist"},
	WORD_CONFIRM,
};

const struct command command_unallow = {
	.name = "unallow",
	.brief = "remove what allow added",
	COMMAND_WORDS(unallow_words, struct entry_args),
	.run = unallow_run,
};

const struct command command_undeny = {
	.name = "undeny",
	.brief = "remove what deny added",
	COMMAND_WORDS(unallow_words, struct entry_args),
	.run = unallow_run,
};

/* --- lists ---------------------------------------------------------------------------------- */

static int lists_run(const struct context *context, const void *args)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;

	(void)args;
	return gate_open_to_look(&gate, context) ?: report_lists(&gate);
}

const struct command command_lists = {
	.name = "lists",
	.brief = "the lists, their entries, ends and ages",
	.run = lists_run,
};
