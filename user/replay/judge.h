/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: judges packets of a capture by the packet path, in a gate of its own that no device uses.
 * The gate is not pinned, so it ends with this process. BPF_PROG_TEST_RUN runs the packet path, one
 * system call for each packet. The programs are built from the released source, but read the time
 * from a variable. This process sets the time and the length of the packet in shared variables. The
 * programs store the verdict in a shared variable.
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
 * Uptime at which every replay judges its first packet: 24 days. It is a multiple of all units of
 * time in the maps, so a replay of the same packets has the same result.
 */
#define JUDGE_BEGUN_NS (1953125ULL << 30)

struct judge {
	struct gate gate;
	struct bpf_object *object;
	int program[HOOKS];	 /* fds of the programs; `object` closes them */
	struct sluice__bss *bss; /* variables of the BPF programs, mapped into memory */
	enum hook hook;
	uint64_t last_ns; /* time of the last judged packet, in ns since 1970 */
	uint64_t now_ns;  /* uptime of the last judged packet; 0: none yet */
};

#define JUDGE_CLOSED                                                                               \
	{                                                                                          \
		.gate = GATE_CLOSED, .program = { [0 ... HOOKS - 1] = -1 }                         \
	}

enum judge_result {
	JUDGE_DONE,
	JUDGE_CUT,     /* the capture does not contain the whole source address */
	JUDGE_REFUSED, /* the kernel did not run the program on this frame */
};

/*
 * Makes a gate with these rules, and loads the programs of a hook. sizes: the sizes that the user
 * specified; 0 for each other size. Expiries in the rules are uptimes of the replay, which begins
 * at JUDGE_BEGUN_NS.
 */
int judge_open(const struct ruleset *rules, const struct gate_sizes *sizes, enum hook hook,
	       struct judge *ret);
void judge_close(struct judge *judge);

/*
 * Judges a packet at the time in the capture, on the current CPU. Stores the verdict if the result
 * is JUDGE_DONE.
 */
enum judge_result judge_packet(struct judge *judge, const struct capture_packet *packet,
			       struct sl_judged *ret);

#endif
