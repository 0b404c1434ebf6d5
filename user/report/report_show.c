// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>

#include "attach/places.h"
#include "attach/published.h"
#include "attach/shaping.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "gate/rules.h"
#include "program/print_rules.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/report.h"

/*
 * Prints commands that attach the gate to its present devices. The first command specifies the
 * gate's sizes, because it creates the gate. If a limit shapes, and a device on hook egress has no
 * fq, sets `ret_lacks_fq`.
 */
static int dump_attachments(const struct gate *gate, bool *ret_lacks_fq)
{
	struct gate_sizes sizes;
	struct shaping shaping;
	struct seen seen;
	int err = gate_sizes_read_stated(gate, &sizes) ?: shaping_read(gate, &shaping)
		  ?: attachments_see(gate, &seen);

	if (err)
		return err;
	for (unsigned int i = 0; i < seen.count; i++) {
		const struct attachment *a = &seen.all[i];
		struct holding holding;

		if (!a->program_id)
			continue;
		if (shaping.any && a->hook == HOOK_EGRESS) {
			err = shaping_look(&shaping, a, &holding);
			if (err)
				return err;
			*ret_lacks_fq |= !holding.holds;
			free(holding.command);
		}
		if (print_attach_command(a, sizes, gate->name, ""))
			sizes = (struct gate_sizes){0};
		else
			error_notice("no-netns-name", a->device,
				     "left out, because a command cannot name its %s",
				     a->mode == MODE_ARRAY ? "program array" : "network namespace");
	}
	return 0;
}

/* Prints the gate's devices as JSON array "attach", as in a rules file. */
static int print_places(const struct gate *gate)
{
	_cleanup_(places_free) struct places places = {0};
	int err = gate_places(gate, &places);

	if (err || !places.specified)
		return err;
	print_array("attach");
	for (unsigned int i = 0; i < places.count; i++) {
		const struct place *place = &places.list[i];
		char slot[SLOT_TEXT];

		print_row(NULL);
		print_string("device", NULL, place->device);
		if (*place->netns)
			print_string("netns", NULL, place->netns);
		if (place->hook != HOOK_XDP)
			print_string("hook", NULL, hook_names[place->hook]);
		if (place_mode(place))
			print_string("mode", NULL, place_mode(place));
		if (place->mode == MODE_ARRAY)
			print_string("array", NULL, slot_format(&place->slot, slot));
		if (place->priority)
			print_number("priority", NULL, place->priority);
		print_end();
	}
	print_end();
	return 0;
}

int report_show(const struct gate *gate)
{
	_cleanup_(ruleset_free) struct ruleset set = {0};
	struct rules_shown shown = {0};
	int err = rules_read(gate, &set);

	if (!err && print_is_json()) {
		print_object(NULL);
		print_string("gate", NULL, gate->name);
		err = print_places(gate);
	} else if (!err) {
		err = dump_attachments(gate, &shown.lacks_fq);
	}
	if (err)
		return err;
	print_array("rules");
	for (unsigned int i = 0; i < set.count; i++)
		if (print_is_json())
			print_rule(NULL, &set.rules[i], set.lists);
		else
			print_commands(&set.rules[i], set.lists, &shown, gate->name, "");
	print_end();
	print_end();
	return 0;
}
