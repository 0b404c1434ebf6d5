// SPDX-License-Identifier: GPL-2.0
#include "serve/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "gate/pins.h"
#include "migrate/open.h"
#include "program/writer.h"
#include "report/report.h"
#include "state/buckets.h"

/* --- Sources -------------------------------------------------------------------------------- */

static uint64_t packets_of(const struct listed_source *source)
{
	return source->passed.packets + source->dropped.packets;
}

static int busier(const void *a, const void *b)
{
	const struct listed_source *left = a, *right = b;

	if (packets_of(left) != packets_of(right))
		return packets_of(left) < packets_of(right) ? 1 : -1;
	return prefix_compare(&left->prefix, &right->prefix);
}

/* Prints the counters of the sources with the most packets. */
static int print_gate_sources(const char *name, void *data)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(table_close) struct table table = TABLE_CLOSED;
	const struct serve_scope *scope = data;
	struct source_list list = {0};
	unsigned int mark = error_count();
	char text[PREFIX_TEXT];

	if ((scope->gate && strcmp(scope->gate, name)) || gate_open(&gate, name, GATE_READ, NULL) ||
	    table_open(&gate, &table) ||
	    sources_list(&gate, &table, &(struct sl_prefix){0}, &list)) {
		error_drop(mark); /* metric sluice_gate_readable reports the failure */
		return 0;
	}
	qsort(list.items, list.count, sizeof(*list.items), busier);
	for (unsigned int i = 0; i < list.count && i < scope->metrics_sources; i++) {
		const struct listed_source *source = &list.items[i];
		const char *address = prefix_format(&source->prefix, text);

		print_text("sluice_source_packets_total{gate=\"%s\",source=\"%s\","
			   "verdict=\"pass\"} %" PRIu64 "\n",
			   name, address, (uint64_t)source->passed.packets);
		print_text("sluice_source_packets_total{gate=\"%s\",source=\"%s\","
			   "verdict=\"drop\"} %" PRIu64 "\n",
			   name, address, (uint64_t)source->dropped.packets);
	}
	free(list.items);
	return 0;
}

static void ignore_gate(const char *gate, void *data)
{
	(void)gate;
	(void)data;
}

/* --- The document --------------------------------------------------------------------------- */

static void print_own(const struct serve_scope *scope, uint64_t begun)
{
	if (scope->metrics_sources) {
		print_text("# HELP sluice_source_packets_total Packets of the sources that have "
			   "sent most, at most as many as --metrics-sources.\n"
			   "# TYPE sluice_source_packets_total counter\n");
		gates_for_each(print_gate_sources, ignore_gate, (void *)scope);
	}
	print_text("# HELP sluice_scrape_seconds Seconds that sluice-serve needed to read these "
		   "metrics.\n"
		   "# TYPE sluice_scrape_seconds gauge\n"
		   "sluice_scrape_seconds %.6f\n",
		   (uptime_ns() - begun) / 1e9);
}

int metrics_print(const struct serve_scope *scope, bool open, FILE *out)
{
	uint64_t begun = uptime_ns();
	_cleanup_free_ char *text = NULL;
	size_t length;
	FILE *buffer = open ? open_memstream(&text, &length) : out;
	int err;

	if (!buffer)
		return error_add(ENOMEM, "no-memory", NULL, "cannot print the metrics: %s",
				 why(ENOMEM));
	print_begin(buffer, false);
	err = report_metrics(scope->gate);
	if (!err)
		print_own(scope, begun);
	if (!open)
		return err;
	if (fclose(buffer) && !err)
		err = error_add(ENOMEM, "no-memory", NULL, "cannot print the metrics: %s",
				why(ENOMEM));
	print_begin(out, false);
	if (!err)
		metrics_convert(text, out);
	return err;
}

/*
 * Converts metrics from the text format of Prometheus to OpenMetrics. OpenMetrics omits "_total" in
 * the lines HELP and TYPE of a counter, escapes '"' in help texts, and ends with EOF.
 */
void metrics_convert(const char *text, FILE *out)
{
	static const char total[] = "_total";

	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		size_t name = strcspn(line, "#") ? 0 : 7; /* skip "# HELP " or "# TYPE " */

		if (name && length > name) {
			size_t end = name + strcspn(line + name, " \n");
			bool is_counter = end > name + strlen(total) &&
					  !memcmp(line + end - strlen(total), total, strlen(total));

			fwrite(line, 1, is_counter ? end - strlen(total) : end, out);
			for (const char *c = line + end; c < line + length; c++) {
				if (*c == '"')
					fputc('\\', out);
				fputc(*c, out);
			}
		} else {
			fwrite(line, 1, length, out);
		}
		fputc('\n', out);
		line += length + (line[length] == '\n');
	}
	fputs("# EOF\n", out);
}
