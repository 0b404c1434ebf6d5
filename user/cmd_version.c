// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "command.h"
#include "sluice.h"

enum status cmd_version(const struct context *context, int argc, char **argv)
{
	if (argc > 1)
		return unexpected(argv[0], argv[1]);
	if (context->json)
		return json_print(
			json_pack("{s:s, s:i}", "version", SL_VERSION, "schema", SL_SCHEMA));
	printf("sluice %s, schema %d\n", SL_VERSION, SL_SCHEMA);
	return OK;
}
