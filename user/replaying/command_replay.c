// SPDX-License-Identifier: GPL-2.0
#include "replaying/command_replay.h"

static const struct value_type rules_files = {.name = "RULES", .parse = raw_parse, .is_pair = true},
			       top_number = VALUE_NUMBER(1, 1000000000, NULL),
			       cpus_number = VALUE_NUMBER(1, 1024, NULL),
			       mtu_number = VALUE_NUMBER(68, 65535, NULL);

static const struct word replay_table[] = {
	{"CAPTURE", OPERAND, VALUE_TEXT("FILE"), offsetof(struct replay_words, capture), NULL},
	{"top", KEYWORD, &top_number, offsetof(struct replay_words, top),
	 "number of sources to print; default: 10"},
	{"-f", OPTION, &rules_files, offsetof(struct replay_words, rules),
	 "the rules file; default: the rules of the running gate. Twice: compare two files"},
	{"-w", OPTION, VALUE_TEXT("FILE"), offsetof(struct replay_words, out),
	 "write the packets to a pcapng file, with verdict, reason and limit as comments"},
	{"--in", OPTION, NULL, offsetof(struct replay_words, is_in),
	 "judge packets that were received, on a hook for received packets (default)"},
	{"--out", OPTION, NULL, offsetof(struct replay_words, is_out),
	 "judge packets that were sent, on hook egress"},
	{"--to", OPTION, VALUE_TEXT("MAC"), offsetof(struct replay_words, to),
	 "judge frames to this address, and to groups; for a capture with both directions"},
	{"--interface", OPTION, VALUE_TEXT("NAME"), offsetof(struct replay_words, interface),
	 "judge packets of one interface of the capture, by its name or number"},
	{"--mtu", OPTION, &mtu_number, offsetof(struct replay_words, mtu),
	 "longer packets count as merged by GRO or TSO; default: 1500"},
	{"--cpus", OPTION, &cpus_number, offsetof(struct replay_words, cpus),
	 "spread flows over N CPUs, as RSS does; default: 1"},
	{"--fail-if-dropped", OPTION, VALUE_TEXT("PREFIX"),
	 offsetof(struct replay_words, if_dropped),
	 "exit with status 1 if a packet from these prefixes is dropped; separate several\n"
	 "prefixes by commas"},
	{"--fail-unless-dropped", OPTION, VALUE_TEXT("PREFIX"),
	 offsetof(struct replay_words, unless_dropped),
	 "exit with status 1 unless a packet from each of these prefixes is dropped"},
};

const struct command command_replay = {
	.name = "replay",
	.brief = "what the rules would have done to a capture",
	.details =
		"Judges the packets of a pcap or pcapng file by the packet path, at the times of "
		"the capture.\n"
		"No device and no running gate is changed. CAPTURE - is standard input. Exit "
		"status 0: done;\n"
		"1: a condition of --fail... is not met, or packets were not judged; 2: an error.",
	.question = "which capture?",
	COMMAND_WORDS(replay_table, struct replay_words),
	.exit_failed = 2,
	.program = "replay",
	.package = "sluice-replay",
};
