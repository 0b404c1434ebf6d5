// SPDX-License-Identifier: GPL-2.0
/* The entries of `allow` and `deny` of a rules file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "config/config_reader.h"
#include "rules/lists.h"
#include "rules/prefix.h"

/* The path of a list file. A relative one begins at the directory of the rules file. */
static char *list_path(const struct config_reader *reader, const char *file)
{
	const char *slash = strrchr(reader->path, '/');
	char *path = NULL;

	if (*file == '/' || !slash)
		path = strdup(file);
	else if (asprintf(&path, "%.*s/%s", (int)(slash - reader->path), reader->path, file) < 0)
		path = NULL;
	if (!path)
		error_add(ENOMEM, "no-memory", file, "out of memory");
	return path;
}

/* The list of an entry that names one by its bit. */
static struct sl_list_info *list_of(struct config_reader *reader, const struct rule *rule)
{
	return &reader->config.rules.lists[__builtin_ctzll(rule->lists)];
}

/*
 * Claims the prefixes of a set. A rule without access and list, or with an end in the past, is of
 * an entry that has ended: its prefixes are checked, but not claimed.
 */
static int rules_claim(struct config_reader *reader, const struct ruleset *set, struct position at)
{
	for (unsigned int i = 0; i < set->count; i++) {
		const struct rule *rule = &set->rules[i];
		int err;

		if ((!rule->access && !rule->lists) ||
		    (rule->list_until && !until_left_ns(rule->list_until)))
			continue;
		err = config_claim(reader, rule, at);
		if (err)
			return err;
	}
	return 0;
}

static int prefix_claim(struct config_reader *reader, const struct node *node,
			const struct rule *rule)
{
	_cleanup_(ruleset_free) struct ruleset set = {0};
	unsigned int mark = error_count();
	int err = rule->lists ? list_entry_add(node->word, rule, &set)
			      : ruleset_add_words(&set, rule, node->word);

	err = err ?: rules_claim(reader, &set, node->at);
	return config_fail_at(reader, mark, node->at, err);
}

/*
 * Reads a list file. Without `force` a list that is empty or has very short prefixes is refused, as
 * in a command. With `skip`, bad lines are left out, and their number is noted.
 */
static int file_check(const char *path, const struct rule *rule, const struct config_entry *entry,
		      struct ruleset *set)
{
	const char *force = entry->force ? NULL : "write 'force: true'";
	unsigned int skipped = 0;
	int err = list_read(path, rule, force, entry->skip ? &skipped : NULL, set);

	if (err)
		return err;
	if (skipped && !set->count)
		return error_misuse("empty-list", path, "no entry, only bad lines");
	if (skipped)
		error_notice("lines-skipped", path, "%u %s skipped", skipped,
			     plural(skipped, "line", "lines"));
	if (force && !set->count)
		return error_misuse("empty-list", path, "no entry; %s if the list is to be empty",
				    force);
	return 0;
}

/* Reads a list file, and claims its prefixes. Leaves out its list if that is asked for. */
static int file_claim(struct config_reader *reader, const struct config_entry *entry,
		      struct rule *rule, struct position at)
{
	_cleanup_(ruleset_free) struct ruleset set = {0};
	struct list_paths *files = &reader->config.files;
	char *path = list_path(reader, entry->file);
	struct list_path *file;
	struct stamp stamp;
	int err, added;

	if (!path)
		return -ENOMEM;
	stamp = stamp_of(path);
	err = file_check(path, rule, entry, &set);
	added = list_paths_add(files, path, stamp);
	if (added)
		return added;
	if (rule->lists) {
		list_of(reader, rule)->replaced = stamp_written(&stamp);
		file = &files->list[files->count - 1];
		file->list = *list_of(reader, rule);
		if (err && reader->leaves_out) {
			file->is_left_out = true;
			*list_of(reader, rule) = (struct sl_list_info){0};
		}
	}
	if (err)
		return err;
	return rules_claim(reader, &set, at);
}

/*
 * Makes the list of an entry that has a file or a name: the value of `list`, or else the path of
 * the file. The access and the end of the rule move to the list.
 */
