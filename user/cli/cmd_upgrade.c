// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "attach/published.h"
#include "attach/replace.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/gate.h"
#include "migrate/open.h"

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

static void replacements_print(const struct gate *gate, const struct replacements *replacements)
{
	for (unsigned int i = 0; i < replacements->count; i++) {
		const struct replaced *replaced = &replacements->one[i];
		const struct attachment *a = &replaced->attachment;

		printf("%s: hook %s: program %u -> %u\n", name_shown(a->device),
		       hook_names[a->hook], replaced->before, a->program_id);
	}
	if (!replacements->count)
		printf("gate '%s': no device is attached: nothing to upgrade\n", gate->name);
}

static int upgrade_run(const struct context *context, const void *args)
{
	struct replacements replacements = {.count = 0};
	struct gate gate = GATE_CLOSED;
	int status;

	(void)args;
	status = gate_open(&gate, context->gate, GATE_CHANGE, NULL);
	if (!status)
		status = programs_replace(&gate, &gate, &replacements);
	if (!status)
		attachments_publish(&gate);
	if (!status && context->json)
		status = json_print(replacements_json(&gate, &replacements));
	else if (!status)
		replacements_print(&gate, &replacements);
	replacements_close(&replacements);
	gate_close(&gate);
	return status;
}

static const char upgrade_details[] =
	"Rules, buckets and counters stay, and no packet passes unfiltered. If an upgrade was\n"
	"interrupted, run it again. A gate that a version with another schema made is refused.";

const struct command command_upgrade = {
	.name = "upgrade",
	.brief = "put this command's program under a running gate",
	.details = upgrade_details,
	.run = upgrade_run,
};
