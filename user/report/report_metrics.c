// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the text exposition format 0.0.4 of Prometheus. Reads all gates first, because the samples
 * of one metric must be consecutive. No label contains a source, because there may be millions. If
 * a gate cannot be read, exits with status 0, so that `sluice export >FILE && mv ...` updates the
 * metrics of the readable gates.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/published.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/netns.h"
#include "base/text.h"
#include "doctor/findings.h"
#include "gate/pins.h"
#include "gate/rules.h"
#include "migrate/open.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/report.h"
#include "sharing/share_state.h"
#include "state/durations.h"
#include "state/pressure.h"
#include "state/stats.h"

/* The facts about a gate that its metrics contain. */
struct exported {
	char gate[GATE_NAME + 1];
	uint32_t generation;
	struct stats stats;
	struct durations durations[DURATIONS_VERDICTS];
	struct seen seen;
	double seen_age; /* seconds since attachments were published; -1: unknown */
	struct pressure pressure;
	struct passing passing;
	struct table_fill fill;
	struct sharing sharing;
	struct findings findings;
	struct occupancy maps[MAPS_LISTED];
	unsigned int rules;
	struct sl_list_info lists[SL_LIST_PLACES];
};

/* A metric. print() prints its samples for one gate. */
struct metric {
	const char *name;
	const char *help;
	void (*print)(const struct metric *metric, const struct exported *gate);
	size_t member, size; /* offset and size of the value in struct exported or sl_cell */
	bool is_histogram;
};

/* Returns the number at metric->member in `base`. */
static uint64_t number_at(const void *base, const struct metric *metric)
{
	const void *member = (const char *)base + metric->member;

	return metric->size == sizeof(uint32_t) ? *(const uint32_t *)member
						: *(const uint64_t *)member;
}

/* Prints a sample with label `gate`. labels: format of further labels, such as ",policy=\"%s\"". */
static void __attribute__((format(printf, 4, 5)))
print_sample(const struct metric *metric, const struct exported *e, uint64_t value,
	     const char *labels, ...)
{
	char text[2 * SL_LIST_NAME];
	va_list args;

	va_start(args, labels);
	vsnprintf(text, sizeof(text), labels, args);
	va_end(args);
	print_text("%s{gate=\"%s\"%s} %" PRIu64 "\n", metric->name, e->gate, text, value);
}

static void print_reasons(const struct metric *metric, const struct exported *e)
{
	for (unsigned int i = 0; i < e->stats.count; i++) {
		const struct stats_line *line = &e->stats.lines[i];

		for (int reason = 0; reason < SL_REASONS; reason++)
			if (stats_line_has(line, reason))
				print_sample(metric, e,
					     number_at(&line->counters.reason[reason], metric),
					     ",policy=\"%s\",verdict=\"%s\",reason=\"%s\"",
					     line->policy, reason < SL_FIRST_DROP ? "pass" : "drop",
					     reason_names[reason]);
	}
}

static void print_refused(const struct metric *metric, const struct exported *e)
{
	for (unsigned int i = 0; i < e->stats.count; i++) {
		const struct stats_line *line = &e->stats.lines[i];

		for (unsigned int j = 0; j < line->limits; j++) {
			const struct stats_limit *limit = &line->limit[j];

			print_sample(metric, e,
				     number_at(&line->counters.refused[limit->slot], metric),
				     ",policy=\"%s\",limit=\"%s\",action=\"%s\"", line->policy,
				     limit->name, action_names[limit->action]);
		}
	}
}

static void print_member(const struct metric *metric, const struct exported *e)
{
	print_sample(metric, e, number_at(e, metric), "%s", "");
}

static void print_seconds(const struct metric *metric, const struct exported *e)
{
	double value = *(const double *)((const char *)e + metric->member);

	if (value >= 0)
		print_text("%s{gate=\"%s\"} %.3f\n", metric->name, e->gate, value);
}

