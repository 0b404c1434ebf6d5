// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attachment.h"
#include "attach/shaping.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/pins.h"
#include "gate/gate_dir.h"
#include "gate/gate_open.h"
#include "gate/object.h"
#include "rules/prefix.h"
#include "state/stats.h"
#include "state/pressure.h"

/* The maps of sources and rules, whose fill matters. The others are arrays for newcomers. */
#define MAPS_LISTED MAP_ADMISSION

struct view {
	json_t *gates; /* NULL: print */
	unsigned int count;
	enum status status; /* a gate that cannot be read does not hide the others */
};

/* --- Attachments ---------------------------------------------------------------------------- */

/* An attachment, and whether it can do what the gate's limits shape. */
struct attached {
	struct attachment at;
	bool shapes;   /* a limit that shapes holds packets back here, or should */
	bool has_fq;   /* and so it does */
	char *command; /* what is missing; NULL: nothing, or it is not known */
};

/* ret_idle: limits shape, and devices are attached, but none on hook egress. */
static enum status attached_read(const struct gate *gate, struct attached *all,
				 unsigned int *ret_count, bool *ret_idle)
{
	struct attachment attachments[ATTACHMENTS_MAX];
	struct shaping shaping;
	enum status status = attachments_read(gate, attachments, ret_count);

	if (!status)
		status = shaping_read(gate, &shaping);
	*ret_idle = !status && shaping.any && *ret_count;
	for (unsigned int i = 0; !status && i < *ret_count; i++) {
		all[i] = (struct attached){.at = attachments[i]};
		*ret_idle &= all[i].at.hook != HOOK_EGRESS;
		if (!shaping.any || all[i].at.hook != HOOK_EGRESS || !all[i].at.program_id)
			continue;
		all[i].shapes = true;
		status = shaping_look(&shaping, &all[i].at, &all[i].has_fq, &all[i].command);
	}
	return status;
}

static void attached_free(struct attached *all, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		free(all[i].command);
	free(all);
}

static json_t *attachments_json(const struct attached *all, unsigned int count)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < count; i++) {
		json_t *object = attachment_json(&all[i].at);

		json_object_set_new(object, "fq",
				    all[i].shapes ? json_boolean(all[i].has_fq) : json_null());
		json_array_append_new(list, object);
	}
	return list;
}

/* Why an attachment filters nothing, and what to do. */
static void attachment_note(const char *gate, const struct attached *attached)
{
	const struct attachment *a = &attached->at;
	char option[NETNS_OPTION];

	if (a->device_gone)
		printf("  the device is gone: 'sluice -g %s detach %s' clears it away", gate,
		       a->device);
	else if (!a->program_id)
		printf("  the filter is gone: 'sluice %s-g %s attach %s hook %s' makes it anew",
		       netns_option(a->netns, netns_home(), option), gate, a->device,
		       hook_names[a->hook]);
	else if (attached->shapes && !attached->has_fq)
		printf("  no qdisc fq, so limits that shape hold no packet back: '%s'",
		       attached->command ?: "tc qdisc replace");
}

static void attachment_print(const char *gate, const struct attached *attached)
{
	const struct attachment *a = &attached->at;
	char netns[NETNS_NAME];
	bool named = netns_name(a->netns, netns);

	printf("  %-15s %7u  %-7s  %-7s  %7u  %s", a->device, a->ifindex, hook_names[a->hook],
	       mode_names[a->mode], a->program_id,
	       !named	? "(unnamed)"
	       : *netns ? netns
			: "-");
	attachment_note(gate, attached);
	putchar('\n');
}

static void attachments_print(const char *gate, const struct attached *all, unsigned int count)
{
	if (!count)
		puts("  no device is attached");
	else
		printf("  %-15s %7s  %-7s  %-7s  %7s  %s\n", "DEVICE", "IFINDEX", "HOOK", "MODE",
		       "PROGRAM", "NETNS");
	for (unsigned int i = 0; i < count; i++)
		attachment_print(gate, &all[i]);
}

/* --- Maps ----------------------------------------------------------------------------------- */

static json_t *map_json(enum gate_map map, const struct occupancy *o, uint64_t bytes)
{
	return json_pack("{s:s, s:o, s:I, s:I}", "name", gate_map_names[map], "entries",
			 o->counted ? json_integer(o->entries) : json_null(), "max_entries",
			 (json_int_t)o->max_entries, "memory_bytes", (json_int_t)bytes);
}

