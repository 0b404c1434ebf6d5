// SPDX-License-Identifier: GPL-2.0
#include "rules/lists.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
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
		return 0;
	return error_misuse("wide-prefix", prefix_format(prefix, text),
			    "shorter than /%u; if it is meant, %s", width_least(prefix), force);
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
		return error_add(
			ENOSPC, "too-many-lists", object_of("list", list->name),
			"at most %d lists exist; remove one with 'sluice del -f NAME' (see "
			"'sluice lists')",
			SL_LISTS_MAX);
	lists[place] = *list;
	return 0;
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
		return 0;
	return error_misuse("bad-list-name", object_of("list", name),
			    "not the name of a list; write 'as LIST', of 1 to %d letters, digits "
			    "and signs, without blanks, quotes and backslashes",
			    SL_LIST_NAME - 1);
}

/* The last second of the year 9999: moments have years of four digits. */
#define MOMENT_LAST 253402300799ULL

bool list_is_sound(const struct sl_list_info *list)
{
	return memchr(list->name, '\0', SL_LIST_NAME) && name_is_valid(list->name) &&
	       (list->access == SL_ACCESS_ALLOW || list->access == SL_ACCESS_DENY) &&
	       list->replaced <= MOMENT_LAST;
}

/*
 * Computes the absolute path of a file; "-" is standard input. Symbolic links are not resolved, so
 * a link that points to a new file every day names one list. Returns 0 or a negative errno.
 */
static int path_of(const char *file, char path[PATH_MAX])
{
	char whole[2 * PATH_MAX] = "";
	size_t end = 0;

	if (!strcmp(file, "-")) {
		strcpy(path, file);
		return 0;
	}
	if (*file != '/' && !getcwd(whole, PATH_MAX))
		return -errno;
	if (strlen(file) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcat(strcat(whole, "/"), file);
	for (const char *part = whole; *part;) {
		size_t length = strcspn(part, "/");

		if (length == 2 && !memcmp(part, "..", 2)) {
			while (end && path[--end] != '/')
				;
		} else if (length && !(length == 1 && *part == '.')) {
			if (end + 1 + length >= PATH_MAX)
				return -ENAMETOOLONG;
			path[end++] = '/';
			memcpy(path + end, part, length);
			end += length;
		}
		part += length + (part[length] == '/');
	}
	if (!end)
		path[end++] = '/';
	path[end] = '\0';
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

	if (err == -ENAMETOOLONG)
		return error_misuse("bad-list-name", object_of("file", file),
				    "its path is too long for the name of a list; write 'as LIST'");
	if (err)
		return error_add(err, "no-directory", NULL,
				 "cannot find the current directory: %s; write 'as LIST'",
				 why(err));
	err = list_name_check(path);
	if (!err)
		strcpy(name, path);
	return err;
}