/* Prints a sample for each cause. metric->member is an array with one event for each cause. */
static void export_causes(const struct metric *metric, const struct exported *e)
{
	const struct pace *first = (const void *)((const char *)e + metric->member);

	for (int cause = 0; cause < CAUSES; cause++)
		print_sample(metric, e, first[cause].total, ",cause=\"%s\"", cause_names[cause]);
}

static void print_share_up(const struct metric *metric, const struct exported *e)
{
	bool lives = e->sharing.sharer == SHARER_LIVES;

	if (lives || e->sharing.is_wanted)
		print_sample(metric, e, lives && !e->sharing.state.store_is_away, "%s", "");
}

static void print_share_number(const struct metric *metric, const struct exported *e)
{
	if (e->sharing.sharer == SHARER_LIVES)
		print_member(metric, e);
}

/* Prints the age of each list. A list's name needs no escapes; see list_name_check(). */
static void print_list_ages(const struct metric *metric, const struct exported *e)
{
	uint64_t now = time(NULL);

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *list = &e->lists[place];

		if (*list->name)
			print_sample(metric, e, now > list->replaced ? now - list->replaced : 0,
				     ",list=\"%s\"", list->name);
	}
}

static void print_map_sizes(const struct metric *metric, const struct exported *e)
{
	for (int map = 0; map < MAPS_LISTED; map++)
		print_sample(metric, e, e->maps[map].max_entries, ",map=\"%s\"",
			     gate_map_names[map]);
}

static void print_map_entries(const struct metric *metric, const struct exported *e)
{
	for (int map = MAP_HOSTS4; map < MAPS_LISTED; map++)
		if (e->maps[map].counted)
			print_sample(metric, e, e->maps[map].entries, ",map=\"%s\"",
				     gate_map_names[map]);
}

/* Prints how many findings have each id. In `findings`, equal ids are adjacent. */
static void print_findings(const struct metric *metric, const struct exported *e)
{
	const struct finding *list = e->findings.list;
	unsigned int alike = 0;

	for (unsigned int i = 0; i < e->findings.count; i++) {
		alike++;
		if (i + 1 < e->findings.count && !strcmp(list[i].id, list[i + 1].id))
			continue;
		print_sample(metric, e, alike, ",finding=\"%s\",severity=\"%s\"", list[i].id,
			     severity_names[list[i].severity]);
		alike = 0;
	}
}

/* Formats a device or a network namespace as a label value, with escapes. */
static const char *escape(const char *name, char text[2 * NETNS_NAME])
{
	char *end = text;

	for (const char *c = name_shown(name); *c && end < text + 2 * NETNS_NAME - 2; c++) {
		if (*c == '\\' || *c == '"')
			*end++ = '\\';
		*end++ = *c;
	}
	*end = '\0';
	return text;
}

/* Prints a sample for each attachment. Prints an unnamed network namespace as net:[INODE]. */
static void export_attachments(const struct metric *metric, const struct exported *e)
{
	for (unsigned int i = 0; i < e->seen.count; i++) {
		const struct attachment *a = &e->seen.all[i];
		char netns[NETNS_NAME], device_text[2 * NETNS_NAME], netns_text[2 * NETNS_NAME];

		if (!netns_name(a->netns, netns))
			snprintf(netns, sizeof(netns), "net:[%" PRIu64 "]", a->netns);
		print_sample(metric, e, a->program_id != 0,
			     ",device=\"%s\",ifindex=\"%u\",netns=\"%s\",hook=\"%s\",mode=\"%s\"",
			     escape(a->device, device_text), a->ifindex, escape(netns, netns_text),
			     hook_names[a->hook], mode_names[a->mode]);
	}
}

/*
 * Prints a histogram: its cumulative buckets, its sum and its count. labels: such as policy="x".
 * unit: what 1 in the histogram is in the unit of the metric; less than 1 if the sum has decimals.
 */
