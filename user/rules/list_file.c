// SPDX-License-Identifier: GPL-2.0
#include "rules/list_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "rules/value.h"

/*
 * The number of bad lines that are reported. A file of another kind would otherwise be printed
 * whole.
 */
#define BAD_LINES_MAX 10

/* The bytes of a bad line that a message quotes. Every valid word is shorter. */
#define QUOTED_MAX  90
#define QUOTED_TEXT (QUOTED_MAX + sizeof("..."))

#define BLANKS " \t\r\v\f"

/* The state of a reader: the entry to copy, and the set that takes the copies. */
struct reading {
	const struct rule *entry;
	const char *force;     /* of entry_check_width() */
	unsigned int *skipped; /* counts the bad lines; NULL: they are refused */
	uint64_t age_ns;       /* of the file: its times began when it was written */
	bool refuses_for;      /* `for` would begin again each time the text is read */
	struct ruleset *set;
	struct ipsets *ipsets;
};

/* The sets of ipset that the file names. */
struct ipsets {
	const char *first; /* its name, in the text; NULL: none yet */
	int length;	   /* of that name */
	bool are_several;  /* a second one was reported */
};

/*
 * Copies a word to parse and to quote. A word too long to be valid is cut, at the end of a
 * character.
 */
static const char *quoted(const char *text, size_t length, char cut[QUOTED_TEXT])
{
	size_t end = length < QUOTED_MAX ? length : QUOTED_MAX;

	while (end && end < length && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	snprintf(cut, QUOTED_TEXT, "%.*s%s", (int)end, text, end < length ? "..." : "");
	return cut;
}

/* --- Entries -------------------------------------------------------------------------------- */

/* Adds a prefix, or all prefixes of a range. until: the end of each; 0: none. */
static int entry_add(const struct reading *reading, const char *text, uint32_t until)
{
	struct rule entry = *reading->entry;
	struct ruleset *set = reading->set;
	unsigned int i = set->count;
	char cut[QUOTED_TEXT];
	int status;

	entry.list_until = until;
	entry.timed = until && entry.lists ? __builtin_ctzll(entry.lists) : 0;
	status = ruleset_add_words(set, &entry, quoted(text, strlen(text), cut));

	for (; !status && i < set->count; i++)
		status = entry_check_width(&set->rules[i].prefix, reading->force);
	return status;
}

static char *blanks_skip(char *text)
{
	return text + strspn(text, BLANKS);
}

/* Cuts the blanks off both ends. */
static char *blanks_strip(char *text)
{
	char *end;

	text = blanks_skip(text);
	end = text + strlen(text);
	while (end > text && strchr(BLANKS, end[-1]))
		end--;
	*end = '\0';
	return text;
}

/* The end of an entry whose time ended before now. */
#define ENDED 1

/* The end of an entry that lasts `ns` from when the file was written. */
static uint32_t until_in_file(const struct reading *reading, uint64_t ns)
{
	return ns > reading->age_ns ? until_after(ns - reading->age_ns) : ENDED;
}

/* Finds the word "for" or "until" in a line, and cuts the line before it. NULL: there is none. */
static char *end_cut(char *line)
{
	char *blank = line + strcspn(line, BLANKS);

	while (*blank) {
		char *word = blanks_skip(blank);
		size_t length = strcspn(word, BLANKS);

		if ((length == 3 && !memcmp(word, "for", 3)) ||
		    (length == 5 && !memcmp(word, "until", 5))) {
			*blank = '\0';
			return word;
		}
		blank = word + length;
	}
	return NULL;
}

/* Cuts "for TIME" or "until MOMENT" off a line. *ret: that end; 0: none. */
static int end_take(const struct reading *reading, char *line, uint32_t *ret)
{
	char *end = end_cut(line), *value, cut[QUOTED_TEXT];
	int status;
	uint64_t ns;
	bool ended;

	*ret = 0;
	if (!end)
		return OK;
	value = end + strcspn(end, BLANKS);
	value = (char *)quoted(blanks_skip(value), strlen(blanks_skip(value)), cut);
	if (*end == 'u') {
		status = until_parse(value, ret, &ended);
		*ret = ended ? ENDED : *ret;
		return status;
	}
	if (reading->refuses_for)
		return misuse("'for %s' would begin again each time the rules are read: write "
			      "'until MOMENT'",
			      value);
	status = value_parse(&value_time, "for", value, &ns);
	if (!status)
		*ret = until_in_file(reading, ns);
	return status;
}

/* --- ipset ---------------------------------------------------------------------------------- */

/* The name of the set that a line belongs to; NULL: the line names none. */
static const char *ipset_name(const char *line)
{
	static const char *const heads[] = {"create ", "add ", "Name: "};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		if (!strncmp(line, heads[i], strlen(heads[i])))
			return line + strlen(heads[i]) + strspn(line + strlen(heads[i]), BLANKS);
	return NULL;
}

/*
 * Refuses a second set. `ipset save` without a name prints all sets, of which some may be there to
 * be allowed and some to be denied.
 */
static int check_one_ipset(struct ipsets *ipsets, const char *line)
{
	const char *name = ipset_name(line);
	int length = name ? (int)strcspn(name, BLANKS) : 0;
	char cut[QUOTED_TEXT], cut_first[QUOTED_TEXT];

	if (!length || ipsets->are_several)
		return OK;
	if (!ipsets->first) {
		ipsets->first = name;
		ipsets->length = length;
		return OK;
	}
	if (length == ipsets->length && !strncmp(name, ipsets->first, length))
		return OK;
	ipsets->are_several = true;
	quoted(name, length, cut);
	return misuse("here begins set '%s', after set '%s', and a list takes one: write each to a "
		      "file of its own, with 'ipset save %s'",
		      cut, quoted(ipsets->first, ipsets->length, cut_first), word_typed(cut));
}

/* Whether a line is part of the head that precedes the members of a set. */
static bool is_ipset_head(const char *line)
{
	static const char *const heads[] = {
		"create ",  "Name: ",		"Type: ",	"Revision: ",
		"Header: ", "Size in memory: ", "References: ", "Number of entries: ",
		"Members:"};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		if (!strncmp(line, heads[i], strlen(heads[i])))
			return true;
	return false;
}

/* The longest timeout of ipset, in seconds. */
#define TIMEOUT_MAX (INT_MAX / 1000)

/* What the options of a member mean for a list. */
struct member {
	bool excepts;	      /* `nomatch`, which makes it an exception */
	unsigned int timeout; /* in seconds; 0: none */
};

/*
 * Whether only options follow that do not change whether a member is listed. A comment takes the
 * rest of the line.
 */
static bool are_ipset_options(char *text, struct member *ret)
{
	static const char *const options[] = {"packets", "bytes", "skbmark", "skbprio", "skbqueue"};
	char *rest, *word = strtok_r(text, BLANKS, &rest);

	for (; word; word = strtok_r(NULL, BLANKS, &rest)) {
		const char *value, *end;

		if (!strcmp(word, "comment"))
			return true;
		if (!strcmp(word, "nomatch")) {
			ret->excepts = true;
			continue;
		}
		value = strtok_r(NULL, BLANKS, &rest);
		if (value && !strcmp(word, "timeout")) {
			end = number_read(value, TIMEOUT_MAX, &ret->timeout);
			if (!end || *end)
				return false;
		} else if (!value || word_find(options, ARRAY_SIZE(options), word) < 0) {
			return false;
		}
	}
	return true;
}

/*
 * The member of a set in "add SET MEMBER [OPTION VALUE]..." or "MEMBER [OPTION VALUE]...", without
 * the options.
 */
static char *ipset_member(char *line, struct member *ret)
{
	char *blank, *options;

	if (!strncmp(line, "add ", 4)) {
		line = blanks_skip(line + 4);
		line = blanks_skip(line + strcspn(line, BLANKS));
	}
	blank = line + strcspn(line, BLANKS);
	options = *blank ? strdup(blank) : NULL;
	if (options && are_ipset_options(options, ret))
		*blank = '\0';
	free(options);
	return line;
}

static int refuse_exception(const char *member)
{
	char cut[QUOTED_TEXT];

	return misuse("'%s nomatch' is an exception of the set, and a list has none: remove the "
		      "line, and write its prefix to a list of the other kind (allow or deny)",
		      quoted(member, strlen(member), cut));
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* The entry of an object. Returns NULL, after a message, unless exactly one key has one. */
static json_t *object_entry(json_t *object, const char **ret_key)
{
	/* also of AWS (ip_prefix, ipv6_prefix) and Google (ipv4Prefix, ipv6Prefix) */
	static const char *const keys[] = {"cidr",	  "prefix",	"ip",	     "ip_prefix",
					   "ipv6_prefix", "ipv4prefix", "ipv6prefix"};
	json_t *found = NULL, *value;
	const char *key;

	json_object_foreach(object, key, value)
	{
		size_t i = 0;

		while (i < ARRAY_SIZE(keys) && strcasecmp(keys[i], key))
			i++;
		if (i == ARRAY_SIZE(keys))
			continue;
		if (found) {
			misuse("this object has both '%s' and '%s': only one can be the entry",
			       *ret_key, key);
			return NULL;
		}
		found = value;
		*ret_key = key;
	}
	if (!found)
		misuse("this object has no entry: it needs a key cidr, prefix, ip or ip_prefix");
	return found;
}

/* Whether an object describes the list, as in Spamhaus DROP. */
static bool is_metadata(const json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));

	return type && !strcmp(type, "metadata");
}

