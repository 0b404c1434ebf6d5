// SPDX-License-Identifier: GPL-2.0
/*
 * Prometheus's text exposition format, version 0.0.4. The lines of a metric must stand together:
 * all gates are read first, and then printed metric by metric. There is no label per source: their
 * number has no bound. The exit status is 0 if a gate cannot be read: otherwise a recipe such as
 * `sluice export >FILE && mv ...` would freeze the metrics of all gates.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/published.h"
#include "base/clock.h"
#include "base/array.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "gate/pins.h"
#include "gate/change.h"
#include "migrate/open.h"
#include "gate/rules.h"
#include "share/share_state.h"
#include "state/stats.h"
#include "state/pressure.h"
#include "state/table_fill.h"

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

struct export
{
	struct exported *gates;
	unsigned int count, room;
};

static void metric(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static int exported_read(const struct gate *gate, struct exported *e)
{
	int status = stats_read(gate, &e->stats);

	snprintf(e->gate, sizeof(e->gate), "%s", gate->name);
	e->generation = gate->state->generation;
	e->sharing = sharing_read(gate);
	lists_copy(gate, e->lists);
	if (!status)
		status = rules_count(gate, &e->rules);
	if (!status)
		status = attachments_see(gate, &e->seen);
	if (!status)
		status = pressure_read(gate, &e->pressure);
	if (!status)
		status = passing_read(gate, &e->pressure, &e->passing);
	if (!status)
		status = table_fill_read(gate, &e->pressure, &e->fill);
	for (int map = 0; !status && map < MAPS_LISTED; map++)
		status = map_max_entries(gate, map, &e->max_entries[map]);
	return status;
}

static void print_readable(const char *gate, bool is_readable)
{
	printf("sluice_gate_readable{gate=\"%s\"} %d\n", gate, is_readable);
}

static void print_unread(const char *gate)
{
	print_readable(gate, false);
}

/* Reads a gate, and prints at once whether that failed. Returns OK: the other gates follow. */
static int gate_export(const char *name, void *data)
{
	struct export *export = data;
	struct gate gate = GATE_CLOSED;
	struct exported *exported;
	int status;

	if (!array_grow(export->gates, export->count, export->room)) {
		failure("cannot read gate '%s': out of memory", name);
		print_unread(name);
		return OK;
	}
	exported = &export->gates[export->count];
	*exported = (struct exported){0};
	status = gate_open(&gate, name, GATE_READ, NULL);
	if (!status)
		status = exported_read(&gate, exported);
	print_readable(name, !status);
	if (status)
		stats_free(&exported->stats);
	else
		export->count++;
	gate_close(&gate);
	return OK;
}

/* Reads the gates and prints sluice_gate_readable; without a label if they cannot be listed. */
static void gates_read(const struct context *context, struct export *export)
{
	int status;

	metric("sluice_gate_readable", "gauge",
	       "1: the metrics of the gate follow. 0: the gate cannot be read. Without the label "
	       "gate: the gates cannot be listed.");
	if (context->gate_given)
		status = gate_export(context->gate, export);
	else
		status = gates_for_each_or(gate_export, print_unread, export);
	if (!status && !export->count)
		status = bpffs_refuse_private();
	if (status)
		puts("sluice_gate_readable 0");
}

/* --- Counters ------------------------------------------------------------------------------- */

/*
 * A metric with one value for each line of the counters: which cell of the line, and its packets or
 * bytes.
 */
struct counter {
	const char *name;
	bool bytes;
	void (*print)(const struct counter *counter, const char *gate,
		      const struct stats_line *line);
};

static unsigned long long counter_value(const struct counter *counter, const struct sl_cell *cell)
{
	return counter->bytes ? cell->bytes : cell->packets;
}

static void print_reasons(const struct counter *counter, const char *gate,
			  const struct stats_line *line)
{
	for (int reason = 0; reason < SL_REASONS; reason++)
		if (stats_line_has(line, reason))
			printf("%s{gate=\"%s\",policy=\"%s\",verdict=\"%s\",reason=\"%s\"} %llu\n",
			       counter->name, gate, line->policy,
			       reason < SL_FIRST_DROP ? "pass" : "drop", reason_names[reason],
			       counter_value(counter, &line->counters.reason[reason]));
}

static void print_limits(const struct counter *counter, const char *gate,
			 const struct stats_line *line)
{
	for (unsigned int i = 0; i < line->limits; i++)
		printf("%s{gate=\"%s\",policy=\"%s\",limit=\"%s\",action=\"%s\"} %llu\n",
		       counter->name, gate, line->policy, line->limit[i].name,
		       action_names[line->limit[i].action],
		       counter_value(counter, &line->counters.refused[line->limit[i].slot]));
}

static void print_counter(const struct export *export, const struct counter *counter,
			  const char *help)
{
	metric(counter->name, "counter", help);
	for (unsigned int i = 0; i < export->count; i++) {
		const struct exported *e = &export->gates[i];

		for (unsigned int j = 0; j < e->stats.count; j++)
			counter->print(counter, e->gate, &e->stats.lines[j]);
	}
}

