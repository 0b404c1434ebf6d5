// SPDX-License-Identifier: GPL-2.0
#include "rules/list_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "rules/ruleset.h"
#include "rules/prefix.h"
#include "rules/value.h"

/* Report at most 10 bad lines. In a file of an unknown format, every line is bad. */
#define BAD_LINES_MAX 10

#define BLANKS " \t\r\v\f"

/* `until` of a list entry that has already ended. */
#define ENDED 1

/* Facts about a list file, and settings of the caller, for the parser. */
struct list_reading {
	const struct rule *entry;
	const char *force;     /* hint for errors about wide prefixes, see entry_check_width() */
	unsigned int *skipped; /* number of skipped bad lines; NULL: a bad line is an error */
	uint64_t age_ns;       /* age of the file; it is subtracted from each time in the file */
	bool is_entry;	     /* the text is an entry in a rules file, where `for` is not allowed */
	struct ruleset *set; /* set to which the entries are added */
	const char *ipset;   /* name of the first ipset of the file, or NULL */
	int ipset_length;    /* length of `ipset` */
	bool has_second_ipset; /* a second ipset was found and reported */
};

/* Removes leading and trailing blanks from a text. */
static char *blanks_strip(char *text)
{
	char *end;

	text += strspn(text, BLANKS);
	end = text + strlen(text);
	while (end > text && strchr(BLANKS, end[-1]))
		end--;
	*end = '\0';
	return text;
}

/* Returns the length of the first string in `begins` that begins the line, or 0 if none does. */
static size_t begin_length(const char *line, const char *const *begins, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(line, begins[i], strlen(begins[i])))
			return strlen(begins[i]);
	return 0;
}

/* Finds a word in a line, with a blank on both sides. Returns NULL if the line has no such word. */
static char *word_search(char *line, const char *word)
{
	size_t length = strlen(word);

	for (char *at = line; (at = strstr(at, word)); at++)
		if (at > line && strchr(BLANKS, at[-1]) && strchr(BLANKS, at[length]))
			return at;
	return NULL;
}

/* --- Entries -------------------------------------------------------------------------------- */

/* Adds an entry for each prefix in "PREFIX" or "FIRST-LAST". until: end of these entries, or 0. */
static int entry_add(const struct list_reading *reading, const char *text, uint32_t until)
{
	struct rule entry = *reading->entry;
	struct ruleset *set = reading->set;
	unsigned int i = set->count;
	int err;

	entry.list_until = until;
	entry.timed = until && entry.lists ? __builtin_ctzll(entry.lists) : 0;
	err = ruleset_add_words(set, &entry, text);
	for (; !err && i < set->count; i++)
		err = entry_check_width(&set->rules[i].prefix, reading->force);
	return err;
}

/*
 * Adds the entry of "PREFIX [for TIME|until MOMENT]". timeout: timeout of an ipset member in
 * seconds; 0: none.
 */
static int entry_add_line(const struct list_reading *reading, char *line, unsigned int timeout)
{
	char *is_for = word_search(line, "for"), *end = is_for ?: word_search(line, "until");
	uint64_t ns = timeout * NS_PER_SEC;
	struct value_end moment = {0};
	char value[TEXT_CUT];
	int err = 0;

	if (end) {
		*end = '\0';
		end += is_for ? 3 : 5;
		text_cut(end + strspn(end, BLANKS), SIZE_MAX, value);
		line = blanks_strip(line);
	}
	if (is_for && reading->is_entry)
		return error_misuse("for-in-file", object_of("for", value),
				    "its time would start again whenever the file is read; write "
				    "'until MOMENT'");
	if (end)
		err = is_for ? value_parse(&value_time, "for", value, &ns)
			     : value_parse(&value_moment, "until", value, &moment);
	if (err)
		return err;
	if (ns) /* the time began when the file was written, so subtract the age of the file */
		moment.until = ns > reading->age_ns ? until_after(ns - reading->age_ns) : ENDED;
	return entry_add(reading, line, moment.has_passed ? ENDED : moment.until);
}

/* --- ipset ---------------------------------------------------------------------------------- */

/*
 * Refuses a second ipset in a file. `ipset save` without a name prints all ipsets. Some may be
 * meant to allow prefixes, and others to deny prefixes.
 */
