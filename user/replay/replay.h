/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: reads a capture, judges each packet under one or two sets of rules, and counts the
 * verdicts. If there are two sets, compares their verdicts.
 */
#ifndef SLUICE_REPLAY_REPLAY_H
#define SLUICE_REPLAY_REPLAY_H

#include "replay/annotate.h"
#include "replay/cpu_thread.h"
#include "replay/judge.h"
#include "replay/tally.h"
#include "replaying/command_replay.h"

#define RULES_MAX 2

/* A prefix of --fail-if-dropped or --fail-unless-dropped. */
struct condition {
	struct sl_prefix prefix;
	bool is_wanted;	 /* --fail-unless-dropped */
	bool is_dropped; /* the first rules dropped a packet from the prefix */
};

struct replay {
	const struct replay_words *words;
	char *rules_name[RULES_MAX]; /* path of the file, or name of the gate */
	unsigned int rules;
	struct judge judge[RULES_MAX];
	struct tally tally[RULES_MAX];
	struct capture_choice choice;
	struct capture *capture;
	struct annotated out;
	struct condition *condition;
	unsigned int conditions, condition_room;

	/* other CPUs that judge packets, besides the CPU to which the calling thread is pinned */
	struct cpu_thread *thread;
	unsigned int threads;
	uint64_t bytes; /* bytes of all packets that were read */
	uint64_t first_ns, last_ns;
	uint64_t cut;	  /* packets whose source address was cut off */
	uint64_t refused; /* packets that the kernel did not accept for BPF_PROG_TEST_RUN */
	/*
	 * Packets whose fate differs between the two sets of rules. PASSED: only the first rules
	 * drop the packet. DROPPED: only the second rules drop the packet. WOULD_DROP: both pass
	 * the packet, but one of them counts it as would-drop.
	 */
	struct fates differences;
	struct tally_sources differs; /* `differences` of each source */
	bool is_complete;	      /* the whole capture was read */
};

/*
 * Opens the capture, makes a gate for each set of rules, and selects CPUs. gate: name of the
 * running gate, or NULL. Returns 0, or a negative errno with an error.
 */
int replay_open(struct replay *replay, const struct replay_words *words, const char *gate);

/* Judges all packets. If it returns an error, the counts contain the packets before the error. */
int replay_run(struct replay *replay);
void replay_close(struct replay *replay);

#endif
