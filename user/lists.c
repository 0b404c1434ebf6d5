// SPDX-License-Identifier: GPL-2.0
#include "lists.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rulemap.h"
#include "uptime.h"

static uint64_t place_bit(unsigned int place)
{
	return 1ULL << place;
}

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

enum status lists_add(struct sl_list_info *lists, const struct sl_list_info *list, int *ret_place)
{
	int place = lists_find(lists, "");

	if (lists_count(lists) >= SL_LISTS_MAX || place < 0)
		return fail("list '%s' would be one too many: there are %d at most; take one back "
			    "with 'sluice del -f NAME' (see 'sluice lists')",
			    list->name, SL_LISTS_MAX);
	lists[place] = *list;
	*ret_place = place;
	return OK;
}

bool list_same(const struct sl_list_info *a, const struct sl_list_info *b)
{
	return !strcmp(a->name, b->name) && a->list == b->list && until_equal(a->until, b->until);
}

bool list_ended(const struct sl_list_info *list)
{
	return list->until && !until_left_ns(list->until);
}

/* --- Names ---------------------------------------------------------------------------------- */

enum status list_name_check(const char *name)
{
	const char *at = name;

	while (*at > ' ' && *at < 0x7f && !strchr("'\"`\\$", *at))
		at++;
	if (*name && !*at && at - name < SL_LIST_NAME)
		return OK;
	return misuse(
		"'%s' cannot be the name of a list: it has 1 to %d letters, digits and signs, "
		"without blanks, quotes and backslashes; say 'as NAME'",
		name, SL_LIST_NAME - 1);
}

/* Appends a component to a path; "." and ".." are resolved. False: no room. */
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

/* Links are not followed: who turns one to today's file means the same list. */
enum status list_name_of(const char *file, char name[SL_LIST_NAME])
{
	char path[PATH_MAX] = "", cwd[PATH_MAX] = "";
	enum status status;

	if (!strcmp(file, "-")) {
		strcpy(name, file);
		return OK;
	}
	if (*file != '/' && !getcwd(cwd, sizeof(cwd)))
		return fail("cannot tell the current directory: %s; say 'as NAME'", why(errno));
	if (!path_append_all(path, cwd) || !path_append_all(path, file))
		return misuse("the path of '%s' is too long for the name of a list: say 'as NAME'",
			      file);
	status = list_name_check(path);
	if (!status)
		strcpy(name, path);
	return status;
}

/* --- Of a gate ------------------------------------------------------------------------------ */

uint64_t lists_lasting(const struct gate *gate, uint64_t lists)
{
	uint64_t left = lists & gate->state->lists_ending;

	while (left) {
		uint64_t bit = left & -left;

		left ^= bit;
		if (!until_left_ns(gate->state->list_ends[list_end_index(bit)]))
			lists ^= bit;
	}
	return lists;
}

/* Since its generation, and until it is gone. */
static bool list_is_seen(const struct sl_list_info *list, uint32_t generation)
{
	uint32_t since = __atomic_load_n(&list->since, __ATOMIC_ACQUIRE);

	return since && (int32_t)(since - generation) <= 0 &&
	       !(list->gone && (int32_t)(list->gone - generation) <= 0);
}

void lists_copy(const struct gate *gate, struct sl_list_info ret[SL_LIST_PLACES])
{
	uint32_t generation = rulemap_generation(gate);

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		ret[place] = gate->lists[place];
		if (!list_is_seen(&gate->lists[place], generation))
			ret[place] = (struct sl_list_info){0};
		ret[place].name[SL_LIST_NAME - 1] = '\0';
	}
}

/* Nothing names the place yet, so no packet looks at its word and end. */
static void list_write(struct gate *gate, unsigned int place, const struct sl_list_info *wanted)
{
	struct sl_gate *state = gate->state;
	struct sl_list_info list = *wanted;
	uint64_t bit = place_bit(place);

	list.since = list.gone = 0;
	gate->lists[place] = list;
	state->lists_allow &= ~bit;
	state->lists_ending &= ~bit;
	if (list.list == SL_LIST_ALLOW)
		state->lists_allow |= bit;
	if (list.until)
		state->lists_ending |= bit;
	state->list_ends[list_end_index(bit)] = list.until;
	__atomic_store_n(&gate->lists[place].since, rulemap_generation(gate) + 1, __ATOMIC_RELEASE);
}

static void list_free(struct gate *gate, unsigned int place)
{
	__atomic_store_n(&gate->lists[place].since, 0, __ATOMIC_RELEASE);
	gate->lists[place] = (struct sl_list_info){0};
}

int lists_prepare(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES])
{
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		struct sl_list_info *has = &gate->lists[place];
		const struct sl_list_info *want = &wanted[place];

		if (!has->since && *want->name)
			list_write(gate, place, want);
		else if (has->since && !*want->name)
			has->gone = rulemap_generation(gate) + 1;
		else if (has->since && !list_same(has, want))
			return -EINVAL;
	}
	return 0;
}

void lists_clear(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES])
{
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		if (gate->lists[place].gone)
			list_free(gate, place);
		else
			gate->lists[place].replaced = wanted[place].replaced;
	}
}

void lists_settle(struct gate *gate, uint64_t ended)
{
	uint32_t generation = rulemap_generation(gate);

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		struct sl_list_info *list = &gate->lists[place];

		if (list->since && (!list_is_seen(list, generation) || ended & place_bit(place)))
			list_free(gate, place);
		list->gone = 0;
	}
}