static void print_counters(const struct export *export)
{
	print_counter(export, &(struct counter){"sluice_packets_total", false, print_reasons},
		      "Packets judged.");
	print_counter(export, &(struct counter){"sluice_bytes_total", true, print_reasons},
		      "Bytes of the packets judged.");
	print_counter(
		export,
		&(struct counter){"sluice_limit_refused_packets_total", false, print_limits},
		"Packets that a limit refused. A limit with the action observe lets them pass.");
	print_counter(export,
		      &(struct counter){"sluice_limit_refused_bytes_total", true, print_limits},
		      "Bytes of the packets that a limit refused.");
}

/* --- Newcomers ------------------------------------------------------------------------------ */

static void print_event(const struct export *export, const char *name, enum sl_event event,
			const char *help)
{
	metric(name, "counter", help);
	for (unsigned int i = 0; i < export->count; i++)
		printf("%s{gate=\"%s\"} %" PRIu64 "\n", name, export->gates[i].gate,
		       export->gates[i].pressure.event[event].total);
}

/* Counts of events by cause, of which `first` is the first. */
static void print_causes(const struct export *export, const char *name, enum sl_event first,
			 const char *help)
{
	metric(name, "counter", help);
	for (unsigned int i = 0; i < export->count; i++)
		for (int cause = 0; cause < CAUSES; cause++)
			printf("%s{gate=\"%s\",cause=\"%s\"} %" PRIu64 "\n", name,
			       export->gates[i].gate, cause_names[cause],
			       export->gates[i].pressure.event[first + cause].total);
}

/* A gauge of each gate: a member of its struct exported. */
static void print_gauge(const struct export *export, const char *name, size_t member,
			const char *help)
{
	metric(name, "gauge", help);
	for (unsigned int i = 0; i < export->count; i++) {
		const char *exported = (const char *)&export->gates[i];

		printf("%s{gate=\"%s\"} %" PRIu32 "\n", name, export->gates[i].gate,
		       *(const uint32_t *)(exported + member));
	}
}

static void print_levels(const struct export *export)
{
	metric("sluice_bursts_lost_total", "counter", "Bursts that evicted levels lacked, in sum.");
	for (unsigned int i = 0; i < export->count; i++)
		printf("sluice_bursts_lost_total{gate=\"%s\"} %.3f\n", export->gates[i].gate,
		       pressure_bursts_lost(&export->gates[i].pressure));
	print_gauge(export, "sluice_states", offsetof(struct exported, fill.in_use),
		    "Levels in the table, full levels included.");
	print_gauge(export, "sluice_states_partial", offsetof(struct exported, fill.partial),
		    "Levels in the table that are not full.");
	print_gauge(export, "sluice_states_protected", offsetof(struct exported, fill.protected),
		    "Levels that are evicted last: they lack more than half of a burst, or are "
		    "blocked.");
}

static void print_pressure(const struct export *export)
{
	print_event(export, "sluice_new_keys_total", SL_EVENT_NEW_KEY,
		    "Packets of new sources: a packet counts once if a limit has no level for its "
		    "source.");
	print_event(export, "sluice_insertions_total", SL_EVENT_INSERTED,
		    "Levels added, one for each limit and key.");
	print_event(export, "sluice_states_evicted_total", SL_EVENT_EVICTED,
		    "Levels that were evicted although they were not full.");
	print_causes(export, "sluice_insertions_refused_total", SL_EVENT_BUSY,
		     "Packets of new sources that got no level.");
	print_event(export, "sluice_bucket_insertions_total", SL_EVENT_BUCKET_INSERTED,
		    "Entries added to buckets4 and buckets6.");
	print_causes(export, "sluice_bucket_insertions_refused_total", SL_EVENT_BUCKET_BUSY,
		     "Entries that could not be added to buckets4 or buckets6.");
	print_levels(export);
	print_gauge(export, "sluice_cpus_flooded", offsetof(struct exported, pressure.flooded),
		    "CPUs on which new sources wait for their levels. 0: there is no flood.");
	print_gauge(export, "sluice_flood_policies_passed_by",
		    offsetof(struct exported, passing.policies),
		    "Policies whose limits drop and that lack a budget for new sources, counted if "
		    "new sources passed them during a flood.");
}

/* --- Sharing -------------------------------------------------------------------------------- */

static void print_shared_number(const struct export *export, unsigned int number)
{
	const struct share_number *told = &share_numbers[number];
	char name[64];

	snprintf(name, sizeof(name), "sluice_share_%s%s", told->name,
		 told->is_total ? "_total" : "");
	metric(name, told->is_total ? "counter" : "gauge", told->help);
	for (unsigned int i = 0; i < export->count; i++)
		if (export->gates[i].sharing.sharer == SHARER_LIVES)
			printf("%s{gate=\"%s\"} %" PRIu64 "\n", name, export->gates[i].gate,
			       share_number(&export->gates[i].sharing.state, number));
}