static void map_print(enum gate_map map, const struct occupancy *o, uint64_t bytes)
{
	char entries[16] = "many", memory[MEMORY_TEXT];

	if (o->counted)
		snprintf(entries, sizeof(entries), "%" PRIu32, o->entries);
	printf("  %-10s  %10s %12" PRIu32 " %12s\n", gate_map_names[map], entries, o->max_entries,
	       memory_format(bytes, memory));
}

/*
 * Prints the maps, or adds them to the list. The rows add up to the memory of all maps. Arrays have
 * no count: all entries exist. The memory of entries that are not counted is that of a full map.
 */
static enum status maps_report(const struct gate *gate, json_t *list, uint64_t *ret_bytes)
{
	char memory[MEMORY_TEXT];
	uint64_t rest = 0;

	*ret_bytes = 0;
	if (!list)
		printf("  %-10s  %10s %12s %12s\n", "MAP", "ENTRIES", "MAX", "MEMORY");
	for (int map = 0; map < GATE_MAPS; map++) {
		struct occupancy o = {0};
		uint64_t bytes = 0;
		enum status status = map < MAPS_LISTED ? occupancy_read(gate, map, &o)
						       : map_max_entries(gate, map, &o.max_entries);

		if (!status)
			status = gate_map_memory(gate, map, o.counted ? o.entries : o.max_entries,
						 &bytes);
		if (status)
			return status;
		*ret_bytes += bytes;
		if (list)
			json_array_append_new(list, map_json(map, &o, bytes));
		else if (map < MAPS_LISTED)
			map_print(map, &o, bytes);
		else
			rest += bytes;
	}
	if (!list)
		printf("  %-10s  %10s %12s %12s\n", "newcomers", "-", "-",
		       memory_format(rest, memory));
	return OK;
}

/* --- Pressure ------------------------------------------------------------------------------- */

static json_t *pace_json(const struct pace *pace)
{
	return json_pack("{s:I, s:I}", "per_second", (json_int_t)pace->per_second, "total",
			 (json_int_t)pace->total);
}

static json_t *pressure_json(const struct pressure *pressure, const struct passing *passing)
{
	json_t *refused = json_object();

	for (int cause = 0; cause < CAUSES; cause++)
		json_object_set_new(refused, cause_names[cause],
				    pace_json(pressure_refused(pressure, cause)));
	return json_pack("{s:s, s:i, s:i, s:o, s:o, s:o}", "state",
			 pressure->flooded ? "flood" : "quiet", "cpus_flooded",
			 (int)pressure->flooded, "policies_passed_by", (int)passing->policies,
			 "newcomers_met", pace_json(&pressure->event[SL_EVENT_MET]), "insertions",
			 pace_json(&pressure->event[SL_EVENT_INSERTED]), "refused", refused);
}

static void pace_print(const char *what, const struct pace *pace)
{
	printf("  %-26s %12" PRIu64 " %20" PRIu64 "\n", what, pace->per_second, pace->total);
}

static void passing_print(const struct gate *gate, const struct passing *passing)
{
	char buffer[PREFIX_TEXT];
	const char *text = prefix_format(&passing->first, buffer);

	if (!passing->policies)
		return;
	printf("  the flood passes by for want of a budget: %s has limits that drop, and none for "
	       "newcomers: 'sluice %snewcomers %s rate RATE' ends that",
	       text, gate_option(gate->name), text);
	if (passing->policies > 1)
		printf("; %u other %s the same", passing->policies - 1,
		       plural(passing->policies - 1, "policy is", "policies are"));
	putchar('\n');
}

static void pressure_print(const struct gate *gate, const struct pressure *pressure,
			   const struct passing *passing)
{
	char what[32];

	if (pressure->flooded)
		printf("  pressure: flood: newcomers wait, on %u of %u %s: a new source gets its "
		       "bucket after some packets\n",
		       pressure->flooded, gate->machine.cpus,
		       plural(gate->machine.cpus, "CPU", "CPUs"));
	else
		puts("  pressure: quiet: a new source gets its bucket with its first packet");
	passing_print(gate, passing);
	printf("  %-26s %12s %20s\n", "EVENT", "PER SECOND", "TOTAL");
	pace_print("newcomers met", &pressure->event[SL_EVENT_MET]);
	pace_print("insertions", &pressure->event[SL_EVENT_INSERTED]);
	for (int cause = 0; cause < CAUSES; cause++) {
		snprintf(what, sizeof(what), "refused: %s", cause_names[cause]);
		pace_print(what, pressure_refused(pressure, cause));
	}
}

