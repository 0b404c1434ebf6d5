// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "attach/published.h"
#include "attach/replace.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/gate.h"
#include "gate/old_schema.h"
#include "migrate/session.h"
#include "migrate/takeover.h"

static json_t *replacements_json(const struct gate *gate, const struct replacements *replacements)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < replacements->count; i++) {
		json_t *object = attachment_json(&replacements->one[i].attachment);

		json_object_set_new(object, "gate", json_string(gate->name));
		json_object_set_new(object, "program_id_before",
				    json_integer(replacements->one[i].before));
		json_array_append_new(list, object);
	}
	return list;
}

/* before: the schema that the gate had */
static void replacements_print(const struct gate *gate, const struct replacements *replacements,
			       unsigned int before)
{
	for (unsigned int i = 0; i < replacements->count; i++) {
		const struct replaced *replaced = &replacements->one[i];
		const struct attachment *a = &replaced->attachment;

		printf("%s: hook %s: program %u -> %u\n", a->device, hook_names[a->hook],
		       replaced->before, a->program_id);
	}
	if (before != SL_SCHEMA)
		printf("gate '%s': schema %u -> %d\n", gate->name, before, SL_SCHEMA);
	else if (!replacements->count)
		printf("gate '%s': no device is attached: nothing to upgrade\n", gate->name);
}

static enum status upgrade_run(const struct context *context, const void *args)
{
	struct replacements replacements = {.count = 0};
	struct gate gate = GATE_CLOSED;
	unsigned int before = SL_SCHEMA;
	enum status status;

	(void)args;
	status = gate_open_to_upgrade(&gate, context->gate);
	if (!status && gate.old) {
		before = gate.old->number;
		status = upgrade_schema(&gate, &replacements);
	} else if (!status) {
		status = programs_replace(&gate, &gate, &replacements);
	}
	if (!status)
		attachments_publish(&gate);
	if (!status && context->json)
		status = json_print(replacements_json(&gate, &replacements));
	else if (!status)
		replacements_print(&gate, &replacements, before);
	replacements_close(&replacements);
	gate_close(&gate);
	return status;
}

static const char upgrade_details[] =
	"Rules, buckets and counters stay, and no packet passes unfiltered. A gate of an older\n"
	"version with other maps (from schema 4 on) is carried over to this one's; until then\n"
	"only show, dump and diff can read it. If an upgrade was interrupted, run it again.";

const struct command command_upgrade = {
	.name = "upgrade",
	.brief = "put this command's program under a running gate",
	.details = upgrade_details,
	.run = upgrade_run,
};