static int list_make(struct config_reader *reader, const struct config_entry *entry,
		     struct rule *rule)
{
	struct ruleset *rules = &reader->config.rules;
	struct sl_list_info list = {
		.access = rule->access,
		.until = rule->until,
		.replaced = time(NULL),
	};
	_cleanup_free_ char *path = NULL;
	int err = ruleset_make_lists(rules), place;

	if (!err && entry->list) {
		err = list_name_check(entry->list);
		snprintf(list.name, sizeof(list.name), "%s", entry->list);
	} else if (!err) {
		path = list_path(reader, entry->file);
		err = path ? list_name_of(path, list.name) : -ENOMEM;
	}
	if (err)
		return err;
	if (lists_find(rules->lists, list.name) >= 0)
		return error_misuse("list-twice", object_of("list", list.name), "given twice");
	place = lists_find(rules->lists, "");
	err = lists_put(rules->lists, &list, place);
	rule->access = SL_ACCESS_NONE;
	rule->until = 0;
	rule->lists = err ? 0 : 1ULL << place;
	return err;
}

/* Checks which keys an entry has, and computes its end. */
static int entry_check(struct config_reader *reader, const struct config_item *item,
		       struct rule *rule)
{
	const struct node *until = node_find(item->node, "until");
	const struct node *file = node_find(item->node, "file"), *only;
	const struct config_entry *entry = item->data;

	if (!!node_find(item->node, "prefix") + !!node_find(item->node, "prefixes") + !!file != 1)
		return config_refuse(reader, item->node->at, "no-prefix",
				     access_words[rule->access],
				     "an entry has one of prefix, prefixes and file");
	only = node_find(item->node, "force") ?: node_find(item->node, "skip");
	if (only && !file)
		return config_refuse(reader, only->at, "no-file", object_of(NULL, only->key),
				     "it is for a file of prefixes; write 'file: ...', or leave it "
				     "out");
	if (entry->for_ns && until)
		return config_refuse(reader, until->at, "two-ends", NULL,
				     "'for' and 'until'; write one of them");
	if (entry->for_ns && entry->for_ns != reader->for_ns) {
		reader->for_ns = entry->for_ns;
		reader->for_until = until_after(entry->for_ns);
	}
	rule->until = entry->for_ns ? reader->for_until : entry->until.until;
	if (!entry->until.has_passed)
		return 0;
	/* no error, because a file is applied again and again; but a part of it is left out */
	rule->access = SL_ACCESS_NONE;
	if (!reader->ended++ || until->at.line < reader->first_ended.line)
		reader->first_ended = until->at;
	return 0;
}

int config_entry_finish(struct config_reader *reader, const struct config_item *item)
{
	bool is_bare = item->node->kind == NODE_WORD;
	const struct node *list = is_bare ? NULL : node_find(item->node, "list"),
			  *file = is_bare ? NULL : node_find(item->node, "file"),
			  *prefixes = is_bare ? NULL : node_find(item->node, "prefixes");
	const struct config_entry *entry = item->data;
	struct rule rule = {.access = item->map->access};
	int err = is_bare ? 0 : entry_check(reader, item, &rule) ?: item->err;
	unsigned int mark = error_count();

	if (!err && rule.access && (list || file)) {
		err = list_make(reader, entry, &rule);
		config_fail_at(reader, mark, list ? list->at : file->at, err);
	}
	if (err)
		rule = (struct rule){0};
	if (entry->prefix)
		prefix_claim(reader, is_bare ? item->node : node_find(item->node, "prefix"), &rule);
	for (const struct node *node = prefixes ? prefixes->first : NULL; node; node = node->next)
		if (node->kind == NODE_WORD)
			prefix_claim(reader, node, &rule);
	if (err || !file)
		return err;
	mark = error_count();
	if (!strcmp(entry->file, "-"))
		return config_refuse(reader, file->at, "list-stdin", NULL,
				     "a list cannot be read from standard input; write the path of "
				     "a file");
	err = file_claim(reader, entry, &rule, file->at);
	if (err)
		document_place(&reader->document, mark, file->at);
	else if (error_count() > mark) /* skipped lines */
		document_place(&reader->document, mark, file->at);
	return rule.lists && reader->leaves_out ? 0 : err;
}
