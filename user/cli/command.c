// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"

#include "gate/gate_dir.h"
#include "gate/gate_open.h"

int gate_open_to_look(struct gate *gate, const struct context *context)
{
	char only[GATE_NAME + 1] = "";
	int err = context->gate_given ? 0 : gates_only(context->gate, only);

	return err ?: gate_open(gate, *only ? only : context->gate);
}
