// SPDX-License-Identifier: GPL-2.0
#include "keep/bans.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "rules/lists.h"
#include "rules/prefix.h"

#define VERSION 1

/* The longest time that an entry can have: two years. */
#define LEFT_MAX_MS (730 * 86400000LL)

/* More than a beginning has, with blanks. */
#define BEGINNING_ROOM 256

#define BOOT_FILE "/proc/sys/kernel/random/boot_id"

uint64_t ban_left_ns(time_t end, uint64_t left_ns, time_t now)
{
	uint64_t seconds = end > now ? (uint64_t)end - (uint64_t)now : 0;

	return seconds < left_ns / NS_PER_SEC ? seconds * NS_PER_SEC : seconds ? left_ns : 0;
}

/* --- Parsing -------------------------------------------------------------------------------- */

/* A state file while it is parsed. */
struct parsing {
	const char *name;
	time_t now;
	char place[PATH_MAX + 64]; /* of messages */
};

/* Puts the place before each message: "NAME: entries[3]". index -1: none. */
static void parsing_at(struct parsing *parsing, const char *key, int index)
{
	if (index < 0)
		snprintf(parsing->place, sizeof(parsing->place), "%s: %s", parsing->name, key);
	else
		snprintf(parsing->place, sizeof(parsing->place), "%s: %s[%d]", parsing->name, key,
			 index);
	log_place(parsing->place);
}

static int access_parse(const char *word, enum sl_access *ret)
{
	for (int access = SL_ACCESS_ALLOW; access <= SL_ACCESS_DENY; access++)
		if (!strcmp(word, access_words[access])) {
			*ret = access;
			return OK;
		}
	return misuse("'%s' is neither allow nor deny", word);
}

/* Parses an end. until NULL: there is none. ret_ended: it is past. */
static int end_parse(const struct parsing *parsing, const char *until, const json_t *left_ms,
		     uint32_t *ret, bool *ret_ended)
{
	json_int_t left = json_integer_value(left_ms);
	uint64_t left_ns;
	time_t end;
	int status;

	*ret_ended = false;
	if (!until != !left_ms)
		return misuse("'until' and 'left_ms' belong together");
	if (!until)
		return OK;
	if (!json_is_integer(left_ms) || left < 0 || left > LEFT_MAX_MS)
		return misuse("'left_ms' is not a time in ms of at most 2 years");
	status = moment_parse(until, &end);
	if (status)
		return status;
	left_ns = ban_left_ns(end, left * NS_PER_MS, parsing->now);
	*ret_ended = !left_ns;
	*ret = until_after(left_ns);
	return OK;
}

/* Parses {"prefix", "access", "until", "left_ms"}. */
static int entry_parse(struct parsing *parsing, json_t *item, struct ruleset *set)
{
	const char *prefix, *access_word, *until = NULL;
	enum sl_access access = SL_ACCESS_NONE;
	json_t *left_ms = NULL;
	struct rule rule = {0};
	json_error_t error;
	int status;
	bool ended;

	if (json_unpack_ex(item, &error, JSON_STRICT, "{s:s, s:s, s?s, s?o}", "prefix", &prefix,
			   "access", &access_word, "until", &until, "left_ms", &left_ms))
		return misuse("%s", error.text);
	status = prefix_parse(prefix, &rule.prefix);
	if (!status)
		status = access_parse(access_word, &access);
	if (!status)
		status = end_parse(parsing, until, left_ms, &rule.until, &ended);
	rule.access = access;
	return status || ended ? status : ruleset_add(set, &rule);
}

static int entries_parse(struct parsing *parsing, const char *key, json_t *items,
			 struct ruleset *set)
{
	int status = OK;
	json_t *item;
	size_t i;

	json_array_foreach(items, i, item)
	{
		parsing_at(parsing, key, i);
		status = status ?: entry_parse(parsing, item, set);
		if (status)
			break;
	}
	return status;
}

/* Parses "PREFIX" or {"prefix", "until", "left_ms"}. */
static int list_prefix_parse(const struct parsing *parsing, json_t *item, int place,
			     struct ruleset *set)
{
	const char *prefix = json_string_value(item), *until = NULL;
	struct rule rule = {0};
	json_t *left_ms = NULL;
	json_error_t error;
	bool ended = false;
	uint32_t end = 0;
	int status = OK;

