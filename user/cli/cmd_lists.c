// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/gate.h"
#include "gate/change.h"
#include "gate/rulemap.h"
#include "rules/lists.h"
#include "rules/value.h"

struct view {
	struct sl_list_info lists[SL_LIST_PLACES];
	unsigned int entries[SL_LIST_PLACES];
};

static int view_read(const struct gate *gate, struct view *view)
{
	uint32_t generation = rulemap_generation(gate);
	struct rulemap_entry *entries = NULL;
	unsigned int count;
	int err;

	*view = (struct view){0};
	lists_copy(gate, view->lists);
	if (!lists_count(view->lists))
		return OK;
	err = rulemap_read(gate, &entries, &count);
	if (err)
		return failure("cannot read the rules of gate '%s': %s", gate->name, why(err));
	for (unsigned int i = 0; i < count; i++) {
		uint64_t bits = face_lists(gate, rulemap_face(&entries[i].rule, generation));

		for (; bits; bits &= bits - 1)
			view->entries[__builtin_ctzll(bits)]++;
	}
	free(entries);
	return OK;
}

/* How long ago the list's file was written, or its prefixes set. */
static uint64_t age_seconds(const struct sl_list_info *list)
{
	uint64_t now = time(NULL);

	return now > list->replaced ? now - list->replaced : 0;
}

/* Formats an age in whole units, so that its number has two or three digits. */
static const char *age_format(uint64_t seconds, char text[UNITS_TEXT])
{
	uint64_t unit = seconds < 120 ? 1 : seconds < 7200 ? 60 : seconds < 172800 ? 3600 : 86400;

	return time_format(seconds / unit * unit * NS_PER_SEC, text);
}

static json_t *list_json(const struct sl_list_info *list, unsigned int entries)
{
	json_t *object = json_pack("{s:s, s:s, s:i}", "name", list->name, "list",
				   access_words[list->list], "entries", (int)entries);
	char text[MOMENT_TEXT];

	if (list->until)
		json_object_set_new(object, "seconds_left",
				    json_real(until_left_ns(list->until) / 1e9));
	json_object_set_new(object, "replaced",
			    json_string(moment_format((time_t)list->replaced, text)));
	json_object_set_new(object, "age_seconds", json_integer(age_seconds(list)));
	return object;
}

static void list_print(const struct sl_list_info *list, unsigned int entries)
{
	const char *end = list->until ? "has ended" : "never";
	char until[MOMENT_TEXT], age[UNITS_TEXT];

	if (list->until && !list_ended(list))
		end = moment_format(until_time(list->until), until);
	printf("%-5s  %9u  %-20s  %5s  %s\n", access_words[list->list], entries, end,
	       age_format(age_seconds(list), age), list->name);
}

static int report_json(const struct gate *gate, const struct view *view)
{
	json_t *lists = json_array();

	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*view->lists[place].name)
			json_array_append_new(lists,
					      list_json(&view->lists[place], view->entries[place]));
	return json_print(json_pack("{s:s, s:o}", "gate", gate->name, "lists", lists));
}

static void report(const struct gate *gate, const struct view *view)
{
	if (!lists_count(view->lists)) {
		printf("gate '%s' has no list: 'sluice %sdeny -f FILE' makes one\n", gate->name,
		       gate_option(gate->name));
		return;
	}
	printf("%-5s  %9s  %-20s  %5s  %s\n", "WORD", "ENTRIES", "END", "AGE", "LIST");
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*view->lists[place].name)
			list_print(&view->lists[place], view->entries[place]);
}

static int lists_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	struct view view;
	int status;

	(void)args;
	status = gate_open_to_look(&gate, context);
	if (!status)
		status = view_read(&gate, &view);
	if (!status && context->json)
		status = report_json(&gate, &view);
	else if (!status)
		report(&gate, &view);
	gate_close(&gate);
	return status;
}

const struct command command_lists = {
	.name = "lists",
	.brief = "the lists, their entries, ends and ages",
	.run = lists_run,
};