static int check_one_ipset(struct list_reading *reading, const char *line)
{
	static const char *const begins[] = {"create ", "add ", "Name: "};
	size_t begin = begin_length(line, begins, ARRAY_SIZE(begins));
	const char *name = line + begin + strspn(line + begin, BLANKS);
	int length = strcspn(name, BLANKS);
	char cut[TEXT_CUT], cut_first[TEXT_CUT];

	if (!begin || !length || reading->has_second_ipset)
		return 0;
	if (!reading->ipset) {
		reading->ipset = name;
		reading->ipset_length = length;
	}
	if (length == reading->ipset_length && !strncmp(name, reading->ipset, length))
		return 0;
	reading->has_second_ipset = true;
	text_cut(name, length, cut);
	return error_misuse("second-ipset", object_of("set", cut),
			    "the file also has set '%s', but a list is one set; write each set to "
			    "a file: 'ipset save %s'",
			    text_cut(reading->ipset, reading->ipset_length, cut_first),
			    word_typed(cut));
}

/* The options of an ipset member that matter here. */
struct ipset_member {
	bool is_exception;    /* `nomatch` */
	unsigned int timeout; /* seconds until the entry ends; 0: never */
};

/*
 * Parses "[add SET] MEMBER [OPTION VALUE]...", and returns the member. Removes the options if all
 * are known. `comment` must be the last option. Looks for `nomatch` even after unknown options,
 * because it is always an error.
 */
