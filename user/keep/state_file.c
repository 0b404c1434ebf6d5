// SPDX-License-Identifier: GPL-2.0
#include "keep/state_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "list_ends.h"
#include "rules/ruleset.h"
#include "rules/prefix.h"

#define VERSION	  1
#define BOOT_TEXT 40 /* buffer size for the kernel's boot_id and a newline */

/* Maximum remaining time of an entry in a state file: two years, in ms. */
#define LEFT_MAX_MS (730 * 86400000LL)

/* Reads the kernel's boot_id, or stores "" after a failure. */
static void boot_read(char ret[BOOT_TEXT])
{
	_cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file || !fgets(ret, BOOT_TEXT, file))
		*ret = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

/* --- Parsing -------------------------------------------------------------------------------- */

/*
 * Converts `left_ms`, the lifetime that an entry had when it was saved, to an end time. A lifetime
 * of 0 means that the entry never ends. If the entry has already ended, sets `ret_ended`. Returns
 * false if `left_ms` is invalid.
 */
static bool end_parse(json_int_t left_ms, uint64_t passed_ms, uint32_t *ret, bool *ret_ended)
{
	*ret_ended = left_ms && (uint64_t)left_ms <= passed_ms;
	*ret = left_ms && !*ret_ended ? until_after((left_ms - passed_ms) * NS_PER_MS) : 0;
	return left_ms >= 0 && left_ms <= LEFT_MAX_MS;
}

static bool access_parse(const char *word, enum sl_access *ret)
{
	int at = word_find(access_words + SL_ACCESS_ALLOW, 2, word);

	*ret = SL_ACCESS_ALLOW + at;
	return at >= 0;
}

/* Parses a list, which is an object with the keys place, name, access, replaced and left_ms. */
static bool list_parse(json_t *item, uint64_t passed_ms, struct ruleset *set)
{
	json_int_t place, replaced, left_ms = 0;
	struct sl_list_info list = {0};
	const char *name, *access;
	enum sl_access word;
	bool ended;

	if (json_unpack_ex(item, NULL, JSON_STRICT, "{s:I, s:s, s:s, s:I, s?I}", "place", &place,
			   "name", &name, "access", &access, "replaced", &replaced, "left_ms",
			   &left_ms) ||
	    list_name_check(name) || !access_parse(access, &word) ||
	    !end_parse(left_ms, passed_ms, &list.until, &ended) || place < 0 ||
	    place >= SL_LIST_PLACES || *set->lists[place].name || lists_find(set->lists, name) >= 0)
		return false;
	list.access = word;
	list.replaced = replaced;
	snprintf(list.name, sizeof(list.name), "%s", name);
	return ended || !lists_put(set->lists, &list, place);
}

/* Parses "[TIMED LEFT_MS]...". Removes the rule from lists on which it has ended. */
static bool list_ends_parse(const char *text, uint64_t passed_ms, struct rule *rule)
{
	long long left_ms;
	unsigned int list;
	uint32_t until;
	bool has_ended;
	int length;

	for (; *text; text += length) {
		length = 0;
		if (sscanf(text, " %u %lld%n", &list, &left_ms, &length) != 2 || !length ||
		    list >= SL_LIST_PLACES || !end_parse(left_ms, passed_ms, &until, &has_ended))
			return false;
		if (has_ended)
			rule_remove_lists(rule, 1ULL << list);
		else if (until && rule->lists >> list & 1 && !rule_add_list(rule, list, until))
			return false;
	}
	return true;
}

/*
 * Parses a rule: "PREFIX ACCESS LEFT_MS LISTS [TIMED LEFT_MS]...". The first LEFT_MS is the
 * remaining time of the access. LISTS has a bit for each list that contains the prefix. TIMED is
 * the index of a list on which the prefix has an end, and LEFT_MS is its remaining time there. A
 * LEFT_MS of 0 means no end.
 */
static bool rule_parse(json_t *item, uint64_t passed_ms, struct ruleset *set)
{
	const char *text = json_string_value(item) ?: "";
	char prefix[PREFIX_TEXT + 1], access[6];
	enum sl_access word = SL_ACCESS_NONE;
	struct rule rule = {0};
	long long left_ms;
	bool has_ended;
	int length = 0;

	if (sscanf(text, "%52s %5s %lld %" SCNx64 "%n", prefix, access, &left_ms, &rule.lists,
		   &length) != 4 ||
	    prefix_parse(prefix, &rule.prefix) ||
	    !end_parse(left_ms, passed_ms, &rule.until, &has_ended) ||
	    (strcmp(access, "-") && !access_parse(access, &word)))
		return false;
	rule.access = has_ended ? SL_ACCESS_NONE : word;
	if (!rule.access)
		rule.until = 0;
	/* remove the bits of lists that list_parse() has dropped because they had ended */
	rule.lists &= lists_bits(set->lists);
	return list_ends_parse(text + length, passed_ms, &rule) &&
	       (rule_is_empty(&rule) || !ruleset_add(set, &rule));
}