	if (!prefix && json_unpack_ex(item, &error, JSON_STRICT, "{s:s, s:s, s:o}", "prefix",
				      &prefix, "until", &until, "left_ms", &left_ms))
		return misuse("%s", error.text);
	if (until)
		status = end_parse(parsing, until, left_ms, &end, &ended);
	if (!status)
		status = prefix_parse(prefix, &rule.prefix);
	if (status || ended)
		return status;
	rule_add_list(&rule, place, end);
	return ruleset_add(set, &rule);
}

static int list_prefixes_parse(const struct parsing *parsing, json_t *prefixes, int place,
			       struct ruleset *set)
{
	int status = OK;
	json_t *prefix;
	size_t i;

	json_array_foreach(prefixes, i, prefix)
	{
		status = list_prefix_parse(parsing, prefix, place, set);
		if (status)
			break;
	}
	return status;
}

/* Parses {"name", "access", "replaced", "until", "left_ms", "prefixes"}. */
static int list_parse_json(struct parsing *parsing, json_t *item, struct ruleset *set)
{
	const char *name, *access_word, *replaced, *until = NULL;
	enum sl_access access = SL_ACCESS_NONE;
	struct sl_list_info list = {0};
	json_t *left_ms = NULL, *prefixes;
	json_error_t error;
	int status;
	time_t written;
	bool ended;
	int place;

	if (json_unpack_ex(item, &error, JSON_STRICT, "{s:s, s:s, s:s, s?s, s?o, s:o}", "name",
			   &name, "access", &access_word, "replaced", &replaced, "until", &until,
			   "left_ms", &left_ms, "prefixes", &prefixes))
		return misuse("%s", error.text);
	if (!json_is_array(prefixes))
		return misuse("'prefixes' is not an array");
	status = list_name_check(name);
	if (!status)
		status = access_parse(access_word, &access);
	if (!status)
		status = moment_parse(replaced, &written);
	if (!status)
		status = end_parse(parsing, until, left_ms, &list.until, &ended);
	if (status || ended)
		return status;
	list.replaced = written < 0 ? 0 : written;
	if (lists_find(set->lists, name) >= 0)
		return misuse("list '%s' is there twice", name);
	snprintf(list.name, sizeof(list.name), "%s", name);
	list.access = access;
	place = lists_find(set->lists, "");
	status = lists_put(set->lists, &list, place);
	return status ? status : list_prefixes_parse(parsing, prefixes, place, set);
}

static int lists_parse(struct parsing *parsing, json_t *items, struct ruleset *set)
{
	int status = ruleset_make_lists(set);
	json_t *item;
	size_t i;

	json_array_foreach(items, i, item)
	{
		parsing_at(parsing, "lists", i);
		status = status ?: list_parse_json(parsing, item, set);
		if (status)
			break;
	}
	return status;
}

/* Makes one rule of all that was parsed of a prefix. Refuses two entries of one. */
static int rules_join(struct parsing *parsing, const char *key, struct ruleset *set)
{
	char text[PREFIX_TEXT];
	unsigned int kept = 0;

	ruleset_sort(set);
	for (unsigned int i = 0; i < set->count; i++) {
		struct rule *rule = &set->rules[i], *last = kept ? &set->rules[kept - 1] : NULL;

		if (!last || !prefix_equal(&last->prefix, &rule->prefix)) {
			set->rules[kept++] = *rule;
			continue;
		}
		parsing_at(parsing, key, -1);
		if (last->access && rule->access)
			return misuse("%s is there twice", prefix_format(&rule->prefix, text));
		for (uint64_t bits = rule->lists; bits; bits &= bits - 1) {
			int place = __builtin_ctzll(bits);

			if (!rule_add_list(last, place, rule_list_end(rule, place)))
				return misuse("%s has a time on two lists",
					      prefix_format(&rule->prefix, text));
		}
		if (rule->access) {
			last->access = rule->access;
			last->until = rule->until;
		}
	}
	set->count = kept;
	return OK;
}

/* Parses what the rules file had: {"entries", "lists"}, of lists the names alone. */
static int file_parse(struct parsing *parsing, json_t *file, struct bans *bans)
{
	json_t *entries, *lists, *name;
	json_error_t error;
	int status;
	size_t i;

	if (!file)
		return OK;
	parsing_at(parsing, "file", -1);
	if (json_unpack_ex(file, &error, JSON_STRICT, "{s:o, s:o}", "entries", &entries, "lists",
			   &lists))
		return misuse("%s", error.text);
	if (!json_is_array(entries) || !json_is_array(lists))
		return misuse("'entries' and 'lists' are arrays");
	status = ruleset_make_lists(&bans->file);
	json_array_foreach(lists, i, name)
	{
		struct sl_list_info list = {.access = SL_ACCESS_DENY};

		if (status)
			break;
		if (!json_is_string(name))
			return misuse("the name of list %zu is not a string", i);
		status = list_name_check(json_string_value(name));
		if (status)
			break;
		snprintf(list.name, sizeof(list.name), "%s", json_string_value(name));
		status = lists_put(bans->file.lists, &list, lists_find(bans->file.lists, ""));
	}
	if (!status)
		status = entries_parse(parsing, "file.entries", entries, &bans->file);
	if (!status)
		status = rules_join(parsing, "file.entries", &bans->file);
	bans->file_is_known = true;
	return status;
}

