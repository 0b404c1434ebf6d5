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

/* How a table prints the values of a histogram. */
struct histogram_style {
	int width; /* width of a column, in characters */
	int decimals;
	double divisor; /* a printed value is the value in the histogram / divisor */
	const char *unit;
	const char *up_to, *count; /* JSON keys of a bucket */
};

static const struct histogram_style duration_style = {16, 3, 1e3, " us", "up_to_ns", "packets"};
static const struct histogram_style rate_style = {9, 0, 1, "", "up_to_pps", "seconds"};

/* Prints a quantile in text and JSON, such as "0.128 us" or "> 524.288 us". key: its JSON key. */
static void print_quantile(const char *key, const struct histogram *histogram,
			   const struct histogram_style *style, unsigned int per_mille)
{
	uint64_t bound = histogram_quantile(histogram, per_mille);
	bool is_bounded = bound != HISTOGRAM_UNBOUNDED;
	char text[32] = "-";

	print_known(key, NULL, bound && is_bounded, bound);
	if (!is_bounded)
		bound = histogram_bound(histogram, histogram->buckets - 2);
	if (bound)
		snprintf(text, sizeof(text), "%s%.*f%s", is_bounded ? "" : "> ", style->decimals,
			 bound / style->divisor, style->unit);
	print_text(" %*s", style->width, text);
}

/* Prints the buckets of a histogram in JSON. all: empty buckets as well. */
static void print_buckets(const struct histogram *histogram, const struct histogram_style *style,
			  bool all)
{
	print_array("buckets");
	for (unsigned int i = 0; i < histogram->buckets; i++) {
		uint64_t bound = histogram_bound(histogram, i);

		if (!histogram->counts[i] && !all)
			continue;
		print_row(NULL);
		print_known(style->up_to, NULL, bound != HISTOGRAM_UNBOUNDED, bound);
		print_number(style->count, NULL, histogram->counts[i]);
		print_end();
	}
	print_end();
}

/* Prints the rates of a policy's sources, and the part of its packets that these rates contain. */
static void print_rates(const struct stats_line *line)
{
	const struct sl_rates *rates = &line->counters.rates;
	struct histogram histogram = rates_histogram(rates);
	uint64_t seconds = histogram_total(&histogram);
	uint64_t packets = counters_passed(&line->counters).packets +
			   counters_dropped(&line->counters).packets;

	print_text("%-24s", line->policy);
	print_object("rates");
	print_number("seconds", " %16" PRIu64, seconds);
	print_quantile("p50_pps", &histogram, &rate_style, 500);
	print_quantile("p99_pps", &histogram, &rate_style, 990);
	print_quantile("p999_pps", &histogram, &rate_style, 999);
	print_quantile("largest_pps", &histogram, &rate_style, 1000);
	/* the rates may have more packets if sources had another policy when a second began */
	print_text(" %6.0f %%\n", rates->packets < packets ? 100.0 * rates->packets / packets
				  : packets		   ? 100
							   : 0);
	print_number("packets", NULL, rates->packets);
	print_buckets(&histogram, &rate_style, false);
	print_end();
}

/* Prints the rates of the sources of all policies that have rates, as text. */
static void print_all_rates(const struct stats *stats)
{
	bool has_header = false;

	for (unsigned int i = 0; i < stats->count; i++) {
		struct histogram histogram = rates_histogram(&stats->lines[i].counters.rates);

		if (stats->lines[i].kind < STATS_RULE || !histogram_total(&histogram))
			continue;
		if (!has_header)
			print_text("\n%-24s %16s %9s %9s %9s %9s %8s\n", "SOURCE RATE, PACKETS/S",
				   "SECONDS", "MEDIAN", "P99", "P99.9", "LARGEST", "COVERED");
		has_header = true;
		print_rates(&stats->lines[i]);
	}
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
	if (print_is_json())
		print_rates(line);
	print_end();
}

/* Prints durations of packets with one verdict (pass or drop). */
static void print_durations(enum durations_verdict verdict, const struct durations *durations)
{
	struct histogram histogram = durations_histogram(durations);

	print_object(durations_names[verdict]);
	print_text("%-24s", durations_names[verdict]);
	print_number("timed", " %16" PRIu64, durations->timed);
	print_quantile("p50_ns", &histogram, &duration_style, 500);
	print_quantile("p99_ns", &histogram, &duration_style, 990);
	print_quantile("longest_ns", &histogram, &duration_style, 1000);
	print_text("\n");
	print_number("sum_ns", NULL, durations->histogram.ns);
	print_buckets(&histogram, &duration_style, true);
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
	if (!print_is_json())
		print_all_rates(&stats);
	print_all_durations(durations, &output);
	print_end();
	if (output.has_hidden && !output.all)
		print_text("(lines without packets are omitted; to print them: 'sluice %sstats "
			   "all')\n",
			   gate_option(gate->name));
	return 0;
}
