// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "cli/command.h"
#include "cli/report.h"
#include "gate/trial.h"
#include "migrate/open.h"

static int confirm_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	int status = gate_open(&gate, context->gate, GATE_ON_TRIAL, NULL);

	(void)args;
	if (!status && !gate.state->trial_until)
		status = failure("gate '%s' is not on trial: a change with '--confirm 60s' "
				 "begins one",
				 gate.name);
	if (!status)
		trial_end(&gate);
	if (!status && context->json)
		status = json_print(json_pack("{s:s, s:I}", "gate", gate.name, "generation",
					      (json_int_t)gate.state->generation));
	else if (!status)
		printf("gate '%s': generation %u stays in force\n", gate.name,
		       gate.state->generation);
	gate_close(&gate);
	return status;
}

static const char confirm_details[] =
	"Keeps the change that a command made with --confirm. Otherwise the previous rules,\n"
	"sizes and devices are restored when the time is over.";

const struct command command_confirm = {
	.name = "confirm",
	.brief = "keep a change that was made with --confirm",
	.details = confirm_details,
	.run = confirm_run,
};
