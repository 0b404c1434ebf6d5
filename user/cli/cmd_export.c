// SPDX-License-Identifier: GPL-2.0
/*
 * Prometheus's text exposition format, version 0.0.4. The lines of a metric must stand together:
 * all gates are read first, and then printed metric by metric. There is no label per source: their
 * number has no bound. The exit status is 0 if a gate cannot be read: otherwise a recipe such as
 * `sluice export >FILE && mv ...` would freeze the metrics of all gates.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "attach/published.h"
#include "base/array.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "gate/rules.h"
#include "gate/pins.h"
#include "migrate/open.h"
#include "program/writer.h"
#include "sharing/share_state.h"
#include "state/pressure.h"
#include "state/stats.h"

/* Maps of sources and rules; the rest are arrays, whose size says nothing. */
#define MAPS_LISTED MAP_ADMISSION

struct exported {
	char gate[GATE_NAME + 1];
	uint32_t generation;
	struct stats stats;
	struct seen seen;
	struct pressure pressure;
	struct passing passing;
	struct table_fill fill;
	struct sharing sharing;
	uint32_t max_entries[MAPS_LISTED];
	unsigned int rules;
	struct sl_list_info lists[SL_LIST_PLACES];
};

struct metric {
	const char *name;
	enum { COUNTER, GAUGE } type;
	const char *help;
	void (*print)(const struct metric *metric, const struct exported *gate);
	size_t number; /* of print: a member of struct exported, an event, or whether it counts bytes */
};

/* Prints the name of a sample, and the label of its gate. The caller prints the rest of the line. */
static void print_name(const struct metric *metric, const struct exported *e)
{
	print_text("%s{gate=\"%s\"", metric->name, e->gate);
}

/* --- Samples -------------------------------------------------------------------------------- */

static unsigned long long cell_value(const struct metric *metric, const struct sl_cell *cell)
{
	return metric->number ? cell->bytes : cell->packets;
}

static void print_reasons(const struct metric *metric, const struct exported *e)
{
	for (unsigned int i = 0; i < e->stats.count; i++) {
		const struct stats_line *line = &e->stats.lines[i];

		for (int reason = 0; reason < SL_REASONS; reason++) {
			if (!stats_line_has(line, reason))
				continue;
			print_name(metric, e);
			print_text(",policy=\"%s\",verdict=\"%s\",reason=\"%s\"} %llu\n",
				   line->policy, reason < SL_FIRST_DROP ? "pass" : "drop",
				   reason_names[reason],
				   cell_value(metric, &line->counters.reason[reason]));
		}
	}
}

static void print_refused(const struct metric *metric, const struct exported *e)
{
	for (unsigned int i = 0; i < e->stats.count; i++) {
		const struct stats_line *line = &e->stats.lines[i];

		for (unsigned int j = 0; j < line->limits; j++) {
			const struct stats_limit *limit = &line->limit[j];

			print_name(metric, e);
			print_text(",policy=\"%s\",limit=\"%s\",action=\"%s\"} %llu\n",
				   line->policy, limit->name, action_names[limit->action],
				   cell_value(metric, &line->counters.refused[limit->slot]));
		}
	}
}

static void print_event(const struct metric *metric, const struct exported *e)
{
	print_name(metric, e);
	print_text("} %" PRIu64 "\n", e->pressure.event[metric->number].total);
}

/* number: the first event. */
static void print_causes(const struct metric *metric, const struct exported *e)
{
	for (int cause = 0; cause < CAUSES; cause++) {
		print_name(metric, e);
		print_text(",cause=\"%s\"} %" PRIu64 "\n", cause_names[cause],
			   e->pressure.event[metric->number + cause].total);
	}
}

static void print_u32(const struct metric *metric, const struct exported *e)
{
	print_name(metric, e);
	print_text("} %" PRIu32 "\n", *(const uint32_t *)((const char *)e + metric->number));
}

static void print_lost(const struct metric *metric, const struct exported *e)
{
	print_name(metric, e);
	print_text("} %.3f\n", e->pressure.bursts_lost);
}

static void print_share_up(const struct metric *metric, const struct exported *e)
{
	bool lives = e->sharing.sharer == SHARER_LIVES;

	if (!lives && !e->sharing.is_wanted)
		return;
	print_name(metric, e);
	print_text("} %d\n", lives && !e->sharing.state.store_is_away);
}

/* number: of share_numbers. */
static void print_share_number(const struct metric *metric, const struct exported *e)
{
	if (e->sharing.sharer != SHARER_LIVES)
		return;
	print_name(metric, e);
	print_text("} %" PRIu64 "\n", share_number(&e->sharing.state, metric->number));
}

/* A list's name needs no escape: see list_name_check(). */
static void print_list_ages(const struct metric *metric, const struct exported *e)
{
	uint64_t now = time(NULL);

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *list = &e->lists[place];

		if (!*list->name)
			continue;
		print_name(metric, e);
		print_text(",list=\"%s\"} %" PRIu64 "\n", list->name,
			   now > list->replaced ? now - (uint64_t)list->replaced : 0);
	}
}