static void print_histogram(const struct metric *metric, const struct exported *e,
			    const char *labels, const struct histogram *histogram, double unit,
			    uint64_t sum)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < histogram->buckets; i++) {
		uint64_t bound = histogram_bound(histogram, i);
		char text[32] = "+Inf";

		if (bound != HISTOGRAM_UNBOUNDED)
			snprintf(text, sizeof(text), "%.10g", bound * unit);
		count += histogram->counts[i];
		print_text("%s_bucket{gate=\"%s\",%s,le=\"%s\"} %" PRIu64 "\n", metric->name,
			   e->gate, labels, text, count);
	}
	print_text("%s_sum{gate=\"%s\",%s} %.*f\n", metric->name, e->gate, labels, unit < 1 ? 9 : 0,
		   sum * unit);
	print_text("%s_count{gate=\"%s\",%s} %" PRIu64 "\n", metric->name, e->gate, labels, count);
}

static void export_durations(const struct metric *metric, const struct exported *e)
{
	for (int verdict = 0; verdict < DURATIONS_VERDICTS; verdict++) {
		struct histogram histogram = durations_histogram(&e->durations[verdict]);
		char labels[32];

		snprintf(labels, sizeof(labels), "verdict=\"%s\"", durations_names[verdict]);
		print_histogram(metric, e, labels, &histogram, 1e-9,
				e->durations[verdict].histogram.ns);
	}
}

/* Prints the rates of the sources of each policy. */
static void export_rates(const struct metric *metric, const struct exported *e)
{
	for (unsigned int i = 0; i < e->stats.count; i++) {
		const struct stats_line *line = &e->stats.lines[i];
		struct histogram histogram = rates_histogram(&line->counters.rates);
		char labels[PREFIX_TEXT + 16];

		if (line->kind < STATS_RULE)
			continue;
		snprintf(labels, sizeof(labels), "policy=\"%s\"", line->policy);
		print_histogram(metric, e, labels, &histogram, 1, line->counters.rates.packets);
	}
}

/* --- Metrics -------------------------------------------------------------------------------- */

#define MEMBER_OF(type, field) .member = offsetof(type, field), .size = sizeof(((type *)0)->field)
#define MEMBER(field)	       MEMBER_OF(struct exported, field)
#define CELL(field)	       MEMBER_OF(struct sl_cell, field)