static int root_parse(struct parsing *parsing, json_t *root, struct bans *bans)
{
	json_t *entries = NULL, *lists = NULL, *file = NULL;
	const char *boot = "";
	json_error_t error;
	int status;
	int version;

	log_place(parsing->name);
	if (json_unpack_ex(root, &error, 0, "{s:i}", "version", &version))
		return misuse("this is no state of 'sluice keep': %s", error.text);
	if (version != VERSION)
		return misuse("its version is %d, and this sluice reads version %d", version,
			      VERSION);
	if (json_unpack_ex(root, &error, JSON_STRICT, "{s:i, s:s, s:o, s:o, s?o}", "version",
			   &version, "boot", &boot, "entries", &entries, "lists", &lists, "file",
			   &file))
		return misuse("%s", error.text);
	if (!json_is_array(entries) || !json_is_array(lists))
		return misuse("'entries' and 'lists' are arrays");
	if (strlen(boot) >= BOOT_TEXT)
		return misuse("'boot' is no number of a boot");
	snprintf(bans->boot, sizeof(bans->boot), "%s", boot);
	status = entries_parse(parsing, "entries", entries, &bans->given);
	if (!status)
		status = lists_parse(parsing, lists, &bans->given);
	if (!status)
		status = rules_join(parsing, "entries", &bans->given);
	return status ? status : file_parse(parsing, file, bans);
}

int bans_parse(const char *name, const char *text, size_t size, time_t now, struct bans *ret)
{
	struct parsing parsing = {.name = name, .now = now};
	struct bans bans = {0};
	json_error_t error;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	int status;

	if (!root)
		return misuse("%s:%d:%d: %s", name, error.line, error.column, error.text);
	status = root_parse(&parsing, root, &bans);
	log_place(NULL);
	json_decref(root);
	if (status)
		bans_free(&bans);
	else
		*ret = bans;
	return status;
}

/* --- Formatting ----------------------------------------------------------------------------- */

/* Adds an end to an object. */
static void end_add(json_t *object, uint32_t until)
{
	char text[MOMENT_TEXT];

	if (!until)
		return;
	json_object_set_new(object, "until", json_string(moment_format(until_time(until), text)));
	json_object_set_new(object, "left_ms", json_integer(until_left_ns(until) / NS_PER_MS));
}

static json_t *entries_json(const struct ruleset *set)
{
	json_t *items = json_array();
	char text[PREFIX_TEXT];

	for (unsigned int i = 0; i < set->count; i++) {
		const struct rule *rule = &set->rules[i];
		json_t *item;

		if (!rule->access || (rule->until && !until_left_ns(rule->until)))
			continue;
		item = json_pack("{s:s, s:s}", "prefix", prefix_format(&rule->prefix, text),
				 "access", access_words[rule->access]);
		end_add(item, rule->until);
		json_array_append_new(items, item);
	}
	return items;
}

static json_t *list_prefixes_json(const struct ruleset *set, int place)
{
	json_t *prefixes = json_array();
	char text[PREFIX_TEXT];

	for (unsigned int i = 0; i < set->count; i++) {
		const struct rule *rule = &set->rules[i];
		uint32_t until = rule_list_end(rule, place);
		json_t *item;

		if (!(rule->lists & 1ULL << place) || (until && !until_left_ns(until)))
			continue;
		item = json_string(prefix_format(&rule->prefix, text));
		if (until) {
			item = json_pack("{s:o}", "prefix", item);
			end_add(item, until);
		}
		json_array_append_new(prefixes, item);
	}
	return prefixes;
}

static json_t *lists_json(const struct ruleset *set)
{
	json_t *items = json_array();
	char replaced[MOMENT_TEXT];

	for (int place = 0; set->lists && place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *list = &set->lists[place];
		json_t *item;

		if (!*list->name || list_ended(list))
			continue;
		item = json_pack("{s:s, s:s, s:s}", "name", list->name, "access",
				 access_words[list->access], "replaced",
				 moment_format((time_t)list->replaced, replaced));
		end_add(item, list->until);
		json_object_set_new(item, "prefixes", list_prefixes_json(set, place));
		json_array_append_new(items, item);
	}
	return items;
}

