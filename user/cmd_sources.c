// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "gate.h"
#include "peek.h"
#include "prefix.h"
#include "report.h"
#include "rules.h"

#define FRAME_USUAL 1514

/* The policy of a source, NULL where none or more than one applies. */
static const struct sl_policy *source_policy(const struct gate *gate, const struct source *source)
{
	return source->split ? NULL : rules_find(gate, &source->prefix);
}

static json_t *source_json(const struct source *source, const struct sl_policy *policy,
			   const struct standing *standing)
{
	char text[PREFIX_TEXT], prefix[PREFIX_TEXT];
	json_t *limits = json_array();

	if (policy)
		json_array_append_new(limits, standing_json(&policy->limit, standing));
	return json_pack("{s:s, s:s?, s:o, s:o, s:o}", "address",
			 prefix_format(&source->prefix, text), "policy",
			 policy ? prefix_format(&policy->prefix, prefix) : NULL, "passed",
			 json_cell(&source->passed), "dropped", json_cell(&source->dropped),
			 "limits", limits);
}

static void source_print(const struct source *source, const struct sl_policy *policy,
			 const struct standing *standing)
{
	char text[PREFIX_TEXT], prefix[PREFIX_TEXT], level[48] = "-";

	if (policy)
		snprintf(level, sizeof(level), "%" PRIu64 " of %" PRIu64, standing->remaining,
			 burst_units(&policy->limit));
	printf("%-24s %-20s %14llu %14llu  %s\n", prefix_format(&source->prefix, text),
	       policy	       ? prefix_format(&policy->prefix, prefix)
	       : source->split ? "(several)"
			       : "-",
	       source->passed.packets, source->dropped.packets, level);
}

static enum status source_report(const struct gate *gate, const struct source *source, json_t *list)
{
	const struct sl_policy *policy = source_policy(gate, source);
	struct standing standing = {0};
	enum status status = OK;

	if (policy)
		status = standing_read(gate, source, policy, FRAME_USUAL, now_ticks(), &standing);
	if (status)
		return status;
	if (list)
		json_array_append_new(list, source_json(source, policy, &standing));
	else
		source_print(source, policy, &standing);
	return OK;
}

static enum status sources_report(const struct context *context, const struct gate *gate,
				  const struct sl_prefix *within)
{
	json_t *list = context->json ? json_array() : NULL;
	struct source *sources;
	unsigned int count;
	enum status status = sources_read(gate, within, &sources, &count);

	if (status)
		goto cleanup;
	if (!list)
		printf("%-24s %-20s %14s %14s  %s\n", "SOURCE", "POLICY", "PASSED", "DROPPED",
		       "LEVEL");
	for (unsigned int i = 0; !status && i < count; i++)
		status = source_report(gate, &sources[i], list);
	sources_free(sources, count);
cleanup:
	if (!status && context->json)
		return json_print(list);
	json_decref(list);
	return status;
}

enum status cmd_sources(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct sl_prefix within = {0};
	enum status status = OK;

	if (argc > 2)
		return unexpected(argv[0], argv[2]);
	if (argc == 2)
		status = prefix_parse(argv[1], &within);
	within = prefix_source(&within); /* an IPv6 address is found by its /64 */
	if (!status)
		status = gate_open(&gate, context->gate);
	if (!status)
		status = sources_report(context, &gate, &within);
	gate_close(&gate);
	return status;
}
