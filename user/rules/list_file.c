// SPDX-License-Identifier: GPL-2.0
#include "rules/list_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "base/array.h"
#include "base/file.h"
#include "rules/lists.h"
#include "rules/prefix.h"

/*
 * The number of bad lines that are reported. A file of another kind would otherwise be printed
 * whole.
 */
#define BAD_LINES_MAX 10

/* The bytes of a bad line that a message quotes. Every valid word is shorter. */
#define QUOTED_MAX  60
#define QUOTED_TEXT (QUOTED_MAX + sizeof("..."))

#define BLANKS " \t\r\v\f"

/* The state of a reader: the entry to copy, and the set that takes the copies. */
struct reading {
	const struct rule *entry;
	const char *force; /* of entry_check_width() */
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

static enum status prefix_add(const struct reading *reading, const struct sl_prefix *prefix)
{
	enum status status = entry_check_width(prefix, reading->force);
	struct rule rule = *reading->entry;

	rule.prefix = *prefix;
	return status ? status : ruleset_add(reading->set, &rule);
}

static enum status range_add(const struct reading *reading, const char *first, const char *last)
{
	struct sl_prefix from, to, part;
	enum status status = address_parse(first, &from);

	if (!status)
		status = address_parse(last, &to);
	if (!status &&
	    (from.family != to.family || memcmp(from.addr, to.addr, sizeof(to.addr)) > 0))
		status = misuse("'%s-%s' is not a range: write FIRST-LAST, of one family", first,
				last);
	while (!status && prefix_of_range(&from, &to, &part))
		status = prefix_add(reading, &part);
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

static enum status entry_add(const struct reading *reading, char *text)
{
	char *dash = strchr(text, '-'), *last, cut[QUOTED_TEXT], cut_last[QUOTED_TEXT];
	struct sl_prefix prefix;
	enum status status;

	if (dash && dash != text) {
		*dash = '\0';
		text = blanks_strip(text);
		last = blanks_strip(dash + 1);
		return range_add(reading, quoted(text, strlen(text), cut),
				 quoted(last, strlen(last), cut_last));
	}
	status = prefix_parse(quoted(text, strlen(text), cut), &prefix);
	return status ? status : prefix_add(reading, &prefix);
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
static enum status check_one_ipset(struct ipsets *ipsets, const char *line)
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
	return misuse("here begins set '%s', after set '%s', and a list takes one: write each to a "
		      "file of its own, with 'ipset save %s'",
		      quoted(name, length, cut), quoted(ipsets->first, ipsets->length, cut_first),
		      cut);
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

/*
 * Whether only options follow that do not change whether a member is listed. A comment takes the
 * rest of the line.
 */
static bool are_ipset_options(char *text)
{
	static const char *const options[] = {"timeout", "packets", "bytes",
					      "skbmark", "skbprio", "skbqueue"};
	char *rest, *word = strtok_r(text, BLANKS, &rest);

	for (; word; word = strtok_r(NULL, BLANKS, &rest)) {
		size_t i = 0;

		if (!strcmp(word, "comment"))
			return true;
		while (i < ARRAY_SIZE(options) && strcmp(word, options[i]))
			i++;
		if (i == ARRAY_SIZE(options) || !strtok_r(NULL, BLANKS, &rest))
			return false;
	}
	return true;
}

/*
 * The member of a set in "add SET MEMBER [OPTION VALUE]..." or "MEMBER [OPTION VALUE]...", without
 * the options. A timeout is ignored: a list has one end.
 */
static char *ipset_member(char *line)
{
	char *blank, *options;

	if (!strncmp(line, "add ", 4)) {
		line = blanks_skip(line + 4);
		line = blanks_skip(line + strcspn(line, BLANKS));
	}
	blank = line + strcspn(line, BLANKS);
	options = *blank ? strdup(blank) : NULL;
	if (options && are_ipset_options(options))
		*blank = '\0';
	free(options);
	return line;
}

/* --- Lines ---------------------------------------------------------------------------------- */

/* Reads {"cidr": "192.0.2.0/24", ...}. A line of JSON without a cidr describes the list. */
static enum status json_add(const struct reading *reading, const char *line)
{
	json_t *object = json_loads(line, 0, NULL);
	const char *cidr = json_string_value(json_object_get(object, "cidr"));
	char cut[QUOTED_TEXT];
	struct sl_prefix prefix;
	enum status status = OK;

	if (!object)
		status = misuse("this line begins with { and is no JSON");
	else if (cidr)
		status = prefix_parse(quoted(cidr, strlen(cidr), cut), &prefix)
				 ?: prefix_add(reading, &prefix);
	json_decref(object);
	return status;
}

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

static enum status line_add(const struct reading *reading, char *line)
{
	json_t *text = json_string(line); /* fails unless the line is UTF-8 */
	enum status status;

	json_decref(text);
	if (!text)
		return misuse("this is not UTF-8");
	line = blanks_strip(line);
	if (*line == '{')
		return json_add(reading, line);
	comment_cut(line);
	line = blanks_strip(line);
	status = check_one_ipset(reading->ipsets, line);
	if (status || !*line || is_ipset_head(line))
		return status;
	return entry_add(reading, ipset_member(line));
}

/* Parses every line, and reports up to BAD_LINES_MAX bad ones. */
static enum status lines_parse(const char *name, char *text, const struct reading *reading)
{
	unsigned int line = 0, bad = 0;
	const char *outer = log_place(NULL);
	char place[2 * PATH_MAX + 64];
	enum status status;
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

enum status list_parse(const char *name, char *text, const struct rule *entry, const char *force,
		       struct ruleset *set)
{
	struct ruleset found = {0};
	struct ipsets ipsets = {0};
	const struct reading reading = {entry, force, &found, &ipsets};
	enum status status = lines_parse(name, text, &reading);

	ruleset_unique(&found);
	for (unsigned int i = 0; !status && i < found.count; i++)
		status = ruleset_add(set, &found.rules[i]);
	ruleset_free(&found);
	return status;
}

enum status list_read(const char *path, const struct rule *entry, const char *force,
		      struct ruleset *set)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	struct file file;
	enum status status = file_read(path, &file);

	if (status)
		return status;
	status = list_parse(name, file.text, entry, force, set);
	file_free(&file);
	return status;
}

/* --- Paths ---------------------------------------------------------------------------------- */

enum status list_paths_add(struct list_paths *paths, char *path, struct stamp stamp)
{
	if (!array_grow(paths->list, paths->count, paths->room)) {
		free(path);
		return failure("cannot keep %u paths: out of memory", paths->count + 1);
	}
	paths->list[paths->count++] = (struct list_path){path, stamp};
	return OK;
}

void list_paths_free(struct list_paths *paths)
{
	for (unsigned int i = 0; i < paths->count; i++)
		free(paths->list[i].path);
	free(paths->list);
	*paths = (struct list_paths){0};
}