static void print_map_sizes(const struct metric *metric, const struct exported *e)
{
	for (int map = 0; map < MAPS_LISTED; map++) {
		print_name(metric, e);
		print_text(",map=\"%s\"} %u\n", gate_map_names[map], e->max_entries[map]);
	}
}

/* Prints a label whose value is a name that others chose. */
static void print_label(const char *label, const char *name)
{
	print_text(",%s=\"", label);
	for (const char *text = name_shown(name); *text; text++)
		print_text("%s%c", *text == '\\' || *text == '"' ? "\\" : "", *text);
	print_text("\"");
}

/* A namespace without a name is printed as the kernel writes its number, which no other has. */
static void print_attachments(const struct metric *metric, const struct exported *e)
{
	for (unsigned int i = 0; i < e->seen.count; i++) {
		const struct attachment *a = &e->seen.all[i];
		char netns[NETNS_NAME];

		if (!netns_name(a->netns, netns))
			snprintf(netns, sizeof(netns), "net:[%" PRIu64 "]", a->netns);
		print_name(metric, e);
		print_label("device", a->device);
		print_text(",ifindex=\"%u\"", a->ifindex);
		print_label("netns", netns);
		print_text(",hook=\"%s\",mode=\"%s\"} %d\n", hook_names[a->hook],
			   mode_names[a->mode], a->program_id != 0);
	}
}

static void print_attached_age(const struct metric *metric, const struct exported *e)
{
	if (e->seen.sight == SIGHT_NONE)
		return;
	print_name(metric, e);
	print_text("} %.3f\n", e->seen.age_ns / 1e9);
}

/* --- Metrics -------------------------------------------------------------------------------- */

#define MEMBER(member) offsetof(struct exported, member)

static const struct metric metrics[] = {
	{"sluice_packets_total", COUNTER, "Packets judged.", print_reasons, false},
	{"sluice_bytes_total", COUNTER, "Bytes of the packets judged.", print_reasons, true},
	{"sluice_limit_refused_packets_total", COUNTER,
	 "Packets that a limit refused. A limit with the action observe lets them pass.",
	 print_refused, false},
	{"sluice_limit_refused_bytes_total", COUNTER, "Bytes of the packets that a limit refused.",
	 print_refused, true},
	{"sluice_new_keys_total", COUNTER,
	 "Packets of new sources: a packet counts once if a limit has no level for its source.",
	 print_event, SL_EVENT_NEW_KEY},
	{"sluice_insertions_total", COUNTER, "Levels added, one for each limit and key.",
	 print_event, SL_EVENT_INSERTED},
	{"sluice_states_evicted_total", COUNTER,
	 "Levels that were evicted although they were not full.", print_event, SL_EVENT_EVICTED},
	{"sluice_insertions_refused_total", COUNTER, "Packets of new sources that got no level.",
	 print_causes, SL_EVENT_BUSY},
	{"sluice_bucket_insertions_total", COUNTER, "Entries added to buckets4 and buckets6.",
	 print_event, SL_EVENT_BUCKET_INSERTED},
	{"sluice_bucket_insertions_refused_total", COUNTER,
	 "Entries that could not be added to buckets4 or buckets6.", print_causes,
	 SL_EVENT_BUCKET_BUSY},
	{"sluice_bursts_lost_total", COUNTER, "Bursts that evicted levels lacked, in sum.",
	 print_lost, 0},
	{"sluice_states", GAUGE, "Levels in the table, full levels included.", print_u32,
	 MEMBER(fill.in_use)},
	{"sluice_states_partial", GAUGE, "Levels in the table that are not full.", print_u32,
	 MEMBER(fill.partial)},
	{"sluice_states_protected", GAUGE,
	 "Levels that are evicted last: they lack more than half of a burst, or are blocked.",
	 print_u32, MEMBER(fill.protected)},
	{"sluice_cpus_flooded", GAUGE,
	 "CPUs on which new sources wait for their levels. 0: there is no flood.", print_u32,
	 MEMBER(pressure.flooded)},
	{"sluice_flood_policies_passed_by", GAUGE,
	 "Policies whose limits drop and that lack a budget for new sources, counted if new "
	 "sources passed them during a flood.",
	 print_u32, MEMBER(passing.policies)},
	{"sluice_share_up", GAUGE,
	 "1: a process shares the limits of the gate and the store answers. 0: no process shares "
	 "them, or the store does not answer. Missing: the gate has no shared limit.",
	 print_share_up, 0},
	{"sluice_share_divided_by", GAUGE,
	 "Nodes by which shared limits are divided under --on-loss divide. 1: they are not "
	 "divided.",
	 print_u32, MEMBER(sharing.divided_by)},
	{"sluice_list_age_seconds", GAUGE,
	 "Seconds since the file of a list was written, or its prefixes were set.", print_list_ages,
	 0},
	{"sluice_map_max_entries", GAUGE,
	 "Entries that fit into a map. Of policies and counters: prefixes with limits. Of states: "
	 "levels.",
	 print_map_sizes, 0},
	{"sluice_rules", GAUGE, "Rules, list entries included.", print_u32, MEMBER(rules)},
	{"sluice_rules_generation", GAUGE, "Changes of the rules since the gate was made.",
	 print_u32, MEMBER(generation)},
	{"sluice_attached", GAUGE,
	 "1: the device is filtered. 0: the device or its filter is gone.", print_attachments, 0},
	{"sluice_attached_age_seconds", GAUGE,
	 "Seconds since the attachments were published for readers. 0: they were read now. "
	 "Missing: they cannot be read.",
	 print_attached_age, 0},
};

