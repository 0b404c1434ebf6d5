// SPDX-License-Identifier: GPL-2.0
#include "keep/state_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "rules/lists.h"
#include "rules/prefix.h"

#define VERSION 1

/* The longest time that an entry can have: two years. */
#define LEFT_MAX_MS (730 * 86400000LL)

static uint64_t now_wall_ms(void)
{
	return clock_read(CLOCK_REALTIME) / NS_PER_MS;
}

/* --- Parsing -------------------------------------------------------------------------------- */

struct parser {
	struct ruleset *set;
	uint64_t passed_ms; /* since the file was saved */
};

static int refuse(const char *text)
{
	return error_misuse("state-damaged", NULL, "%s", text);
}

/* Stores the end of an entry, in the unit of struct rule. left_ms: when saved; 0: without an end. */
static int end_parse(const struct parser *parser, json_int_t left_ms, uint32_t *ret,
		     bool *ret_ended)
{
	if (left_ms < 0 || left_ms > LEFT_MAX_MS)
		return refuse("not a time in ms of at most 2 years");
	*ret_ended = left_ms && (uint64_t)left_ms <= parser->passed_ms;
	if (left_ms && !*ret_ended)
		*ret = until_after((left_ms - parser->passed_ms) * NS_PER_MS);
	return 0;
}

static int access_parse(const char *word, enum sl_access *ret)
{
	int at = word_find(access_words + SL_ACCESS_ALLOW, 2, word);

	*ret = SL_ACCESS_ALLOW + at;
	return at < 0 ? refuse("'access' is neither allow nor deny") : 0;
}

/* Parses {"place", "name", "access", "replaced", "left_ms"}. */
static int list_parse(struct parser *parser, json_t *item)
{
	struct sl_list_info list = {0};
	json_int_t place, replaced, left_ms = 0;
	enum sl_access access = SL_ACCESS_NONE;
	const char *name, *word;
	json_error_t error;
	bool ended;
	int err;

	if (json_unpack_ex(item, &error, JSON_STRICT, "{s:I, s:s, s:s, s:I, s?I}", "place", &place,
			   "name", &name, "access", &word, "replaced", &replaced, "left_ms",
			   &left_ms))
		return refuse(error.text);
	err = list_name_check(name) ?: access_parse(word, &access)
				    ?: end_parse(parser, left_ms, &list.until, &ended);
	if (err || ended)
		return err;
	if (place < 0 || place >= SL_LIST_PLACES || *parser->set->lists[place].name ||
	    lists_find(parser->set->lists, name) >= 0)
		return refuse("two lists of one place or name, or no such place");
	list.access = access;
	list.replaced = replaced;
	snprintf(list.name, sizeof(list.name), "%s", name);
	return lists_put(parser->set->lists, &list, place);
}

/* Parses {"prefix", "access", "left_ms", "lists", "timed", "list_left_ms"}. */
static int rule_parse(struct parser *parser, json_t *item)
{
	json_int_t left_ms = 0, list_left_ms = 0, timed = -1;
	const char *prefix, *access = NULL;
	json_t *lists = NULL, *list;
	bool ended, list_ended;
	struct rule rule = {0};
	uint32_t until = 0;
	enum sl_access word;
	json_error_t error;
	size_t i;
	int err;

	if (json_unpack_ex(item, &error, JSON_STRICT, "{s:s, s?s, s?I, s?o, s?I, s?I}", "prefix",
			   &prefix, "access", &access, "left_ms", &left_ms, "lists", &lists,
			   "timed", &timed, "list_left_ms", &list_left_ms))
		return refuse(error.text);
	err = prefix_parse(prefix, &rule.prefix)
		      ?: end_parse(parser, left_ms, &rule.until, &ended)
		      ?: end_parse(parser, list_left_ms, &until, &list_ended);
	if (!err && access)
		err = access_parse(access, &word);
	if (err)
		return err;
	if (access && !ended)
		rule.access = word;
	json_array_foreach(lists, i, list)
	{
		json_int_t place = json_is_integer(list) ? json_integer_value(list) : -1;

		if (place < 0 || place >= SL_LIST_PLACES)
			return refuse("'lists' is not an array of places");
		/* a list that has ended is left out, and so are its entries */
		if (*parser->set->lists[place].name && !(place == timed && list_ended))
			rule_add_list(&rule, place, place == timed ? until : 0);
	}
	return rule_is_empty(&rule) ? 0 : ruleset_add(parser->set, &rule);
}

