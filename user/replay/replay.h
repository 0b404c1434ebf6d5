/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: reads a capture, judges each packet under one or two sets of rules, and counts the
 * verdicts. With two sets, each packet is judged by both, so their verdicts can be compared.
 */
#ifndef SLUICE_REPLAY_REPLAY_H
#define SLUICE_REPLAY_REPLAY_H

#include <sched.h>

#include "replay/annotate.h"
#include "replay/judge.h"
#include "replay/tally.h"
#include "replaying/command_replay.h"

#define RULES_MAX 2

struct replay {
	const struct replay_words *words;
	char *rules_name[RULES_MAX]; /* the file, or the gate's name */
	unsigned int rules;
	struct judge judge[RULES_MAX];
	struct tally tally[RULES_MAX];
	struct capture_choice choice;
	struct capture *capture;
	struct annotated out;

	unsigned int cpus;
	int *cpu;	 /* kernel's numbers of the CPUs on which packets are judged */
	unsigned int on; /* index of the current CPU */
	uint64_t bytes;	 /* bytes of all packets that were read */
	uint64_t first_ns, last_ns;
	uint64_t cut;	  /* packets that end before their source address */
	uint64_t refused; /* packets that the kernel did not run programs on */
	/*
	 * Packets that fare differently under the second rules: PASSED and DROPPED count packets
	 * that pass and are dropped only there, WOULD_DROP packets that pass under both.
	 */
	struct fates differences;
	struct tally_sources differs; /* the same by source */
	bool is_complete;	      /* the capture was read to its end */
};

/* Opens the capture, makes the gates, and selects CPUs. gate: name of the running gate, or NULL. */
int replay_open(struct replay *replay, const struct replay_words *words, const char *gate);

/* Judges all packets. After an error, the packets before it have been counted. */
int replay_run(struct replay *replay);
void replay_close(struct replay *replay);

#endif
