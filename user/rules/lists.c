// SPDX-License-Identifier: GPL-2.0
#include "rules/lists.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "rules/prefix.h"

int lists_find(const struct sl_list_info *lists, const char *name)
{
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (!strcmp(lists[place].name, name))
			return place;
	return -1;
}

unsigned int lists_count(const struct sl_list_info *lists)
{
	unsigned int count = 0;

	for (int place = 0; place < SL_LIST_PLACES; place++)
		count += *lists[place].name != '\0';
	return count;
}

uint64_t lists_bits(const struct sl_list_info *lists)
{
	uint64_t bits = 0;

	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*lists[place].name)
			bits |= 1ULL << place;
	return bits;
}

const char *const access_words[] = {[SL_ACCESS_ALLOW] = "allow", [SL_ACCESS_DENY] = "deny"};
const char *const access_done[] = {[SL_ACCESS_ALLOW] = "allowed", [SL_ACCESS_DENY] = "denied"};

/* The length of the shortest prefix of the family that needs no `force`. */
static unsigned int width_least(const struct sl_prefix *prefix)
{
	return prefix_is_ipv6(prefix) ? 16 : 8;
}

bool entry_is_wide(const struct sl_prefix *prefix)
{
	return prefix->bits < SL_FAMILY_BITS + width_least(prefix);
}

int entry_check_width(const struct sl_prefix *prefix, const char *force)
{
	char text[PREFIX_TEXT];

	if (!force || !entry_is_wide(prefix))
		return OK;
	return misuse("%s is shorter than /%u; if it is meant, %s", prefix_format(prefix, text),
		      width_least(prefix), force);
}

const char *access_verb(enum sl_access access)
{
	return access == SL_ACCESS_ALLOW ? "allows" : "denies";
}

enum sl_access lists_access(const struct sl_list_info *lists, uint64_t bits)
{
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (bits & 1ULL << place && lists[place].access == SL_ACCESS_ALLOW)
			return SL_ACCESS_ALLOW;
	return bits ? SL_ACCESS_DENY : SL_ACCESS_NONE;
}

void lists_match(const struct sl_list_info *lists, const struct sl_list_info *others,
		 int ret_places[SL_LIST_PLACES])
{
	int free = 0;

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		int same = *lists[place].name ? lists_find(others, lists[place].name) : -1;

		ret_places[place] = same;
		if (!*lists[place].name || (same >= 0 && list_same(&lists[place], &others[same])))
			continue;
		while (free < SL_LIST_PLACES - 1 && *others[free].name)
			free++;
		ret_places[place] = free++;
	}
}

int lists_put(struct sl_list_info *lists, const struct sl_list_info *list, int place)
{
	if (lists_count(lists) >= SL_LISTS_MAX || place < 0)
		return failure(
			"list '%s' would be one too many: there are %d at most; take one back "
			"with 'sluice del -f NAME' (see 'sluice lists')",
			list->name, SL_LISTS_MAX);
	lists[place] = *list;
	return OK;
}

bool list_same(const struct sl_list_info *a, const struct sl_list_info *b)
{
	return !strcmp(a->name, b->name) && a->access == b->access &&
	       until_equal(a->until, b->until);
}

bool list_ended(const struct sl_list_info *list)
{
	return list->until && !until_left_ns(list->until);
}

/* --- Names ---------------------------------------------------------------------------------- */

static bool name_is_valid(const char *name)
{
	const char *at = name;

	while (*at > ' ' && *at < 0x7f && !strchr("'\"`\\$", *at))
		at++;
	return *name && !*at && at - name < SL_LIST_NAME;
}

int list_name_check(const char *name)
{
	if (name_is_valid(name))
		return OK;
	return misuse(
		"'%s' cannot be the name of a list: it has 1 to %d letters, digits and signs, "
		"without blanks, quotes and backslashes; say 'as LIST'",
		name, SL_LIST_NAME - 1);
}

/* The last second of the year 9999: moments have years of four digits. */
#define MOMENT_LAST 253402300799ULL

bool list_is_sound(const struct sl_list_info *list)
{
	return memchr(list->name, '\0', SL_LIST_NAME) && name_is_valid(list->name) &&
	       (list->access == SL_ACCESS_ALLOW || list->access == SL_ACCESS_DENY) &&
	       list->replaced <= MOMENT_LAST;
}

/* Appends a component to a path, and resolves "." and "..". False: the path is full. */
static bool path_append(char *path, const char *part, size_t length)
{
	size_t end = strlen(path);

	if (!length || (length == 1 && *part == '.'))
		return true;
	if (length == 2 && !memcmp(part, "..", 2)) {
		char *slash = strrchr(path, '/');

		if (slash)
			*slash = '\0';
		return true;
	}
	if (end + 1 + length >= PATH_MAX)
		return false;
	path[end] = '/';
	memcpy(path + end + 1, part, length);
	path[end + 1 + length] = '\0';
	return true;
}

static bool path_append_all(char *path, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "/");

		if (!path_append(path, text, length))
			return false;
		text += length + (text[length] == '/');
	}
	return true;
}

/*
 * The absolute path of a file, or "-" for standard input. Symbolic links are not resolved, so a
 * link that points to a new file every day names one list. Returns 0 or a negative errno.
 */
static int path_of(const char *file, char path[PATH_MAX])
{
	char cwd[PATH_MAX] = "";

	*path = '\0';
	if (!strcmp(file, "-")) {
		strcpy(path, file);
		return 0;
	}
	if (*file != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	if (!path_append_all(path, cwd) || !path_append_all(path, file))
		return -ENAMETOOLONG;
	if (!*path)
		strcpy(path, "/");
	return 0;
}

int lists_find_file(const struct sl_list_info *lists, const char *file)
{
	char path[PATH_MAX];

	return path_of(file, path) ? -1 : lists_find(lists, path);
}

int list_name_of(const char *file, char name[SL_LIST_NAME])
{
	char path[PATH_MAX];
	int err = path_of(file, path);
	int status;

	if (err == -ENAMETOOLONG)
		return misuse("the path of '%s' is too long for the name of a list: say 'as LIST'",
			      file);
	if (err)
		return failure("cannot tell the current directory: %s; say 'as LIST'", why(err));
	status = list_name_check(path);
	if (!status)
		strcpy(name, path);
	return status;
}
