// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "command.h"
#include "gate.h"
#include "tally.h"

static json_t *policies_json(const struct tally *tally)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < tally->count; i++) {
		const struct tally_line *line = &tally->lines[i];
		struct sl_cell passed = counters_passed(&line->counters);
		struct sl_cell dropped = counters_dropped(&line->counters);

		if (line->is_rule)
			json_array_append_new(list,
					      json_pack("{s:s, s:o, s:o}", "prefix", line->policy,
							"passed", json_cell(&passed), "dropped",
							json_cell(&dropped)));
	}
	return list;
}

static json_t *stats_json(const struct gate *gate, const struct tally *tally)
{
	struct sl_cell passed = counters_passed(&tally->total);
	struct sl_cell dropped = counters_dropped(&tally->total);
	json_t *reasons = json_object();

	for (int reason = 0; reason < SL_REASONS; reason++)
		json_object_set_new(reasons, reason_names[reason],
				    json_integer(tally->total.reason[reason].packets));
	return json_pack("{s:s, s:I, s:{s:o, s:o}, s:o, s:o}", "gate", gate->name, "generation",
			 (json_int_t)gate->state->generation, "totals", "passed",
			 json_cell(&passed), "dropped", json_cell(&dropped), "reasons", reasons,
			 "policies", policies_json(tally));
}

static void stats_print(const struct gate *gate, const struct tally *tally)
{
	struct sl_cell passed = counters_passed(&tally->total);
	struct sl_cell dropped = counters_dropped(&tally->total);

	printf("gate %s, generation %u\n\n", gate->name, gate->state->generation);
	printf("%-24s %16s %20s\n", "TOTAL", "PACKETS", "BYTES");
	printf("%-24s %16llu %20llu\n", "passed", passed.packets, passed.bytes);
	printf("%-24s %16llu %20llu\n", "dropped", dropped.packets, dropped.bytes);

	printf("\n%-24s %16s %20s\n", "REASON", "PACKETS", "BYTES");
	for (int reason = 0; reason < SL_REASONS; reason++)
		printf("%s %-19s %16llu %20llu\n", reason < SL_FIRST_DROP ? "pass" : "drop",
		       reason_names[reason], tally->total.reason[reason].packets,
		       tally->total.reason[reason].bytes);

	printf("\n%-24s %16s %16s\n", "POLICY", "PASSED", "DROPPED");
	for (unsigned int i = 0; i < tally->count; i++) {
		const struct tally_line *line = &tally->lines[i];
		__u64 line_passed = counters_passed(&line->counters).packets;
		__u64 line_dropped = counters_dropped(&line->counters).packets;

		if (line->is_rule || line_passed || line_dropped)
			printf("%-24s %16llu %16llu\n", line->policy, line_passed, line_dropped);
	}
}

enum status cmd_stats(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct tally tally = {0};
	enum status status;

	if (argc > 1)
		return unexpected(argv[0], argv[1]);
	status = gate_open(&gate, context->gate);
	if (!status)
		status = tally_read(&gate, &tally);
	if (!status && context->json)
		status = json_print(stats_json(&gate, &tally));
	else if (!status)
		stats_print(&gate, &tally);
	tally_free(&tally);
	gate_close(&gate);
	return status;
}