static bool root_parse(json_t *root, struct state_file *state)
{
	json_int_t saved_ms, bpffs, now_ms = clock_read(CLOCK_REALTIME) / NS_PER_MS;
	json_t *lists, *rules, *item;
	char this_boot[BOOT_TEXT];
	uint64_t passed_ms;
	const char *boot;
	int version;
	size_t i;

	if (json_unpack_ex(root, NULL, JSON_STRICT, "{s:i, s:s, s:I, s:I, s:o, s:o}", "version",
			   &version, "boot", &boot, "saved_ms", &saved_ms, "bpffs", &bpffs, "lists",
			   &lists, "rules", &rules) ||
	    version != VERSION || saved_ms < 0 || !json_is_array(lists) || !json_is_array(rules) ||
	    ruleset_make_lists(&state->entries))
		return false;
	boot_read(this_boot);
	state->is_of_boot = !strcmp(boot, this_boot);
	state->bpffs = bpffs;
	passed_ms = now_ms > saved_ms ? now_ms - saved_ms : 0;
	json_array_foreach(lists, i, item)
	{
		if (!list_parse(item, passed_ms, &state->entries))
			return false;
	}
	json_array_foreach(rules, i, item)
	{
		if (!rule_parse(item, passed_ms, &state->entries))
			return false;
	}
	ruleset_unique(&state->entries);
	return true;
}

int state_file_parse(const char *name, const char *text, size_t size, struct state_file *ret)
{
	_cleanup_(state_file_free) struct state_file state = {0};
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	unsigned int mark = error_count();
	bool parsed = root && root_parse(root, &state);

	json_decref(root);
	if (!parsed) {
		error_drop(mark);
		return error_misuse("state-damaged", name, "the file is damaged");
	}
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

/*
 * Returns the remaining time of an entry in ms. Returns 0 if the entry never ends, and 1 if it has
 * already ended.
 */
static uint64_t left_ms_of(uint32_t until)
{
	return until ? until_left_ns(until) / NS_PER_MS ?: 1 : 0;
}

json_t *state_file_json(const struct state_file *state)
{
	json_t *lists = json_array(), *rules = json_array();
	const struct ruleset *set = &state->entries;
	char boot[BOOT_TEXT], prefix[PREFIX_TEXT], text[PREFIX_TEXT + 128];
	size_t length;

	boot_read(boot);
	for (int place = 0; set->lists && place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *list = &set->lists[place];
		json_t *item;

		if (!*list->name || list_ended(list))
			continue;
		item = json_pack("{s:i, s:s, s:s, s:I}", "place", place, "name", list->name,
				 "access", access_words[list->access], "replaced",
				 (json_int_t)list->replaced);
		if (list->until)
			json_object_set_new(item, "left_ms", json_integer(left_ms_of(list->until)));
		json_array_append_new(lists, item);
	}
	for (unsigned int i = 0; i < set->count; i++) {
		const struct rule *rule = &set->rules[i];

		length = snprintf(text, sizeof(text), "%s %s %" PRIu64 " %" PRIx64,
				  prefix_format(&rule->prefix, prefix),
				  rule->access ? access_words[rule->access] : "-",
				  left_ms_of(rule->until), rule->lists);
		for (int which = 0; which < LIST_ENDS; which++) {
			struct list_end end = list_end_get(rule->list_until, rule->timed, which);

			if (end.until)
				length += snprintf(text + length, sizeof(text) - length,
						   " %u %" PRIu64, end.list, left_ms_of(end.until));
		}
		json_array_append_new(rules, json_string(text));
	}
	return json_pack("{s:i, s:s, s:I, s:I, s:o, s:o}", "version", VERSION, "boot", boot,
			 "saved_ms", (json_int_t)clock_read(CLOCK_REALTIME) / NS_PER_MS, "bpffs",
			 (json_int_t)state->bpffs, "lists", lists, "rules", rules);
}

/* --- The file ------------------------------------------------------------------------------- */

int state_file_check(const char *path)
{
	static const char beginning[] = "{\"version\": 1, \"boot\": \"";
	char text[sizeof(beginning) - 1];
	size_t size;
	int err = file_begin(path, text, sizeof(text), &size);

	if (!err && memcmp(text, beginning, size))
		return error_misuse("not-state", path,
				    "not a state file of 'sluice keep', so it is not "
				    "overwritten; use another path");
	return err;
}

int state_file_check_apart(const char *path, const char *other, const struct stamp *stamp)
{
	static const char *const suffixes[] = {"",	 ".bad",       ".new",
					       ".lists", ".lists.bad", ".lists.new"};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		char own[PATH_MAX + 16];
		struct stamp own_stamp;

		snprintf(own, sizeof(own), "%s%s", path, suffixes[i]);
		own_stamp = stamp_of(own);
		if (stamp_same_file(&own_stamp, stamp) || !strcmp(own, other))
			return error_misuse("not-state", path,
					    "%s is read by this command, and would be lost; use "
					    "another path",
					    other);
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
		error_warn("state-damaged", path, "ignored, but cannot be renamed: %s",
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
				 "the new state exceeds %d MiB, the largest that can be read, so "
				 "the old state is kept",
				 FILE_MAX >> 20);
	return file_replace(path, text, strlen(text), 0600, GROUP_KEPT);
}
