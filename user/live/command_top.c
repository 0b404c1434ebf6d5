// SPDX-License-Identifier: GPL-2.0
#include "live/command_top.h"

#include "live/live.h"

const char *const top_orders[] = {"source", "passed", "dropped", "would",  "busiest",
				  "policy", "limit",  "level",	 "blocked"};

_Static_assert(ARRAY_SIZE(top_orders) == LIVE_ORDERS, "each order has a word");

static const struct value_type
	order_type = VALUE_CHOICE("source|passed|dropped|would|busiest|policy|limit|level|blocked",
				  top_orders, LIVE_BY_SOURCE + 1),
	number_type = VALUE_NUMBER(1, LIVE_ROWS, NULL),
	times_type = VALUE_NUMBER(1, 1000000000, NULL),
	interval_type = VALUE_TIME(TOP_INTERVAL_LEAST_NS, TOP_INTERVAL_MOST_NS);

static const struct word top_words[] = {
	{"ADDRESS|PREFIX", OPERAND, &value_prefix, offsetof(struct top_words, within), NULL},
	{"sort", KEYWORD, &order_type, offsetof(struct top_words, order),
	 "by source, packets passed, dropped (default), or that would be dropped, or by both\n"
	 "passed and dropped; the busiest sources by policy, limit, level or end of block"},
	{"top", KEYWORD, &number_type, offsetof(struct top_words, top),
	 "list only the first N sources; in batch mode 20 by default"},
	{"every", KEYWORD, &interval_type, offsetof(struct top_words, interval_ns),
	 "interval between refreshes, 200ms to 1min; default: 1s"},
	{"times", KEYWORD, &times_type, offsetof(struct top_words, times),
	 "end after N refreshes; only in batch mode"},
	{"-b", OPTION, NULL, offsetof(struct top_words, batch),
	 "batch mode: print text for each refresh, without a terminal; -j prints a line of\n"
	 "JSON instead"},
};

const struct command command_top = {
	.name = "top",
	.brief = "a live view of rates and of the busiest sources",
	.details =
		"Shows what a gate passes and drops each second, and the sources, limits, "
		"devices and\n"
		"reasons. '?' explains the keys, and 'q' ends it. It only reads; a change is made "
		"by\n"
		"'deny', 'allow' or 'forgive' after a question. See sluice-top(8).",
	COMMAND_WORDS(top_words, struct top_words),
	.package = "sluice-top",
};
