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
#include "rules.h"

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

static void attachments_print(const struct attachment *all, unsigned int count)
{
	char netns[NETNS_NAME];

	if (!count)
		puts("  no device is attached");
	else
		printf("  %-15s %7s  %-7s  %-7s  %7s  %s\n", "DEVICE", "IFINDEX", "HOOK", "MODE",
		       "PROGRAM", "NETNS");
	for (unsigned int i = 0; i < count; i++) {
		const struct attachment *a = &all[i];
		bool named = netns_name(a->netns, netns);

		printf("  %-15s %7u  %-7s  %-7s  %7u  %s%s\n", a->device, a->ifindex,
		       hook_names[a->hook], mode_names[a->mode], a->program_id,
		       !named	? "(unnamed)"
		       : *netns ? netns
				: "-",
		       a->program_id ? "" : "  the device is gone: 'sluice detach' clears it away");
	}
}

static enum status maps_report(const struct gate *gate, json_t *list)
{
	enum status status = OK;

	if (!list)
		printf("  %-10s  %10s %12s\n", "MAP", "ENTRIES", "MAX");
	for (int map = 0; !status && map < GATE_MAPS; map++) {
		struct occupancy o;
		json_t *entries;

		status = occupancy_read(gate, map, &o);
		if (status)
			break;
		if (list) {
			entries = o.counted ? json_integer(o.entries) : json_null();
			json_array_append_new(list,
					      json_pack("{s:s, s:o, s:I}", "name",
							gate_map_names[map], "entries", entries,
							"max_entries", (json_int_t)o.max_entries));
		} else if (o.counted) {
			printf("  %-10s  %10u %12u\n", gate_map_names[map], o.entries,
			       o.max_entries);
		} else {
			printf("  %-10s  %10s %12u\n", gate_map_names[map], "many", o.max_entries);
		}
	}
	return status;
}

static enum status gate_report(struct view *view, const struct gate *gate)
{
	const struct sl_policy *policies[SL_POLICIES_MAX];
	struct attachment all[ATTACHMENTS_MAX];
	json_t *maps = view->gates ? json_array() : NULL;
	unsigned int rules = rules_list(gate, policies), count;
	enum status status = attachments_read(gate, all, &count);

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
