// SPDX-License-Identifier: GPL-2.0
/* `allow` and `deny` of a rules file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "config/config_reader.h"
#include "rules/list_file.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "rules/value.h"

struct times {
	/* the last value of `for` and its end: entries of equal times end together */
	uint64_t ns;
	uint32_t until;
	/* the number of entries whose `until` has passed, and the first of them */
	unsigned int ended;
	const struct node *first_ended;
};

static int for_read(struct times *times, const char *text, uint32_t *ret)
{
	int status;
	uint64_t ns;

	status = value_parse(&value_time, "for", text, &ns);
	if (status)
		return status;
	if (ns != times->ns) {
		times->ns = ns;
		times->until = until_after(ns);
	}
	*ret = times->until;
	return OK;
}

/* Reads the end of an entry. ret_ended: the end is past. */
static int end_read(struct reader *reader, struct times *times, const struct node *node,
		    uint32_t *ret, bool *ret_ended)
{
	const struct node *length = node_find(node, "for"), *until = node_find(node, "until");

	if (!length && !until)
		return OK;
	reader_place(reader, until ? until : length);
	if (length && until)
		return misuse("'for' and 'until': write one of them");
	return until ? until_parse(until->word, ret, ret_ended)
		     : for_read(times, length->word, ret);
}

/* The path of a list file. A relative one begins at the directory of the rules file. */
static char *list_path(const struct reader *reader, const char *file)
{
	const char *slash = strrchr(reader->path, '/');
	char *path = NULL;

	if (*file == '/' || !slash)
		return strdup(file);
	if (asprintf(&path, "%.*s/%s", (int)(slash - reader->path), reader->path, file) < 0)
		return NULL;
	return path;
}

/* The list of an entry that names one by its bit. */
static struct sl_list_info *list_of(struct reader *reader, const struct rule *entry)
{
	return &reader->rules.lists[__builtin_ctzll(entry->lists)];
}

/*
 * Reads a list file. Without `force` a list that is empty or has very short prefixes is refused, as
 * in a command. skip: lines that are not understood are left out, and their number is noted. An
 * entry that has ended has no list.
 */
static int file_read_list(struct reader *reader, const char *file, struct rule *entry, bool forced,
			  bool skip, struct ruleset *set)
{
	const char *force = forced ? NULL : "write 'force: true'";
	unsigned int skipped = 0;
	struct stamp stamp;
	struct list_path *read;
	int status, added;
	char *path;

	if (!strcmp(file, "-"))
		return misuse("a list is a file of its own, and not standard input");
	path = list_path(reader, file);
	if (!path)
		return failure("out of memory");
	stamp = stamp_of(path);
	status = list_read(path, entry, force, skip ? &skipped : NULL, set);
	if (!status && skipped && !set->count)
		status = misuse("%s has no entry, only lines that are not understood", path);
	else if (!status && skipped)
		note("%s: %u %s skipped", path, skipped, plural(skipped, "line", "lines"));
	if (!status && force && !set->count)
		status = misuse("%s has no entry: %s if its list is to be empty", path, force);
	added = list_paths_add(&reader->files, path, stamp);
	if (added)
		return added;
	if (!entry->lists)
		return reader->leaves_out ? OK : status;
	list_of(reader, entry)->replaced = stamp_written(&stamp);
	read = &reader->files.list[reader->files.count - 1];
	read->list = *list_of(reader, entry);
	if (!status || !reader->leaves_out)
		return status;
	read->is_left_out = true;
	*list_of(reader, entry) = (struct sl_list_info){0};
	entry->lists = 0;
	return OK;
}

/* Reads `force` or `skip`. */
static int of_file_read(struct reader *reader, const struct node *node, const char *key, bool *ret)
{
	const struct node *value = node_find(node, key);

	*ret = false;
	if (!value)
		return OK;
	reader_place(reader, value);
	if (!node_find(node, "file"))
		return misuse("'%s' is for a file of prefixes: write 'file: ...', or leave it out",
			      key);
	return reader_truth(reader, value, ret);
}

/* The name of an entry's list: the value of `list`, or else the path of the file. */
static int list_name(struct reader *reader, const struct node *node, char name[SL_LIST_NAME])
{
	const char *list = node_word(node, "list");
	int status;
	char *path;

	if (list) {
		status = list_name_check(list);
		if (!status)
			snprintf(name, SL_LIST_NAME, "%s", list);
		return status;
	}
	path = list_path(reader, node_word(node, "file"));
	status = path ? list_name_of(path, name) : failure("out of memory");
	free(path);
	return status;
}

/*
 * Makes the list of an entry that has a file or a name. The entry's access and end move to the
 * list.
 */
