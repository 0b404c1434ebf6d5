// SPDX-License-Identifier: GPL-2.0
#include "replaying/command_suggest.h"

#include <stdlib.h>

#define PER_CENT 1000 /* quantiles are in thousandths of a per cent */

/* Parses a percentage from 50 to 100, such as 99.9, into thousandths of a per cent. */
static int quantile_parse(const struct value_type *type, const char *what, const char *text,
			  void *ret)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !(number >= 50 && number <= 100))
		return value_refuse(type, "out-of-range", what, text,
				    "is no percentage from 50 to 100");
	*(unsigned int *)ret = number * PER_CENT + 0.5;
	return 0;
}

/* Parses a percentage, which may be 0. Stores the percentage + 1, because 0 means the default. */
static int headroom_parse(const struct value_type *type, const char *what, const char *text,
			  void *ret)
{
	unsigned int number;
	int err = number_parse(type, what, text, &number);

	if (!err)
		*(unsigned int *)ret = number + 1;
	return err;
}

static const struct value_type quantile_percent = {.name = "PERCENT",
						   .parse = quantile_parse,
						   .expected = "write 99, 99.9 or 100"},
			       headroom_percent = {
				       .name = "PERCENT", .parse = headroom_parse, .most = 1000};

static const struct word suggest_table[] = {
	{"CAPTURE", OPERAND, VALUE_TEXT("FILE"), offsetof(struct suggest_args, capture), NULL},
	{"quantile", KEYWORD, &quantile_percent, offsetof(struct suggest_args, quantile),
	 "the part of the sources, or of seconds of a gate, to allow in full; default: 99.9"},
	{"headroom", KEYWORD, &headroom_percent, offsetof(struct suggest_args, headroom),
	 "what is added to each rate and burst, in per cent; default: 50"},
	{"--from-gate", OPTION, NULL, offsetof(struct suggest_args, from_gate),
	 "propose from the counters of a running gate, not from a capture"},
	{"--in", OPTION, NULL, offsetof(struct suggest_args, is_in),
	 "read packets that were received (default)"},
	{"--out", OPTION, NULL, offsetof(struct suggest_args, is_out),
	 "read packets that were sent"},
	{"--to", OPTION, VALUE_TEXT("MAC"), offsetof(struct suggest_args, to),
	 "read frames to this address, and to groups; for a capture with both directions"},
	{"--interface", OPTION, VALUE_TEXT("NAME"), offsetof(struct suggest_args, interface),
	 "read packets of one interface of the capture, by its name or number"},
};

const struct command command_suggest = {
	.name = "suggest",
	.brief = "propose limits from a capture or a gate",
	.details =
		"Prints a rules file whose limits only observe, with the reasons as comments. It "
		"changes no gate.\n"
		"CAPTURE is a pcap or pcapng file, or - for standard input.",
	COMMAND_WORDS(suggest_table, struct suggest_args),
	.program = "replay",
	.package = "sluice-replay",
};
