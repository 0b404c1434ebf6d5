// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "gate/trial.h"
#include "migrate/open.h"
#include "program/writer.h"

static int confirm_run(const struct context *context, const void *args)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err = gate_open(&gate, context->gate, GATE_ON_TRIAL, NULL);

	(void)args;
	if (err)
		return err;
	if (!gate.state->trial_until)
		return error_add(ENOENT, "no-trial", NULL,
				 "gate '%s' is not on trial; a change with '--confirm 60s' begins "
				 "a trial",
				 gate.name);
	trial_end(&gate);
	print_object(NULL);
	print_string("gate", "gate '%s': ", gate.name);
	print_number("generation", "generation %" PRIu64 " stays in force\n",
		     gate.state->generation);
	print_end();
	return 0;
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
