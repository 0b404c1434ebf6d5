// SPDX-License-Identifier: GPL-2.0
#include "top/header.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"

/* Appends text to a header line. Truncates a line that gets too long. */
static void append(char line[HEADER_LINE], const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void append(char line[HEADER_LINE], const char *format, ...)
{
	size_t length = strlen(line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + length, HEADER_LINE - length, format, args);
	va_end(args);
}

#define DURATION_CELL 32

/* Formats a bound of the durations, such as "64 ns" or "2.0 us". */
static const char *bound_format(const struct histogram *histogram, uint64_t ns,
				char text[DURATION_CELL])
{
	const char *more = ns == HISTOGRAM_UNBOUNDED ? "more than " : "";

	if (ns == HISTOGRAM_UNBOUNDED)
		ns = histogram_bound(histogram, histogram->buckets - 2);
	if (ns < 1000)
		snprintf(text, DURATION_CELL, "%u ns", (unsigned int)ns);
	else
		snprintf(text, DURATION_CELL, "%s%.1f us", more, ns / 1e3);
	return text;
}

/*
 * Appends the median and the 99th percentile of the program's run time in recent refreshes. Appends
 * nothing if no run was timed.
 */
static void build_durations(const struct live *live, char line[HEADER_LINE])
{
	struct durations sum = live->durations[DURATIONS_PASS];
	const struct histogram histogram = durations_histogram(&sum);
	const struct durations *drop = &live->durations[DURATIONS_DROP];
	char median[DURATION_CELL], most[DURATION_CELL];

	for (int i = 0; i < SL_DURATION_BUCKETS; i++)
		sum.histogram.bucket[i] += drop->histogram.bucket[i];
	sum.timed += drop->timed;
	if (sum.timed)
		append(line, "  half decided in %s, 99%% in %s",
		       bound_format(&histogram, histogram_quantile(&histogram, 500), median),
		       bound_format(&histogram, histogram_quantile(&histogram, 990), most));
}

static void build_title(const struct live *live, uint64_t interval_ns, char line[HEADER_LINE])
{
	char interval[UNITS_TEXT], clock[16];
	time_t now = time(NULL);
	struct tm local;

	if (!localtime_r(&now, &local) || !strftime(clock, sizeof(clock), "%H:%M:%S", &local))
		*clock = '\0';
	append(line, "gate %s  %s  every %s", live->name, clock,
	       time_format(interval_ns, interval));
	build_durations(live, line);
}

/*
 * Formats "pass 12.3k 98.7Mb SPARKLINE". Without a sparkline, formats "passed 12.3k packets/s,
 * 98.7M bits/s".
 */
static void build_rate(const char *name, const struct live_rate *rate,
		       const struct live_history *history, const float *rates, unsigned int spark,
		       char line[HEADER_LINE])
{
	char packets[CELL_TEXT], bits[CELL_TEXT], sparkline[GLYPHS_TEXT(LIVE_HISTORY)];

	/* sparklines of 60 rates need 80 columns, because the labels have 20 characters */
	if (spark)
		append(line, "%-6.4s%6s%6sb %s", name, rate_cell(rate->packets, packets),
		       rate_cell(rate->bits, bits),
		       sparkline_format(history, rates, spark, sparkline));
	else
		append(line, "%-7s %s packets/s, %s bits/s", name,
		       rate_cell(rate->packets, packets), rate_cell(rate->bits, bits));
}

static void build_reasons(const struct live *live, char line[HEADER_LINE])
{
	const char *separator = " ";
	char text[CELL_TEXT];
	bool any = false;

	append(line, "drops  ");
	for (int reason = SL_FIRST_DROP; reason < SL_REASONS; reason++) {
		float rate = live->total.reason[reason].packets;

		if (!(rate > 0))
			continue;
		append(line, "%s%s %s/s", separator, reason_names[reason], rate_cell(rate, text));
		separator = ", ";
		any = true;
	}
	if (!any)
		append(line, " none");
}

static void build_new(const struct live *live, struct header *ret)
{
	const struct pressure *pressure = &live->pressure;
	const struct live_fill *fill = &live->fill;
	char *line = ret->line[HEADER_NEW], text[CELL_TEXT];

	append(line, "new     %s/s, ",
	       count_format(pressure->event[SL_EVENT_NEW_KEY].per_second, text));
	if (pressure->flooded)
		append(line, "FLOOD on %u of %u CPUs", pressure->flooded, live->gate.machine.cpus);
	else
		append(line, "no flood");
	append(line, ";  table %s of %s, %.0f%%", count_format(fill->in_use, text),
	       count_format(fill->sources, (char[CELL_TEXT]){0}),
	       fill->sources ? 100.0 * fill->in_use / fill->sources : 0);
	if (pressure->event[SL_EVENT_EVICTED].per_second)
		append(line, ", evicts %s/s",
		       count_format(pressure->event[SL_EVENT_EVICTED].per_second, text));
	ret->warns |= pressure->flooded;
}

static void build_devices(const struct live *live, char line[HEADER_LINE])
{
	const struct seen *seen = &live->seen;
	const char *separator = " ";

	append(line, "devices");
	for (unsigned int i = 0; i < seen->count; i++) {
		const struct attachment *a = &seen->all[i];

		append(line, "%s%s %s %s%s", separator, name_shown(a->device), hook_names[a->hook],
		       mode_names[a->mode], a->program_id ? "" : " GONE");
		separator = ", ";
	}
	if (seen->sight == SIGHT_NONE)
		append(line, " not known: they cannot be read");
	else if (!seen->count)
		append(line, " none: no device is attached");
}

static void build_finding(const struct live *live, struct header *ret)
{
	const struct finding *finding = live->finding;
	char *line = ret->line[HEADER_FINDING];

	if (!finding) {
		append(line, "doctor  no findings");
		return;
	}
	append(line, "doctor  %s: %s: %s [%s]", severity_names[finding->severity],
	       name_shown(finding->object), finding->text, finding->id);
	ret->warns |= finding->severity == WRONG;
}

static void build_footer(const struct live *live, char line[HEADER_LINE])
{
	char known[CELL_TEXT], left_out[CELL_TEXT];

	append(line, "%.1f%% of a CPU, read %.0f%% of %s sources", 100 * (double)live->cpu_share,
	       100 * (double)live->read_share, count_format(live->sources.count, known));
	if (live->sources.left_out)
		append(line, " (%s more)", count_format(live->sources.left_out, left_out));
	if (live->read_share < 1 && live->pass_ns)
		append(line, ", all in %s", wait_format(live->pass_ns / NS_PER_MS, known));
}

void header_build(const struct live *live, uint64_t interval_ns, unsigned int spark,
		  struct header *ret)
{
	const struct live_history *history = &live->history;

	memset(ret, 0, sizeof(*ret));
	build_title(live, interval_ns, ret->line[HEADER_TITLE]);
	build_rate("passed", &live->total.passed, history, history->passed, spark,
		   ret->line[HEADER_PASSED]);
	build_rate("dropped", &live->total.dropped, history, history->dropped, spark,
		   ret->line[HEADER_DROPPED]);
	build_reasons(live, ret->line[HEADER_REASONS]);
	build_new(live, ret);
	build_devices(live, ret->line[HEADER_DEVICES]);
	build_finding(live, ret);
	build_footer(live, ret->footer);
	for (int row = 0; row < HEADER_ROWS; row++)
		/* the end of the line may be an incomplete UTF-8 character */
		text_make_printable(ret->line[row]);
	ret->drops = live->total.dropped.packets > 0;
}
