// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "command.h"
#include "gate.h"
#include "report.h"
#include "switch.h"

static json_t *switched_json(const struct gate *gate, const struct switched *switched)
{
	json_t *object = attachment_json(&switched->attachment);

	json_object_set_new(object, "gate", json_string(gate->name));
	json_object_set_new(object, "program_id_before", json_integer(switched->before));
	return object;
}

static enum status report(const struct context *context, const struct gate *gate,
			  const struct switching *switching)
{
	json_t *list = context->json ? json_array() : NULL;

	for (unsigned int i = 0; i < switching->count; i++) {
		const struct switched *switched = &switching->one[i];
		const struct attachment *a = &switched->attachment;

		if (list)
			json_array_append_new(list, switched_json(gate, switched));
		else
			printf("%s: hook %s: program %u -> %u\n", a->device, hook_names[a->hook],
			       switched->before, a->program_id);
	}
	if (list)
		return json_print(list);
	if (!switching->count)
		printf("gate '%s': no device is attached: nothing to upgrade\n", gate->name);
	return OK;
}

enum status cmd_upgrade(const struct context *context, int argc, char **argv)
{
	struct switching switching;
	struct programs programs = PROGRAMS_CLOSED;
	struct gate gate = GATE_CLOSED;
	enum status status;

	if (argc > 1)
		return unexpected(argv[0], argv[1]);
	status = gate_open_to_change(&gate, context->gate);
	if (!status)
		status = programs_load(&gate, &programs);
	if (!status)
		status = programs_switch(&gate, &programs, &switching);
	if (!status)
		status = report(context, &gate, &switching);
	programs_close(&programs);
	gate_close(&gate);
	return status;
}