/* Calls `parse` for each element of an array, and puts "KEY[INDEX]" before its error. */
static int items_parse(struct parser *parser, const char *key, json_t *items,
		       int (*parse)(struct parser *parser, json_t *item))
{
	unsigned int mark = error_count();
	char place[64];
	json_t *item;
	size_t i;
	int err;

	if (!json_is_array(items))
		return error_misuse("state-damaged", key, "not an array");
	json_array_foreach(items, i, item)
	{
		err = parse(parser, item);
		if (!err)
			continue;
		snprintf(place, sizeof(place), "%s[%zu]", key, i);
		error_place(mark, place);
		return err;
	}
	return 0;
}

static int root_parse(json_t *root, struct state_file *state)
{
	struct parser parser = {.set = &state->entries};
	json_int_t saved_ms, bpffs, now_ms = now_wall_ms();
	json_t *lists, *rules;
	json_error_t error;
	const char *boot;
	int version, err;

	if (json_unpack_ex(root, &error, JSON_STRICT, "{s:i, s:s, s:I, s:I, s:o, s:o}", "version",
			   &version, "boot", &boot, "saved_ms", &saved_ms, "bpffs", &bpffs, "lists",
			   &lists, "rules", &rules))
		return refuse(error.text);
	if (version != VERSION)
		return refuse("another version of sluice wrote it");
	snprintf(state->boot, sizeof(state->boot), "%s", boot);
	state->bpffs = bpffs;
	if (now_ms > saved_ms)
		parser.passed_ms = now_ms - saved_ms;
	err = ruleset_make_lists(&state->entries)
		      ?: items_parse(&parser, "lists", lists, list_parse)
		      ?: items_parse(&parser, "rules", rules, rule_parse);
	ruleset_unique(&state->entries);
	return err;
}

int state_file_parse(const char *name, const char *text, size_t size, struct state_file *ret)
{
	_cleanup_(state_file_free) struct state_file state = {0};
	unsigned int mark = error_count();
	json_error_t error;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	int err;

	if (root)
		err = root_parse(root, &state);
	else
		err = error_misuse("state-damaged", NULL, "%d:%d: %s", error.line, error.column,
				   error.text);
	json_decref(root);
	error_place(mark, name);
	if (err)
		return err;
	*ret = state;
	state = (struct state_file){0};
	return 0;
}

void state_file_free(struct state_file *state)
{
	ruleset_free(&state->entries);
	*state = (struct state_file){0};
}

/* --- Formatting ----------------------------------------------------------------------------- */

/* Adds the time left. An end that is past counts as 1 ms, because 0 is no end. */
static void left_add(json_t *object, const char *key, uint32_t until)
{
	uint64_t left_ms = until ? until_left_ns(until) / NS_PER_MS : 0;

	if (until)
		json_object_set_new(object, key, json_integer(left_ms ?: 1));
}

static json_t *rule_json(const struct rule *rule)
{
	char text[PREFIX_TEXT];
	json_t *item = json_pack("{s:s}", "prefix", prefix_format(&rule->prefix, text)), *lists;

	if (rule->access)
		json_object_set_new(item, "access", json_string(access_words[rule->access]));
	left_add(item, "left_ms", rule->until);
	if (!rule->lists)
		return item;
	lists = json_array();
	for (uint64_t bits = rule->lists; bits; bits &= bits - 1)
		json_array_append_new(lists, json_integer(__builtin_ctzll(bits)));
	json_object_set_new(item, "lists", lists);
	if (rule->list_until)
		json_object_set_new(item, "timed", json_integer(rule->timed));
	left_add(item, "list_left_ms", rule->list_until);
	return item;
}

