// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "command.h"
#include "gate.h"
#include "prefix.h"
#include "rules.h"

enum status cmd_del(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	char text[PREFIX_TEXT];
	struct sl_prefix prefix;
	enum status status;

	if (argc < 2)
		return misuse("del: default, or which prefix? See 'sluice help del'");
	if (argc > 2)
		return unexpected(argv[0], argv[2]);
	status = prefix_parse(argv[1], &prefix);
	if (!status)
		status = gate_open_to_change(&gate, context->gate);
	if (!status)
		status = rules_delete(&gate, &prefix);
	gate_close(&gate);
	if (status)
		return status;
	if (context->json)
		return json_print(json_pack("{s:s, s:s}", "gate", context->gate, "prefix",
					    prefix_format(&prefix, text)));
	printf("%s: rule deleted\n", prefix_format(&prefix, text));
	return OK;
}
