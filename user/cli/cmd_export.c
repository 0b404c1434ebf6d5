// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"
#include "report/report.h"

static int export_run(const struct context *context, const void *args)
{
	(void)args;
	if (context->json)
		return error_misuse("no-json", "export", "it has no JSON; use 'sluice -j stats'");
	return report_metrics(gate_named(context));
}

const struct command command_export = {
	.name = "export",
	.brief = "the counters, in Prometheus's text format",
	.run = export_run,
};
