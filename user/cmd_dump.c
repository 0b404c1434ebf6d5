// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "command.h"
#include "config.h"
#include "gate.h"
#include "rules.h"

static enum status print(const struct context *context, const struct config *config)
{
	return context->json ? json_print(config_json(config)) : config_write(stdout, config);
}

enum status cmd_dump(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct config config = {0};
	enum status status;

	if (argc > 1)
		return unexpected(argv[0], argv[1]);
	status = gate_open_for_rules(&gate, context);
	if (!status)
		status = gate_sizes_read(&gate, &config.sizes);
	if (!status)
		status = rules_read(&gate, &config.rules);
	if (!status)
		status = print(context, &config);
	config_free(&config);
	gate_close(&gate);
	return status;
}