static const struct metric metrics[] = {
	{"sluice_packets_total", "Packets judged.", print_reasons, CELL(packets)},
	{"sluice_bytes_total", "Bytes of the packets judged.", print_reasons, CELL(bytes)},
	{"sluice_limit_refused_packets_total",
	 "Packets that a limit refused. A limit with the action observe lets them pass.",
	 print_refused, CELL(packets)},
	{"sluice_limit_refused_bytes_total", "Bytes of the packets that a limit refused.",
	 print_refused, CELL(bytes)},
	{"sluice_source_packets_per_second",
	 "Packets that a source sent in a second, counted once for each source, second and CPU. "
	 "Only sources with a bucket are counted.",
	 export_rates, .is_histogram = true},
	{"sluice_decision_duration_seconds",
	 "Seconds from the arrival of a packet at the program to its verdict. Sampled: each CPU "
	 "times one packet in 4096.",
	 export_durations, .is_histogram = true},
	{"sluice_new_keys_total",
	 "Packets of new sources: a packet counts once if a limit has no state for its source.",
	 print_member, MEMBER(pressure.event[SL_EVENT_NEW_KEY].total)},
	{"sluice_insertions_total", "States added, one for each limit and key.", print_member,
	 MEMBER(pressure.event[SL_EVENT_INSERTED].total)},
	{"sluice_states_evicted_total", "States that were evicted although they were not full.",
	 print_member, MEMBER(pressure.event[SL_EVENT_EVICTED].total)},
	{"sluice_insertions_refused_total", "Packets of new sources that got no state.",
	 export_causes, MEMBER(pressure.event[SL_EVENT_BUSY])},
	{"sluice_bucket_insertions_total", "Entries added to buckets4 and buckets6.", print_member,
	 MEMBER(pressure.event[SL_EVENT_BUCKET_INSERTED].total)},
	{"sluice_bucket_insertions_refused_total",
	 "Entries that could not be added to buckets4 or buckets6.", export_causes,
	 MEMBER(pressure.event[SL_EVENT_BUCKET_BUSY])},
	{"sluice_bursts_lost_total", "Sum of the parts of their bursts that evicted states lacked.",
	 print_seconds, MEMBER(pressure.bursts_lost)},
	{"sluice_events_lost_total",
	 "Crossings of limits that were not recorded for the process that reads events.",
	 print_member, MEMBER(pressure.crossings_lost)},
	{"sluice_states", "States in the table, full states included.", print_member,
	 MEMBER(fill.in_use)},
	{"sluice_states_partial", "States in the table that are not full.", print_member,
	 MEMBER(fill.partial)},
	{"sluice_states_protected",
	 "States that are evicted last: they lack more than half of a burst, or are blocked.",
	 print_member, MEMBER(fill.protected)},
	{"sluice_sources_limited",
	 "States that refuse the next packet. A source counts once for each limit.", print_member,
	 MEMBER(fill.limited)},
	{"sluice_sources_blocked", "States that are blocked, so they refuse all packets.",
	 print_member, MEMBER(fill.blocked)},
	{"sluice_cpus_flooded",
	 "CPUs on which new sources wait for their states. 0: there is no flood.", print_member,
	 MEMBER(pressure.flooded)},
	{"sluice_flood_policies_passed_by",
	 "Policies whose limits drop and that lack a budget for new sources, counted if new "
	 "sources passed them during a flood.",
	 print_member, MEMBER(passing.policies)},
	{"sluice_share_up",
	 "1: a process shares the limits of the gate and the store answers. 0: no process shares "
	 "them, or the store does not answer. Missing: the gate has no shared limit.",
	 .print = print_share_up},
	{"sluice_share_divided_by",
	 "Nodes by which shared limits are divided under --on-loss divide. 1: they are not "
	 "divided.",
	 print_member, MEMBER(sharing.divided_by)},
	{"sluice_list_age_seconds",
	 "Seconds since the file of a list was written, or its prefixes were set.",
	 .print = print_list_ages},
	{"sluice_map_max_entries",
	 "Entries that fit into a map. For policies and counters: prefixes with limits. For "
	 "states: sources under one limit.",
	 .print = print_map_sizes},
	{"sluice_map_entries",
	 "Entries of a map, in the unit of sluice_map_max_entries. Missing: counting them would "
	 "take too long.",
	 .print = print_map_entries},
	{"sluice_findings",
	 "Findings of 'sluice doctor' about the gate. Missing: no finding has this id.",
	 .print = print_findings},
	{"sluice_rules", "Rules, list entries included.", print_member, MEMBER(rules)},
	{"sluice_rules_generation", "Changes of the rules since the gate was made.", print_member,
	 MEMBER(generation)},
	{"sluice_attached", "1: the device is filtered. 0: the device or its filter is gone.",
	 .print = export_attachments},
	{"sluice_attached_age_seconds",
	 "Seconds since the attachments were published for readers. 0: they were read now. "
	 "Missing: they cannot be read.",
	 print_seconds, MEMBER(seen_age)},
};

/* --- The report ----------------------------------------------------------------------------- */

struct export
{
	struct exported *gates;
	unsigned int count, room;
};

/*
 * Prints the HELP and TYPE lines of a metric, and its samples. A metric whose name ends in _total
 * is a counter, which is a convention of Prometheus.
 */
static void print_metric(const struct metric *metric, const struct export *export)
{
	const char *name = metric->name, *suffix = strstr(name, "_total");

	print_text("# HELP %s %s\n# TYPE %s %s\n", name, metric->help, name,
		   metric->is_histogram			 ? "histogram"
		   : suffix && !strcmp(suffix, "_total") ? "counter"
							 : "gauge");
	for (unsigned int i = 0; metric->print && i < export->count; i++)
		metric->print(metric, &export->gates[i]);
}