/* Adds an entry, an array of entries, or the entry of an object. key: the key of the value. */
static int json_add(const struct reading *reading, json_t *value, const char *key)
{
	int status = OK;
	json_t *item;
	size_t i;

	if (json_is_string(value))
		return entry_add(reading, json_string_value(value), 0);
	if (json_is_object(value)) {
		if (is_metadata(value))
			return OK;
		value = object_entry(value, &key);
		return value ? json_add(reading, value, key) : MISUSED;
	}
	if (!json_is_array(value))
		return misuse("'%s' is neither a string nor an array of strings", key);
	json_array_foreach(value, i, item)
	{
		status = json_add(reading, item, key);
		if (status)
			break;
	}
	return status;
}

static int json_line_add(const struct reading *reading, const char *line)
{
	json_t *value = json_loads(line, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
	int status = value ? json_add(reading, value, "[]")
			   : misuse("this line is not JSON: write each object on a line of "
				    "its own, as 'jq -c' does");

	json_decref(value);
	return status;
}

/* --- Lines ---------------------------------------------------------------------------------- */

/* Cuts off a comment. "//" begins one only where a word may begin: 192.0.2.0//24 is an error. */
static void comment_cut(char *line)
{
	char *slashes = line;

	while ((slashes = strstr(slashes, "//")) && slashes > line && !strchr(BLANKS, slashes[-1]))
		slashes++;
	if (slashes)
		*slashes = '\0';
	line[strcspn(line, "#;")] = '\0';
}

static bool is_json(const char *line)
{
	return *line && strchr("{[\"", *line);
}

/* Adds the entry of a line, with its end. timeout: of ipset. */
static int entry_add_line(const struct reading *reading, char *line, unsigned int timeout)
{
	uint32_t until;
	int status = end_take(reading, line, &until);

	if (timeout)
		until = until_in_file(reading, timeout * NS_PER_SEC);
	return status ?: entry_add(reading, line, until);
}

/* Adds the entry, or fails without a trace. */
static int word_add(const struct reading *reading, char *word, unsigned int timeout)
{
	bool before;
	unsigned int count = reading->set->count;
	int status;

	before = log_mute(reading->skipped);
	status = is_json(word) ? json_line_add(reading, word)
			       : entry_add_line(reading, word, timeout);
	log_mute(before);
	if (status != MISUSED || !reading->skipped)
		return status;
	reading->set->count = count;
	++*reading->skipped;
	return OK;
}

static int line_add(const struct reading *reading, char *line)
{
	struct member member = {0};
	int status;

	line = blanks_strip(line);
	if (is_json(line))
		return word_add(reading, line, 0);
	comment_cut(line);
	line = blanks_strip(line);
	status = check_one_ipset(reading->ipsets, line);
	if (status || !*line || is_ipset_head(line))
		return status;
	line = ipset_member(line, &member);
	return member.excepts ? refuse_exception(line) : word_add(reading, line, member.timeout);
}

/* Parses every line, and reports up to BAD_LINES_MAX bad ones. */
static int lines_parse(const char *name, char *text, const struct reading *reading)
{
	unsigned int line = 0, bad = 0;
	const char *outer = log_place(NULL);
	char place[2 * PATH_MAX + 64];
	int status;
	char *next;

	for (; text && bad < BAD_LINES_MAX; text = next) {
		line++;
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		snprintf(place, sizeof(place), "%s%s%s:%u", outer ?: "", outer ? ": " : "", name,
			 line);
		log_place(place);
		status = line_add(reading, text);
		log_place(outer);
		if (status == FAILED)
			return status;
		bad += status != OK;
	}
	if (bad && text)
		note("%s: these are the first %d bad lines", name, BAD_LINES_MAX);
	return bad ? MISUSED : OK;
}

static int text_parse(const char *name, char *text, uint64_t age_ns, const struct rule *entry,
		      const char *force, unsigned int *skipped, struct ruleset *set)
{
	struct ruleset found = {0};
	struct ipsets ipsets = {0};
	const struct reading reading = {.entry = entry,
					.force = force,
					.skipped = skipped,
					.age_ns = age_ns,
					.set = &found,
					.ipsets = &ipsets};
	int status;

	if (skipped)
		*skipped = 0;
	status = lines_parse(name, text, &reading);
	ruleset_unique(&found);
	for (unsigned int i = 0; !status && i < found.count; i++)
		status = ruleset_add(set, &found.rules[i]);
	ruleset_free(&found);
	return status;
}

int list_parse(const char *name, char *text, const struct rule *entry, const char *force,
	       unsigned int *skipped, struct ruleset *set)
{
	return text_parse(name, text, 0, entry, force, skipped, set);
}

/* How long ago a file was written. */
static uint64_t age_of(const char *path)
{
	const struct stamp stamp = stamp_of(path);
	uint64_t now = time(NULL), written = stamp_written(&stamp);

	return now > written ? (now - written) * NS_PER_SEC : 0;
}

int list_read(const char *path, const struct rule *entry, const char *force, unsigned int *skipped,
	      struct ruleset *set)
{
	bool is_file = strcmp(path, "-");
	const char *name = is_file ? path : "standard input";
	uint64_t age_ns = is_file ? age_of(path) : 0;
	struct file file;
	int status = file_read(path, &file);

	if (status)
		return status;
	status = text_parse(name, file.text, age_ns, entry, force, skipped, set);
	file_free(&file);
	return status;
}

int list_entry_add(const char *text, const struct rule *entry, struct ruleset *set)
{
	const struct reading reading = {.entry = entry, .refuses_for = true, .set = set};
	char *line = strdup(text);
	int status;

	if (!line)
		return failure("cannot keep an entry: out of memory");
	status = entry_add_line(&reading, line, 0);
	free(line);
	return status;
}

/* --- Paths ---------------------------------------------------------------------------------- */

int list_paths_add(struct list_paths *paths, char *path, struct stamp stamp)
{
	if (!array_grow(paths->list, paths->count, paths->room)) {
		free(path);
		return failure("cannot keep %u paths: out of memory", paths->count + 1);
	}
	paths->list[paths->count++] = (struct list_path){.path = path, .stamp = stamp};
	return OK;
}

bool list_paths_left_out(const struct list_paths *paths)
{
	for (unsigned int i = 0; i < paths->count; i++)
		if (paths->list[i].is_left_out)
			return true;
	return false;
}

void list_paths_free(struct list_paths *paths)
{
	for (unsigned int i = 0; i < paths->count; i++)
		free(paths->list[i].path);
	free(paths->list);
	*paths = (struct list_paths){0};
}
