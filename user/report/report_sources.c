// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/report.h"
#include "report/source_view.h"
#include "rules/limit_words.h"
#include "state/buckets.h"

/* Prints a source as JSON, with exact numbers and all limits. */
static void print_source_json(const struct source_view *view)
{
	static const struct judgement several = {0};
	const struct source *source = &view->source;

	print_judgement(view->gate, source->split ? &several : &source->rule);
	print_bool("counted", source->count);
	print_packets("passed", &source->passed);
	print_packets("dropped", &source->dropped);
	print_packets("would_drop", &source->observed);
	print_array("limits");
	for (unsigned int i = 0; i < view->source.limit_count; i++) {
		if (!view->states[i].known)
			continue;
		print_object(NULL);
		print_limit_state(source, &view->source.limits[i], &view->states[i]);
		print_end();
	}
	print_end();
}

/* Prints the columns LIMIT and LEVEL of a source. */
static void print_limit(const struct source_view *view, int index)
{
	const struct limit_state *state = &view->states[index];
	const struct sl_limit *limit = &view->source.limits[index];
	char label[LIMIT_LABEL], wait[CELL_TEXT], level[CELL_TEXT + 2];
	size_t length = strlen(limit_label(&view->source.policy->spec[limit->slot], label));

	if (limit_refuses(state) && !state->never)
		snprintf(level, sizeof(level), limit->observe ? "(%s)" : "%s",
			 wait_format(state->blocked_ms ?: state->retry_after_ms, wait));
	else
		snprintf(level, sizeof(level), "%u%%",
			 (unsigned int)(100.0 * state->remaining / burst_units(limit)));
	/* cut the middle of a long label, because ":bits" at its end is needed */
	if (length > 15)
		print_text(" %.9s~%s %5s\n", label, label + length - 5, level);
	else
		print_text(" %-15s %5s\n", label, level);
}

/*
 * Prints the counters and one limit of a source in columns. limit_shown() selects the limit. A
 * count has at most 5 characters.
 */
static void print_source_text(const struct source_view *view)
{
	const struct source *source = &view->source;
	const struct judgement *rule = &source->rule;
	const uint64_t counts[] = {source->passed.packets, source->dropped.packets,
				   source->observed.packets,
				   source->passed.bytes + source->dropped.bytes};
	char text[PREFIX_TEXT], cell[CELL_TEXT];
	int shown = limit_shown(view);

	print_text(" %-18s", view_policy(view, text));
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		print_text(" %5s", source->count ? count_format(counts[i], cell) : "-");
	if (shown >= 0)
		print_limit(view, shown);
	else
		print_text(" %-15s %5s\n", "-",
			   !source->split && rule->access && rule->until
				   ? wait_format(until_left_ns(rule->until) / NS_PER_MS, cell)
				   : "-");
}

void print_view_head(int width)
{
	print_text("%-*s %-18s %5s %5s %5s %5s %-15s %5s\n", width, "SOURCE", "POLICY", "PASS",
		   "DROP", "WOULD", "BYTES", "LIMIT", "LEVEL");
}

void print_source_view(const struct source_view *view, int width)
{
	char address[PREFIX_TEXT];

	print_row(NULL);
	print_string("address", NULL, prefix_format(&view->source.prefix, address));
	print_text("%-*s", width, address);
	if (print_is_json())
		print_source_json(view);
	else
		print_source_text(view);
	print_end();
}

/* --- Ranking -------------------------------------------------------------------------------- */

/*
 * A source and its sort keys. Sources are printed by descending rank; equal ranks by descending
 * urgency. A source with counters has the lowest urgency, because an uncounted source may have sent
 * more packets.
 */
struct ranked {
	const struct listed_source *source;
	double rank;
	double urgency;
};

#define URGENCY_FREE  (-2) /* a source without counters to which no limit applies */
#define URGENCY_KNOWN (-3) /* counters */

