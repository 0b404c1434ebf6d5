// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"
#include "report/report.h"

static int sources_run(const struct context *context, const void *args)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;

	return gate_open_to_look(&gate, context) ?: report_sources(&gate, args);
}

static const struct word sources_words[] = {
	{"ADDRESS|PREFIX", OPERAND, &value_prefix, offsetof(struct sources_args, within), NULL},
	{"top", KEYWORD, &value_top, offsetof(struct sources_args, top), "print only the first N"},
	{"skip", KEYWORD, &value_skip, offsetof(struct sources_args, skip),
	 "leave out the first N, to print the next page"},
	{"sort", KEYWORD, &value_order, offsetof(struct sources_args, order),
	 "by packets sent (default), packets passed, packets dropped, bytes sent, or the part of\n"
	 "the burst that is left"},
};

const struct command command_sources = {
	.name = "sources",
	.brief = "the tracked sources, busiest first",
	.details =
		"Prints the sources, all or of one address or prefix, that a CPU has a bucket\n"
		"for, or that have a state that is not full. A source without a bucket is not\n"
		"counted, and has - in PASS and DROP. WOULD: packets that passed, but exceeded a\n"
		"limit that observes. LEVEL: the part of the limit's burst that is left. If the\n"
		"limit refuses packets, LEVEL is the time until a packet passes, in parentheses "
		"if\n"
		"the limit only observes. See sluice-inspect(7).",
	COMMAND_WORDS(sources_words, struct sources_args),
	.run = sources_run,
};
