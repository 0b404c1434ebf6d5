// SPDX-License-Identifier: GPL-2.0
#include <stddef.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/gate.h"
#include "state/stats.h"

/* Whether lines whose counts are 0 are printed, and whether one was not. */
struct listing {
	bool all, hidden;
};

struct stats_args {
	bool all;
};

/* --- JSON ----------------------------------------------------------------------------------- */

static json_t *limits_json(const struct stats_line *line)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < line->limits; i++) {
		const struct stats_limit *limit = &line->limit[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:o}", "name", limit->name,
						"action", action_names[limit->action], "verdict",
						stats_limit_verdict(limit), "refused",
						json_cell(&line->counters.refused[limit->slot])));
	}
	return list;
}

static json_t *policies_json(const struct stats *stats)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < stats->count; i++) {
		const struct stats_line *line = &stats->lines[i];
		struct sl_cell passed = counters_passed(&line->counters);
		struct sl_cell dropped = counters_dropped(&line->counters);

		if (line->kind == STATS_RULE)
			json_array_append_new(
				list, json_pack("{s:s, s:o, s:o, s:o}", "prefix", line->policy,
						"passed", json_cell(&passed), "dropped",
						json_cell(&dropped), "limits", limits_json(line)));
	}
	return list;
}

static json_t *stats_json(const struct gate *gate, const struct stats *stats)
{
	struct sl_cell passed = counters_passed(&stats->total);
	struct sl_cell dropped = counters_dropped(&stats->total);
	json_t *reasons = json_object();

	for (int reason = 0; reason < SL_REASONS; reason++)
		json_object_set_new(reasons, reason_names[reason],
				    json_integer(stats->total.reason[reason].packets));
	return json_pack("{s:s, s:I, s:{s:o, s:o}, s:o, s:{s:o, s:o}, s:o}", "gate", gate->name,
			 "generation", (json_int_t)gate->state->generation, "totals", "passed",
			 json_cell(&passed), "dropped", json_cell(&dropped), "reasons", reasons,
			 "lists", "allow", json_cell(&stats->total.reason[SL_PASS_ALLOWED]), "deny",
			 json_cell(&stats->total.reason[SL_DROP_DENIED]), "policies",
			 policies_json(stats));
}

/* --- Text ----------------------------------------------------------------------------------- */

/* Whether to print a line. counts: their sum. */
static bool line_is_shown(struct listing *listing, unsigned long long counts)
{
	if (counts || listing->all)
		return true;
	listing->hidden = true;
	return false;
}

static void totals_print(const struct stats *stats, struct listing *listing)
{
	struct sl_cell passed = counters_passed(&stats->total);
	struct sl_cell dropped = counters_dropped(&stats->total);

	printf("%-24s %16s %20s\n", "TOTAL", "PACKETS", "BYTES");
	printf("%-24s %16llu %20llu\n", "passed", passed.packets, passed.bytes);
	printf("%-24s %16llu %20llu\n", "dropped", dropped.packets, dropped.bytes);
	printf("\n%-24s %16s %20s\n", "REASON", "PACKETS", "BYTES");
	for (int reason = 0; reason < SL_REASONS; reason++)
		if (line_is_shown(listing, stats->total.reason[reason].packets))
			printf("%s %-19s %16llu %20llu\n", reason < SL_FIRST_DROP ? "pass" : "drop",
			       reason_names[reason], stats->total.reason[reason].packets,
			       stats->total.reason[reason].bytes);
}

/* Prints what a policy passed and dropped, and below it what its limits refused. */
static void line_print(const struct stats_line *line, struct listing *listing)
{
	printf("%-24s %16llu %16llu\n", line->policy, counters_passed(&line->counters).packets,
	       counters_dropped(&line->counters).packets);
	for (unsigned int i = 0; i < line->limits; i++) {
		const struct stats_limit *limit = &line->limit[i];

		if (!line_is_shown(listing, line->counters.refused[limit->slot].packets))
			continue;
		printf("  limit %-16s %16s %16llu  %s\n", limit->name, "",
		       line->counters.refused[limit->slot].packets, stats_limit_verdict(limit));
	}
}

static void policies_print(const struct stats *stats, struct listing *listing)
{
	printf("\n%-24s %16s %16s\n", "POLICY", "PASSED", "DROPPED");
	for (unsigned int i = 0; i < stats->count; i++) {
		const struct stats_line *line = &stats->lines[i];

		if (line_is_shown(listing, stats_line_counted(line)))
			line_print(line, listing);
	}
}

static int stats_run(const struct context *context, const void *args)
{
	const struct stats_args *words = args;
	struct listing listing = {.all = words->all};
	struct gate gate = GATE_CLOSED;
	struct stats stats = {0};
	int status;

	status = gate_open_to_look(&gate, context);
	if (!status)
		status = stats_read(&gate, &stats);
	if (!status && context->json) {
		status = json_print(stats_json(&gate, &stats));
	} else if (!status) {
		printf("gate %s, generation %u\n\n", gate.name, gate.state->generation);
		totals_print(&stats, &listing);
		policies_print(&stats, &listing);
		if (listing.hidden)
			printf("(lines of 0 are hidden: 'sluice %sstats all')\n",
			       gate_option(gate.name));
	}
	stats_free(&stats);
	gate_close(&gate);
	return status;
}

static const struct word stats_words[] = {
	{"all", KEYWORD, NULL, offsetof(struct stats_args, all),
	 "also print lines whose counts are 0"},
};

const struct command command_stats = {
	.name = "stats",
	.brief = "what passed and what was dropped, and why",
	COMMAND_WORDS(stats_words, struct stats_args),
	.run = stats_run,
};
