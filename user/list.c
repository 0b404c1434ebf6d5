// SPDX-License-Identifier: GPL-2.0
#include "list.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "file.h"
#include "prefix.h"

/* Who gives a wrong file need not read all of it again as messages. */
#define BAD_LINES_MAX 10

#define BLANKS " \t\r\v\f"

/* What a line says, without comment and blanks. */
static char *line_strip(char *line)
{
	char *end;

	line += strspn(line, BLANKS);
	line[strcspn(line, "#")] = '\0';
	end = line + strlen(line);
	while (end > line && strchr(BLANKS, end[-1]))
		end--;
	*end = '\0';
	return line;
}

/* Reads every line; says the bad ones. */
static enum status lines_parse(const char *name, char *text, const struct rule *entry,
			       struct ruleset *set)
{
	unsigned int line = 0, bad = 0;
	char place[PATH_MAX + 16];
	struct rule rule = *entry;
	enum status status;
	char *next;

	for (; text && bad < BAD_LINES_MAX; text = next) {
		line++;
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		text = line_strip(text);
		if (!*text)
			continue;
		snprintf(place, sizeof(place), "%s:%u", name, line);
		log_place(place);
		status = prefix_parse(text, &rule.prefix);
		log_place(NULL);
		if (status)
			bad++;
		else if (ruleset_add(set, &rule))
			return FAILED;
	}
	if (bad && text)
		note("%s: these are the first %d bad lines", name, BAD_LINES_MAX);
	return bad ? MISUSED : OK;
}

/* Adds each prefix of a sorted list once. */
static enum status entries_add(const struct ruleset *list, struct ruleset *set)
{
	const struct rule *rules = list->rules;
	enum status status = OK;

	for (unsigned int i = 0; !status && i < list->count; i++)
		if (!i || !prefix_equal(&rules[i].prefix, &rules[i - 1].prefix))
			status = ruleset_add(set, &rules[i]);
	return status;
}

enum status list_parse(const char *name, char *text, enum sl_list list, uint32_t until,
		       struct ruleset *set)
{
	struct rule entry = {.list = list, .until = until};
	struct ruleset found = {0};
	enum status status = lines_parse(name, text, &entry, &found);

	ruleset_sort(&found);
	if (!status)
		status = entries_add(&found, set);
	ruleset_free(&found);
	return status;
}

enum status list_read(const char *path, enum sl_list list, uint32_t until, struct ruleset *set)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	struct file file;
	enum status status = file_read(path, &file);

	if (status)
		return status;
	status = list_parse(name, file.text, list, until, set);
	file_free(&file);
	return status;
}
