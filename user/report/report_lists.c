// SPDX-License-Identifier: GPL-2.0
#include <limits.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "gate/lists.h"
#include "gate/rulemap.h"
#include "gate/rules.h"
#include "program/writer.h"
#include "report/report.h"
#include "rules/value.h"

/*
 * Counts the entries of each list, by the list's index. Sets bit i of *ret_timed if any prefix on
 * list i has its own end.
 */
static int entries_count(const struct gate *gate, unsigned int ret[SL_LIST_PLACES],
			 uint64_t *ret_timed)
{
	uint32_t generation = gate_generation(gate);
	_cleanup_free_ struct rulemap_entry *entries = NULL;
	unsigned int count;
	int err = rulemap_read(gate, UINT_MAX, &entries, &count);

	if (err)
		return rules_unread(gate, err);
	for (unsigned int i = 0; i < count; i++) {
		const struct sl_rule_content *content = rule_content(&entries[i].rule, generation);
		uint64_t bits = content_lists(gate, content);

		for (int which = 0; which < LIST_ENDS; which++) {
			struct list_end end =
				list_end_get(content->list_until, content->timed, which);

			*ret_timed |= end.until ? bits & 1ULL << end.list : 0;
		}
		for (; bits; bits &= bits - 1)
			ret[__builtin_ctzll(bits)]++;
	}
	return 0;
}

/* Prints a list. timed: at least one prefix on the list has its own end. */
static void print_list(const struct sl_list_info *list, unsigned int entries, bool timed)
{
	uint64_t now = time(NULL), age = now > list->replaced ? now - list->replaced : 0;
	/* use the largest unit in which the age has at least two digits */
	uint64_t unit = age < 120 ? 1 : age < 7200 ? 60 : age < 172800 ? 3600 : 86400;
	char text[MOMENT_TEXT], span[UNITS_TEXT];
	const char *end = timed ? "by entry" : "never";

	if (list->until)
		end = list_ended(list) ? "has ended" : moment_format(until_time(list->until), text);
	print_row(NULL);
	print_string("list", "%-5s", access_words[list->access]);
	print_number("entries", "  %9" PRIu64, entries);
	print_text("  %-20s  %5s", end, time_format(age / unit * unit * NS_PER_SEC, span));
	print_string("name", "  %s\n", list->name);
	if (list->until)
		print_real("seconds_left", until_left_ns(list->until) / 1e9);
	print_string("replaced", NULL, moment_format((time_t)list->replaced, text));
	print_number("age_seconds", NULL, age);
	print_end();
}

int report_lists(const struct gate *gate)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	unsigned int entries[SL_LIST_PLACES] = {0};
	uint64_t timed = 0;
	int err = 0;

	lists_copy(gate, lists);
	if (lists_count(lists))
		err = entries_count(gate, entries, &timed);
	if (err)
		return err;
	print_object(NULL);
	print_string("gate", NULL, gate->name);
	if (lists_count(lists))
		print_text("%-5s  %9s  %-20s  %5s  %s\n", "WORD", "ENTRIES", "END", "AGE", "LIST");
	else
		print_text("gate '%s' has no list; to add one: 'sluice %sdeny -f FILE'\n",
			   gate->name, gate_option(gate->name));
	print_array("lists");
	for (int place = 0; place < SL_LIST_PLACES; place++)
		if (*lists[place].name)
			print_list(&lists[place], entries[place], timed >> place & 1);
	print_end();
	print_end();
	return 0;
}
