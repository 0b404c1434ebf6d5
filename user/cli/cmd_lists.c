// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/rules.h"
#include "gate/gate.h"
#include "gate/rulemap.h"
#include "rules/lists.h"
#include "rules/value.h"

/* Counts the entries of each list. */
static int entries_count(const struct gate *gate, unsigned int ret[SL_LIST_PLACES])
{
	uint32_t generation = rulemap_generation(gate);
	struct rulemap_entry *entries = NULL;
	unsigned int count;
	int err = rulemap_read(gate, &entries, &count);

	if (err)
		return error_add(err, "rules-read", NULL, "cannot read the rules of gate '%s': %s",
				 gate->name, why(err));
	for (unsigned int i = 0; i < count; i++) {
		uint64_t bits = content_lists(gate, rule_content(&entries[i].rule, generation));

		for (; bits; bits &= bits - 1)
			ret[__builtin_ctzll(bits)]++;
	}
	free(entries);
	return 0;
}

static void print_list(const struct sl_list_info *list, unsigned int entries,
		       const struct column *columns)
{
	uint64_t now = time(NULL), age = now > list->replaced ? now - list->replaced : 0;
	/* a unit by which the number has two or three digits */
	uint64_t unit = age < 120 ? 1 : age < 7200 ? 60 : age < 172800 ? 3600 : 86400;
	char text[MOMENT_TEXT], span[UNITS_TEXT];
	const char *end = "never";

	if (list->until)
		end = list_ended(list) ? "has ended" : moment_format(until_time(list->until), text);
	print_row(NULL, columns);
	print_cell(access_words[list->access]);
	print_cell_number(entries);
	print_cell_text("%s", end);
	print_cell_text("%s", time_format(age / unit * unit * NS_PER_SEC, span));
	print_cell(list->name);
	if (list->until)
		print_real("seconds_left", until_left_ns(list->until) / 1e9);
	print_string("replaced", NULL, moment_format((time_t)list->replaced, text));
	print_number("age_seconds", NULL, age);
	print_row_end();
}

static int lists_run(const struct context *context, const void *args)
{
	static const struct column columns[] = {
		{"list", "WORD", "%-5s"}, {"entries", "ENTRIES", "  %9s"}, {NULL, "END", "  %-20s"},
		{NULL, "AGE", "  %5s"},	  {"name", "LIST", "  %s"},
	};
	struct sl_list_info lists[SL_LIST_PLACES] = {0};
	unsigned int entries[SL_LIST_PLACES] = {0};
	struct gate gate = GATE_CLOSED;
	int err = gate_open_to_look(&gate, context);

	(void)args;
	if (!err) {
		lists_copy(&gate, lists);
		if (lists_count(lists))
			err = entries_count(&gate, entries);
	}
	if (!err) {
		print_object(NULL);
		print_string("gate", NULL, gate.name);
		if (lists_count(lists))
			print_titles(columns, ARRAY_SIZE(columns));
		else
			print_text("gate '%s' has no list: 'sluice %sdeny -f FILE' makes one\n",
				   gate.name, gate_option(gate.name));
		print_array("lists");
		for (int place = 0; place < SL_LIST_PLACES; place++)
			if (*lists[place].name)
				print_list(&lists[place], entries[place], columns);
		print_end();
		print_end();
	}
	gate_close(&gate);
	return err;
}

const struct command command_lists = {
	.name = "lists",
	.brief = "the lists, their entries, ends and ages",
	.run = lists_run,
};