static void print_head(const char *name, bool is_gauge, const char *help)
{
	print_text("# HELP %s %s\n# TYPE %s %s\n", name, help, name,
		   is_gauge ? "gauge" : "counter");
}

/* --- The command ---------------------------------------------------------------------------- */

struct export
{
	struct exported *gates;
	unsigned int count, room;
};

static void print_metric(const struct metric *metric, const struct export *export)
{
	print_head(metric->name, metric->type == GAUGE, metric->help);
	for (unsigned int i = 0; i < export->count; i++)
		metric->print(metric, &export->gates[i]);
}

static int exported_read(const struct gate *gate, struct exported *e)
{
	int err = stats_read(gate, &e->stats) ?: rules_count(gate, &e->rules)
		  ?: attachments_see(gate, &e->seen) ?: pressure_read(gate, &e->pressure)
		  ?: passing_read(gate, &e->pressure, &e->passing)
		  ?: table_fill_read(gate, &e->pressure, &e->fill);

	snprintf(e->gate, sizeof(e->gate), "%s", gate->name);
	e->generation = gate->state->generation;
	e->sharing = sharing_read(gate);
	lists_copy(gate, e->lists);
	for (int map = 0; !err && map < MAPS_LISTED; map++)
		err = map_max_entries(gate, map, &e->max_entries[map]);
	return err;
}

static void print_readable(const char *gate, bool is_readable)
{
	print_text("sluice_gate_readable{gate=\"%s\"} %d\n", gate, is_readable);
}

static void print_unread(const char *gate)
{
	print_readable(gate, false);
}

/* Reads a gate, and prints at once whether that failed. Returns 0: the other gates follow. */
static int gate_export(const char *name, void *data)
{
	struct export *export = data;
	struct gate gate = GATE_CLOSED;
	struct exported *exported;
	int err;

	if (!array_grow(export->gates, export->count, export->room)) {
		error_add(ENOMEM, "no-memory", NULL, "cannot read gate '%s': out of memory", name);
		print_unread(name);
		return 0;
	}
	exported = &export->gates[export->count];
	*exported = (struct exported){0};
	err = gate_open(&gate, name, GATE_READ, NULL) ?: exported_read(&gate, exported);
	print_readable(name, !err);
	if (err)
		stats_free(&exported->stats);
	else
		export->count++;
	gate_close(&gate);
	return 0;
}

static int export_run(const struct context *context, const void *args)
{
	struct export export = {0};
	int err;

	(void)args;
	if (context->json)
		return error_misuse("no-json", "export",
				    "Prometheus's text is its only format: see 'sluice -j stats'");
	print_head("sluice_gate_readable", true,
		   "1: the metrics of the gate follow. 0: the gate cannot be read. Without the "
		   "label gate: the gates cannot be listed.");
	err = context->gate_given ? gate_export(context->gate, &export)
				  : gates_for_each_or(gate_export, print_unread, &export);
	if (!err && !export.count)
		err = bpffs_refuse_private();
	if (err)
		print_text("sluice_gate_readable 0\n");
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		print_metric(&metrics[i], &export);
	for (unsigned int i = 0; i < SHARE_NUMBERS; i++) {
		const struct share_number *number = &share_numbers[i];
		char name[64];
		const struct metric metric = {
			.name = name,
			.type = number->is_total ? COUNTER : GAUGE,
			.help = number->help,
			.print = print_share_number,
			.number = i,
		};

		snprintf(name, sizeof(name), "sluice_share_%s%s", number->name,
			 number->is_total ? "_total" : "");
		print_metric(&metric, &export);
	}
	print_head("sluice_build_info", true, "1, with the version as labels.");
	print_text("sluice_build_info{version=\"%s\",schema=\"%d\"} 1\n", SL_VERSION, SL_SCHEMA);
	for (unsigned int i = 0; i < export.count; i++)
		stats_free(&export.gates[i].stats);
	free(export.gates);
	return 0;
}

const struct command command_export = {
	.name = "export",
	.brief = "the counters in Prometheus's text format",
	.run = export_run,
};
