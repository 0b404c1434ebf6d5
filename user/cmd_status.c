// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>

#include "attachment.h"
#include "command.h"
#include "gate.h"
#include "netns.h"
#include "pins.h"
#include "occupancy.h"
#include "report.h"

struct view {
	json_t *gates; /* NULL: print */
	unsigned int count;
	enum status status; /* a gate that cannot be read does not hide the others */
};

static json_t *attachments_json(const struct attachment *all, unsigned int count)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < count; i++)
		json_array_append_new(list, attachment_json(&all[i]));
	return list;
}

/* What the user should know of one that filters nothing. */
static const char *attachment_note(const struct attachment *a)
{
	if (a->program_id)
		return "";
	return a->device_gone ? "  the device is gone: 'sluice detach' clears it away"
			      : "  the filter is gone: 'sluice attach' makes it anew";
}

static void attachment_print(const struct attachment *a)
{
	char netns[NETNS_NAME];
	bool named = netns_name(a->netns, netns);

	printf("  %-15s %7u  %-7s  %-7s  %7u  %s%s\n", a->device, a->ifindex, hook_names[a->hook],
	       mode_names[a->mode], a->program_id,
	       !named	? "(unnamed)"
	       : *netns ? netns
			: "-",
	       attachment_note(a));
}

static void attachments_print(const struct attachment *all, unsigned int count)
{
	if (!count)
		puts("  no device is attached");
	else
		printf("  %-15s %7s  %-7s  %-7s  %7s  %s\n", "DEVICE", "IFINDEX", "HOOK", "MODE",
		       "PROGRAM", "NETNS");
	for (unsigned int i = 0; i < count; i++)
		attachment_print(&all[i]);
}

static json_t *map_json(enum gate_map map, const struct occupancy *o)
{
	return json_pack("{s:s, s:o, s:I}", "name", gate_map_names[map], "entries",
			 o->counted ? json_integer(o->entries) : json_null(), "max_entries",
			 (json_int_t)o->max_entries);
}

static void map_print(enum gate_map map, const struct occupancy *o)
{
	char entries[16] = "many";

	if (o->counted)
		snprintf(entries, sizeof(entries), "%" PRIu32, o->entries);
	printf("  %-10s  %10s %12" PRIu32 "\n", gate_map_names[map], entries, o->max_entries);
}

static enum status maps_report(const struct gate *gate, json_t *list)
{
	enum status status = OK;

	if (!list)
		printf("  %-10s  %10s %12s\n", "MAP", "ENTRIES", "MAX");
	for (int map = 0; !status && map < GATE_MAPS; map++) {
		struct occupancy o;

		status = occupancy_read(gate, map, &o);
		if (status)
			break;
		if (list)
			json_array_append_new(list, map_json(map, &o));
		else
			map_print(map, &o);
	}
	return status;
}

static enum status gate_report(struct view *view, const struct gate *gate)
{
	struct attachment all[ATTACHMENTS_MAX];
	json_t *maps = view->gates ? json_array() : NULL;
	unsigned int rules, count;
	enum status status = attachments_read(gate, all, &count);

	if (!status)
		status = rules_count(gate, &rules);
	if (!status && !view->gates) {
		printf("%sgate %s: generation %u, %u %s\n", view->count ? "\n" : "", gate->name,
		       gate->state->generation, rules, rules == 1 ? "rule" : "rules");
		attachments_print(all, count);
	}
	if (!status)
		status = maps_report(gate, maps);
	view->count++;
	if (status || !view->gates) {
		json_decref(maps);
		return status;
	}
	json_array_append_new(view->gates,
			      json_pack("{s:s, s:I, s:i, s:o, s:o}", "gate", gate->name,
					"generation", (json_int_t)gate->state->generation, "rules",
					(int)rules, "attachments", attachments_json(all, count),
					"maps", maps));
	return OK;
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

enum status cmd_status(const struct context *context, int argc, char **argv)
{
	struct view view = {.gates = context->json ? json_array() : NULL};
	enum status status;

	if (argc > 1)
		return unexpected(argv[0], argv[1]);
	if (context->gate_given)
		status = gate_view(context->gate, &view);
	else
		status = pins_for_each(gate_view, &view);
	if (view.status && context->gate_given)
		status = view.status; /* the only gate: there is nothing to show */
	else if (!status && view.gates)
		status = json_print(json_pack("{s:O}", "gates", view.gates));
	else if (!status && !view.count && !view.status)
		puts("no gate: make one with 'sluice attach DEV'");
	json_decref(view.gates);
	return status ? status : view.status;
}
