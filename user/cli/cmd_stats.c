// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"
#include "report/report.h"

static int stats_run(const struct context *context, const void *args)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;

	return gate_open_to_look(&gate, context) ?: report_stats(&gate, *(const bool *)args);
}

static const struct word stats_words[] = {
	{"all", KEYWORD, NULL, 0, "also print lines whose counts are 0"},
};

const struct command command_stats = {
	.name = "stats",
	.brief = "packets passed and dropped, by reason and policy",
	COMMAND_WORDS(stats_words, bool),
	.run = stats_run,
};