static json_t *names_json(const struct ruleset *set)
{
	json_t *names = json_array();

	for (int place = 0; set->lists && place < SL_LIST_PLACES; place++)
		if (*set->lists[place].name)
			json_array_append_new(names, json_string(set->lists[place].name));
	return names;
}

json_t *bans_json(const struct bans *bans)
{
	json_t *root =
		json_pack("{s:i, s:s, s:o, s:o}", "version", VERSION, "boot", bans->boot, "entries",
			  entries_json(&bans->given), "lists", lists_json(&bans->given));

	if (bans->file_is_known)
		json_object_set_new(root, "file",
				    json_pack("{s:o, s:o}", "entries", entries_json(&bans->file),
					      "lists", names_json(&bans->file)));
	return root;
}

/* --- The file ------------------------------------------------------------------------------- */

/*
 * The files that belong to a state file: .lists is the last good copy of the lists. Of both, .bad
 * was moved aside, and .new is being written.
 */
#define LISTS_SUFFIX ".lists"
static const char *const suffixes[] = {
	"", ".bad", ".new", LISTS_SUFFIX, LISTS_SUFFIX ".bad", LISTS_SUFFIX ".new"};

/* How a state file begins, without its blanks. 0: a number. */
static const char beginning[] = "{\"version\":0,\"boot\":";

bool bans_begin(const char *text, size_t size)
{
	const char *expected = beginning;

	for (; size && *expected; text++, size--) {
		if (isspace((unsigned char)*text) ||
		    (*expected == '0' && isdigit((unsigned char)*text)))
			continue;
		expected += *expected == '0';
		if (*text != *expected++)
			return false;
	}
	return true;
}

int bans_check(const char *path)
{
	char text[BEGINNING_ROOM];
	size_t size;
	int status = file_begin(path, text, sizeof(text), &size);

	if (!status && !bans_begin(text, size))
		status = misuse("%s is no state of 'sluice keep', and is not overwritten", path);
	return status;
}

int bans_check_apart(const char *path, const char *other, const struct stamp *stamp)
{
	char beside[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		struct stamp own;

		if (snprintf(beside, sizeof(beside), "%s%s", path, suffixes[i]) >=
		    (int)sizeof(beside))
			continue;
		own = stamp_of(beside);
		if (stamp_same_file(&own, stamp))
			return misuse("--state %s: %s is read by this command, and would be lost",
				      path, other);
	}
	return OK;
}

char *bans_lists_path(const char *path)
{
	char *lists;

	return asprintf(&lists, "%s" LISTS_SUFFIX, path) < 0 ? NULL : lists;
}

static void move_aside(const char *path)
{
	char aside[PATH_MAX];

	if (snprintf(aside, sizeof(aside), "%s.bad", path) >= (int)sizeof(aside) ||
	    rename(path, aside))
		warning("%s: ignored, and cannot be moved aside: %s", path, strerror(errno));
	else
		warning("%s: ignored; moved to %s for inspection", path, aside);
}

int bans_read(const char *path, struct bans *ret)
{
	struct file file = {0};
	bool is_there;
	int status = bans_check(path);

	*ret = (struct bans){0};
	if (status)
		return status;
	status = file_read_own(path, &file, &is_there);
	if (!is_there)
		return OK;
	if (!status)
		status = bans_parse(path, file.text, file.size, time(NULL), ret);
	file_free(&file);
	if (status)
		move_aside(path);
	return OK;
}

int bans_write(const char *path, const struct bans *bans)
{
	json_t *root = bans_json(bans);
	char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	int status;

	json_decref(root);
	if (!text)
		return failure("cannot write %s: out of memory", path);
	status = strlen(text) > FILE_MAX
			 ? failure("%s would be larger than %d MiB, the most that is read: it "
				   "stays as it was",
				   path, FILE_MAX >> 20)
			 : file_replace(path, text, strlen(text), 0600, GROUP_KEPT);
	free(text);
	return status;
}

void boot_read(char ret[BOOT_TEXT])
{
	FILE *file = fopen(BOOT_FILE, "re");

	if (!file || !fgets(ret, BOOT_TEXT, file))
		*ret = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (file)
		fclose(file);
}

void bans_free(struct bans *bans)
{
	ruleset_free(&bans->given);
	ruleset_free(&bans->file);
	*bans = (struct bans){0};
}
