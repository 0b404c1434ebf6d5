/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: judges packets of a capture by the packet path, in a gate of its own that no device uses.
 * The gate is not pinned, so it ends with this process. BPF_PROG_TEST_RUN runs the programs that
 * ship, built with a clock in a variable, which is set to the time of each packet. A run is one
 * system call; the programs read clock and length from memory that this process shares with them,
 * and store the verdict there.
 */
#ifndef SLUICE_REPLAY_JUDGE_H
#define SLUICE_REPLAY_JUDGE_H

#include <bpf/libbpf.h>

#include "capture/capture.h"
#include "context.h"
#include "gate/gate.h"
#include "rules/devices.h"
#include "rules/ruleset.h"

struct sluice__bss;

/*
 * Uptime at which the first packet of every replay is judged: 24 days, a multiple of all units of
 * time in the maps. So a replay of the same packets has the same result.
 */
#define JUDGE_BEGUN_NS (1953125ULL << 30)

struct judge {
	struct gate gate;
	struct bpf_object *object;
	int program[HOOKS];	 /* fds, which `object` owns */
	struct sluice__bss *bss; /* the variables of the programs */
	enum hook hook;
	uint64_t first_ns; /* time of the first packet, in ns since 1970 */
	uint64_t now_ns;   /* uptime of the last packet; 0 before the first */
};

#define JUDGE_CLOSED                                                                               \
	{                                                                                          \
		.gate = GATE_CLOSED, .program = { [0 ... HOOKS - 1] = -1 }                         \
	}

/* How a packet was judged. */
enum judge_result {
	JUDGE_DONE,
	JUDGE_CUT,     /* the captured bytes end before the source address */
	JUDGE_REFUSED, /* the kernel does not run programs on this frame */
};

/*
 * Makes a gate with these rules, and loads the programs of a hook. sizes: the sizes that the user
 * specified, otherwise 0. Expiries in the rules count from JUDGE_BEGUN_NS.
 */
int judge_open(const struct ruleset *rules, const struct gate_sizes *sizes, enum hook hook,
	       struct judge *ret);
void judge_close(struct judge *judge);

/* Judges a packet at its own time, on the current CPU. Stores the verdict unless it was refused. */
enum judge_result judge_packet(struct judge *judge, const struct capture_packet *packet,
			       struct sl_judged *ret);

#endif
