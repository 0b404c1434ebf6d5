// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"

#include "gate/pins.h"
#include "migrate/open.h"

int gate_open_to_look(struct gate *gate, const struct context *context)
{
	char only[GATE_NAME + 1] = "";
	int err = context->gate_given ? 0 : gates_only(context->gate, only);

	return err ?: gate_open(gate, *only ? only : context->gate, GATE_READ, NULL);
}