static char *member_parse(char *line, struct ipset_member *ret)
{
	static const char *const options[] = {"packets", "bytes", "skbmark", "skbprio", "skbqueue"};
	_cleanup_free_ char *copy = NULL;
	bool is_known = true;
	char *blank, *rest, *word;

	if (!strncmp(line, "add ", 4)) {
		line += 4 + strspn(line + 4, BLANKS);
		line += strcspn(line, BLANKS);
		line += strspn(line, BLANKS);
	}
	blank = line + strcspn(line, BLANKS);
	copy = strdup(blank);
	word = copy ? strtok_r(copy, BLANKS, &rest) : NULL;
	for (; word && strcmp(word, "comment"); word = strtok_r(NULL, BLANKS, &rest)) {
		bool is_timeout = !strcmp(word, "timeout");
		const char *value, *end = "";

		if (!strcmp(word, "nomatch")) {
			ret->is_exception = true;
		} else if (is_timeout || word_find(options, ARRAY_SIZE(options), word) >= 0) {
			value = strtok_r(NULL, BLANKS, &rest);
			if (value && is_timeout)
				end = number_read(value, INT_MAX / 1000, &ret->timeout);
			is_known &= value && end && !*end;
		} else {
			is_known = false;
		}
	}
	if (copy && is_known)
		*blank = '\0';
	return line;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static int json_add(const struct list_reading *reading, json_t *value, const char *key);

/*
 * Adds the entry of a JSON object. The object must have exactly one of the keys in `keys`. The
 * value of this key is the prefix.
 */
static int object_add(const struct list_reading *reading, json_t *object)
{
	/* AWS uses ip_prefix and ipv6_prefix, and Google uses ipv4Prefix and ipv6Prefix */
	static const char *const keys[] = {"cidr",	  "prefix",	"ip",	     "ip_prefix",
					   "ipv6_prefix", "ipv4prefix", "ipv6prefix"};
	const char *type = json_string_value(json_object_get(object, "type"));
	const char *key, *found_key = NULL;
	json_t *value, *found = NULL;

	if (type && !strcmp(type, "metadata")) /* Spamhaus DROP ends with a line of metadata */
		return 0;
	json_object_foreach(object, key, value)
	{
		bool is_entry = false;

		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			is_entry |= !strcasecmp(keys[i], key);
		if (is_entry && found)
			return error_misuse(
				"two-entries", object_of("key", key),
				"'%s' in the same object is an address too; remove one of the keys",
				found_key);
		found = is_entry ? value : found;
		found_key = is_entry ? key : found_key;
	}
	if (!found)
		return error_misuse("no-entry", NULL,
				    "this object has no entry; write a key cidr, prefix, ip or "
				    "ip_prefix");
	return json_add(reading, found, found_key);
}

/* Adds the entries of a JSON string, array or object. key: name of the value, for errors. */
static int json_add(const struct list_reading *reading, json_t *value, const char *key)
{
	json_t *item;
	int err = 0;
	size_t i;

	if (json_is_string(value))
		return entry_add(reading, json_string_value(value), 0);
	if (json_is_object(value))
		return object_add(reading, value);
	if (!json_is_array(value))
		return error_misuse("bad-json", object_of("key", key),
				    "neither a string nor an array of strings");
	json_array_foreach(value, i, item)
	{
		err = err ?: json_add(reading, item, key);
	}
	return err;
}

/* --- Lines ---------------------------------------------------------------------------------- */

/* Removes a comment from a line. "//" begins a comment only at the start of a word. */
static void comment_cut(char *line)
{
	char *slashes = line;

	while ((slashes = strstr(slashes, "//")) && slashes > line && !strchr(BLANKS, slashes[-1]))
		slashes++;
	if (slashes)
		*slashes = '\0';
	line[strcspn(line, "#;")] = '\0';
}

/*
 * Adds the entry of a line. If `skipped` is set, skips and counts a bad line. A second ipset or
 * `nomatch` is always an error, because skipping it would change the meaning of other lines.
 */
static int line_add(struct list_reading *reading, char *line)
{
	static const char *const ipset_heads[] = {
		"create ",  "Name: ",		"Type: ",	"Revision: ",
		"Header: ", "Size in memory: ", "References: ", "Number of entries: ",
		"Members:"};
	unsigned int mark = error_count(), count = reading->set->count;
	struct ipset_member member = {0};
	char cut[TEXT_CUT];
	json_t *json;
	bool is_json;
	int err;

	line = blanks_strip(line);
	is_json = *line && strchr("{[\"", *line);
	if (!is_json) {
		comment_cut(line);
		line = blanks_strip(line);
		err = check_one_ipset(reading, line);
		if (err || !*line || begin_length(line, ipset_heads, ARRAY_SIZE(ipset_heads)))
			return err;
		line = member_parse(line, &member);
	}
	if (member.is_exception)
		return error_misuse(
			"exception", object_of(NULL, text_cut(line, SIZE_MAX, cut)),
			"a list has no exceptions (nomatch); remove the line, and write "
			"its prefix to a list with the opposite access (allow or deny)");
	json = is_json ? json_loads(line, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL) : NULL;
	if (is_json)
		err = json ? json_add(reading, json, "[]")
			   : error_misuse("bad-json", NULL,
					  "not JSON; write each object on a line of its own, as "
					  "'jq -c' does");
	else
		err = entry_add_line(reading, line, member.timeout);
	json_decref(json);
	if (err != -EINVAL || !reading->skipped)
		return err;
	error_drop(mark);
	reading->set->count = count;
	++*reading->skipped;
	return 0;
}

/* Parses all lines. Reports bad lines with their numbers. Stops after BAD_LINES_MAX bad lines. */
static int lines_parse(const char *name, char *text, struct list_reading *reading)
{
	unsigned int line = 0, bad = 0;
	char place[PATH_MAX + 16], *next;

	for (; text && bad < BAD_LINES_MAX; text = next) {
		unsigned int mark = error_count();
		int err;

		line++;
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		err = line_add(reading, text);
		if (!err)
			continue;
		snprintf(place, sizeof(place), "%s:%u", name, line);
		error_place(mark, place);
		if (err != -EINVAL)
			return err;
		bad++;
	}
	if (bad && text)
		error_notice("more-bad-lines", name,
			     "more lines may be bad; only the first %d are reported",
			     BAD_LINES_MAX);
	return bad ? -EINVAL : 0;
}

int list_parse(const char *name, char *text, uint64_t age_ns, const struct rule *entry,
	       const char *force, unsigned int *skipped, struct ruleset *set)
{
	_cleanup_(ruleset_free) struct ruleset found = {0};
	struct list_reading reading = {.entry = entry,
				       .force = force,
				       .skipped = skipped,
				       .age_ns = age_ns,
				       .set = &found};
	int err;

	if (skipped)
		*skipped = 0;
	err = lines_parse(name, text, &reading);
	if (err)
		return err;
	ruleset_unique(&found);
	for (unsigned int i = 0; !err && i < found.count; i++)
		err = ruleset_add(set, &found.rules[i]);
	return err;
}

int list_read(const char *path, const struct rule *entry, const char *force, unsigned int *skipped,
	      struct ruleset *set)
{
	_cleanup_(file_free) struct file file = {0};
	const struct stamp stamp = stamp_of(path);
	uint64_t now = time(NULL), written = stamp_written(&stamp);
	bool is_file = strcmp(path, "-");
	int err = file_read(path, &file);

	if (err)
		return err;
	return list_parse(is_file ? path : "standard input", file.text,
			  is_file && now > written ? (now - written) * NS_PER_SEC : 0, entry, force,
			  skipped, set);
}

int list_entry_add(const char *text, const struct rule *entry, struct ruleset *set)
{
	const struct list_reading reading = {.entry = entry, .is_entry = true, .set = set};
	_cleanup_free_ char *line = strdup(text);

	if (!line)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for an entry");
	return entry_add_line(&reading, line, 0);
}
