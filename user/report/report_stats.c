// SPDX-License-Identifier: GPL-2.0
#include "base/array.h"
#include "base/cleanup.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/report.h"
#include "state/durations.h"
#include "state/stats.h"

/* Options of the output. If the user did not write `all`, text output omits counts of 0. */
struct stats_output {
	bool all, has_hidden; /* has_hidden: at least one line with count 0 was omitted */
};

static bool is_shown(struct stats_output *output, unsigned long long count)
{
	output->has_hidden |= !count;
	return count || output->all;
}

static void print_totals(const struct stats *stats, struct stats_output *output)
{
	static const char *const names[] = {"passed", "dropped"};
	const struct sl_cell totals[] = {counters_passed(&stats->total),
					 counters_dropped(&stats->total)};
	const struct sl_cell *reasons = stats->total.reason;

	print_text("%-24s %16s %20s\n", "TOTAL", "PACKETS", "BYTES");
	print_object("totals");
	for (size_t i = 0; i < ARRAY_SIZE(totals); i++) {
		print_packets(names[i], &totals[i]);
		print_text("%-24s %16llu %20llu\n", names[i], totals[i].packets, totals[i].bytes);
	}
	print_end();
	print_text("\n%-24s %16s %20s\n", "REASON", "PACKETS", "BYTES");
	print_object("reasons");
	for (int reason = 0; reason < SL_REASONS; reason++) {
		print_number(reason_names[reason], NULL, reasons[reason].packets);
		if (is_shown(output, reasons[reason].packets))
			print_text("%s %-19s %16llu %20llu\n",
				   reason < SL_FIRST_DROP ? "pass" : "drop", reason_names[reason],
				   reasons[reason].packets, reasons[reason].bytes);
	}
	print_end();
	print_object("lists");
	print_packets("allow", &reasons[SL_PASS_ALLOWED]);
	print_packets("deny", &reasons[SL_DROP_DENIED]);
	print_end();
}

/*
 * Prints the counts of a policy: packets that passed, packets that were dropped, and packets that
 * each limit refused. Text output omits counts of 0 unless the user wrote `all`.
 */
static void print_policy(const struct stats_line *line, struct stats_output *output)
{
	struct sl_cell passed = counters_passed(&line->counters);
	struct sl_cell dropped = counters_dropped(&line->counters);
	unsigned long long sum = passed.packets + dropped.packets;

	for (unsigned int i = 0; i < line->limits; i++)
		sum += line->counters.refused[line->limit[i].slot].packets;
	if (print_is_json() ? line->kind != STATS_RULE : !is_shown(output, sum))
		return;
	print_object(NULL);
	print_string("prefix", "%-24s", line->policy);
	print_text(" %16llu %16llu\n", passed.packets, dropped.packets);
	print_packets("passed", &passed);
	print_packets("dropped", &dropped);
	print_array("limits");
	for (unsigned int i = 0; i < line->limits; i++) {
		const struct stats_limit *limit = &line->limit[i];
		const struct sl_cell *refused = &line->counters.refused[limit->slot];
		bool observes = limit->action == SL_ACTION_OBSERVE;

		if (!print_is_json() && !is_shown(output, refused->packets))
			continue;
		print_row(NULL);
		print_string("name", "  limit %-16s", limit->name);
		print_string("action", NULL, action_names[limit->action]);
		print_text(" %16s %16llu", "", refused->packets);
		print_packets("refused", refused);
		print_string("verdict", NULL, observes ? "would-drop" : "drop");
		print_text("  %s\n", observes ? "would-drop" : action_names[limit->action]);
		print_end();
	}
	print_end();
	print_end();
}

#define BOUND_TEXT 32

/* Formats a duration in microseconds, such as "0.128 us" or "> 524.288 us". */
static const char *duration_format(const struct histogram *histogram, uint64_t ns,
				   char text[BOUND_TEXT])
{
	bool is_bounded = ns != HISTOGRAM_UNBOUNDED;

	if (!is_bounded)
		ns = histogram_bound(histogram, histogram->buckets - 2);
	snprintf(text, BOUND_TEXT, "%s%.3f us", is_bounded ? "" : "> ", ns / 1e3);
	return text;
}

/* Prints a quantile of durations in text and JSON. key: its JSON key. */
static void print_quantile(const char *key, const struct histogram *histogram,
			   unsigned int per_mille)
{
	uint64_t ns = histogram_quantile(histogram, per_mille);
	char text[BOUND_TEXT];

	print_known(key, NULL, ns && ns != HISTOGRAM_UNBOUNDED, ns);
	print_text(" %16s", ns ? duration_format(histogram, ns, text) : "-");
}

/* Prints durations of packets with one verdict (pass or drop). */
static void print_durations(enum durations_verdict verdict, const struct durations *durations)
{
	struct histogram histogram = durations_histogram(durations);

	print_object(durations_names[verdict]);
	print_text("%-24s", durations_names[verdict]);
	print_number("timed", " %16" PRIu64, durations->timed);
	print_quantile("p50_ns", &histogram, 500);
	print_quantile("p99_ns", &histogram, 990);
	print_quantile("longest_ns", &histogram, 1000);
	print_text("\n");
	print_number("sum_ns", NULL, durations->histogram.ns);
	print_array("buckets");
	for (unsigned int i = 0; i < SL_DURATION_BUCKETS; i++) {
		uint64_t bound = histogram_bound(&histogram, i);

		print_row(NULL);
		print_known("up_to_ns", NULL, bound != HISTOGRAM_UNBOUNDED, bound);
		print_number("packets", NULL, durations->histogram.bucket[i]);
		print_end();
	}
	print_end();
	print_end();
}

/*
 * Prints the histograms of durations. Text output omits a verdict if none of its packets was timed.
 */
static void print_all_durations(const struct durations all[DURATIONS_VERDICTS],
				struct stats_output *output)
{
	bool has_header = false;

	print_object("durations");
	print_number("one_in", NULL, SL_DURATION_SAMPLE);
	for (int verdict = 0; verdict < DURATIONS_VERDICTS; verdict++) {
		if (!print_is_json() && !is_shown(output, all[verdict].timed))
			continue;
		if (!has_header)
			print_text("\n%-24s %16s %16s %16s %16s\n", "DURATION", "TIMED", "MEDIAN",
				   "P99", "LONGEST");
		has_header = true;
		print_durations(verdict, &all[verdict]);
	}
	print_end();
}

int report_stats(const struct gate *gate, bool all)
{
	struct stats_output output = {.all = all};
	_cleanup_(stats_free) struct stats stats = {0};
	struct durations durations[DURATIONS_VERDICTS];
	int err = stats_read(gate, &stats) ?: durations_read(gate, durations);

	if (err)
		return err;
	print_object(NULL);
	print_string("gate", "gate %s", gate->name);
	print_number("generation", ", generation %" PRIu64 "\n\n", gate->state->generation);
	print_totals(&stats, &output);
	print_text("\n%-24s %16s %16s\n", "POLICY", "PASSED", "DROPPED");
	print_array("policies");
	for (unsigned int i = 0; i < stats.count; i++)
		print_policy(&stats.lines[i], &output);
	print_end();
	print_all_durations(durations, &output);
	print_end();
	if (output.has_hidden && !output.all)
		print_text("(lines without packets are omitted; to print them: 'sluice %sstats "
			   "all')\n",
			   gate_option(gate->name));
	return 0;
}
