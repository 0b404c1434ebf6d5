// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "gate.h"
#include "peek.h"
#include "prefix.h"
#include "report.h"
#include "rules.h"

#define FRAME_DEFAULT 1514
#define FRAME_MAX     (1 << 20)

static enum status size_parse(int argc, char **argv, unsigned int *ret)
{
	const char *value;
	char *end;
	long size;
	int i = 2;

	if (argc == 2)
		return OK;
	if (strcmp(argv[2], "size"))
		return unexpected(argv[0], argv[2]);
	value = keyword_value(argc, argv, &i);
	if (!value)
		return MISUSED;
	if (argc > 4)
		return unexpected(argv[0], argv[4]);
	size = strtol(value, &end, 10);
	if (*end || end == value || size < 14 || size > FRAME_MAX)
		return misuse("check: size '%s' is not a frame's: 14 to %d bytes", value,
			      FRAME_MAX);
	*ret = size;
	return OK;
}

static json_t *check_json(const struct sl_prefix *address, const struct sl_policy *policy,
			  const struct standing *standing)
{
	char text[PREFIX_TEXT], prefix[PREFIX_TEXT];
	bool pass = !policy || standing->allowed;
	json_t *limits = json_array();

	if (policy)
		json_array_append_new(limits, standing_json(&policy->limit, standing));
	return json_pack("{s:s, s:s?, s:s, s:o}", "address", prefix_format(address, text), "policy",
			 policy ? prefix_format(&policy->prefix, prefix) : NULL, "verdict",
			 pass ? "pass" : "drop", "limits", limits);
}

static void check_print(const struct sl_prefix *address, const struct sl_policy *policy,
			const struct standing *standing)
{
	char text[PREFIX_TEXT], prefix[PREFIX_TEXT];

	if (!policy) {
		printf("%s: pass: no rule covers it\n", prefix_format(address, text));
		return;
	}
	printf("%s: %s\n", prefix_format(address, text), standing->allowed ? "pass" : "drop");
	printf("  policy  %s\n", prefix_format(&policy->prefix, prefix));
	standing_print(&policy->limit, standing);
}

static enum status check(const struct context *context, const struct gate *gate,
			 const struct sl_prefix *address, unsigned int frame_bytes)
{
	const struct sl_policy *policy = rules_find(gate, address);
	struct standing standing = {0};
	struct source source;
	enum status status = source_read(gate, address, &source);

	if (status)
		return status;
	if (policy)
		status = standing_read(gate, &source, policy, frame_bytes, now_ticks(), &standing);
	source_free(&source);
	if (status)
		return status;
	if (context->json)
		return json_print(check_json(address, policy, &standing));
	check_print(address, policy, &standing);
	return OK;
}

enum status cmd_check(const struct context *context, int argc, char **argv)
{
	unsigned int frame_bytes = FRAME_DEFAULT;
	struct gate gate = GATE_CLOSED;
	struct sl_prefix address;
	enum status status;

	if (argc < 2)
		return misuse("check: which address? See 'sluice help check'");
	status = address_parse(argv[1], &address);
	if (!status)
		status = size_parse(argc, argv, &frame_bytes);
	if (!status)
		status = gate_open(&gate, context->gate);
	if (!status)
		status = check(context, &gate, &address, frame_bytes);
	gate_close(&gate);
	return status;
}