static int list_make(struct reader *reader, const struct node *node, struct rule *entry)
{
	const struct node *name = node_find(node, "list");
	struct sl_list_info list = {
		.access = entry->access,
		.until = entry->until,
		.replaced = time(NULL),
	};
	struct ruleset *rules = &reader->rules;
	int status = ruleset_make_lists(rules);
	int place;

	reader_place(reader, name ? name : node_find(node, "file"));
	if (!status)
		status = list_name(reader, node, list.name);
	if (status)
		return status;
	if (lists_find(rules->lists, list.name) >= 0)
		return misuse("list '%s' is given twice", list.name);
	place = lists_find(rules->lists, "");
	status = lists_put(rules->lists, &list, place);
	entry->access = SL_ACCESS_NONE;
	entry->until = 0;
	entry->lists = status ? 0 : 1ULL << place;
	return status;
}

/* Claims a prefix, unless its entry has ended: then it has no access and no list, or an end. */
static bool rule_claim(struct reader *reader, const struct rule *rule, struct position at)
{
	if (!rule->access && !rule->lists)
		return true;
	if (rule->list_until && !until_left_ns(rule->list_until))
		return true;
	return reader_claim(reader, rule, at);
}

static void rules_claim(struct reader *reader, const struct ruleset *set, struct position at)
{
	for (unsigned int i = 0; i < set->count; i++)
		if (!rule_claim(reader, &set->rules[i], at))
			return;
}

static void prefix_claim(struct reader *reader, const struct node *node, const struct rule *entry)
{
	struct ruleset set = {0};

	reader_place(reader, node);
	if (!reader_failed(reader, entry->lists ? list_entry_add(node->word, entry, &set)
						: ruleset_add_words(&set, entry, node->word)))
		rules_claim(reader, &set, node->at);
	ruleset_free(&set);
}

/*
 * Reads the prefixes of an entry. An entry that has ended has neither access nor list: its prefixes
 * are checked, but not claimed.
 */
static void entry_prefixes_read(struct reader *reader, const struct node *node, struct rule *entry)
{
	const struct node *prefix = node_find(node, "prefix");
	const struct node *item = node_items(node, "prefixes");
	const struct node *file = node_find(node, "file");
	struct ruleset set = {0};
	bool forced, skip;

	if (prefix)
		prefix_claim(reader, prefix, entry);
	for (; item; item = item->next)
		prefix_claim(reader, item, entry);
	if (reader_failed(reader, of_file_read(reader, node, "force", &forced)
					  ?: of_file_read(reader, node, "skip", &skip)) ||
	    !file)
		return;
	reader_place(reader, file);
	if (!reader_failed(reader, file_read_list(reader, file->word, entry, forced, skip, &set)))
		rules_claim(reader, &set, file->at);
	ruleset_free(&set);
}

static void entry_read(struct reader *reader, struct times *times, const struct node *node,
		       enum sl_access access)
{
	const struct node *file = node_find(node, "file");
	struct rule entry = {.access = access};
	bool ended = false;

	if (!!node_find(node, "prefix") + !!node_find(node, "prefixes") + !!file != 1) {
		reader_place(reader, node);
		reader_failed(reader,
			      misuse("what does this entry %s? Write one of prefix, prefixes "
				     "and file",
				     access_words[access]));
	}
	reader_failed(reader, end_read(reader, times, node, &entry.until, &ended));
	if (ended) {
		entry.access = SL_ACCESS_NONE;
		if (!times->ended++ || node->at.line < times->first_ended->at.line)
			times->first_ended = node_find(node, "until");
	}
	if (!ended && (file || node_find(node, "list")))
		reader_failed(reader, list_make(reader, node, &entry));
	entry_prefixes_read(reader, node, &entry);
}

static void list_read_all(struct reader *reader, struct times *times, enum sl_access access)
{
	const struct node *first = node_items(reader->document.root, access_words[access]);
	struct rule bare = {.access = access};

	for (const struct node *node = first; node; node = node->next) {
		if (node->kind != first->kind)
			continue; /* shape_check() has refused it */
		if (node->kind == NODE_WORD)
			prefix_claim(reader, node, &bare);
		else
			entry_read(reader, times, node, access);
	}
}

/*
 * Reports entries that have ended. They are no error, as a file is applied again and again, but
 * they are named, because rules of the file are left out.
 */
static void ended_say(struct reader *reader, const struct times *times)
{
	unsigned int others = times->ended - 1;

	if (!times->ended || reader->status)
		return;
	reader_place(reader, times->first_ended);
	if (others)
		note("this 'until' has passed, and so %s of %u other %s: they are left out",
		     plural(others, "has that", "have those"), others,
		     plural(others, "entry", "entries"));
	else
		note("this 'until' has passed: the entry is left out");
}

void lists_read(struct reader *reader)
{
	struct times times = {0};

	list_read_all(reader, &times, SL_ACCESS_ALLOW);
	list_read_all(reader, &times, SL_ACCESS_DENY);
	ended_say(reader, &times);
}