/* Computes the rank (the value to sort by) and the urgency of a source. */
static int rank(const struct gate *gate, const struct table *table, enum order order,
		struct ranked *ranked)
{
	const struct listed_source *source = ranked->source;
	uint64_t passed = source->passed.packets, dropped = source->dropped.packets;
	const double ranks[ORDERS] = {
		[ORDER_BUSIEST] = passed + dropped,
		[ORDER_PASSED] = passed,
		[ORDER_DROPPED] = dropped,
		[ORDER_BYTES] = source->passed.bytes + source->dropped.bytes,
	};
	struct source_view view;
	int err, shown;

	ranked->rank = ranks[order];
	ranked->urgency = URGENCY_KNOWN;
	if (source->is_counted && order != ORDER_LEVEL)
		return 0;
	err = view_read(gate, table, &source->prefix, &view);
	if (err)
		return err;
	shown = limit_shown(&view);
	ranked->urgency = shown < 0 ? URGENCY_FREE : -limit_slack(&view, shown);
	source_free(&view.source);
	return 0;
}

static int ranked_order(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank < right->rank ? 1 : -1;
	if (left->urgency != right->urgency)
		return left->urgency < right->urgency ? 1 : -1;
	return prefix_compare(&left->source->prefix, &right->source->prefix);
}

/* --- The report ----------------------------------------------------------------------------- */

static int print_ranked(const struct gate *gate, const struct table *table,
			const struct ranked *ranked, unsigned int count, unsigned int total)
{
	char address[PREFIX_TEXT];
	int width = 15; /* then a line with an IPv4 source has 80 characters */
	int err = 0;

	for (unsigned int i = 0; i < count; i++) {
		int length = strlen(prefix_format(&ranked[i].source->prefix, address));

		width = length > width ? length : width;
	}
	print_object(NULL);
	print_string("gate", NULL, gate->name);
	print_number("total", NULL, total);
	print_view_head(width);
	print_array("sources");
	for (unsigned int i = 0; !err && i < count; i++) {
		struct source_view view;

		err = view_read(gate, table, &ranked[i].source->prefix, &view);
		if (err)
			break;
		print_source_view(&view, width);
		source_free(&view.source);
	}
	if (err)
		return err;
	print_end();
	print_end();
	if (count < total)
		print_text("(%u of %u sources)\n", count, total);
	return 0;
}

int report_sources(const struct gate *gate, const struct sources_args *args)
{
	_cleanup_(table_close) struct table table = TABLE_CLOSED;
	struct source_list list = {0};
	_cleanup_free_ struct ranked *ranked = NULL;
	/* search the /64 of an IPv6 address, because most IPv6 sources are /64 prefixes */
	const struct sl_prefix within = prefix_source(&args->within);
	unsigned int count, skip;
	int err = table_open(gate, &table) ?: sources_list(gate, &table, &within, &list);
	_cleanup_free_ struct listed_source *items = list.items;

	if (err)
		return err;
	if (!list.count && prefix_is_host(&args->within)) {
		char text[PREFIX_TEXT];

		error_notice("not-tracked", prefix_format(&args->within, text),
			     "not tracked; it sent nothing, or all its state is full");
	}
	ranked = calloc(list.count ?: 1, sizeof(*ranked));
	if (!ranked)
		return error_add(ENOMEM, "no-memory", NULL, "cannot sort the sources: %s",
				 why(ENOMEM));
	for (unsigned int i = 0; !err && i < list.count; i++) {
		ranked[i].source = &list.items[i];
		err = rank(gate, &table, args->order, &ranked[i]);
	}
	if (err)
		return err;
	qsort(ranked, list.count, sizeof(*ranked), ranked_order);
	skip = args->skip < list.count ? args->skip : list.count;
	count = list.count - skip;
	if (args->top && args->top < count)
		count = args->top;
	return print_ranked(gate, &table, ranked + skip, count, list.count);
}