json_t *state_file_json(const struct state_file *state)
{
	json_t *lists = json_array(), *rules = json_array();
	const struct ruleset *set = &state->entries;

	for (int place = 0; set->lists && place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *list = &set->lists[place];
		json_t *item;

		if (!*list->name || list_ended(list))
			continue;
		item = json_pack("{s:i, s:s, s:s, s:I}", "place", place, "name", list->name,
				 "access", access_words[list->access], "replaced",
				 (json_int_t)list->replaced);
		left_add(item, "left_ms", list->until);
		json_array_append_new(lists, item);
	}
	for (unsigned int i = 0; i < set->count; i++)
		json_array_append_new(rules, rule_json(&set->rules[i]));
	return json_pack("{s:i, s:s, s:I, s:I, s:o, s:o}", "version", VERSION, "boot", state->boot,
			 "saved_ms", (json_int_t)now_wall_ms(), "bpffs", (json_int_t)state->bpffs,
			 "lists", lists, "rules", rules);
}

/* --- The file ------------------------------------------------------------------------------- */

int state_file_check(const char *path)
{
	static const char beginning[] = "{\"version\": 1, \"boot\": \""; /* as jansson writes it */
	char text[sizeof(beginning) - 1];
	size_t size;
	int err = file_begin(path, text, sizeof(text), &size);

	if (!err && memcmp(text, beginning, size))
		return error_misuse("not-state", path,
				    "this is no state of 'sluice keep', and is not overwritten");
	return err;
}

int state_file_check_apart(const char *path, const char *other, const struct stamp *stamp)
{
	static const char *const suffixes[] = {"",	 ".bad",       ".new",
					       ".lists", ".lists.bad", ".lists.new"};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		char beside[PATH_MAX + 16];
		struct stamp own;

		snprintf(beside, sizeof(beside), "%s%s", path, suffixes[i]);
		own = stamp_of(beside);
		if (stamp_same_file(&own, stamp))
			return error_misuse("not-state", path,
					    "%s is read by this command, and would be lost", other);
	}
	return 0;
}

void state_file_read(const char *path, struct state_file *ret)
{
	_cleanup_(file_free) struct file file = {0};
	char aside[PATH_MAX];
	bool exists;
	int err = file_read_own(path, &file, &exists);

	*ret = (struct state_file){0};
	if (!err && exists)
		err = state_file_parse(path, file.text, file.size, ret);
	if (!err)
		return;
	if (snprintf(aside, sizeof(aside), "%s.bad", path) < (int)sizeof(aside) &&
	    !rename(path, aside))
		error_warn("state-damaged", path, "moved to %s and ignored", aside);
	else
		error_warn("state-damaged", path, "ignored, and cannot be moved aside: %s",
			   strerror(errno));
}

int state_file_write(const char *path, const struct state_file *state)
{
	json_t *root = state_file_json(state);
	_cleanup_free_ char *text = root ? json_dumps(root, 0) : NULL;

	json_decref(root);
	if (!text)
		return error_add(ENOMEM, "no-memory", path, "cannot write: out of memory");
	if (strlen(text) > FILE_MAX)
		return error_add(EFBIG, "state-too-large", path,
				 "it would be larger than %d MiB, the most that is read, and stays "
				 "as it was",
				 FILE_MAX >> 20);
	return file_replace(path, text, strlen(text), 0600, GROUP_KEPT);
}

void boot_read(char ret[BOOT_TEXT])
{
	_cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file || !fgets(ret, BOOT_TEXT, file))
		*ret = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}