static void exported_free(struct exported *e)
{
	stats_free(&e->stats);
	findings_free(&e->findings);
}

static int exported_read(const char *name, struct exported *e)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err = gate_open(&gate, name, GATE_READ, NULL);

	if (err)
		return err;
	snprintf(e->gate, sizeof(e->gate), "%s", name);
	e->generation = gate.state->generation;
	e->sharing = sharing_read(&gate);
	lists_copy(&gate, e->lists);
	err = stats_read(&gate, &e->stats) ?: durations_read(&gate, e->durations)
	      ?: rules_count(&gate, &e->rules)
	      ?: attachments_see(&gate, &e->seen) ?: pressure_read(&gate, &e->pressure)
	      ?: passing_read(&gate, &e->pressure, &e->passing)
	      ?: table_fill_read(&gate, &e->pressure, &e->fill);
	e->seen_age = e->seen.sight == SIGHT_NONE ? -1 : e->seen.age_ns / 1e9;
	for (int map = 0; !err && map < MAPS_LISTED; map++)
		err = map == MAP_BUCKETS4 || map == MAP_BUCKETS6
			      ? map_max_entries(&gate, map, &e->maps[map].max_entries)
			      : occupancy_read(&gate, map, &e->maps[map]);
	e->maps[MAP_STATES].entries = e->fill.in_use;
	e->maps[MAP_STATES].counted = true;
	return err ?: doctor_top(name, UINT_MAX, &e->findings);
}

static void print_unread(const char *gate, void *data)
{
	(void)data;
	print_text("sluice_gate_readable{gate=\"%s\"} 0\n", gate);
}

/*
 * Reads a gate, and prints whether this succeeded. Always returns 0, so that the caller reads the
 * next gate.
 */
static int gate_export(const char *name, void *data)
{
	struct export *export = data;
	struct exported *exported = array_grow(export->gates, export->count, export->room)
					    ? &export->gates[export->count]
					    : NULL;

	if (!exported) {
		error_add(ENOMEM, "no-memory", NULL, "cannot read gate '%s': out of memory", name);
		print_unread(name, data);
		return 0;
	}
	*exported = (struct exported){0};
	if (exported_read(name, exported)) {
		print_unread(name, data);
		exported_free(exported);
		return 0;
	}
	print_text("sluice_gate_readable{gate=\"%s\"} 1\n", name);
	export->count++;
	return 0;
}

int report_metrics(const char *gate)
{
	static const struct metric readable = {
		.name = "sluice_gate_readable",
		.help = "1: the metrics of the gate follow. 0: the gate cannot be read. Without "
			"the label gate: the gates cannot be listed.",
	};
	static const struct metric build = {
		.name = "sluice_build_info",
		.help = "1, with the version as labels.",
	};
	struct export export = {0};
	int err;

	print_metric(&readable, &export);
	err = gate ? gate_export(gate, &export)
		   : gates_for_each(gate_export, print_unread, &export);
	if (!err && !export.count)
		err = bpffs_refuse_private();
	if (err)
		print_text("sluice_gate_readable 0\n");
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		print_metric(&metrics[i], &export);
	for (unsigned int i = 0; i < SHARE_NUMBERS; i++) {
		const struct share_number *number = &share_numbers[i];
		char name[64];

		snprintf(name, sizeof(name), "sluice_share_%s%s", number->name,
			 number->is_total ? "_total" : "");
		print_metric(
			&(struct metric){name, number->help, print_share_number,
					 offsetof(struct exported, sharing.state) + number->offset,
					 sizeof(uint64_t), false},
			&export);
	}
	print_metric(&build, &export);
	print_text("sluice_build_info{version=\"%s\",schema=\"%d\"} 1\n", SL_VERSION, SL_SCHEMA);
	for (unsigned int i = 0; i < export.count; i++)
		exported_free(&export.gates[i]);
	free(export.gates);
	return 0;
}