static void print_shared(const struct export *export)
{
	metric("sluice_share_up", "gauge",
	       "1: a process shares the limits of the gate and the store answers. 0: no process "
	       "shares them, or the store does not answer. Missing: the gate has no shared limit.");
	for (unsigned int i = 0; i < export->count; i++) {
		const struct sharing *sharing = &export->gates[i].sharing;
		bool lives = sharing->sharer == SHARER_LIVES;

		if (lives || sharing->is_wanted)
			printf("sluice_share_up{gate=\"%s\"} %d\n", export->gates[i].gate,
			       lives && !sharing->state.store_is_away);
	}
	print_gauge(export, "sluice_share_divided_by",
		    offsetof(struct exported, sharing.divided_by),
		    "Nodes by which shared limits are divided under --on-loss divide. 1: they are "
		    "not divided.");
	for (unsigned int number = 0; number < SHARE_NUMBERS; number++)
		print_shared_number(export, number);
}

/* --- Lists ---------------------------------------------------------------------------------- */

/* A list's name needs no escape: see list_name_check(). */
static void print_lists(const struct export *export)
{
	uint64_t now = time(NULL);

	metric("sluice_list_age_seconds", "gauge",
	       "Seconds since the file of a list was written, or its prefixes were set.");
	for (unsigned int i = 0; i < export->count; i++)
		for (int place = 0; place < SL_LIST_PLACES; place++) {
			const struct sl_list_info *list = &export->gates[i].lists[place];

			if (*list->name)
				printf("sluice_list_age_seconds{gate=\"%s\",list=\"%s\"} %" PRIu64
				       "\n",
				       export->gates[i].gate, list->name,
				       now > list->replaced ? now - (uint64_t)list->replaced : 0);
		}
}

/* --- Maps, attachments, version ------------------------------------------------------------- */

static void print_maps(const struct export *export)
{
	metric("sluice_map_max_entries", "gauge",
	       "Entries that fit into a map. Of policies and counters: prefixes with limits. Of "
	       "states: levels.");
	for (unsigned int i = 0; i < export->count; i++)
		for (int map = 0; map < MAPS_LISTED; map++)
			printf("sluice_map_max_entries{gate=\"%s\",map=\"%s\"} %u\n",
			       export->gates[i].gate, gate_map_names[map],
			       export->gates[i].max_entries[map]);
	print_gauge(export, "sluice_rules", offsetof(struct exported, rules),
		    "Rules, list entries included.");
	print_gauge(export, "sluice_rules_generation", offsetof(struct exported, generation),
		    "Changes of the rules since the gate was made.");
}

/* Prints a name as the value of a label. */
static void print_escaped(const char *name)
{
	for (const char *text = name_shown(name); *text; text++) {
		if (*text == '\\' || *text == '"')
			putchar('\\');
		putchar(*text);
	}
}

/* A namespace without a name is printed as the kernel writes its number, which no other has. */
static void print_attachment(const char *gate, const struct attachment *a)
{
	char netns[NETNS_NAME];

	if (!netns_name(a->netns, netns))
		snprintf(netns, sizeof(netns), "net:[%" PRIu64 "]", a->netns);
	printf("sluice_attached{gate=\"%s\",device=\"", gate);
	print_escaped(a->device);
	printf("\",ifindex=\"%u\",netns=\"", a->ifindex);
	print_escaped(netns);
	printf("\",hook=\"%s\",mode=\"%s\"} %d\n", hook_names[a->hook], mode_names[a->mode],
	       a->program_id != 0);
}

static void print_attachments(const struct export *export)
{
	metric("sluice_attached", "gauge",
	       "1: the device is filtered. 0: the device or its filter is gone.");
	for (unsigned int i = 0; i < export->count; i++)
		for (unsigned int j = 0; j < export->gates[i].seen.count; j++)
			print_attachment(export->gates[i].gate, &export->gates[i].seen.all[j]);
	metric("sluice_attached_age_seconds", "gauge",
	       "Seconds since the attachments were published for readers. 0: they were read now. "
	       "Missing: they cannot be read.");
	for (unsigned int i = 0; i < export->count; i++)
		if (export->gates[i].seen.sight != SIGHT_NONE)
			printf("sluice_attached_age_seconds{gate=\"%s\"} %.3f\n",
			       export->gates[i].gate, export->gates[i].seen.age_ns / 1e9);
	metric("sluice_build_info", "gauge", "1, with the version as labels.");
	printf("sluice_build_info{version=\"%s\",schema=\"%d\"} 1\n", SL_VERSION, SL_SCHEMA);
}

static int export_run(const struct context *context, const void *args)
{
	struct export export = {0};

	(void)args;
	if (context->json)
		return misuse(
			"export: Prometheus's text is its only format: see 'sluice -j stats'");
	gates_read(context, &export);
	print_counters(&export);
	print_pressure(&export);
	print_shared(&export);
	print_lists(&export);
	print_maps(&export);
	print_attachments(&export);
	for (unsigned int i = 0; i < export.count; i++)
		stats_free(&export.gates[i].stats);
	free(export.gates);
	return OK;
}

const struct command command_export = {
	.name = "export",
	.brief = "the counters in Prometheus's text format",
	.run = export_run,
};