/* --- Gates ---------------------------------------------------------------------------------- */

static enum status gate_report(struct view *view, const struct gate *gate)
{
	struct attached *all = calloc(ATTACHMENTS_MAX, sizeof(*all));
	json_t *maps = view->gates ? json_array() : NULL;
	char memory[MEMORY_TEXT];
	unsigned int rules, count = 0;
	bool idle = false;
	struct pressure pressure;
	struct passing passing;
	uint64_t bytes;
	enum status status = all ? attached_read(gate, all, &count, &idle)
				 : failure("cannot read the attachments: out of memory");

	if (!status)
		status = rules_count(gate, &rules);
	if (!status)
		status = pressure_read(gate, &pressure);
	if (!status)
		status = passing_read(gate, &pressure, &passing);
	if (!status && !view->gates) {
		printf("%sgate %s: generation %u, %u %s\n", view->count ? "\n" : "", gate->name,
		       gate->state->generation, rules, plural(rules, "rule", "rules"));
		attachments_print(gate->name, all, count);
		if (idle)
			puts("  no device is attached on hook egress, so limits that shape have no "
			     "effect");
		pressure_print(gate, &pressure, &passing);
	}
	if (!status)
		status = maps_report(gate, maps, &bytes);
	if (!status && !view->gates)
		printf("  memory of all its maps: %s\n", memory_format(bytes, memory));
	view->count++;
	if (status || !view->gates)
		json_decref(maps);
	else
		json_array_append_new(
			view->gates,
			json_pack("{s:s, s:I, s:i, s:o, s:o, s:I, s:o}", "gate", gate->name,
				  "generation", (json_int_t)gate->state->generation, "rules",
				  (int)rules, "attachments", attachments_json(all, count),
				  "pressure", pressure_json(&pressure, &passing), "memory_bytes",
				  (json_int_t)bytes, "maps", maps));
	attached_free(all, count);
	return status;
}

static enum status gate_view(const char *name, void *data)
{
	struct gate gate = GATE_CLOSED;
	struct view *view = data;
	enum status status = gate_open(&gate, name);

	if (!status)
		status = gate_report(view, &gate);
	if (status)
		view->status = status;
	gate_close(&gate);
	return OK;
}

static enum status status_run(const struct context *context, const void *args)
{
	struct view view = {.gates = context->json ? json_array() : NULL};
	enum status status;

	(void)args;
	if (context->gate_given)
		status = gate_view(context->gate, &view);
	else
		status = gates_for_each(gate_view, &view);
	if (!status && !view.count && !view.status)
		status = bpffs_refuse_private();
	view.status = status ?: view.status;
	status = OK;
	if (view.gates && (view.count || !view.status))
		status = json_print(json_pack("{s:O}", "gates", view.gates));
	else if (!view.count && !view.status)
		printf("no gate: make one with 'sluice %sattach DEV'\n", netns_typed());
	json_decref(view.gates);
	return status ?: view.status;
}

static const char status_details[] =
	"pressure tells how newcomers fare: sources that have no bucket yet. quiet: each gets\n"
	"one with its first packet. flood: so many come that a source has to send more than a\n"
	"few packets first, so that forged ones take no memory; see 'sluice help newcomers'.\n"
	"newcomers met: a packet counts once if its source is unknown, also if a list allows or\n"
	"denies it, and once for each limit with another key (per 24, key dst) that is unknown.\n"
	"insertions: ledgers and buckets together, more than one for a new source.\n"
	"refused: insertions for which the kernel had no time or no room; such a packet is a\n"
	"newcomer's. MEMORY is what the kernel sets aside for a map, or, where it does not,\n"
	"what its entries take. newcomers: all maps by which these are met.";

const struct command command_status = {
	.name = "status",
	.brief = "gates, devices, and how full the maps are",
	.details = status_details,
	.run = status_run,
};
